package authserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/identity"
)

// Login is a login as administrators see it.
type Login struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Name      string    `json:"name,omitempty"`
	Email     string    `json:"email,omitempty"`
	Client    string    `json:"client,omitempty"` // the name that the client has given itself, or a fixed text for mcpx's own pages
	Began     time.Time `json:"began"`
	Renewed   time.Time `json:"renewed"`
	Until     time.Time `json:"until,omitzero"` // when the login ends, unless it is renewed before
}

// Logins returns the valid logins, the newest first. It leaves out logins that have not begun: their client has not exchanged its
// code for a token yet.
func (s *Server) Logins() []Login {
	all := make([]Login, 0)
	for _, g := range s.validGrants() {
		if g.Next > 0 {
			all = append(all, s.shown(g))
		}
	}
	slices.SortFunc(all, func(a, b Login) int { return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.ID, b.ID)) })
	return all
}

func (s *Server) shown(g *grant) Login {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
	return Login{
		ID: g.id(), Principal: s.principal(&g.Who).Name, Name: g.Who.Name, Email: sanitize.Line(g.Who.Email, maxName),
		Client: g.Called, Began: at(g.Began), Renewed: at(g.Renewed), Until: at(g.Until),
	}
}

// End ends the login whose ID is target, or all logins of the principal whose name is target. It returns the logins that it has
// ended, even together with an error. The access tokens of these logins are refused at once, at other replicas within two seconds.
func (s *Server) End(ctx context.Context, target, why string) (ended []Login, err error) {
	for _, g := range s.validGrants() {
		if g.id() != target && s.principal(&g.Who).Name != target {
			continue
		}
		done, err := s.end(ctx, g.Number, why)
		if err != nil {
			return ended, err
		}
		if done {
			ended = append(ended, s.shown(g))
		}
	}
	return ended, nil
}

// nameFree returns a *refusedError if another user of the issuer is logged in under the same name, and the issuer has confirmed
// that login within the last [identity.NameHeld]. All processes that share the store of logins know these names, even after a
// restart. For users who come with tokens of their issuer, [identity.Verifier.Request] checks the names.
func (s *Server) nameFree(who *user) error {
	if who.Called == "" {
		return nil
	}
	since := time.Now().Add(-identity.NameHeld).Unix()
	for _, g := range s.validGrants() {
		if g.Who.Called == who.Called && g.Who.Claim == who.Claim && g.Who.Subject != who.Subject && g.Renewed > since {
			return &refusedError{who.Subject, identity.ErrName(s.principal(who).Name).Error()}
		}
	}
	return nil
}

// SignIn sends a browser to the login at the issuer, for a page of mcpx itself. After the login, the browser is sent to path, the
// path of the page. path must begin with exactly one slash.
func (s *Server) SignIn(w http.ResponseWriter, r *http.Request, path string) {
	s.startLogin(w, r, &authorization{Own: path})
}

// SignOut ends a login for a web page of mcpx itself. login is the string that [Parts.SignedIn] got.
func (s *Server) SignOut(ctx context.Context, login string) error {
	_, err := s.end(ctx, login, "signed out")
	return err
}

// signedIn completes a login for a page of mcpx itself. It stores the login g, and calls [Parts.SignedIn], which sets the cookie.
// Then it sends the browser to path, the path of the page.
func (s *Server) signedIn(w http.ResponseWriter, r *http.Request, g *grant, path string) {
	g.Client, g.Called, g.Next = "", "the page of mcpx", 1
	g.Until = s.until(g)
	err := s.begin(r.Context(), g)
	if err == nil {
		err = s.parts.SignedIn(w, r, g.Number, s.principal(&g.Who))
	}
	if err != nil {
		s.o.Log.Error("signing in to the page failed", "error", err)
		pages.Fault(w, http.StatusServiceUnavailable, "Signing in is not possible now. Try again.")
		return
	}
	s.began(g)
	w.Header().Set("Location", s.issuer+path)
	w.WriteHeader(http.StatusSeeOther)
}
