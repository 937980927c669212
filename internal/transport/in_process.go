package transport

import (
	"context"
	"io"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
)

// dialInProcess starts a server of this process.
func (d *Dialer) dialInProcess() Link {
	ctx, cancel := context.WithCancel(context.Background())
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	ended := make(chan struct{})
	var err error // of Serve, after ended
	// Ends when its input ends or ctx is done; Close waits for it.
	go func() {
		defer close(ended)
		if err = d.Serve(ctx, serverIn, serverOut); err == nil {
			err = io.EOF
		}
		_ = serverOut.CloseWithError(err)
		_ = serverIn.CloseWithError(err)
	}()
	l := newStreamLink(d)
	p := newPipe(l, wire.Newline, fromServer, toServer)
	p.end = func() {
		cancel()
		_ = toServer.Close()
		_ = fromServer.Close()
		<-ended
	}
	failure := func(seen error, patience time.Duration) string {
		delay.Until(context.Background(), patience, ended, nil)
		select {
		case <-ended:
			seen = err
		default:
		}
		return "the server ended: " + seen.Error()
	}
	return l.use(p, &ownServer{failure: failure})
}
