package app

import (
	"context"
	"io"
	"net"
	"time"

	"mcpx/internal/front"
	"mcpx/internal/hosted/httpd"
)

// ServeStdio starts the upstreams and serves one client until its input or ctx
// ends. Then it closes a.
func (a *App) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	a.start(ownerWithin)
	err := a.views.get(a.Config.View).front.ServeStdio(ctx, in, out, front.StdioOptions{
		MaxMessage: a.Config.MaxMessageBytes, Grace: a.grace(),
	})
	a.Close()
	a.saveSavings()
	return err
}

// ServeHTTP starts the upstreams and serves clients over HTTP until ctx ends. Then
// it closes a and the listener.
func (a *App) ServeHTTP(ctx context.Context, listener net.Listener) error {
	a.start(startAfter)
	err := httpd.Serve(ctx, listener, httpd.Options{
		Endpoint: a.views,
		Identity: a.identity,
		TLS:      a.tls,
		Page:     a.page(),
		Limits:   a.limits,
		Servers:  a.serversAPI(),
		SSE:      a.Config.SSE,
		Grace:    a.grace(),
		Ready:    a.ready,
		Status:   a.wholeStatus,
		Journal:  &a.journal,
		Admin:    a.admin,
		Metrics:  a.metricsHandler(),
		Measures: a.mayMeasure,
		Version:  Version(),
		Logger:   a.log,

		AuthServer: a.issuing,
	})
	a.Close()
	a.saveSavings()
	return err
}

// grace is shutdown_grace without the time that closing the upstreams takes.
func (a *App) grace() time.Duration {
	return max(a.Config.ShutdownGrace-2*closeWithin, 100*time.Millisecond)
}
