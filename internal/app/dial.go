package app

import (
	"net/http"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// withDialled returns the servers that have dialled in, and adds their rules to rules. Those that others than their owner can use
// are hidden until an admin has approved their tools, and may not ask clients anything.
func (b *builder) withDialled(cfg *config.Config, rules *policy.Rules, lock Lock) (servers []registry.Server) {
	var dialled []policy.Dialled
	for _, s := range b.dialledIn() {
		name := s.Dialled.Server
		if slices.ContainsFunc(cfg.Servers, func(other config.Server) bool { return other.Name == name }) {
			continue
		}
		shared := s.For != conf.DialSelf
		if dialled = append(dialled, s.Dialled); shared {
			rules.Servers[name] = policy.ServerRules{Pin: policy.PinBlock, Approved: lock[name]}
		}
		spec := upstream.Spec{
			Options: transport.Options{
				Name: name, Type: transport.WebSocket, Connect: s.Connect, Arrived: s.Arrived,
				MaxMessage: cfg.MaxMessageBytes, Logger: b.log, Trace: b.trace(name),
			},
			Introduction: upstream.Introduction{Name: "mcpx", Version: Version()},
			Concurrency:  upstream.Concurrency{Queue: cfg.Limits.Server.Queue},
			NoQuestions:  shared,
		}
		if strings.HasPrefix(s.Owner, identity.AgentKind+" ") { // as in the older system, which knew no other revisions
			spec.Protocol = upstream.EraLegacy
		}
		if cfg.HealthCheck {
			spec.Health = cfg.Health
		}
		servers = append(servers, registry.Server{Spec: spec, Definition: registry.Key("dial", name, s.Owner, s.For, s.Place)})
	}
	rules.Rights = rules.Rights.With(dialled)
	return servers
}

// configured reports whether the current config has a server of this name.
func (a *App) configured(name string) bool {
	return slices.ContainsFunc(a.current.Load().config.Servers, func(s config.Server) bool { return s.Name == name || s.Written == name })
}

// redial applies the present list of servers that have dialled in.
func (a *App) redial() {
	a.applying.Lock()
	defer a.applying.Unlock()
	a.rebuild()
}

// rebuild builds and uses a Runtime of the current config. The caller holds applying.
func (a *App) rebuild() {
	before := a.current.Load()
	next, err := a.build(before.config, before)
	if err != nil {
		a.log.Error("the servers that dialled in have changed, but the config cannot be applied again", "err", err)
		return
	}
	a.swap(next)
}

// dialledServer is a server in the answer to GET /api/dialled.
type dialledServer struct {
	Name     string   `json:"name"`
	Owner    string   `json:"owner,omitempty"`
	For      string   `json:"for"`
	State    string   `json:"state"`
	Tools    []string `json:"tools"`
	Approved bool     `json:"approved"`
}

// serveDialled serves /api/dialled to admins: GET lists the servers that have dialled in, and POST /api/dialled/NAME/approve
// approves the present tools of one. The guard of httpd has checked the Origin.
func (a *App) serveDialled(w http.ResponseWriter, r *http.Request) {
	name, approve := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/dialled/"), "/approve")
	switch {
	case r.URL.Path == "/api/dialled" && r.Method == http.MethodGet:
		httpd.WriteJSON(w, http.StatusOK, map[string]any{"servers": a.listDialled()})
	case approve && r.Method == http.MethodPost && a.current.Load().config.Auth == nil && r.Header.Get("Origin") != "":
		http.Error(w, "without auth, no web page may approve tools", http.StatusForbidden)
	case approve && r.Method == http.MethodPost:
		a.approveDialled(w, name)
	default:
		http.Error(w, "there is GET /api/dialled and POST /api/dialled/NAME/approve", http.StatusNotFound)
	}
}

func (a *App) listDialled() []dialledServer {
	lock, _ := a.lock(a.current.Load().config) // if it cannot be read, nothing is approved
	all := []dialledServer{}
	for _, s := range a.dialled.Servers() {
		one := dialledServer{Name: s.Dialled.Server, Owner: s.Owner, For: s.For, Tools: []string{}}
		one.State = a.dialled.State(one.Name)
		if server, ok := a.Registry.Snapshot().Server(one.Name); ok {
			for i := range server.Tools {
				one.Tools = append(one.Tools, server.Tools[i].Name)
			}
			added, changed, _ := lock.Changes(server)
			one.Approved = s.For == conf.DialSelf || server.Known && len(added)+len(changed) == 0
		}
		all = append(all, one)
	}
	return all
}

// approveDialled approves the present tools of a server, and applies that.
func (a *App) approveDialled(w http.ResponseWriter, name string) {
	a.applying.Lock()
	defer a.applying.Unlock()
	server, ok := a.Registry.Snapshot().Server(name)
	if !ok || a.dialled.State(name) == "" || !server.Known {
		http.Error(w, "no server has dialled in as "+name+", or it has not listed its tools yet", http.StatusNotFound)
		return
	}
	cfg := a.current.Load().config
	lock, err := LoadLock(cfg)
	if err == nil {
		if lock == nil {
			lock = make(Lock)
		}
		lock.Approve(server)
		err = lock.Save(cfg)
	}
	if err != nil {
		a.log.Error("approving a server that dialled in failed", "server", name, "err", err)
		http.Error(w, "the approval cannot be stored; the log says why", http.StatusInternalServerError)
		return
	}
	a.rebuild()
	w.WriteHeader(http.StatusNoContent)
}
