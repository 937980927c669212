package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"mcpx/internal/desk/config"
	"mcpx/internal/desk/secret"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// Local is a server that runs in this process, in addition to the servers of the config. The config has no settings for it. Serve serves
// one session with newline-delimited JSON-RPC until its input or ctx ends.
type Local struct {
	Name  string
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error
}

// upstreams returns the locals as servers of the registry.
func (b *builder) upstreams(locals []Local) (servers []registry.Server) {
	for _, one := range locals {
		servers = append(servers, registry.Server{Spec: upstream.Spec{Options: transport.Options{
			Name: one.Name, Type: transport.InProcess, Serve: one.Serve, Logger: b.log,
		}}})
	}
	return servers
}

// checkLocals returns an error if a local cannot be served under its name.
func checkLocals(cfg *config.Config, locals []Local) error {
	for i, one := range locals {
		switch {
		case !config.ValidName(one.Name):
			return fmt.Errorf("the server %q: a name has letters, digits, '.', '_' and '-', at most 64, and is not mcpx, . or .. alone", one.Name)
		case cfg.Served(one.Name) != "" || slices.ContainsFunc(locals[:i], func(l Local) bool { return l.Name == one.Name }):
			return fmt.Errorf("there are two servers %s", one.Name)
		case one.Serve == nil:
			return fmt.Errorf("the server %s is nil", one.Name)
		}
	}
	return nil
}

// ReadConfig reads a config file and its secrets, for a Go program that uses mcpx as a package. Without a path, it returns a config without
// servers.
func ReadConfig(ctx context.Context, path string) (*config.Config, error) {
	if path == "" {
		cfg, err := config.Parse("", []byte(`{"mcpServers": {}}`), config.Options{})
		if err == nil {
			cfg.Warnings = nil // removes the warning that no servers are defined; there is no other
		}
		return cfg, err
	}
	secrets := Secrets()
	return config.Load(path, config.Options{
		Getenv:  os.LookupEnv,
		Keyring: func(name string) (string, error) { return secrets.Get(ctx, name) },
		Run:     func(argv []string) (string, error) { return secret.Run(ctx, argv, "", nil) },
	})
}

// Open logs the faults of the config, and opens the audit trail and the traces that the config asks for. It must be called before clients
// are served, so that the trail and the traces have every call. The caller calls end after Close.
func (a *App) Open() (end func(), err error) {
	a.LogWarnings(a.Config)
	endAudit, err := a.OpenAudit()
	if err != nil {
		return nil, err
	}
	endTraces := a.OpenTraces()
	return func() {
		endTraces()
		endAudit()
	}, nil
}

// Start connects to the servers in the background. Programs that use [App.Attach] or [App.Handler] call it once.
func (a *App) Start() { a.start(startAfter) }

// Handler returns the handler with which [App.ServeHTTP] serves clients, for a program that has an HTTP server of its own. If the
// config has no auth, the handler answers only requests that arrive at a loopback address, unless anywhere is true. stop ends the
// open requests; the caller calls it before Close. Start must have been called. The error names a config key that is not possible
// with a handler, such as tls, or a key that is missing.
func (a *App) Handler(anywhere bool) (h http.Handler, stop func(), err error) {
	switch cfg := a.Config; {
	case cfg.TLS != nil:
		return nil, nil, errors.New(`the config has "tls", which is for mcpx serve: here the program's own HTTP server encrypts`)
	case cfg.Cluster != nil:
		return nil, nil, errors.New(`the config has "cluster", which is for mcpx serve: a replica has to drain its connections itself`)
	case nameless(cfg):
		return nil, nil, &namelessError{}
	}
	h, stop = httpd.Handler(a.httpOptions(), anywhere || a.Config.Auth != nil)
	return h, stop, nil
}
