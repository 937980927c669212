package app

import (
	"context"
	"log/slog"
	"sync"

	"mcpx/internal/hosted/httpd"
)

// ServeProfiles serves the profiles of this process at an address on loopback, until ctx
// ends or the caller calls stop, which waits for the end.
func ServeProfiles(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	listener, err := httpd.Listen(ctx, addr, false)
	if err != nil {
		return nil, err
	}
	log.Warn("serving profiles", "url", "http://"+listener.Addr().String()+"/debug/pprof/")
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() { // ends with ctx
		if err := httpd.ServeProfiles(ctx, listener, log); err != nil {
			log.Error("serving profiles ended", "err", err)
		}
	})
	return func() {
		cancel()
		serving.Wait()
	}, nil
}
