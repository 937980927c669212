package app

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/front"
	"mcpx/internal/hosted/httpd"
)

// ServeStdio starts the servers and serves one client until its input or ctx ends. Then it closes the App.
func (a *App) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	a.start(ownerWithin)
	defer a.Close()
	return a.Attach(ctx, in, out)
}

// Attach serves one client until its input or ctx ends. It does not close the App. [App.Start] must have been called.
func (a *App) Attach(ctx context.Context, in io.Reader, out io.Writer) error {
	only := ""
	// With shared servers, each session needs a name of its own, so that a server can tell the clients of the sessions apart.
	if a.origin.Pool != nil {
		only = "stdio " + rand.Text()
	}
	return a.views.get(a.Config.View).front.ServeStdio(ctx, in, out, front.StdioOptions{
		MaxMessage: a.Config.MaxMessageBytes, Grace: a.grace(), Only: only,
	})
}

// ServeHTTP starts the servers and serves clients over HTTP until ctx ends. Then it closes the App and the listener.
func (a *App) ServeHTTP(ctx context.Context, listener net.Listener) error {
	a.start(startAfter)
	finish := a.state.leaves(ctx, a.Config.Drain+a.grace())
	err := httpd.Serve(ctx, listener, a.httpOptions())
	finish()
	a.Close()
	return err
}

func (a *App) httpOptions() httpd.Options {
	return httpd.Options{
		Endpoint: a.views,
		Path:     a.Config.HTTPPath,
		Identity: a.identity,
		TLS:      a.tls,
		Page:     a.page(),
		Limits:   a.limits,
		SSE:      a.Config.SSE,
		Grace:    a.grace(),
		Drain:    a.Config.Drain,
		Ready:    a.ready,
		Status:   a.wholeStatus,
		Journal:  &a.journal,
		Admin:    a.admin,
		Metrics:  a.metricsHandler(),
		Measures: a.mayMeasure,
		Version:  Version(),
		Logger:   a.log,

		AuthServer: a.issuing,
		Routes: httpd.Routes{
			Dial: a.dialled, Agents: a.agents, Servers: a.serversAPI(), Dialled: http.HandlerFunc(a.serveDialled),
		},
	}
}

// DialOut connects to a hosted mcpx and offers the servers of this machine to it. When a connection ends, DialOut opens the
// next one. It returns when ctx ends, or when the hosted mcpx refuses the connection for good. view is the name of the view
// that the hosted mcpx gets. DialOut calls say with a line for each event that the user should know of, and closes the App at the
// end.
func (a *App) DialOut(ctx context.Context, address, token, view string, say func(line string)) error {
	defer a.Close()
	a.start(0)
	d := &dialout{app: a, address: address, token: token, view: view, say: say}
	d.connect = d.serveOne
	d.awaitServers(ctx)
	return d.run(ctx)
}

// grace returns how long open calls may still take when mcpx shuts down: the config key shutdown_grace minus the time for closing the
// servers, but at least 100 ms.
func (a *App) grace() time.Duration {
	return max(a.Config.ShutdownGrace-2*closeWithin, 100*time.Millisecond)
}

// page returns the status page for admins over HTTP; nil if the config turns it off.
func (a *App) page() httpd.Page {
	if !a.Config.UI.Shown {
		return nil
	}
	return a.newPage(nil)
}

// admin reports whether a principal may see and change all servers.
func (a *App) admin(p *caller.Principal) bool { return a.Rights().Admin(p) }

// ServeProfiles serves the runtime profiles of this process (pprof) at a loopback address, until ctx ends or the caller calls
// stop. stop waits until serving has ended.
func ServeProfiles(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	listener, err := httpd.Listen(ctx, addr, false)
	if err != nil {
		if refused, ok := errors.AsType[*httpd.BindError](err); ok {
			refused.Profiles = true
		}
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

// module is the path of the module that this package belongs to.
const module = "mcpx"

// Version returns the version of mcpx. In another Go program that uses mcpx as a package, that is the version of the package. If
// the build has no version, Version returns 0.1.0-devel.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionIn(info)
	}
	return unversioned
}

// unversioned is the version of a build from a source folder, which has no version of its own.
const unversioned = "0.1.0-devel"

// versionIn returns the version of the module mcpx in the build info of a program.
func versionIn(info *debug.BuildInfo) string {
	for _, one := range append(info.Deps, &info.Main) {
		if one.Path != module {
			continue
		}
		if one.Replace != nil {
			one = one.Replace
		}
		if one.Version != "" && one.Version != "(devel)" {
			return strings.TrimPrefix(one.Version, "v")
		}
	}
	return unversioned
}
