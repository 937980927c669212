// Package page serves the status page, which shows a running mcpx in a browser, and can call tools.
package page

import (
	"bytes"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/view"
)

//go:embed assets
var assets embed.FS

// Options are what the page shows and who may see it. All fields except Sessions are required.
type Options struct {
	View *view.TwoTools
	// ViewName is the name of View in the configuration. Rights may depend on it.
	ViewName string
	Executor *executor.Executor
	Hour     *Hour
	// Status returns the content of /status.
	Status func() any
	// Sessions are the sessions of signed-in browsers; nil means that they are kept in memory.
	Sessions state.Sessions[Session]
	Identity *identity.Verifier
	// Admin reports whether a principal may see the page.
	Admin  func(*caller.Principal) bool
	Logger *slog.Logger
}

// Page serves / and everything below /ui/. It has no goroutines of its own.
type Page struct {
	Options
	mux     *http.ServeMux
	ended   chan struct{} // closed by EndStreams
	endOnce sync.Once

	viewers chan struct{} // holds one element per open event stream

	mu    sync.Mutex
	state []byte
	made  time.Time // when state was made
}

func New(o Options) *Page {
	if o.Sessions == nil {
		o.Sessions = NewSessions()
	}
	p := &Page{Options: o, mux: http.NewServeMux(), ended: make(chan struct{}), viewers: make(chan struct{}, maxViewers)}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // impossible: the name is a constant
	}
	p.file(files, "GET /{$}", "page.html", "text/html; charset=utf-8")
	p.file(files, "GET /ui/page.css", "page.css", "text/css; charset=utf-8")
	p.file(files, "GET /ui/page.js", "page.js", "text/javascript; charset=utf-8")
	p.mux.HandleFunc("GET /ui/icon", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	p.mux.HandleFunc("POST /ui/session", p.signIn)
	p.mux.HandleFunc("DELETE /ui/session", p.signOut)
	p.mux.HandleFunc("GET /ui/state", p.seen(p.sendState))
	p.mux.HandleFunc("GET /ui/events", p.seen(p.events))
	p.mux.HandleFunc("GET /ui/server", p.seen(p.server))
	p.mux.HandleFunc("GET /ui/tool", p.seen(p.tool))
	p.mux.HandleFunc("GET /ui/search", p.seen(p.search))
	p.mux.HandleFunc("POST /ui/call", p.seen(p.call))
	return p
}

// contentPolicy lets the page load its own three files and talk to this mcpx, and nothing else, since it shows texts
// from untrusted servers.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements http.Handler. It refuses requests that pages of other origins send.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		refuse(w, http.StatusForbidden, "a page of another origin may not ask this")
		return
	}
	p.mux.ServeHTTP(w, r)
}

func (p *Page) file(files fs.FS, pattern, name, kind string) {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		panic(err) // impossible: the file is embedded
	}
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// EndStreams ends the event streams.
func (p *Page) EndStreams() { p.endOnce.Do(func() { close(p.ended) }) }

// refuse responds with an error that the page shows to its user.
func refuse(w http.ResponseWriter, status int, text string) {
	httpd.WriteJSON(w, status, map[string]string{"error": text})
}
