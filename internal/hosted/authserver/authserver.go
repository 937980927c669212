// Package authserver is a small OAuth authorization server for one resource, this mcpx. It
// serves clients that nobody has registered by hand, and leaves the login to an OpenID issuer.
//
// Clients are public ones with PKCE (RFC 7636): they register (RFC 7591), or are the URL of a
// document about themselves (draft-ietf-oauth-client-id-metadata-document). The client IDs,
// codes and tokens hold all that they stand for, sealed with a key. So the server keeps nothing
// but which codes and tokens were used, in [state.Once].
package authserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/state"
)

// The paths of the server, below its issuer.
const (
	authorizePath = "/oauth/authorize"
	callbackPath  = "/oauth/callback"
	tokenPath     = "/oauth/token"
	registerPath  = "/oauth/register"
	revokePath    = "/oauth/revoke"
	metadataPath  = "/.well-known/oauth-authorization-server"
)

// How long pages, codes and tokens are valid.
const (
	pageTime    = 10 * time.Minute // to answer the page, and to log in
	codeTime    = time.Minute
	accessTime  = time.Hour
	refreshTime = 30 * 24 * time.Hour // from each use
	// grantTime bounds how long a client goes on without another login: the user may have left,
	// and only the issuer knows that.
	grantTime = 90 * 24 * time.Hour
)

// Options are the settings of a server. They are never written to.
type Options struct {
	// Resource is the public URL of /mcp.
	Resource string
	// Granted are the scopes of every token: nobody gets more by asking for more.
	Granted []string

	conf.AuthServer

	// Secret is what the keys are derived from that everything is sealed with.
	Secret *state.Secret
	Log    *slog.Logger
}

// Server is the authorization server, an http.Handler for the paths of [Server.Serves].
type Server struct {
	o         Options
	issuer    string // this server's
	seals     seals
	grants    state.Once
	documents *documents
	login     *login
	sameSite  *http.CrossOriginProtection
	stands    context.Context // until Close; the requests that came with tokens of this server end with it
	revoked   context.CancelFunc
}

// New makes a server, which its caller closes. It makes no request before the first login.
func New(o Options, open Grants) (*Server, error) {
	u, err := url.Parse(o.Resource)
	if err != nil || u.Host == "" || !netguard.Safe(o.Resource) {
		return nil, fmt.Errorf("auth.front needs an auth.resource with https, not %q", o.Resource)
	}
	o.GroupsClaim = cmp.Or(o.GroupsClaim, "groups")
	if o.Redirects == nil {
		o.Redirects = Redirects
	}
	if o.Scopes == nil {
		o.Scopes = []string{"openid", "profile", "email"}
	} else if !slices.Contains(o.Scopes, "openid") {
		o.Scopes = append([]string{"openid"}, o.Scopes...)
	}
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	folder := strings.TrimSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), "/mcp")
	s := &Server{o: o, issuer: origin + folder, sameSite: http.NewCrossOriginProtection()}
	if err := s.sameSite.AddTrustedOrigin(origin); err != nil {
		return nil, err
	}
	s.seals = newSeals(o.Secret, o.Resource)
	if s.grants, err = open(s.seals.id); err != nil {
		return nil, err
	}
	s.stands, s.revoked = context.WithCancel(context.Background())
	// The draft (6.5) lets a server on loopback read documents on loopback.
	s.documents = newDocuments(netguard.NewClient(netguard.Reach{Loopback: netguard.LoopbackURL(o.Resource), Key: "nothing"}))
	s.login = newLogin(&s.o, s.Callback())
	return s, nil
}

// Close ends the requests that came with tokens of this server.
func (s *Server) Close() {
	s.revoked()
	s.documents.web.CloseIdleConnections()
	s.login.web.CloseIdleConnections()
}

// Issuer is the identifier of this server (RFC 8414), for the metadata of the resource: the
// resource without its /mcp.
func (s *Server) Issuer() string { return s.issuer }

// Callback is where the issuer sends people back to: it must know this address.
func (s *Server) Callback() string { return s.issuer + callbackPath }

// Serves reports whether a path is one of this server.
func Serves(path string) bool {
	return strings.HasPrefix(path, "/oauth/") || path == metadataPath || strings.HasPrefix(path, metadataPath+"/")
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type endpoint struct {
		methods []string
		serve   http.HandlerFunc
	}
	e, ok := map[string]endpoint{
		authorizePath: {[]string{http.MethodGet, http.MethodPost}, s.authorize},
		callbackPath:  {[]string{http.MethodGet}, s.callback},
		tokenPath:     {[]string{http.MethodPost}, s.token},
		registerPath:  {[]string{http.MethodPost}, s.register},
		revokePath:    {[]string{http.MethodPost}, s.revoke},
		metadataPath:  {[]string{http.MethodGet, http.MethodHead}, s.metadata},
	}[r.URL.Path]
	if !ok && strings.HasPrefix(r.URL.Path, metadataPath+"/") {
		// Older clients look for the server of a resource below the path of the resource.
		e, ok = endpoint{[]string{http.MethodGet, http.MethodHead}, s.metadata}, true
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	// The addresses have codes in them, which other sites must not see. With no-referrer the form
	// of the page would come from the origin "null".
	header.Set("Referrer-Policy", "same-origin")
	switch {
	case !ok:
		http.NotFound(w, r)
	case !slices.Contains(e.methods, r.Method):
		header.Set("Allow", strings.Join(e.methods, ", "))
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	default:
		e.serve(w, r)
	}
}

// metadata is the document of RFC 8414.
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=300")
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                     s.issuer,
		"authorization_endpoint":                     s.issuer + authorizePath,
		"token_endpoint":                             s.issuer + tokenPath,
		"registration_endpoint":                      s.issuer + registerPath,
		"revocation_endpoint":                        s.issuer + revokePath,
		"response_types_supported":                   []string{"code"},
		"response_modes_supported":                   []string{"query"},
		"grant_types_supported":                      []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":      []string{"none"},
		"revocation_endpoint_auth_methods_supported": []string{"none"},
		"code_challenge_methods_supported":           []string{"S256"},
		// ChatGPT asks for refresh tokens only where offline_access is listed.
		"scopes_supported": append(slices.Clone(s.o.Granted), "offline_access"),
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          !s.o.NoDocuments,
	})
}

// fault is an error of RFC 6749, section 5.2, and RFC 7591, section 3.2.2.
type fault struct {
	Code string `json:"error"`
	Text string `json:"error_description"`
}

func (f *fault) Error() string { return f.Code + ": " + f.Text }

// refuse answers a client with a fault.
func refuse(w http.ResponseWriter, f *fault) {
	status := http.StatusBadRequest
	switch f.Code {
	case "invalid_client":
		status = http.StatusUnauthorized
	case "temporarily_unavailable":
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, f)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// only returns the value of a parameter that may be there once (RFC 6749, section 3.1).
func only(values url.Values, name string) (string, error) {
	if len(values[name]) > 1 {
		return "", &fault{"invalid_request", name + " is there twice"}
	}
	return values.Get(name), nil
}

// ours reports whether a resource (RFC 8707) is this mcpx: its URL, or a view below it.
func (s *Server) ours(resources []string) bool {
	for _, resource := range resources {
		u, err := url.Parse(resource)
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return false
		}
		own, _ := url.Parse(s.o.Resource)
		path, below := strings.CutPrefix(strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(own.Path, "/"))
		if !strings.EqualFold(u.Scheme, own.Scheme) || !strings.EqualFold(u.Host, own.Host) || !below || path != "" && path[0] != '/' {
			return false
		}
	}
	return len(resources) <= 1
}
