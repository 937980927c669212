package app

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/front"
	"mcpx/internal/policy"
	"mcpx/internal/request"
	"mcpx/internal/view"
)

// views has the views that clients have connected to. A view decides which servers and tools a client sees. Over HTTP, a view
// has a path: http_path (a config key, by default /mcp) or one below it.
type views struct {
	app     *App
	pending *front.Pending

	// The method get holds mu from the moment when it looks up a view in the current config until the view is in open. So the method drain,
	// which runs after a change of the config, also finds a view that was being opened with the old config.
	mu    sync.Mutex
	open  map[string]*openView // by name, in the form of the config key view
	ended bool
}

func newViews(a *App) *views {
	return &views{app: a, pending: front.NewPending(memoryOf(a.Config)), open: make(map[string]*openView)}
}

// openView is a view together with its front, the handler that serves the clients of the view.
type openView struct {
	view interface {
		view.View
		Close()
	}
	native bool // the view lists the tools of the servers, instead of the tools inspect and exec
	front  *front.Front
}

// get returns a view, and creates it at the first use. It returns nil if there is no such view. After the method close, it
// creates no view.
func (v *views) get(name string) *openView {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, cfg := v.app, v.app.current.Load().config
	if one := v.open[name]; one != nil || v.ended || !a.hasView(cfg, name) {
		return one
	}
	one := &openView{}
	switch _, one.native = scopeOf(cfg, name); {
	case name == config.ViewTwoTools:
		one.view = a.View
	case one.native:
		one.view = view.NewAllTools(a.Registry, a.Executor, a.viewOf(name))
	default:
		one.view = view.NewTwoTools(a.Registry, a.Executor, a.viewOf(name))
	}
	one.front = front.New(one.view, front.Options{
		Name: a.offered.Name, Version: cmp.Or(a.offered.Version, Version()), SessionIdle: a.Config.SessionTimeout,
		MaxMessage: a.Config.MaxMessageBytes, Known: a.identity.Knows,
		Sessions: a.state.sessions, Once: a.state.once, Secrets: a.state.secrets,
		Peers:        a.peers(),
		Homed:        func() []string { return a.homed(name, sessionsOfOwn) },
		PerPrincipal: func() []string { return a.homed(name, sessionPerPrincipal) },
		Admission:    a.limits, Pending: v.pending,
		Journal: &a.journal, SessionEnded: a.sessionEnded, Trace: a.traceClients(), Logger: a.log,
	})
	v.open[name] = one
	return one
}

// viewAgent is the name of the view for the clients of agents, which belong to an older system that mcpx can replace (config key
// dial.compat). It has no path under http_path.
const viewAgent = "agent"

// opened returns a view that clients have connected to, or nil if there is none of this name.
func (v *views) opened(name string) *openView {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.open[name]
}

// find returns the view at a path under http_path. It returns nil if there is no such view, or if the principal of the request
// may not use it. If no rule in auth.rights names the principal, it may use the view at http_path itself, but sees no tools
// there.
func (v *views) find(r *http.Request, path string) *openView {
	name, who, rights := cmp.Or(path, v.app.Config.View), caller.From(r.Context()), v.app.Rights()
	cfg := v.app.current.Load().config
	part, _ := scopeOf(cfg, name)
	there := path == "" || v.app.hasView(cfg, name)
	if !there || !rights.Opens(who, name, part) && (path != "" || who == nil || rights.Names(who)) {
		return nil
	}
	return v.get(name)
}

// hasView reports whether there is a view of this name: in the config, of a server that has dialled in, of a server in this
// process, or for the clients of agents.
func (a *App) hasView(cfg *config.Config, name string) bool {
	server, _ := strings.CutPrefix(name, config.ViewServer)
	return name == viewAgent && compat(cfg.Dial) || cfg.CheckView(name) == "" ||
		server != name && (a.dialled.State(server) != "" || slices.ContainsFunc(a.locals, func(l Local) bool { return l.Name == server }))
}

// drain ends each open view that the current config no longer has, or whose field native no longer fits the current config. It ends
// the sessions of these views too. It never ends the view at http_path itself.
func (v *views) drain() {
	v.mu.Lock()
	cfg := v.app.current.Load().config
	var gone []*openView
	for name, one := range v.open {
		_, native := scopeOf(cfg, name)
		if (native != one.native || !v.app.hasView(cfg, name)) && name != v.app.Config.View {
			delete(v.open, name)
			gone = append(gone, one)
		}
	}
	v.mu.Unlock()
	v.end(gone, (*front.Front).Remove)
}

// end closes the views in list. Before it closes a view, it calls stop with the view's front.
func (v *views) end(list []*openView, stop func(*front.Front)) {
	for _, one := range list {
		stop(one.front)
		if one.view != v.app.View { // App.Close ends this view
			one.view.Close()
		}
	}
}

func (v *views) close() {
	v.mu.Lock()
	v.ended = true
	all := slices.Collect(maps.Values(v.open))
	v.mu.Unlock()
	v.end(all, (*front.Front).Close)
}

// Serve answers a request of a client, and implements [httpd.Endpoint]. The path http_path (a config key) leads to the view that the
// config names, http_path/NAME to the view NAME. If the config has sse, each of these paths also has the two paths of the older
// HTTP+SSE transport below it.
func (v *views) Serve(w http.ResponseWriter, r *http.Request) []*request.Event {
	at := v.app.Config.HTTPPath
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, at), "/")
	if one := v.find(r, path); one != nil {
		return one.front.Serve(w, r)
	}
	if i := strings.LastIndexByte("/"+path, '/'); v.app.Config.SSE {
		one := v.find(r, path[:max(0, i-1)])
		switch what := path[i:]; {
		case one != nil && what == "sse":
			one.front.ServeSSE(w, r, strings.TrimSuffix(r.URL.EscapedPath(), "sse")+"messages")
			return nil
		case one != nil && what == "messages":
			one.front.PostSSE(w, r)
			return nil
		}
	}
	http.Error(w, strings.ReplaceAll("there is no such view; there are PATH, PATH/tools, PATH/servers/NAME and PATH/groups/NAME", "PATH", at), http.StatusNotFound)
	return nil
}

// EndStreams ends the requests of clients that wait for events, not for a result. It implements [httpd.Endpoint].
func (v *views) EndStreams() { v.each((*front.Front).EndStreams) }

// EndCalls ends, with an error, all open requests of clients that wait for a result. It implements [httpd.Endpoint].
func (v *views) EndCalls() { v.each((*front.Front).EndCalls) }

// each calls the function f with the front of every open view. It does not hold mu meanwhile.
func (v *views) each(f func(*front.Front)) {
	v.mu.Lock()
	all := slices.Collect(maps.Values(v.open))
	v.mu.Unlock()
	for _, one := range all {
		f(one.front)
	}
}

// scopeOf returns the part of the catalogue that the view called name shows; nil means the whole catalogue. native is true if the view
// lists the tools of the servers, instead of the tools inspect and exec.
func scopeOf(cfg *config.Config, name string) (part *policy.Scope, native bool) {
	if server, ok := strings.CutPrefix(name, config.ViewServer); ok {
		return &policy.Scope{Servers: []string{cmp.Or(cfg.Served(server), server)}}, true
	}
	if group, ok := strings.CutPrefix(name, config.ViewGroup); ok {
		g := cfg.Group(group)
		if g == nil {
			return &policy.Scope{Servers: []string{}}, false
		}
		rules := &policy.Rules{Allow: g.Tools.Allow, Disabled: g.Tools.Deny, ReadOnly: g.ReadOnly}
		return &policy.Scope{Servers: g.Servers, Rules: rules, Confirm: g.Confirm}, g.View == config.ViewTools
	}
	return nil, name == config.ViewTools || name == viewAgent
}
