package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/page"
)

const (
	// loginTime is how long a viewer has to complete a login.
	loginTime = 10 * time.Minute
	// maxLogins is the largest number of logins that mcpx keeps in memory at the same time: open logins, and ended logins whose outcome the
	// page can still ask for.
	maxLogins = 16
)

// signing has the logins to servers that viewers of the page have begun, at most one for each server. An ended login is kept so
// that the page can ask for the outcome: until the next login to the same server begins, or its place is needed (see
// maxLogins).
type signing struct {
	mu     sync.Mutex
	closed bool
	all    map[string]*openLogin // by server
	open   sync.WaitGroup
}

// close waits until the open logins have ended; the caller has cancelled their contexts. Later logins are refused.
func (s *signing) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.open.Wait()
}

// openLogin is a login to a server that a viewer of the page has begun. It ends after loginTime at the latest.
type openLogin struct {
	id       string
	redirect string      // how the browser's answer arrives: "endpoint", "loopback" or "paste" (see signIn)
	pasted   chan string // receives the address that the browser came back to
	cancel   context.CancelFunc
	done     chan struct{}
	// result and err are set before done is closed.
	result *logins.Result
	err    error
}

// loginTo finds the server that a request is about. If there is none, or users cannot log in to it, loginTo answers the request
// with an error and returns false.
func (p *pageWork) loginTo(w http.ResponseWriter, r *http.Request) (server logins.Server, ok bool) {
	of := configured(p.app.current.Load().config, r.PathValue("name"))
	why := ""
	switch {
	case of == nil:
		page.Refuse(w, http.StatusNotFound, "unknown_server", "the config has no such server")
		return server, false
	case of.Fault != "":
		why = of.Fault
	case of.Type == config.Stdio:
		why = "it is a local command and has no login; set its credentials in env"
	case of.URL == "":
		why = "it has no url to log in to"
	case of.OAuth.Off:
		why = "logins to it are turned off (oauth)"
	}
	if why != "" {
		page.Refuse(w, http.StatusConflict, "no_login", why)
		return server, false
	}
	return LoginServer(*of), true
}

// login begins a login, and responds with the address that the viewer must open.
func (p *pageWork) login(w http.ResponseWriter, r *http.Request) {
	server, ok := p.loginTo(w, r)
	if !ok || !p.recorded(w, r, "login", server.Name) {
		return
	}
	ctx, cancel := p.detached(loginTime, errors.New("ten minutes have passed"))
	one := &openLogin{id: rand.Text(), pasted: make(chan string, 1), cancel: cancel, done: make(chan struct{})}
	if !p.signing.add(server.Name, one) {
		cancel()
		page.Refuse(w, http.StatusServiceUnavailable, "busy", "too many logins are open")
		return
	}
	address := make(chan string, 1)
	go func() { // ends with the login: its ctx ends after loginTime, with the App, or by cancel
		defer p.signing.open.Done()
		defer cancel()
		one.result, one.err = p.signIn(ctx, server, one, func(url string) { address <- url })
		close(one.done)
		if one.err == nil {
			p.app.Registry.Retry(server.Name)
		}
	}()
	select {
	case url := <-address:
		httpd.WriteJSON(w, http.StatusOK, map[string]string{
			"id": one.id, "url": url, "redirect": one.redirect, "command": "mcpx login " + server.Name,
		})
	case <-one.done:
		page.Refuse(w, http.StatusBadGateway, "failed", failureOf(one.err))
	case <-r.Context().Done():
		cancel()
	}
}

// signIn logs in to a server. It calls open with the URL of the login page. After the login, the issuer sends the browser back
// to mcpx: to the page, if the page has a public address (see returnsTo) that mcpx can register with the issuer, else to a port
// of this machine. A browser on another machine cannot reach that port; then the viewer pastes the address from the browser's
// address bar into the page.
func (p *pageWork) signIn(ctx context.Context, server logins.Server, one *openLogin, open func(url string)) (*logins.Result, error) {
	if to := p.returnsTo(server); to != "" {
		if pending, err := p.app.logins.Begin(ctx, server, to); err == nil {
			one.redirect = "endpoint"
			open(pending.Address(one.id))
			select {
			case ended := <-one.pasted:
				answer, err := url.Parse(ended)
				if err != nil {
					return nil, errors.New("the address at which the browser ended is none")
				}
				return p.app.logins.Finish(ctx, server, pending, answer.Query())
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
	if one.redirect = "paste"; p.desk || !p.app.public {
		one.redirect = "loopback"
	}
	return p.app.logins.Login(ctx, server, logins.Options{Open: open, Pasted: one.pasted})
}

// returnsTo returns the URL of this page to which an issuer can send a browser back after a login. It returns "" if the page has no public
// URL to which secrets may be sent. It also returns "" if the config names an OAuth client for the server, because that client is
// registered for mcpx login only.
func (p *pageWork) returnsTo(server logins.Server) string {
	cfg := p.app.current.Load().config
	if p.desk || server.ClientID != "" || server.ClientMetadataURL != "" || cfg.Auth == nil || !netguard.Safe(cfg.Auth.Resource) {
		return ""
	}
	return publicBase(cfg, p.app.path) + page.BackPath
}

// back handles the request of a browser that an issuer has sent back after a login, and redirects it to the server's part of the page.
// The OAuth parameter state in the address is a secret of the issuer and the viewer who began the login. It works once.
func (p *pageWork) back(w http.ResponseWriter, r *http.Request) {
	one, server := p.signing.withID(r.URL.Query().Get("state"))
	if one == nil {
		refuseLogin(w)
		return
	}
	select {
	case one.pasted <- r.URL.String():
	default:
		refuseLogin(w) // the state was used before
		return
	}
	w.Header().Set("Location", "/#/server/"+url.PathEscape(server))
	w.WriteHeader(http.StatusSeeOther)
}

func refuseLogin(w http.ResponseWriter) {
	page.Refuse(w, http.StatusNotFound, "no_login", "there is no such login any more; begin again")
}

// withID returns the open login with this id and the name of its server, or nil if there is none.
func (s *signing) withID(id string) (one *openLogin, server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, other := range s.all {
		if subtle.ConstantTimeCompare([]byte(other.id), []byte(id)) == 1 && !other.over() {
			return other, name
		}
	}
	return nil, ""
}

func failureOf(err error) string {
	text := "the login is complete"
	if err != nil {
		text = err.Error()
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		text += " (" + hinted.Hint() + ")"
	}
	return sanitize.Line(text, 500)
}

// add stores a login to a server, and cancels the previous login to the same server. When the login has ended, the caller must
// call s.open.Done. add returns false if maxLogins other logins are open, or after close.
func (s *signing) add(server string, one *openLogin) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if before := s.all[server]; before != nil {
		before.cancel()
	} else if len(s.all) >= maxLogins {
		for name, other := range s.all {
			if other.over() {
				delete(s.all, name)
			}
		}
		if len(s.all) >= maxLogins {
			return false
		}
	}
	if s.all == nil {
		s.all = make(map[string]*openLogin)
	}
	s.all[server] = one
	s.open.Add(1)
	return true
}

func (o *openLogin) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// requested returns the login to the server in the path of a request, if the login has this id. If there is none, it returns
// nil and has answered the request.
func (s *signing) requested(w http.ResponseWriter, r *http.Request, id string) *openLogin {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[r.PathValue("name")]; one != nil && one.id == id {
		return one
	}
	refuseLogin(w)
	return nil
}

// loginState responds with the state of a login: open, failed with the reason, or done.
func (p *pageWork) loginState(w http.ResponseWriter, r *http.Request) {
	one := p.signing.requested(w, r, r.URL.Query().Get("id"))
	switch {
	case one == nil:
	case !one.over():
		httpd.WriteJSON(w, http.StatusOK, map[string]string{"state": "open"})
	case one.err != nil:
		httpd.WriteJSON(w, http.StatusOK, map[string]string{"state": "failed", "error": failureOf(one.err)})
	default:
		httpd.WriteJSON(w, http.StatusOK, map[string]any{
			"state": "done", "issuer": sanitize.Line(one.result.Issuer, 200), "scopes": orEmpty(one.result.Scopes),
			"sealed": one.result.Unsealed == nil,
		})
	}
}

func (p *pageWork) endLogin(w http.ResponseWriter, r *http.Request) {
	if one := p.signing.requested(w, r, r.URL.Query().Get("id")); one != nil {
		one.cancel()
		w.WriteHeader(http.StatusNoContent)
	}
}

// pasteLogin receives the address that the viewer has copied from the browser after the login.
func (p *pageWork) pasteLogin(w http.ResponseWriter, r *http.Request) {
	var in struct{ ID, Address string }
	if !body(w, r, &in) {
		return
	}
	one := p.signing.requested(w, r, in.ID)
	if one == nil {
		return
	}
	select {
	case one.pasted <- in.Address:
		w.WriteHeader(http.StatusNoContent)
	default:
		page.Refuse(w, http.StatusConflict, "busy", "an address was pasted already")
	}
}

// logout revokes and forgets the login at a server, and restarts the server.
func (p *pageWork) logout(w http.ResponseWriter, r *http.Request) {
	server, ok := p.loginTo(w, r)
	if !ok || !p.recorded(w, r, "logout", server.Name) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	missing, unrevoked, err := p.app.logins.Logout(ctx, server)
	if err != nil {
		page.Refuse(w, http.StatusInternalServerError, "failed", failureOf(err))
		return
	}
	note := ""
	if unrevoked != nil {
		note = fmt.Sprintf("the login is forgotten here, but could not be revoked: %s", sanitize.Line(unrevoked.Error(), 300))
	}
	p.restart(server.Name) // the server may go on serving an open session; in a new one it asks for a login
	httpd.WriteJSON(w, http.StatusOK, map[string]any{"missing": missing, "note": note})
}
