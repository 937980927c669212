// Package connect serves the pages on which a person connects an account at a server to their principal. mcpx then calls the server
// with that account, for this principal alone (oauth.per).
//
// A link names a principal and a server, and gives no access by itself. The pages first make the person prove to be that principal,
// then ask for consent, and only then send the browser to the login page of the server. When the browser comes back, the pages
// check that it is the same browser, and that it still belongs to the principal. So nobody gains anything by sending only a link to
// another person: that person's account is not connected to the sender's principal, and the sender's account is not connected to
// that person's principal. But whoever sends a [Code] with the link may trick a person whose browser has not signed in: the typed
// code makes the browser belong to the sender's principal.
package connect

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/httpd"
)

// Paths of the pages, relative to the folder of the endpoint.
const (
	pagePath     = "/connect"
	CallbackPath = "/connect/callback" // where authorization servers send browsers after a login to a server
	codePath     = "/connect/code"
)

const (
	linkTime   = time.Hour        // how long a link can be opened
	viewerTime = 15 * time.Minute // how long the cookie that proves the principal of a browser is valid
	codeTime   = 10 * time.Minute // how long a code is valid
	maxForm    = 16 << 10
	// maxRecords is the maximum number of logins, and also of codes, that one process keeps in memory. maxRecordBytes is the
	// maximum size, in bytes, of all logins together, and also of all codes.
	maxRecords, maxRecordBytes = 1000, 8 << 20
)

// Principal is the part of a principal that these pages need.
type Principal struct {
	ID   string `json:"p"`
	Name string `json:"n"`
}

// Accounts logs principals in to servers. It may be used by several goroutines at the same time.
type Accounts interface {
	// Title returns the address of a server. ok is false if principals do not log in to this server with accounts of their own, or
	// if there is no such server.
	Title(server string) (address string, ok bool)
	// Connected reports whether a principal has a usable login at a server.
	Connected(ctx context.Context, server, principal string) bool
	// Begin prepares a login. After it, the browser comes back to the URL redirect. The caller keeps pending, which contains
	// secrets, and passes it to Finish. address returns the URL of the login page for a value of the OAuth parameter state.
	Begin(ctx context.Context, server string, of Principal, redirect string) (pending json.RawMessage,
		address func(state string) string, err error)
	// Finish stores the login that Begin has prepared. answer is the query of the URL with which the browser came back.
	Finish(ctx context.Context, server string, of Principal, pending json.RawMessage, answer url.Values) error
	// Disconnect revokes and forgets the login of a principal at a server. It forgets the login even if the server does not
	// revoke it; the error then says why.
	Disconnect(ctx context.Context, server string, of Principal) error
	// Sees reports whether a principal may use a server.
	Sees(p *caller.Principal, server string) bool
}

// Pending is a login to a server, as long as the browser has not come back from the login page. Its ID in the store is the OAuth
// parameter state. A store outside this process must encrypt it.
type Pending struct {
	Server  string          `json:"server"`
	Of      Principal       `json:"of"`
	Browser string          `json:"browser"`
	Data    json.RawMessage `json:"data"`
}

// Code is a one-time code that a program with a principal's token gets. Whoever types it into the page proves to be that principal,
// unless another principal has signed in with the browser. A store outside this process must encrypt it.
type Code struct {
	Of Principal `json:"of"`
}

// NewPending and NewCodes make stores in the memory of this process.
func NewPending() state.Sessions[Pending] { return state.NewStored[Pending]("connect", newRecords()) }
func NewCodes() state.Sessions[Code]      { return state.NewStored[Code]("connectcode", newRecords()) }

func newRecords() state.Records { return state.NewRecords(maxRecords, maxRecordBytes) }

// Options are the settings of [Pages]. All are required, except those that may be nil.
type Options struct {
	// Base is the public URL of the endpoint without the endpoint's own path.
	Base     string
	Secrets  []*state.Secret
	Accounts Accounts
	Pending  state.Sessions[Pending]
	Codes    state.Sessions[Code]
	Once     state.Once
	// Caller authenticates a request with a token, which comes from a program and not from a browser.
	Caller func(r *http.Request) (*caller.Principal, error)
	// Viewer returns the principal that has signed in to another page of mcpx with this browser; nil if there is none.
	Viewer func(r *http.Request) *caller.Principal
	// SignIn sends the browser to the login page of mcpx's other pages; nil if they have no login page. After the login, the
	// browser is sent to the path back, which is below Base. From then on, Viewer returns the principal.
	SignIn func(w http.ResponseWriter, r *http.Request, back string)
	Log    *slog.Logger
}

// Pages serves the pages on which a person connects an account at a server (see the package comment), at the paths for which
// [Serves] returns true.
type Pages struct {
	Options
	links, viewer *caller.Tags
	sameSite      *http.CrossOriginProtection
}

// New returns the pages. It refuses a Base without https, unless the host is this machine (see [netguard.Safe]).
func New(o Options) (*Pages, error) {
	u, err := url.Parse(o.Base)
	if err != nil || !netguard.Safe(o.Base) {
		return nil, errors.New("logins of single principals need an auth.resource with https://: people log in there")
	}
	p := &Pages{
		Options: o, sameSite: http.NewCrossOriginProtection(),
		links: caller.NewTags(o.Secrets, "mcpx connect link 1 "+o.Base), viewer: caller.NewTags(o.Secrets, "mcpx connect viewer 1 "+o.Base),
	}
	return p, p.sameSite.AddTrustedOrigin(u.Scheme + "://" + strings.ToLower(u.Host))
}

// Serves reports whether a request for this path is for these pages.
func Serves(path string) bool { return path == pagePath || path == CallbackPath || path == codePath }

// link is the content of a link: the server, the principal, and the time until which the link can be opened, in Unix seconds. mcpx
// signs it, so nobody else can make a link.
type link struct {
	Server string    `json:"s"`
	Of     Principal `json:"of"`
	Until  int64     `json:"u"`
}

// Link returns the address of the page on which a principal connects an account at a server. The page can be opened for linkTime.
func (p *Pages) Link(server string, of *caller.Principal) string {
	return p.Base + pagePath + "?to=" + tagged(p.links, link{server, principalOf(of), time.Now().Add(linkTime).Unix()})
}

func principalOf(p *caller.Principal) Principal { return Principal{p.ID, p.Name} }

// tagged encodes a value as text with a tag (an HMAC), which proves that mcpx has made it.
func tagged(tags *caller.Tags, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible: all types of this package can be encoded
	}
	text := base64.RawURLEncoding.EncodeToString(data)
	return text + "." + tags.Of(nil, text)
}

// untag decodes a text that tagged has returned into target. It returns false if mcpx has not made the text.
func untag(tags *caller.Tags, text string, target any) bool {
	text, tag, _ := strings.Cut(text, ".")
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && tags.Is(tag, nil, text) && json.Unmarshal(data, target) == nil
}

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers would send the form with the Origin "null"
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	switch {
	case r.URL.Path == codePath && r.Method == http.MethodPost:
		p.giveCode(w, r)
	case r.URL.Path == CallbackPath && r.Method == http.MethodGet:
		p.callback(w, r)
	case r.URL.Path == pagePath && (r.Method == http.MethodGet || r.Method == http.MethodPost):
		p.page(w, r)
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// page serves the page that a link opens, and handles the forms on the page.
func (p *Pages) page(w http.ResponseWriter, r *http.Request) {
	to := r.URL.Query()["to"]
	var l link
	if len(to) != 1 || !untag(p.links, to[0], &l) || time.Now().Unix() >= l.Until {
		pages.Fault(w, http.StatusBadRequest, "This link is not whole, or too old. Call the tool again for another one.")
		return
	}
	address, ok := p.Accounts.Title(l.Server)
	if !ok {
		pages.Fault(w, http.StatusNotFound, "People do not log in to this server by themselves any more.")
		return
	}
	if r.Method == http.MethodGet {
		p.look(w, r, &l, address)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if p.sameSite.Check(r) != nil || r.ParseForm() != nil {
		pages.Fault(w, http.StatusForbidden, "This form was not sent by a page of mcpx.")
		return
	}
	switch r.PostForm.Get("answer") {
	case "prove":
		if p.SignIn == nil {
			p.back(w, to[0])
			return
		}
		p.SignIn(w, r, pagePath+"?back=1&to="+url.QueryEscape(to[0]))
	case "code":
		p.typed(w, r, &l, to[0])
	case "go", "disconnect":
		v := p.viewerOf(r)
		if v == nil || v.Of.ID != l.Of.ID || p.somebodyElse(r, &l) != nil {
			p.back(w, to[0])
			return
		}
		if r.PostForm.Get("answer") == "go" {
			p.begin(w, r, &l, v)
			return
		}
		if err := p.Accounts.Disconnect(r.Context(), l.Server, l.Of); err != nil {
			p.Log.Warn("a login was forgotten, but could not be revoked", "server", l.Server, "principal", l.Of.Name, "error", err)
		}
		p.done(w, l.Server+" is disconnected", "mcpx has forgotten your login there.")
	default:
		p.back(w, to[0])
	}
}

// look shows the page that a link opens. If the browser belongs to the link's principal, the page asks for consent. Otherwise it
// asks the person to prove to be this principal. If somebody has signed in to another page of mcpx with the browser, the browser
// belongs to them.
func (p *Pages) look(w http.ResponseWriter, r *http.Request, l *link, address string) {
	// After a sign-in, the browser comes from another site. So its request does not have the cookie of the sign-in, which is
	// SameSite=Strict. The page loads itself once more, and that request has the cookie.
	if r.URL.Query().Has("back") {
		w.Header().Set("Refresh", "0; url="+p.address(r.URL.Query().Get("to")))
		p.done(w, "One moment", "You have signed in.")
		return
	}
	data := map[string]any{"Server": l.Server, "Address": hostOf(address), "SignIn": p.SignIn != nil, "Base": p.Base}
	v := p.viewerOf(r)
	if who := p.Viewer(r); who != nil && (v == nil || v.Of.ID != who.ID) {
		v = p.proved(w, principalOf(who))
	}
	switch {
	case v == nil:
		data["Prove"] = true
	case v.Of.ID != l.Of.ID:
		data["Prove"], data["Other"] = true, v.Of.Name
	default:
		data["Who"], data["Connected"] = l.Of.Name, p.Accounts.Connected(r.Context(), l.Server, l.Of.ID)
	}
	pages.Show(w, http.StatusOK, data)
}

// somebodyElse returns the principal that has signed in with this browser, if the link is for a different principal. Otherwise, or
// if nobody has signed in, it returns nil. If it returns a principal, a typed code proves nothing: the person may have got the link
// and the code from somebody who wants the person's account to be connected to their own principal.
func (p *Pages) somebodyElse(r *http.Request, l *link) *caller.Principal {
	if who := p.Viewer(r); who != nil && who.ID != l.Of.ID {
		return who
	}
	return nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// address returns the URL of the page that a link opens. The parameter to is the signed text of the link.
func (p *Pages) address(to string) string { return p.Base + pagePath + "?to=" + url.QueryEscape(to) }

// back redirects the browser to the page of a link, where a principal connects an account. to is the signed text of the link.
func (p *Pages) back(w http.ResponseWriter, to string) {
	w.Header().Set("Location", p.address(to))
	w.WriteHeader(http.StatusSeeOther)
}

// viewer is the content of the cookie of a browser that belongs to a principal: the person has proved to be this principal. Browser
// is random, and Until is in Unix seconds.
type viewer struct {
	Of      Principal `json:"of"`
	Browser string    `json:"b"`
	Until   int64     `json:"u"`
}

const cookieName = "mcpx-viewer"

func (p *Pages) cookieName() string {
	if p.secure() {
		return "__Host-" + cookieName
	}
	return cookieName
}

func (p *Pages) secure() bool { return strings.HasPrefix(p.Base, "https://") }

// proved sets the cookie that says to which principal this browser belongs, for viewerTime. The cookie is SameSite=Lax and not
// Strict, because browsers must also send it when the login page of a server, which is another site, redirects them to mcpx.
func (p *Pages) proved(w http.ResponseWriter, of Principal) *viewer {
	v := viewer{of, rand.Text(), time.Now().Add(viewerTime).Unix()}
	http.SetCookie(w, &http.Cookie{
		Name: p.cookieName(), Value: tagged(p.viewer, v), Path: "/",
		MaxAge: int(viewerTime / time.Second), Secure: p.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return &v
}

// viewerOf returns the content of the browser's cookie that the method proved has set; nil if the browser has no valid cookie.
func (p *Pages) viewerOf(r *http.Request) *viewer {
	var v viewer
	all := r.CookiesNamed(p.cookieName())
	if len(all) != 1 || !untag(p.viewer, all[0].Value, &v) || time.Now().Unix() >= v.Until || v.Of.ID == "" {
		return nil
	}
	return &v
}

// begin prepares a login to the server, and sends the browser to the login page of the server.
func (p *Pages) begin(w http.ResponseWriter, r *http.Request, l *link, v *viewer) {
	data, address, err := p.Accounts.Begin(r.Context(), l.Server, l.Of, p.Base+CallbackPath)
	if err != nil {
		p.Log.Warn("a login of a principal cannot begin", "server", l.Server, "principal", l.Of.Name, "error", err)
		pages.Fault(w, http.StatusBadGateway, "The login to "+l.Server+" cannot begin: "+err.Error())
		return
	}
	one := &Pending{l.Server, l.Of, v.Browser, data}
	id, err := p.Pending.Open(r.Context(), one, time.Now().Add(viewerTime))
	if err != nil {
		pages.Fault(w, http.StatusServiceUnavailable, "mcpx cannot keep this login now. Try again.")
		return
	}
	w.Header().Set("Location", address(id))
	w.WriteHeader(http.StatusSeeOther)
}

// callback handles the request of a browser that an authorization server has sent back after a login to a server.
func (p *Pages) callback(w http.ResponseWriter, r *http.Request) {
	const foreign = "This login was not begun in this browser, was begun too long ago, or has come back already. Open the link again."
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(r.URL.RawQuery) > maxForm || len(query["state"]) != 1 || len(query["code"]) > 1 || len(query["iss"]) > 1 {
		pages.Fault(w, http.StatusBadRequest, foreign)
		return
	}
	id := query.Get("state")
	one, err := p.Pending.Get(r.Context(), id)
	if errors.Is(err, state.ErrAway) {
		pages.Fault(w, http.StatusServiceUnavailable, "mcpx cannot look this login up now. Try again.")
		return
	}
	v := p.viewerOf(r)
	if err != nil || v == nil || v.Of.ID != one.Of.ID || subtle.ConstantTimeCompare([]byte(v.Browser), []byte(one.Browser)) != 1 {
		pages.Fault(w, http.StatusBadRequest, foreign)
		return
	}
	fresh, err := p.Once.Redeem(r.Context(), "connect "+id, time.Now().Add(viewerTime))
	_ = p.Pending.End(r.Context(), id) // if this fails, the entry expires; Once has marked it as used already
	switch {
	case err != nil:
		pages.Fault(w, http.StatusServiceUnavailable, "mcpx cannot use this login now. Open the link again.")
		return
	case !fresh:
		pages.Fault(w, http.StatusBadRequest, foreign)
		return
	}
	if err := p.Accounts.Finish(r.Context(), one.Server, one.Of, one.Data, query); err != nil {
		p.Log.Warn("a login of a principal failed", "server", one.Server, "principal", one.Of.Name, "error", err)
		pages.Fault(w, http.StatusBadGateway, "mcpx could not log in to "+one.Server+": "+err.Error())
		return
	}
	p.Log.Info("a principal has logged in to a server", "server", one.Server, "principal", one.Of.Name)
	p.done(w, one.Server+" is connected", "mcpx uses your account there when "+one.Of.Name+" calls, for nobody else. Go back to your agent, and let it call again.")
}

// giveCode is the endpoint from which a program with a principal's token gets the link to connect an account at a server. The
// program also gets a [Code], unless the principal can sign in with the browser instead.
func (p *Pages) giveCode(w http.ResponseWriter, r *http.Request) {
	who, err := p.Caller(r)
	if err != nil || who == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "this needs the token with which you call mcpx", http.StatusUnauthorized)
		return
	}
	var body struct{ Server string }
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, maxForm)).Decode(&body) != nil {
		http.Error(w, "the body is not the expected JSON", http.StatusBadRequest)
		return
	}
	if _, ok := p.Accounts.Title(body.Server); !ok || !p.Accounts.Sees(who, body.Server) {
		http.Error(w, "there is no server "+sanitize.Line(body.Server, 80)+" to which you log in by yourself", http.StatusNotFound)
		return
	}
	answer := map[string]any{"url": p.Link(body.Server, who), "principal": who.Name}
	// A user who logged in through auth.front can prove who they are by signing in there. They get no code, because a code could be
	// sent to somebody else.
	if who.IssuerToken == nil || p.SignIn == nil {
		code, err := p.Codes.Open(r.Context(), &Code{principalOf(who)}, time.Now().Add(codeTime))
		if err != nil {
			http.Error(w, "mcpx cannot keep a code now; try again", http.StatusServiceUnavailable)
			return
		}
		answer["code"], answer["expires_in"] = code, int(codeTime/time.Second)
	}
	httpd.WriteJSON(w, http.StatusOK, answer)
}

// typed handles a code that was typed into the page. If the code is for the link's principal, the browser belongs to this principal
// from then on.
func (p *Pages) typed(w http.ResponseWriter, r *http.Request, l *link, to string) {
	if who := p.somebodyElse(r, l); who != nil {
		pages.Fault(w, http.StatusForbidden, "This browser is signed in as "+who.Name+", and the link is for somebody else. If somebody has sent you the code, "+
			"they want your account. To use a code of your own for another principal, take a private window.")
		return
	}
	code := strings.TrimSpace(r.PostForm.Get("code"))
	one, err := p.Codes.Get(r.Context(), code)
	if err == nil && one.Of.ID != l.Of.ID {
		err = state.ErrUnknown // the code stays valid for its own principal
	}
	fresh := false
	if err == nil {
		fresh, err = p.Once.Redeem(r.Context(), "connect code "+code, time.Now().Add(codeTime))
		_ = p.Codes.End(r.Context(), code) // if this fails, the entry expires; Once has marked it as used already
	}
	switch {
	case errors.Is(err, state.ErrAway):
		pages.Fault(w, http.StatusServiceUnavailable, "mcpx cannot look this code up now. Try again.")
	case err != nil || !fresh:
		pages.Fault(w, http.StatusForbidden, "This code is wrong, too old, used, or of another principal than this link. Run mcpx login again.")
	default:
		p.proved(w, l.Of)
		p.back(w, to)
	}
}
