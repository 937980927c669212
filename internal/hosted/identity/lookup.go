package identity

import (
	"context"
	"sync"

	"github.com/MicahParks/jwkset"
	"golang.org/x/time/rate"
)

// lookedUp is the key set of an issuer, which looks for unknown keys by downloads at a bounded rate. All tokens with an
// unknown key share the next download, which is never far away: so forged key ids can delay the look for a truly new
// key, but not use it up.
type lookedUp struct {
	*keySet
	ctx      context.Context // of the issuer
	rate     *rate.Limiter
	download func(kid string)

	mu   sync.Mutex
	next *look // has not begun; nil = no token needs one
}

// look is a download. done is closed when it has ended.
type look struct{ done chan struct{} }

// KeyRead implements jwkset.Storage.
func (l *lookedUp) KeyRead(ctx context.Context, kid string) (jwkset.JWK, error) {
	key, err := l.keySet.KeyRead(ctx, kid)
	if err == nil {
		return key, nil
	}
	select {
	case <-l.look(kid).done:
		return l.keySet.KeyRead(ctx, kid)
	case <-ctx.Done():
		return jwkset.JWK{}, ctx.Err()
	}
}

// look returns the next download to begin. One that is under way may have been answered before the key was added.
func (l *lookedUp) look(kid string) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &look{make(chan struct{})}
		go l.run(l.next, kid) // ends with ctx, or the download
	}
	return l.next
}

func (l *lookedUp) run(this *look, kid string) {
	defer close(this.done)
	err := l.rate.Wait(l.ctx)
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	if err == nil {
		l.download(kid)
	}
}
