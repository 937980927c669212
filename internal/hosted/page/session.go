package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/hosted/identity"
)

const (
	// cookieName has the prefix that makes browsers refuse the cookie unless it is Secure,
	// for this host alone and for all paths. They take it over http from loopback too.
	cookieName = "__Host-mcpx"
	// sessionLife bounds a session; it ends before that with its token.
	sessionLife = 12 * time.Hour
	// maxSessions bounds the sessions. One more ends the oldest.
	maxSessions = 200
	// maxToken bounds the body of a sign-in, in bytes.
	maxToken = 64 << 10
)

// Session is one browser that is signed in. Its token is proved anew for every request, so
// that whatever ends the token ends the session: its expiry, a reload, a right taken away.
// The token leaves mcpx for no browser: the cookie is a random name, which opens /mcp to
// nobody. Over a network the record must be encrypted.
type Session struct {
	Token string `json:"token"`
	// Principal is the ID of the principal that signed in.
	Principal string `json:"principal"`
}

// NewSessions are the sessions of one process.
func NewSessions() state.Sessions[Session] { return state.NewSessions[Session](maxSessions) }

// refusal is why a request may not see the page: for the viewer, and for the log.
type refusal struct {
	status int
	text   string
	why    error
}

func (r *refusal) Error() string { return r.text + ": " + r.why.Error() }

// viewer proves who a request of a browser comes from. A header Authorization counts for
// nothing here.
func (p *Page) viewer(r *http.Request) (*identity.Proof, *refusal) {
	token, key := "", ""
	if cookie, err := r.Cookie(cookieName); err == nil {
		switch one, err := p.Sessions.Get(r.Context(), cookie.Value); {
		case err == nil:
			token, key = one.Token, one.Principal
		case !errors.Is(err, state.ErrUnknown):
			return nil, &refusal{http.StatusServiceUnavailable, "who you are cannot be told now; try again", err}
		}
	}
	proof, refused := p.prove(r, token)
	if refused == nil && token != "" && proof.Principal.Key() != key {
		return nil, &refusal{http.StatusUnauthorized, "sign in with a token", errAnother}
	}
	return proof, refused
}

var (
	errAnother = errors.New("the token is another principal's now")
	errNoRight = errors.New("the principal is no admin")
)

// prove finds the principal of a token or, without one, of the request's client certificate. It
// refuses a principal that may not see the page.
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
		return nil, &refusal{http.StatusUnauthorized, "this token does not count here", err}
	case err != nil:
		return nil, &refusal{http.StatusUnauthorized, "sign in with a token", err}
	case proof == nil: // no credential is needed
		proof = &identity.Proof{Revoked: context.Background()}
	}
	if !p.Admin(proof.Principal) {
		return nil, &refusal{http.StatusForbidden, lacksRight, errNoRight}
	}
	return proof, nil
}

// seen admits viewers that may see the page, with their principal in the context.
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
		refuse(w, http.StatusBadRequest, "nobody has to sign in here")
		return
	}
	if before, err := r.Cookie(cookieName); err == nil {
		_ = p.Sessions.End(r.Context(), before.Value, state.Closed) // else it ends at its time
	}
	made := &Session{Token: body.Token, Principal: proof.Principal.Key()}
	name, err := p.Sessions.Open(r.Context(), made, time.Now().Add(sessionLife))
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "nobody can sign in now; try again")
		return
	}
	http.SetCookie(w, cookie(name, int(sessionLife/time.Second)))
	answer(w, http.StatusOK, map[string]string{})
}

// signOut ends the session of the cookie.
func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if p.Sessions.End(r.Context(), cookie.Value, state.Closed) != nil {
			refuse(w, http.StatusServiceUnavailable, "nobody can sign out now; try again")
			return
		}
	}
	http.SetCookie(w, cookie("", -1))
	answer(w, http.StatusOK, map[string]string{})
}

func cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// read reads the JSON body of a request, or answers that it cannot.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(into)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		refuse(w, http.StatusRequestEntityTooLarge, "this is too large")
	} else if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON that is wanted here")
	}
	return err == nil
}
