// Package page serves the status page, which shows a running mcpx in a browser, and can call tools.
package page

import (
	"bytes"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"sync"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/view"
)

//go:embed assets
var assets embed.FS

// Options are what the page shows and who may see it. All fields are required unless they say otherwise.
type Options struct {
	View *view.TwoTools
	// ViewName is the name of View in the configuration. Rights may depend on it.
	ViewName string
	Executor *executor.Executor
	Hour     *Hour
	// Status returns the content of /status.
	Status func() any
	// Browsers has the signed-in browsers. With nil, their sessions are kept in memory, and they sign in with tokens.
	Browsers *Browsers
	Identity *identity.Verifier
	// Admin reports whether a principal may see the page.
	Admin func(*caller.Principal) bool
	// Links is set only for the page on a user's own machine. Whoever has a link is taken for this user, so Browsers, Identity and
	// Admin are not used.
	Links *Links
	// Calls are the recent calls that the page shows.
	Calls *Calls
	// About returns what the page gets in addition to the result of Status, by name; may be nil.
	About func() map[string]any
	// Routes are handlers below /ui/, by their pattern for [http.ServeMux]. The page calls them only for viewers who may see the
	// page; may be nil.
	Routes map[string]http.HandlerFunc
	// Back serves BackPath, to which the browser returns after the user has logged in to a server. The handler must verify the
	// request by itself, because the browser does not send the SameSite=Strict cookie of the session with it. May be nil.
	Back   http.HandlerFunc
	Logger *slog.Logger
}

// BackPath is the path that Options.Back serves.
const BackPath = "/ui/back"

// Page serves / and everything below /ui/. It has no goroutines that outlive a request.
type Page struct {
	Options
	mux     *http.ServeMux
	ended   chan struct{} // closed by EndUnused
	reason  string        // what EndUnused tells the viewers; set before ended is closed
	endOnce sync.Once

	viewers chan struct{} // holds one element per open event stream

	mu    sync.Mutex
	state []byte
	made  time.Time // when state was made
}

func New(o Options) *Page {
	if o.Browsers == nil {
		o.Browsers = &Browsers{Sessions: NewSessions()}
	}
	p := &Page{Options: o, mux: http.NewServeMux(), ended: make(chan struct{}), viewers: make(chan struct{}, maxViewers)}
	p.files()
	p.mux.HandleFunc("GET /ui/icon", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	p.mux.HandleFunc("GET /"+signInPath, p.signInByIssuer)
	p.mux.HandleFunc("GET /ui/mode", p.sendMode)
	p.mux.HandleFunc("POST /ui/session", p.signIn)
	p.mux.HandleFunc("DELETE /ui/session", p.signOut)
	p.mux.HandleFunc("GET /ui/state", p.viewed(p.sendState))
	p.mux.HandleFunc("GET /ui/events", p.viewed(p.events))
	p.mux.HandleFunc("GET /ui/tool", p.viewed(p.tool))
	p.mux.HandleFunc("GET /ui/search", p.viewed(p.search))
	p.mux.HandleFunc("POST /ui/call", p.viewed(p.call))
	p.mux.HandleFunc("GET /ui/calls", p.viewed(p.sendCalls))
	p.mux.HandleFunc("POST /ui/looked", p.viewed(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	if o.Back != nil {
		p.mux.HandleFunc("GET "+BackPath, o.Back)
	}
	for pattern, handler := range o.Routes {
		p.mux.HandleFunc(pattern, p.viewed(handler))
	}
	return p
}

// contentPolicy lets the page load its own files and talk to this mcpx, and nothing else. The page needs it because it shows texts
// from untrusted servers.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements http.Handler. It refuses requests that pages of other origins send, except GET, HEAD and OPTIONS: the other
// pages cannot read the answers to these. With Options.Links it also refuses a Host that is not this machine.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		Refuse(w, http.StatusForbidden, "other_origin", "a page of another origin may not ask this")
		return
	}
	if p.Links != nil && !p.Links.addressed(r) {
		Refuse(w, http.StatusMisdirectedRequest, "other_origin", "this address does not belong to mcpx ui")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// kinds are the media types of the assets.
var kinds = map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

// files serves page.html at / and the other assets below /ui/.
func (p *Page) files() {
	_ = fs.WalkDir(assets, ".", func(file string, _ fs.DirEntry, _ error) error { // embedded files give no errors
		kind, ok := kinds[path.Ext(file)]
		if !ok {
			return nil // a folder
		}
		data, err := assets.ReadFile(file)
		if err != nil {
			panic(err) // impossible: the file is embedded
		}
		pattern := "GET /ui/" + path.Base(file)
		if path.Ext(file) == ".html" {
			pattern = "GET /{$}"
		}
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		})
		return nil
	})
}

// EndStreams ends the event streams without telling the viewers why.
func (p *Page) EndStreams() { p.EndUnused("") }

// EndUnused ends the event streams, and tells the viewers the reason.
func (p *Page) EndUnused(reason string) {
	p.endOnce.Do(func() {
		p.reason = reason
		close(p.ended)
	})
}

// Refuse responds with an error that the page shows to its viewer. code identifies the error, so that the page can show it in the
// viewer's language.
func Refuse(w http.ResponseWriter, status int, code, text string) {
	httpd.WriteJSON(w, status, map[string]string{"error": text, "code": code})
}
