package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
)

const (
	// cookieName has a prefix by which browsers accept the cookie only if it is Secure, for this host only and for
	// all paths. On loopback, they accept it over http too.
	cookieName = "__Host-mcpx"
	// sessionLife is the longest life of a session. The session ends earlier if its token expires.
	sessionLife = 12 * time.Hour
	// maxSessions is the most sessions. A new one above that ends the oldest.
	maxSessions = 200
	// maxToken is the longest body of a sign-in, in bytes.
	maxToken = 64 << 10
)

// Session is a signed-in browser. Its token is verified again at every request. So the session ends when the token
// expires, is removed from the config, or loses the right to see the page. The browser never gets the token: its
// cookie is a random ID, which gives no access to /mcp. A store outside this process must encrypt the session.
type Session struct {
	Token     string `json:"token"`
	Principal string `json:"principal"`
}

// NewSessions makes sessions that are kept in the memory of this process.
func NewSessions() state.Sessions[Session] { return state.NewSessions[Session](maxSessions) }

// refusal says why a request may not see the page: text is for the viewer, why for the log.
type refusal struct {
	status int
	text   string
	why    error
}

func (r *refusal) Error() string { return r.text + ": " + r.why.Error() }

// viewer finds the principal of a browser's request by its cookie or client certificate. It ignores an Authorization
// header.
func (p *Page) viewer(r *http.Request) (*identity.Proof, *refusal) {
	token, key := "", ""
	if cookie, err := r.Cookie(cookieName); err == nil {
		switch one, err := p.Sessions.Get(r.Context(), cookie.Value); {
		case err == nil:
			token, key = one.Token, one.Principal
		case !errors.Is(err, state.ErrUnknown):
			return nil, &refusal{http.StatusServiceUnavailable, "your session cannot be looked up now; try again", err}
		}
	}
	proof, refused := p.prove(r, token)
	if refused == nil && token != "" && proof.Principal.Key() != key {
		return nil, &refusal{http.StatusUnauthorized, "sign in with a token", errAnother}
	}
	return proof, refused
}

var (
	errAnother = errors.New("the token now belongs to another principal")
	errNoRight = errors.New("the principal is not an admin")
)

// prove finds the principal of a token or, without one, of the client certificate. It refuses a principal that may
// not see the page.
func (p *Page) prove(r *http.Request, token string) (*identity.Proof, *refusal) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	const lacksRight = `this token may not see the page: a rule under auth.rights with "admin": true must name it`
	proof, err := p.Identity.Request(r)
	_, lacksScope := errors.AsType[*identity.ScopeError](err)
	switch {
	case lacksScope:
		return nil, &refusal{http.StatusForbidden, lacksRight, err}
	case errors.Is(err, identity.ErrUnavailable):
		return nil, &refusal{http.StatusServiceUnavailable, "the issuer of the token cannot be reached; try again", err}
	case err != nil && token != "":
		return nil, &refusal{http.StatusUnauthorized, "this token is not valid here", err}
	case err != nil:
		return nil, &refusal{http.StatusUnauthorized, "sign in with a token", err}
	case proof == nil: // no credentials are needed
		proof = &identity.Proof{Revoked: context.Background()}
	}
	if !p.Admin(proof.Principal) {
		return nil, &refusal{http.StatusForbidden, lacksRight, errNoRight}
	}
	return proof, nil
}

// seen calls next only for viewers who may see the page, and puts their principal into the context.
func (p *Page) seen(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		proof, refused := p.viewer(r)
		if refused != nil {
			refuse(w, refused.status, refused.text)
			return
		}
		ctx, end := proof.Context(r.Context())
		defer end()
		next(w, r.WithContext(ctx))
	}
}

// signIn opens a session for the token in the body.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token string }
	if !read(w, r, maxToken, &body) {
		return
	}
	body.Token = strings.TrimSpace(body.Token)
	if body.Token == "" {
		refuse(w, http.StatusUnauthorized, "there is no token")
		return
	}
	proof, refused := p.prove(r, body.Token)
	if refused != nil {
		p.Logger.Warn("sign-in refused", "reason", refused, "remote", r.RemoteAddr)
		refuse(w, refused.status, refused.text)
		return
	}
	if proof.Principal == nil {
		refuse(w, http.StatusBadRequest, "signing in is not needed here")
		return
	}
	if before, err := r.Cookie(cookieName); err == nil {
		_ = p.Sessions.End(r.Context(), before.Value, state.Closed) // if that fails, the old session ends after sessionLife
	}
	made := &Session{Token: body.Token, Principal: proof.Principal.Key()}
	name, err := p.Sessions.Open(r.Context(), made, time.Now().Add(sessionLife))
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "signing in is not possible now; try again")
		return
	}
	http.SetCookie(w, cookie(name, int(sessionLife/time.Second)))
	httpd.WriteJSON(w, http.StatusOK, map[string]string{})
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if p.Sessions.End(r.Context(), cookie.Value, state.Closed) != nil {
			refuse(w, http.StatusServiceUnavailable, "signing out is not possible now; try again")
			return
		}
	}
	http.SetCookie(w, cookie("", -1))
	httpd.WriteJSON(w, http.StatusOK, map[string]string{})
}

func cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// read decodes the JSON body of a request. If that fails, it responds with an error.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(into)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		refuse(w, http.StatusRequestEntityTooLarge, "this is too large")
	} else if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the expected JSON")
	}
	return err == nil
}
