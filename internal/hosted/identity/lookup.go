package identity

import (
	"context"
	"sync"

	"github.com/MicahParks/jwkset"
	"golang.org/x/time/rate"
)

// lookedUp is the key set of an issuer. If a key is unknown, it downloads the keys again, at a bounded rate. All tokens with an
// unknown key wait for the same download, the next one that begins. So tokens with forged key IDs can delay the search for a really
// new key, but they cannot prevent it.
type lookedUp struct {
	*keySet
	rate *rate.Limiter

	mu   sync.Mutex
	next *look // the download that begins next; nil if no token waits for one
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

// look returns the download that begins next. A download that has already begun does not count, because the issuer may have sent
// its answer before it added the key.
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
