package upstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

// dialled is a connection to a fake server, as a WebSocket would be.
type dialled struct {
	*wire.Reader
	stdin io.WriteCloser
	w     *wire.Writer
}

func (d dialled) Write(messages ...[]byte) error { return d.w.Write(messages...) }

func (d dialled) Close() error { return d.stdin.Close() }

// TestDial: mcpx reaches a server through the connection that Connect returns, and calls Connect again after a
// loss.
func TestDial(t *testing.T) {
	mcptest.NoLeaks(t)
	var mu sync.Mutex
	var conns []dialled
	refused := true
	u := connect(t, Spec{Options: transport.Options{Connect: func(context.Context) (transport.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if refused {
			refused = false
			return nil, errors.New("nobody has dialled in, secret sesame")
		}
		stdin, stdout, _ := mcptest.Spec{}.Pipe(t)
		conn := dialled{wire.NewReader(stdout, 1<<20, nil), stdin, wire.NewWriter(stdin, wire.Newline)}
		conns = append(conns, conn)
		return conn, nil
	}, Secrets: sanitize.NewSecrets([]string{"sesame"}, nil)}})
	contains(t, "reason", awaitState(t, u, catalog.Unavailable).Reason, "nobody has dialled in, secret [secret]")
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
	mu.Lock()
	_ = conns[0].Close()
	mu.Unlock()
	mcptest.WaitFor(t, "the loss", patience, func() bool { return u.Status().Restarts == 1 })
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
}
