package transport

import (
	"context"
	"io"
	"time"

	"mcpx/internal/base/wire"
)

// dialInProcess starts [Options.Serve] in a goroutine, and returns a link to it over two pipes in memory.
func (d *Dialer) dialInProcess() Link {
	ctx, cancel := context.WithCancel(context.Background())
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	ended := make(chan struct{})
	var err error // the result of Serve; set before ended is closed
	// The goroutine ends when its input ends or ctx is done; the pipe's Close waits for it.
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
		select {
		case <-ended:
			seen = err
		case <-time.After(patience):
		}
		return "the server ended: " + seen.Error()
	}
	return l.use(p, &ownServer{failure: failure})
}
