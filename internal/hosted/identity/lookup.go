package identity

import (
	"context"
	"sync"

	"github.com/MicahParks/jwkset"
	"golang.org/x/time/rate"
)

// lookedUp is the key set of an issuer. It looks for unknown keys with downloads at a bounded rate. All tokens with
// an unknown key wait for the same next download, which begins soon. So tokens with forged key IDs can delay the
// search for a really new key, but not prevent it.
type lookedUp struct {
	*keySet
	rate *rate.Limiter

	mu   sync.Mutex
	next *look // a download that has not begun; nil if no token needs a download
}

// look is a download of the keys. done is closed when it has ended.
type look struct{ done chan struct{} }

// KeyRead returns the key with the ID kid. If the key is unknown, KeyRead waits for a download of the keys.
func (l *lookedUp) KeyRead(ctx context.Context, kid string) (jwkset.JWK, error) {
	key, err := l.keySet.KeyRead(ctx, kid)
	if err == nil {
		return key, nil
	}
	select {
	case <-l.look().done:
		return l.keySet.KeyRead(ctx, kid)
	case <-ctx.Done():
		return jwkset.JWK{}, ctx.Err()
	}
}

// look returns the next download to begin. It does not return a download that has begun, because the issuer may have answered
// that download before it added the key.
func (l *lookedUp) look() *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &look{make(chan struct{})}
		go l.run(l.next) // ends with the context of the issuer, or when the download has ended
	}
	return l.next
}

func (l *lookedUp) run(this *look) {
	defer close(this.done)
	err := l.rate.Wait(l.issuer.ctx)
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	if err == nil {
		l.again()
	}
}
