package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/authserver"
	"mcpx/internal/hosted/connect"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/policy"
)

// Listen listens on an address. If other machines can reach the address, the config must have auth, or insecure must be true;
// and if the config has auth.issuers, it must have auth.resource too. Listen also reads the certificates for ServeHTTP.
func (a *App) Listen(ctx context.Context, addr string, insecure bool) (net.Listener, error) {
	if a.Config.TLS != nil {
		var err error
		if a.tls, err = a.loadTLS(); err != nil {
			return nil, err
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

// nameless reports whether a config has auth.issuers but no auth.resource. The tokens of these issuers must be made for the URL in
// auth.resource. Without it, mcpx would have to take the URL from the header Host, which the client chooses; that is safe only on
// loopback.
func nameless(cfg *config.Config) bool {
	return cfg.Auth != nil && len(cfg.Auth.Issuers) > 0 && cfg.Auth.Resource == ""
}

type namelessError struct{}

func (*namelessError) Error() string {
	return "auth.issuers needs auth.resource on an address that other machines reach"
}

// Hint returns advice for the user.
func (*namelessError) Hint() string {
	return "set auth.resource to the URL that clients use, such as https://mcp.example.com/mcp: tokens must be made for it"
}

// identities returns the options for authenticating clients; nil means that every client may connect. server may be nil.
func (b *builder) identities(cfg *config.Config, server *authServer) *identity.Options {
	if cfg.Auth == nil {
		return nil
	}
	o := &identity.Options{
		Path: b.path, Tokens: cfg.Auth.Tokens, Scopes: cfg.Auth.Scopes, Certificates: cfg.Auth.Certificates, Logger: b.log,
	}
	if d := cfg.Dial; d != nil && d.Compat != conf.CompatOff {
		o.Agents = &identity.Agents{Keys: d.Keys, Encrypted: d.Compat == conf.CompatEncrypted}
	}
	if cfg.Auth.Resource != "" {
		o.Resource, _ = url.Parse(cfg.Auth.Resource) // cannot fail: package config has checked the URL
	}
	if server != nil { // first, because clients use the first issuer
		o.LocalIssuer = server
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

// auth returns the value of the config key auth that applies after a reload. In two cases that is the previous value, and auth logs
// the reason. If auth was removed from the file, the previous value stays in use until the next start, when Listen checks the
// address again. If other machines can reach the address, the new value is not used if it has issuers but no resource (see
// nameless).
func (b *builder) auth(next *config.Config, previous *config.Auth) *config.Auth {
	switch {
	case next.Auth == nil && previous != nil:
		b.log.Error("auth was removed from the config: the old one stays in force until mcpx restarts")
		return previous
	case b.public && nameless(next):
		b.log.Error("auth stays as it was", "err", &namelessError{})
		return previous
	}
	return next.Auth
}

// authServer is the OAuth authorization server that mcpx runs itself (auth.front), with the options from which it was made.
type authServer struct {
	*authserver.Server
	of        *authserver.Options
	keyInFile bool // the config has no key: mcpx uses a key in a file or, with a cluster, the keys of the cluster
}

// newAuthServer returns the authorization server for the config key auth, or nil if auth has no front or the profile runs no
// such server. If previous was made from the same options, newAuthServer returns previous.
func (b *builder) newAuthServer(auth *config.Auth, previous *authServer) (*authServer, error) {
	wanted, err := b.authServerOptions(auth, previous)
	switch {
	case err != nil || wanted == nil:
		return nil, err
	case previous != nil && reflect.DeepEqual(previous.of, wanted):
		return previous, nil
	}
	store, err := b.state.frontLoginStore(b.log)
	if err != nil {
		return nil, err
	}
	made, err := authserver.New(*wanted, authserver.Parts{
		Store: store, Left: b.state.frontLogins.hasLeft, SignedIn: b.browsers.SignedIn,
	})
	if err != nil {
		return nil, err
	}
	b.log.Info("users log in at the issuer, where this redirect URI of mcpx must be registered",
		"issuer", wanted.Issuer, "redirect_uri", made.Callback(), "backchannel_logout_uri", made.Logout())
	return &authServer{made, wanted, len(auth.Front.Keys) == 0}, nil
}

func (b *builder) authServerOptions(auth *config.Auth, before *authServer) (*authserver.Options, error) {
	if !b.profile.authServer || auth == nil || auth.Front == nil {
		return nil, nil
	}
	f := auth.Front
	secrets, err := b.state.secretsOf(f.Keys, before, b.log)
	if err != nil {
		return nil, err
	}
	return &authserver.Options{
		Resource: auth.Resource, Path: b.path, Granted: auth.Scopes, AuthServer: *f, Secrets: secrets, Audit: b.auditor, Log: b.log,
	}, nil
}

// issuing returns the handler of a path that clients may request without a token: a path of the authorization server, or a page on
// which principals log in to servers. It returns nil for other paths.
func (a *App) issuing(path string) http.Handler {
	if server := a.current.Load().authServer; server != nil && authserver.Serves(path) {
		return server
	}
	if connect.Serves(path) {
		if pages := a.connectPages(); pages != nil {
			return pages
		}
	}
	return nil
}

// NewToken returns a new token for a client over HTTP, and the digest for the config, a SHA-256 in hexadecimal.
func NewToken() (token, digest string) {
	token = identity.NewToken()
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}

// NewAgentToken returns a token for the servers and clients of an agent. An agent is a name that they share in an older system that
// mcpx can replace (see agents). until is when the token expires. If the config does not turn dial.compat on, the error is a
// noAgentsError.
func NewAgentToken(cfg *config.Config, agent string, until time.Time) (string, error) {
	if !compat(cfg.Dial) {
		return "", &noAgentsError{}
	}
	return identity.NewAgentToken(cfg.Dial.Keys[0], agent, until)
}

type noAgentsError struct{}

func (*noAgentsError) Error() string { return "this config accepts no tokens of agents" }

// Hint returns advice for the user.
func (*noAgentsError) Hint() string {
	return `set "dial": {"compat": "signed", "compat_key": "${AGENTS_KEY}"}; openssl rand -hex 32 makes a key`
}

func rightsOf(cfg *config.Config) *policy.Rights {
	if cfg.Auth == nil {
		return nil
	}
	return policy.NewRights(cfg.Auth.Rights, writtenNames(cfg))
}

// writtenNames maps the name under which mcpx serves a server to its name in the config file. It leaves out servers whose two
// names are the same.
func writtenNames(cfg *config.Config) map[string]string {
	names := make(map[string]string)
	for _, s := range cfg.Servers {
		if s.Written != "" {
			names[s.Name] = s.Written
		}
	}
	return names
}

// namesInFile returns the names of all servers as they are in the config file.
func namesInFile(cfg *config.Config) (names []string) {
	for _, s := range cfg.Servers {
		names = append(names, cmp.Or(s.Written, s.Name))
	}
	return names
}

// ofServer reports whether a glob of SERVER.TOOL can match tools of the server called name.
func ofServer(glob, name string) bool {
	return strings.HasPrefix(glob, name+".") || policy.Begins(glob, name+".")
}

// Rights returns the current rights. They change with the config, so callers must not keep them.
func (a *App) Rights() *policy.Rights { return policy.RightsOf(a.Registry.Snapshot()) }

// UnknownInRights returns a warning for each pattern in auth.rights that matches no server, or no view, of the config. This is
// not an error, because the server may be added later.
func UnknownInRights(cfg *config.Config) (all []string) {
	if cfg.Auth == nil {
		return nil
	}
	servers, views := namesInFile(cfg), []string{config.ViewTwoTools, config.ViewTools}
	for _, name := range servers {
		views = append(views, config.ViewServer+name)
	}
	for _, g := range cfg.Groups {
		views = append(views, config.ViewGroup+g.Name)
	}
	given := append([]string{config.Reserved}, servers...)
	denied := slices.Clone(given)
	for _, s := range cfg.Servers {
		denied = append(denied, s.Name) // a rule may also deny by the name under which mcpx serves the server
	}
	ofEither := func(glob, name string) bool { return matches(glob, name) || ofServer(glob, name) }
	for i, r := range cfg.Auth.Rights {
		at := fmt.Sprintf("auth.rights[%d].", i)
		all = slices.Concat(all,
			unmatched(at+"servers: no server is called %q", exceptDialled(cfg, r.Servers), servers, matches),
			unmatched(at+"tools.allow: no server is named by %q", exceptDialled(cfg, r.Allow), given, ofServer),
			unmatched(at+"tools.deny: no server is named by %q", exceptDialled(cfg, r.Deny), denied, ofServer),
			unmatched(at+"views: no view is called %q", exceptDialled(cfg, r.Views), views, matches),
			unmatched(at+"deny: no server is called %q, or has such a tool", exceptDialled(cfg, r.TakeAway), denied, ofEither))
	}
	return all
}

// exceptDialled leaves out the patterns that may mean a server which may dial in. The names of such servers are given as globs, and have
// no dots.
func exceptDialled(cfg *config.Config, patterns []string) []string {
	if cfg.Dial == nil {
		return patterns
	}
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool {
		server, _, _ := strings.Cut(strings.TrimPrefix(pattern, config.ViewServer), ".")
		return slices.ContainsFunc(cfg.Dial.Allow, func(r conf.DialRule) bool {
			return slices.ContainsFunc(r.Names, func(name string) bool { return matches(name, server) || matches(server, name) })
		})
	})
}
