package httpd

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/identity"
)

// authenticated is the handler that finds the principal of a request, before the body is read.
type authenticated struct {
	next     http.Handler
	verifier *identity.Verifier
	// issuing is the function [Options.AuthServer].
	issuing  func(path string) http.Handler
	refusals *refusals
}

// ServeHTTP implements http.Handler.
func (a *authenticated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.issuing != nil {
		if server := a.issuing(r.URL.Path); server != nil {
			server.ServeHTTP(w, r)
			return
		}
	}
	if open(r) {
		a.next.ServeHTTP(w, r)
		return
	}
	proof, err := a.proof(r)
	switch {
	case errors.Is(err, identity.ErrNone) && strings.Contains(r.URL.Path, "/.well-known/"): // for metadata below /mcp
		http.NotFound(w, r)
	case err != nil:
		a.refuse(w, r, err)
	case proof == nil:
		a.next.ServeHTTP(w, r)
	default:
		answerOf(w).principal = proof.Principal
		ctx, end := proof.Context(r.Context())
		defer end()
		a.next.ServeHTTP(w, r.WithContext(ctx))
	}
}

// proof verifies the credential of a request. Below AgentsPath, the credential is the token in the query. At other paths, it is a
// credential that [identity.Verifier.Request] accepts. Without authentication, the proof and the error are nil.
func (a *authenticated) proof(r *http.Request) (*identity.Proof, error) {
	if strings.HasPrefix(r.URL.Path, AgentsPath) {
		return a.verifier.Agent(r.URL.Query().Get("token"))
	}
	return a.verifier.Request(r)
}

// open reports whether a request needs no principal. Probes have no tokens, and the page (/ and /ui/) authenticates its viewers
// itself. Clients look for an authorization server in the well-known places and at /register. If they get any answer except 404
// there, they report "failed to connect".
func open(r *http.Request) bool {
	switch r.URL.Path {
	case "/", "/healthz", "/readyz", "/register", AgentsPath, AgentsPath + "health": // health checks the key in its query itself
		return true
	}
	return strings.HasPrefix(r.URL.Path, "/.well-known/") || strings.HasPrefix(r.URL.Path, "/ui/")
}

// metadataPath is where an authorization server publishes its metadata (RFC 8414).
const metadataPath = "/.well-known/oauth-authorization-server"

// register answers clients that look for an authorization server where there is none. Claude Code shows the text to
// its user.
func (o *Options) register(w http.ResponseWriter, _ *http.Request) {
	text := "mcpx has no authorization server here: the client needs a token (mcpx token new NAME) in the header Authorization: Bearer TOKEN"
	if o.AuthServer != nil && o.AuthServer(metadataPath) != nil { // the client has not found the metadata
		text = "clients register where " + metadataPath + " says; a proxy in front of mcpx must pass on that path, and those below /oauth/"
	}
	http.Error(w, text, http.StatusNotFound)
}

// refuse answers a request that has no principal. Why a token is not valid goes to the log, but not into the answer, because it
// would help an attacker who guesses tokens. Only about a genuine token does the answer say more: which scopes it lacks, or for
// which other audience it is.
func (a *authenticated) refuse(w http.ResponseWriter, r *http.Request, reason error) {
	a.refusals.note(slog.LevelInfo, r, reason.Error(), "")
	answerOf(w).reason = reason.Error()
	lacks, _ := errors.AsType[*identity.ScopeError](reason)
	foreign, _ := errors.AsType[*identity.AudienceError](reason)
	switch {
	case errors.Is(reason, identity.ErrMalformed):
		http.Error(w, "the Authorization header is malformed", http.StatusBadRequest)
	case errors.Is(reason, identity.ErrUnavailable): // after 401, a client would discard a token that may be valid
		w.Header().Set("Retry-After", "10")
		http.Error(w, "the issuer of the token cannot be reached", http.StatusServiceUnavailable)
	case lacks != nil:
		a.challenge(w, r, "insufficient_scope")
		http.Error(w, lacks.Error(), http.StatusForbidden)
	case errors.Is(reason, identity.ErrNone):
		a.challenge(w, r, "")
		http.Error(w, "this needs a token", http.StatusUnauthorized)
	case foreign != nil:
		a.challenge(w, r, "invalid_token")
		http.Error(w, sanitize.Line(foreign.Error(), shownAudience), http.StatusUnauthorized)
	default:
		a.challenge(w, r, "invalid_token")
		http.Error(w, "this needs a token", http.StatusUnauthorized)
	}
}

// shownAudience is the maximum length, in characters, of an answer about the audience of a token.
const shownAudience = 600

// challenge tells the client how to get a token (RFC 6750, section 3; RFC 9728, section 5.1). It names all scopes that a token
// needs, even if the client's token has some of them: clients log in again with just the scopes that are named. Without an
// authorization server it names none.
func (a *authenticated) challenge(w http.ResponseWriter, r *http.Request, fault string) {
	parameters := []string{`realm="mcpx"`}
	if o := a.verifier.Options(); o != nil && len(o.AuthorizationServers) > 0 {
		parameters = []string{`resource_metadata="` + metadataURL(o.ResourceAt(r, r.URL.Path)) + `"`}
		if len(o.Scopes) > 0 {
			parameters = append(parameters, `scope="`+strings.Join(o.Scopes, " ")+`"`)
		}
	}
	if fault != "" {
		parameters = append(parameters, `error="`+fault+`"`)
	}
	w.Header().Set("WWW-Authenticate", "Bearer "+strings.Join(parameters, ", "))
}
