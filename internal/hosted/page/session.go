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
	// cookieName is the cookie of a session. With its prefix, browsers accept the cookie only if it is Secure, for this host only
	// and for all paths. On loopback, most browsers also accept it over http.
	cookieName = "__Host-mcpx"
	// sessionLife is the longest life of a session. The session ends earlier if its token expires or its login ends.
	sessionLife = 12 * time.Hour
	// maxSessions is the maximum number of sessions in memory, and maxSessionBytes is the maximum size of all of them together.
	// [state.NewRecords] says which sessions end if there are more.
	maxSessions, maxSessionBytes = 2000, 16 << 20
	// maxToken is the maximum length of the body of a sign-in, in bytes.
	maxToken = 64 << 10
)

// Session is the session of a signed-in browser. Its token is verified again at every request. So the session ends when the token
// expires, is removed from the config, or loses the right to see the page. The browser never gets the token: its cookie is a random
// ID, which gives no access to /mcp. A store outside this process must encrypt the session.
//
// If the user of the browser has logged in at the [Issuer], the session has the number of this login instead of a token.
type Session struct {
	Token     string `json:"token,omitempty"`
	Login     string `json:"login,omitempty"`
	Principal string `json:"principal"`
}

// NewSessions makes a store of sessions in the memory of this process.
func NewSessions() state.Sessions[Session] {
	return state.NewStored[Session]("browser", state.NewRecords(maxSessions, maxSessionBytes))
}

// refusal says why a request may not see the page: text is for the viewer, reason for the log.
type refusal struct {
	status     int
	code, text string
	reason     error
}

func (r *refusal) Error() string { return r.text + ": " + r.reason.Error() }

// viewer finds the principal of a browser's request. With Options.Links, the request must have the key of a session. Otherwise it
// needs the cookie of a session or a client certificate. viewer ignores an Authorization header.
func (p *Page) viewer(r *http.Request) (*identity.Proof, *refusal) {
	if p.Links != nil {
		return p.Links.viewer(r)
	}
	token, key := "", ""
	switch one, err := p.Browsers.session(r); {
	case err == nil && one.Login != "":
		proof, err := p.Browsers.standing(r.Context(), one)
		return p.may(proof, err, true)
	case err == nil && p.Browsers.issuer() == nil:
		token, key = one.Token, one.Principal
	case err != nil && !errors.Is(err, state.ErrUnknown):
		return nil, &refusal{http.StatusServiceUnavailable, "busy", "your session cannot be looked up now; try again", err}
	}
	proof, refused := p.prove(r, token)
	if refused == nil && token != "" && proof.Principal.Key() != key {
		return nil, &refusal{http.StatusUnauthorized, "sign_in", "sign in with a token", errAnother}
	}
	return proof, refused
}

var (
	errAnother = errors.New("the token now belongs to another principal")
	errNoRight = errors.New("the principal is not an admin")
)

// prove finds the principal of a token or, without one, of the client certificate. It refuses a principal that may not see the
// page.
func (p *Page) prove(r *http.Request, token string) (*identity.Proof, *refusal) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	proof, err := p.Identity.Request(r)
	return p.may(proof, err, token != "")
}

// may returns a refusal if a principal may not see the page. proof and err are what the verification of the request has returned.
// credential is true if the viewer has sent a credential, such as a token.
func (p *Page) may(proof *identity.Proof, err error, credential bool) (*identity.Proof, *refusal) {
	const lacksRight = `this account may not see the page: a rule under auth.rights with "admin": true must name it`
	_, lacksScope := errors.AsType[*identity.ScopeError](err)
	switch {
	case lacksScope:
		return nil, &refusal{http.StatusForbidden, "no_right", lacksRight, err}
	case errors.Is(err, identity.ErrUnavailable):
		return nil, &refusal{http.StatusServiceUnavailable, "busy", "the issuer of the token cannot be reached; try again", err}
	case err != nil && p.Browsers.issuer() != nil:
		return nil, &refusal{http.StatusUnauthorized, "sign_in", "sign in", err}
	case err != nil && credential:
		return nil, &refusal{http.StatusUnauthorized, "sign_in", "this token is not valid here", err}
	case err != nil:
		return nil, &refusal{http.StatusUnauthorized, "sign_in", "sign in with a token", err}
	case proof == nil: // the config requires no credentials
		proof = &identity.Proof{Revoked: context.Background()}
	}
	if !p.Admin(proof.Principal) {
		return nil, &refusal{http.StatusForbidden, "no_right", lacksRight, errNoRight}
	}
	return proof, nil
}

// viewed calls next only for viewers who may see the page, and puts their principal into the context of the request.
func (p *Page) viewed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		proof, refused := p.viewer(r)
		if refused != nil {
			Refuse(w, refused.status, refused.code, refused.text)
			return
		}
		if p.Links != nil && r.Method != http.MethodGet {
			p.Links.use()
		}
		ctx, end := proof.Context(r.Context())
		defer end()
		next(w, r.WithContext(ctx))
	}
}

// signIn opens a session for the token in the body or, with Options.Links, for the secret of a link in the body.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token, Link string }
	if !Read(w, r, maxToken, &body) {
		return
	}
	if p.Links != nil && !ownPeer(r.RemoteAddr, p.Links.Host) {
		p.Logger.Warn("refused a link of mcpx ui to a program of another user of this machine")
		Refuse(w, http.StatusForbidden, "other_user", "this link belongs to another user of this machine, or what you opened it with runs as another user")
		return
	}
	if p.Links != nil {
		p.Links.signIn(w, body.Link)
		return
	}
	if p.Browsers.issuer() != nil {
		Refuse(w, http.StatusForbidden, "sign_in", "this page takes no tokens: sign in by the issuer")
		return
	}
	body.Token = strings.TrimSpace(body.Token)
	if body.Token == "" {
		Refuse(w, http.StatusUnauthorized, "sign_in", "there is no token")
		return
	}
	proof, refused := p.prove(r, body.Token)
	if refused != nil {
		p.Logger.Warn("sign-in refused", "reason", refused, "remote", r.RemoteAddr)
		Refuse(w, refused.status, refused.code, refused.text)
		return
	}
	if proof.Principal == nil {
		Refuse(w, http.StatusBadRequest, "bad_request", "signing in is not needed here")
		return
	}
	p.Browsers.forget(r)
	made := &Session{Token: body.Token, Principal: proof.Principal.Key()}
	name, err := p.Browsers.Sessions.Open(r.Context(), made, time.Now().Add(sessionLife))
	if err != nil {
		Refuse(w, http.StatusServiceUnavailable, "busy", "signing in is not possible now; try again")
		return
	}
	http.SetCookie(w, cookie(name, int(sessionLife/time.Second)))
	httpd.WriteJSON(w, http.StatusOK, map[string]string{})
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	if p.Links != nil {
		p.Links.signOut(r)
		httpd.WriteJSON(w, http.StatusOK, map[string]string{})
		return
	}
	one, err := p.Browsers.session(r)
	if err == nil {
		err = p.Browsers.end(r, one)
	}
	if err != nil && !errors.Is(err, state.ErrUnknown) {
		Refuse(w, http.StatusServiceUnavailable, "busy", "signing out is not possible now; try again")
		return
	}
	http.SetCookie(w, cookie("", -1))
	httpd.WriteJSON(w, http.StatusOK, map[string]string{})
}

func cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// Read decodes the JSON body of a request. If that fails, it responds with an error and returns false.
func Read(w http.ResponseWriter, r *http.Request, limit int64, target any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(target)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		Refuse(w, http.StatusRequestEntityTooLarge, "too_large", "this is too large")
	} else if err != nil {
		Refuse(w, http.StatusBadRequest, "bad_request", "the body is not the expected JSON")
	}
	return err == nil
}
