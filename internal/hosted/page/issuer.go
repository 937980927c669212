package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/identity"
)

// Issuer is the authorization server that mcpx runs itself (config key auth.front). If there is one, people sign in to the page by
// logging in there, and cannot sign in with a token.
type Issuer interface {
	// SignIn sends the browser to the login page. After the login, the Issuer calls [Browsers.SignedIn], and then sends the
	// browser to the path in the parameter back.
	SignIn(w http.ResponseWriter, r *http.Request, back string)
	// Standing returns the user of a login. From time to time it asks the OpenID issuer, where users have their accounts, whether
	// the login is still valid, which may take a while. The errors are those of [identity.Verifier.Request].
	Standing(ctx context.Context, login string) (*identity.Proof, error)
	// SignOut ends a login.
	SignOut(ctx context.Context, login string) error
}

// Browsers has a session for each browser that has signed in to the pages of mcpx. A browser signs in when its user logs in at the
// [Issuer] or, if there is no Issuer, enters a token. Signing in gives no rights by itself: each page decides what its viewers may
// see.
type Browsers struct {
	// Sessions has a session for each browser. A store outside this process must encrypt the sessions.
	Sessions state.Sessions[Session]
	// Issuer returns the Issuer that is in use now. If the func is nil or returns nil, people sign in with tokens.
	Issuer func() Issuer
}

// signInPath is where a browser begins to sign in through the issuer. It is relative to the folder of the page.
const signInPath = "ui/signin"

// issuer returns the Issuer that is in use now; nil if there is none.
func (b *Browsers) issuer() Issuer {
	if b.Issuer == nil {
		return nil
	}
	return b.Issuer()
}

// Link returns the address, relative to the page, where people sign in by logging in at the [Issuer]. If there is no Issuer, people
// sign in with a token, and Link returns "".
func (b *Browsers) Link() string {
	if b.issuer() == nil {
		return ""
	}
	return signInPath
}

// SignedIn opens a session for a browser whose user has logged in at the issuer, and sets the browser's cookie. login identifies
// the login. If the browser had a session, SignedIn ends it.
func (b *Browsers) SignedIn(w http.ResponseWriter, r *http.Request, login string, who *caller.Principal) error {
	b.forget(r)
	until := time.Now().Add(sessionLife)
	name, err := b.Sessions.Open(r.Context(), &Session{Login: login, Principal: who.Key()}, until)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie(name, int(sessionLife/time.Second)))
	return nil
}

// Proof returns the principal that uses a browser, whether or not it is an admin. It accepts only sessions that were opened by a
// login at the issuer, not with a token. The errors are those of [identity.Verifier.Request].
func (b *Browsers) Proof(r *http.Request) (*identity.Proof, error) {
	one, err := b.session(r)
	switch {
	case errors.Is(err, state.ErrUnknown) || err == nil && one.Login == "":
		return nil, identity.ErrNone
	case err != nil:
		return nil, identity.ErrUnavailable
	}
	return b.standing(r.Context(), one)
}

// session returns the session of a browser. The errors are those of [state.Sessions].
func (b *Browsers) session(r *http.Request) (*Session, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil, state.ErrUnknown
	}
	return b.Sessions.Get(r.Context(), cookie.Value)
}

// standing returns the user of a session that was opened by a login at the issuer.
func (b *Browsers) standing(ctx context.Context, one *Session) (*identity.Proof, error) {
	issuer := b.issuer()
	if issuer == nil {
		return nil, identity.ErrInvalid
	}
	proof, err := issuer.Standing(ctx, one.Login)
	if err == nil && proof.Principal.Key() != one.Principal {
		return nil, identity.ErrInvalid
	}
	return proof, err
}

// forget ends the session of a browser, and the login of this session. If this fails, both end after sessionLife.
func (b *Browsers) forget(r *http.Request) {
	if one, err := b.session(r); err == nil {
		_ = b.end(r, one)
	}
}

func (b *Browsers) end(r *http.Request, one *Session) error {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return err
	}
	if issuer := b.issuer(); issuer != nil && one.Login != "" {
		if err := issuer.SignOut(r.Context(), one.Login); err != nil {
			return err
		}
	}
	return b.Sessions.End(r.Context(), cookie.Value)
}

// signInByIssuer sends a viewer to the login of the issuer.
func (p *Page) signInByIssuer(w http.ResponseWriter, r *http.Request) {
	issuer := p.Browsers.issuer()
	if issuer == nil {
		Refuse(w, http.StatusNotFound, "not_found", "there is no issuer to sign in by: sign in with a token")
		return
	}
	issuer.SignIn(w, r, "/")
}
