package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"mcpx/internal/hosted/identity"
)

// ServeProfiles serves the profiles of this process at /debug/pprof/ until ctx ends. It does not wait for a profile that is then
// still being recorded.
func ServeProfiles(ctx context.Context, listener net.Listener, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // serves the index, and the profiles listed there
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	guarded := &guard{next: mux, options: &Options{
		Identity: &identity.Verifier{}, Logger: log, timeouts: timeouts{draining: new(atomic.Bool)}, // draining stays false
	}, refusals: &refusals{log: log}}
	server := &http.Server{
		Handler:           &recovered{next: guarded, log: log},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving profiles: %w", err)
	}
	return nil
}
