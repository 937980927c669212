package httpd

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"mcpx/internal/identity"
)

// authenticated asks who a request comes from before anybody reads its body. A request
// ends when its credential is revoked: a stream would go on otherwise.
type authenticated struct {
	next     http.Handler
	verifier *identity.Verifier
	log      *slog.Logger
}

// ServeHTTP implements http.Handler.
func (a *authenticated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if open(r) {
		a.next.ServeHTTP(w, r)
		return
	}
	proof, err := a.verifier.Request(r)
	switch {
	case err != nil:
		a.refuse(w, r, err)
	case proof == nil:
		a.next.ServeHTTP(w, r)
	default:
		if answer, ok := w.(*auditedAnswer); ok {
			answer.principal = proof.Principal.Key()
		}
		ctx, cancel := context.WithCancelCause(identity.With(r.Context(), proof.Principal))
		defer cancel(nil)
		defer context.AfterFunc(proof.Revoked, func() { cancel(identity.ErrRevoked) })()
		a.next.ServeHTTP(w, r.WithContext(ctx))
	}
}

// open reports whether a request needs no principal here: probes have no tokens, and the
// page asks its viewers itself, as browsers bring cookies. Clients look for an authorization server in the well-known places and
// at /register, and say "failed to connect" to anything but 404.
func open(r *http.Request) bool {
	switch r.URL.Path {
	case "/", "/healthz", "/readyz", "/register":
		return true
	}
	return strings.HasPrefix(r.URL.Path, "/.well-known/") || strings.HasPrefix(r.URL.Path, "/ui/")
}

// refuse answers a request without a principal. It says nothing of why a token does not
// count, which helps only who tries tokens; the log has it.
func (a *authenticated) refuse(w http.ResponseWriter, r *http.Request, why error) {
	a.log.Info("request refused", "reason", why, "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr)
	if errors.Is(why, identity.ErrMalformed) {
		http.Error(w, "the Authorization header is malformed", http.StatusBadRequest)
		return
	}
	challenge := `Bearer realm="mcpx"`
	if !errors.Is(why, identity.ErrNone) {
		challenge += `, error="invalid_token"`
	}
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, "this needs a token", http.StatusUnauthorized)
}
