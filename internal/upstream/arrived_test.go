package upstream

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

// TestArrived: a server that dials in is used at once each time that it dials, however often its connection was lost or its
// handshake failed before. Between two connections its state is connecting, so that calls wait for it.
func TestArrived(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		arrivals := make(chan bool) // whether the handshake works
		var works atomic.Bool
		var end atomic.Value // the func that ends the current session
		u := connect(t, Spec{Options: transport.Options{
			Name: "one", Type: transport.InProcess,
			Arrived: func(ctx context.Context) error {
				select {
				case one := <-arrivals:
					works.Store(one)
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
			Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
				if !works.Load() {
					return errors.New("cut")
				}
				ctx, cancel := context.WithCancel(ctx)
				end.Store(cancel)
				return mcptest.Spec{}.Serve(t, nil)(ctx, in, out)
			},
		}})
		for n := range 30 {
			began := time.Now()
			works := n%3 != 0
			arrivals <- works
			synctest.Wait()
			if state := u.Status().State; works != (state == catalog.Ready) || !works && state != catalog.Connecting {
				t.Fatalf("arrival %d: %s", n, state)
			}
			if waited := time.Since(began); waited > 0 {
				t.Fatalf("arrival %d was used after %v", n, waited)
			}
			if works {
				end.Load().(context.CancelFunc)()
				synctest.Wait()
				if status := u.Status(); status.State != catalog.Connecting || status.CrashLoop {
					t.Fatalf("loss %d: %s %s", n, status.State, status.Reason)
				}
			}
		}
		u.Close(0)
	})
}
