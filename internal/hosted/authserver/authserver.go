// Package authserver is a small OAuth authorization server for one resource, this mcpx. It serves clients without manual
// registration, and leaves the login of users to an OpenID issuer.
//
// Clients are public clients with PKCE (RFC 7636). They register themselves (RFC 7591), or their ID is the URL of a document about
// them (draft-ietf-oauth-client-id-metadata-document). Client IDs, codes and tokens are self-contained: the server encrypts the
// data into them. The server stores only two things: logins, encrypted, and the IDs of the issuer's logout tokens that were used.
// The record of a login says who the user is and which codes and refresh tokens were used. It also has the issuer's tokens, with
// which the server asks the issuer later whether the user may stay logged in.
package authserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/httpd"
)

// These are the paths of the server, relative to its issuer URL.
const (
	authorizePath = "/oauth/authorize"
	callbackPath  = "/oauth/callback"
	tokenPath     = "/oauth/token"
	registerPath  = "/oauth/register"
	revokePath    = "/oauth/revoke"
	logoutPath    = "/oauth/logout"
	metadataPath  = "/.well-known/oauth-authorization-server"
)

// These constants say how long consent pages, codes, tokens and logins are valid.
const (
	pageTime = 10 * time.Minute // how long the user may take to answer the consent page, and then to log in at the issuer
	codeTime = time.Minute
	// accessTime is the longest time for which an access token is valid. Before a client gets its next access token, mcpx asks the
	// issuer whether the user may stay logged in. So a user who has left the organization can use mcpx for little more than
	// accessTime.
	accessTime  = 10 * time.Minute
	refreshTime = 30 * 24 * time.Hour // the time in which a client must use its newest refresh token
	// grantTime is the longest time until a user must log in again.
	grantTime = 90 * 24 * time.Hour
	// pageLogin is the longest time until a user of mcpx's own pages must log in again.
	pageLogin = 12 * time.Hour
)

// Options are the settings of a server. They are immutable.
type Options struct {
	// Resource is the public URL of the endpoint. Path is the path at which this process serves the endpoint; empty means /mcp. The
	// two differ if a proxy rewrites paths.
	Resource, Path string
	// Granted are the scopes that every token has, whatever the client requests.
	Granted []string

	conf.AuthServer

	// Secrets are the secrets from which all encryption keys are derived. New values are encrypted with the key of the first
	// secret. The keys of all secrets decrypt. There is at least one secret.
	Secrets []*state.Secret
	// Audit records the logins that begin, end, are refused or fail. In a cluster only the replica that began or ended a login
	// records it.
	Audit audit.Logins
	Log   *slog.Logger
}

// Server is the authorization server. It is an http.Handler for the paths for which [Serves] returns true.
type Server struct {
	o         Options
	issuer    string // the issuer identifier of this server
	seals     seals
	parts     Parts
	store     state.Followed
	known     known
	swept     atomic.Int64 // when the last sweep began, in Unix seconds
	unfollow  func()
	documents *documents
	oidc      *oidcClient
	sameSite  *http.CrossOriginProtection
	ctx       context.Context // cancelled by Close; all requests that use tokens or logins of this server end with it
	revoked   context.CancelFunc
}

// Parts are what a server works with. Unlike [Options] they stay the same when the config changes.
type Parts struct {
	// Store has the logins. Replicas must share it, and it must outlive the process.
	Store state.Followed
	// Left is called with a principal whose last login with a client has ended; it may be nil. Each process that shares the store
	// calls Left when it learns of such an end, because two processes may end the last two logins at the same moment. When a server
	// starts, it also calls Left for the ends that the store still has, because perhaps no process was running when the logins
	// ended. Left must not wait, and must not use the store.
	Left func(*caller.Principal)
	// SignedIn is called when a user has logged in for a web page of mcpx itself ([Server.SignIn]). No client gets a code for such
	// a login. SignedIn sets the cookie by which the page finds the login again: login is the string that [Server.Standing] takes.
	SignedIn func(w http.ResponseWriter, r *http.Request, login string, p *caller.Principal) error
}

// New makes a server, which the caller must close. It sends nothing to the issuer before the first login, renewal or logout
// token.
func New(o Options, parts Parts) (*Server, error) {
	u, err := url.Parse(o.Resource)
	if err != nil || u.Host == "" || !netguard.Safe(o.Resource) {
		return nil, fmt.Errorf("auth.front needs an auth.resource with https, not %q", o.Resource)
	}
	o.GroupsClaim = cmp.Or(o.GroupsClaim, "groups")
	if o.Redirects == nil {
		o.Redirects = defaultRedirects
	}
	if o.Scopes != nil && !slices.Contains(o.Scopes, "openid") {
		o.Scopes = append([]string{"openid"}, o.Scopes...)
	}
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	folder := strings.TrimSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), cmp.Or(o.Path, "/mcp"))
	s := &Server{o: o, issuer: origin + folder, sameSite: http.NewCrossOriginProtection()}
	if err := s.sameSite.AddTrustedOrigin(origin); err != nil {
		return nil, err
	}
	s.seals = newSeals(o.Secrets, o.Resource)
	s.parts, s.store = parts, parts.Store
	s.known.byNumber = make(map[string]*entry)
	s.ctx, s.revoked = context.WithCancel(context.Background())
	// Client ID metadata documents may be on loopback if the server itself is (draft-ietf-oauth-client-id-metadata-document,
	// section 6.5).
	s.documents = newDocuments(s.ctx, netguard.NewClient(netguard.Reach{Loopback: netguard.LoopbackURL(o.Resource), Key: "nothing"}))
	s.oidc = newOIDCClient(&s.o, s.Callback())
	s.unfollow = s.store.Watch(storePrefix, s.learn)
	s.learnedAll()
	return s, nil
}

// Close closes the server. It ends all requests that were authenticated with tokens or logins of this server.
func (s *Server) Close() {
	s.unfollow()
	s.revoked()
	s.oidc.keys.Close()
	s.documents.web.CloseIdleConnections()
	s.oidc.web.CloseIdleConnections()
}

// Issuer returns the issuer identifier of this server (RFC 8414): the resource URL without the endpoint's path.
func (s *Server) Issuer() string { return s.issuer }

// Logout returns the URL to which the issuer may send logout tokens. The administrator may register it at the issuer as the
// back-channel logout URL.
func (s *Server) Logout() string { return s.issuer + logoutPath }

// Callback returns the URL to which the issuer sends users back. The administrator must register it at the issuer.
func (s *Server) Callback() string { return s.issuer + callbackPath }

// Serves reports whether a request for this path is for the authorization server.
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
		logoutPath:    {[]string{http.MethodPost}, s.logout},
		metadataPath:  {[]string{http.MethodGet, http.MethodHead}, s.metadata},
	}[r.URL.Path]
	if !ok && strings.HasPrefix(r.URL.Path, metadataPath+"/") {
		// Older clients append the path of the resource to the well-known path.
		e, ok = endpoint{[]string{http.MethodGet, http.MethodHead}, s.metadata}, true
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	// The URLs contain codes, which other sites must not see. The policy is not no-referrer, because then browsers
	// would send the consent form with the Origin "null".
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

// metadata serves the authorization server metadata (RFC 8414).
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=300")
	httpd.WriteJSON(w, http.StatusOK, map[string]any{
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
		// ChatGPT requests refresh tokens only if offline_access is listed.
		"scopes_supported": append(slices.Clone(s.o.Granted), "offline_access"),
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          !s.o.NoDocuments,
	})
}

// fault is an OAuth error response (RFC 6749, section 5.2, and RFC 7591, section 3.2.2).
type fault struct {
	Code string `json:"error"`
	Text string `json:"error_description"`
}

func (f *fault) Error() string { return f.Code + ": " + f.Text }

func refuse(w http.ResponseWriter, f *fault) {
	status := http.StatusBadRequest
	switch f.Code {
	case "invalid_client":
		status = http.StatusUnauthorized
	case "temporarily_unavailable":
		status = http.StatusServiceUnavailable
	}
	httpd.WriteJSON(w, status, f)
}

// only returns the value of a parameter, which is empty if there is none. If the parameter is repeated, the error is a *fault (RFC
// 6749, section 3.1).
func only(values url.Values, name string) (string, error) {
	if len(values[name]) > 1 {
		return "", &fault{"invalid_request", "duplicate " + name}
	}
	return values.Get(name), nil
}

// ours reports whether the values of the resource parameter (RFC 8707) mean this mcpx: there is no value, or there is one, which is
// the URL of this mcpx or of a view below it. With several values, ours returns false.
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
