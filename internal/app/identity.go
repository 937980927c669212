package app

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
)

// Listen listens on an address, beyond loopback only if the config has auth, or if
// insecure is true. It reads the certificates that ServeHTTP serves with.
func (a *App) Listen(ctx context.Context, addr string, insecure bool) (net.Listener, error) {
	if a.Config.TLS != nil {
		var err error
		files := *a.Config.TLS
		files.Identity = a.Config.Auth != nil && a.Config.Auth.Certificates
		if a.tls, err = httpd.LoadTLS(files, a.log); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	listener, err := httpd.Listen(ctx, addr, insecure || a.Config.Auth != nil)
	if err != nil {
		return nil, err
	}
	if a.public = !httpd.OnLoopback(listener); a.public && nameless(a.Config) {
		listener.Close()
		return nil, &namelessError{}
	}
	if a.public && a.tls == nil && a.Config.Auth != nil {
		a.log.Warn("clients send their tokens unencrypted unless a proxy in front of mcpx adds TLS; see the key tls")
	}
	return listener, nil
}

// nameless reports whether a config trusts issuers and does not say what their tokens must
// be for. Beyond loopback the Host of a request cannot say it: the client chooses it.
func nameless(cfg *config.Config) bool {
	return cfg.Auth != nil && len(cfg.Auth.Issuers) > 0 && cfg.Auth.Resource == ""
}

type namelessError struct{}

func (*namelessError) Error() string {
	return "auth.issuers needs auth.resource on an address that other machines reach"
}

// Hint is advice for the user.
func (*namelessError) Hint() string {
	return "set auth.resource to the URL that clients use, such as https://mcp.example.com/mcp: tokens must be made for it"
}

// identities makes the options of who may connect; nil: everybody.
func (b *builder) identities(cfg *config.Config, server *authServer) *identity.Options {
	if cfg.Auth == nil {
		return nil
	}
	o := &identity.Options{Tokens: cfg.Auth.Tokens, Scopes: cfg.Auth.Scopes, Certificates: cfg.Auth.Certificates, Logger: b.log}
	if cfg.Auth.Resource != "" {
		o.Resource, _ = url.Parse(cfg.Auth.Resource) // config has checked it
	}
	if server != nil { // first, as clients take the first
		o.Front = server
		o.AuthorizationServers = append(o.AuthorizationServers, server.Issuer())
	}
	for _, i := range cfg.Auth.Issuers {
		if i.Audiences == nil {
			i.Audiences = cfg.Auth.Audiences
		}
		o.Issuers = append(o.Issuers, i)
		o.AuthorizationServers = append(o.AuthorizationServers, i.URL)
	}
	return o
}

// auth is the auth that a config puts in force after before; the log says why it is another than
// its own. Auth that is gone stays in force until the next start, which asks again whether the
// address is safe without.
func (b *builder) auth(to *config.Config, before *config.Auth) *config.Auth {
	switch {
	case to.Auth == nil && before != nil:
		b.log.Error("the config has no auth any more: the one before stays in force until mcpx starts again")
		return before
	case b.public && nameless(to):
		b.log.Error("auth stays as it was", "err", &namelessError{})
		return before
	}
	return to.Auth
}
