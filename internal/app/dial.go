package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/control"
	"mcpx/internal/hosted/cluster"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// newHub returns the hub, which accepts the connections of servers that dial in.
func (a *App) newHub() *dial.Hub {
	most := a.Config.MaxMessageBytes
	return dial.New(dial.Options{
		Current: func() *conf.Dial { return a.current.Load().config.Dial }, Taken: a.configured, Changed: a.redial,
		Barred:     func(p *caller.Principal) bool { return a.Rights().Out(p) },
		MaxMessage: most, Logger: a.log, Cluster: a.state.cluster,
		Relay: func(ctx context.Context, served string, stream io.ReadWriteCloser) error {
			return serveRelay(ctx, a.Registry, served, most, stream)
		},
	})
}

// withDialled returns the servers that have dialled in, and adds their rules to rules. It leaves out a server if the config has
// one of the same name. If principals other than the owner can use a server, its tools are hidden until an admin has approved
// them; also, the server may neither ask clients anything nor give instructions to models.
func (b *builder) withDialled(cfg *config.Config, rules *policy.Rules, lock Lock) (servers []registry.Server) {
	var dialled []policy.Dialled
	for _, s := range b.dialledIn() {
		name := s.Dialled.Server
		rule := &conf.DialRule{}
		if cfg.Dial != nil { // without a rule for the server, rule stays empty until dial.Hub.Recheck removes the server
			rule = cmp.Or(policy.MayDial(cfg.Dial.Allow, s.By, s.Name), rule)
		}
		if slices.ContainsFunc(cfg.Servers, func(other config.Server) bool { return other.Name == name }) {
			continue
		}
		shared := s.For != conf.DialSelf
		one := policy.ServerRules{Overrides: rule.Overrides, Dialled: true, Confirm: cfg.Confirm}
		if shared {
			one.Pin, one.Approved = conf.PinBlock, lock[approvedAs(&s)]
			s.Unapproved = one.Approved == nil
		}
		dialled, rules.Servers[name] = append(dialled, s.Dialled), one
		spec := upstream.Spec{
			Options: transport.Options{
				Name: name, Type: transport.WebSocket, Connect: s.Connect, Arrived: s.Arrived,
				MaxMessage: cfg.MaxMessageBytes, Logger: b.log, Trace: b.trace(name),
			},
			Introduction: upstream.Introduction{Name: "mcpx", Version: Version()},
			Concurrency:  upstream.Concurrency{Max: cfg.Limits.ServerCalls, Queue: cfg.Limits.Server.Queue},
			Catalogue:    upstream.Catalogue{Admit: s.Admit},
			NoQuestions:  shared, NoInstructions: shared,
		}
		if strings.HasPrefix(s.Owner, identity.AgentKind+" ") { // the older system (dial.compat) speaks only this revision of MCP
			spec.Protocol = upstream.EraLegacy
		}
		if cfg.HealthCheck {
			spec.Health = cfg.Health
		}
		servers = append(servers, registry.Server{Spec: spec, Definition: registry.Key("dial", s.Serial)})
	}
	rules.Rights = rules.Rights.With(dialled)
	return servers
}

// approvedAs returns the key under which a [Lock] has the approved tools of a server that has dialled in. The key contains the
// owner, because another principal may later use the same server name. The spaces in the key distinguish it from the name of a
// server of the config, which has none.
func approvedAs(s *dial.Server) string { return s.Dialled.Server + " of " + s.Owner }

// configured reports whether the current config or mcpx itself has a server of this name, in whatever case.
func (a *App) configured(name string) bool {
	return strings.EqualFold(name, config.Reserved) || slices.ContainsFunc(a.current.Load().config.Servers, func(s config.Server) bool {
		return strings.EqualFold(s.Name, name) || strings.EqualFold(s.Written, name)
	})
}

// redial is called when the list of servers that have dialled in has changed. When it returns, mcpx uses the new list. If many
// servers dial in at once, a single rebuild is enough for all of them.
func (a *App) redial() {
	a.undialled.Store(true)
	a.applying.Lock()
	defer a.applying.Unlock()
	if a.undialled.Swap(false) { // false if a rebuild that began after Store has used the new list already
		a.rebuild()
	}
}

// rebuild builds a Runtime from the current config and makes it the current one. The caller holds the mutex a.applying.
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

// serveDialled serves /api/dialled to admins. GET lists the servers that have dialled in. GET /api/dialled/NAME returns the
// tool definitions of a server, and their digest. POST /api/dialled/NAME/approve approves the present tools. With
// ?digest=DIGEST, it approves them only if the present definitions have this digest: the admin may have read older definitions.
// Package httpd has refused requests with a foreign Origin header. If the config has no auth, no request with an Origin header
// may approve.
func (a *App) serveDialled(w http.ResponseWriter, r *http.Request) {
	name, approve := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/dialled/"), "/approve")
	switch {
	case r.URL.Path == "/api/dialled" && r.Method == http.MethodGet:
		httpd.WriteJSON(w, http.StatusOK, map[string]any{"servers": a.listDialled()})
	case !approve && r.Method == http.MethodGet:
		a.readDialled(w, name)
	case approve && r.Method == http.MethodPost && a.current.Load().config.Auth == nil && r.Header.Get("Origin") != "":
		http.Error(w, "without auth, no web page may approve tools", http.StatusForbidden)
	case approve && r.Method == http.MethodPost:
		a.approveDialled(w, r, name)
	default:
		http.Error(w, "there is GET /api/dialled, GET /api/dialled/NAME and POST /api/dialled/NAME/approve", http.StatusNotFound)
	}
}

// Dialled returns the servers that have dialled in, for commands.
func (a *App) Dialled() (all []control.Dialled) {
	for _, s := range a.listDialled() {
		all = append(all, control.Dialled{Name: s.Name, For: s.For, State: s.State, Tools: len(s.Tools), Approved: s.Approved})
	}
	return all
}

func (a *App) listDialled() []dialledServer {
	lock, _ := a.lock(a.current.Load().config) // an unreadable lock file means that nothing is approved
	all := []dialledServer{}
	for _, s := range a.dialled.Servers() {
		one := dialledServer{Name: s.Dialled.Server, Owner: s.By.String(), For: s.For, Tools: []string{}}
		one.State = a.dialled.State(one.Name)
		if server, ok := a.Registry.Snapshot().Server(one.Name); ok {
			for i := range server.Tools {
				one.Tools = append(one.Tools, server.Tools[i].Name)
			}
			added, changed, _ := Lock{one.Name: lock[approvedAs(&s)]}.Changes(server)
			one.Approved = s.For == conf.DialSelf || server.Known && len(added)+len(changed) == 0
		}
		all = append(all, one)
	}
	return all
}

// readDialled answers with the definitions of the tools of a server that has dialled in, and their digest.
func (a *App) readDialled(w http.ResponseWriter, name string) {
	server, ok := a.Registry.Snapshot().Server(name)
	if !ok || a.dialled.State(name) == "" || !server.Known {
		http.Error(w, notDialled(name), http.StatusNotFound)
		return
	}
	tools := make([]json.RawMessage, len(server.Tools))
	for i := range server.Tools {
		tools[i] = server.Tools[i].Raw
	}
	httpd.WriteJSON(w, http.StatusOK, map[string]any{"name": name, "digest": approvalOf(server), "tools": tools})
}

func notDialled(name string) string {
	return "no server has dialled in as " + name + ", or it has not listed its tools yet"
}

// digestOf returns a digest of the definitions of all tools of a server. tools has the digest of each definition, by the name
// of the tool.
func digestOf(tools map[string]string) string {
	sum := sha256.Sum256(wire.Encode(tools)) // Encode sorts by name
	return hex.EncodeToString(sum[:])
}

// approveDialled approves the present tools of a server that has dialled in, and rebuilds the Runtime with the approval.
func (a *App) approveDialled(w http.ResponseWriter, r *http.Request, name string) {
	a.applying.Lock()
	defer a.applying.Unlock()
	all := a.dialled.Servers()
	at := slices.IndexFunc(all, func(s dial.Server) bool { return s.Dialled.Server == name })
	server, ok := a.Registry.Snapshot().Server(name)
	if !ok || at < 0 || !server.Known {
		http.Error(w, notDialled(name), http.StatusNotFound)
		return
	}
	present := make(Lock)
	present.Approve(server)
	digest := digestOf(present[name])
	if read := r.URL.Query().Get("digest"); read != "" && read != digest {
		http.Error(w, "the tools are not those that you have read: read GET /api/dialled/"+name+" again", http.StatusConflict)
		return
	}
	who := caller.From(r.Context())
	if err := a.auditor.changing(who, change{action: "approve", name: name}, "the tools with the digest "+digest); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if err := a.storeApproval(r.Context(), approvedAs(&all[at]), present[name]); err != nil {
		a.log.Error("approving a server that dialled in failed", "server", name, "err", err)
		http.Error(w, "the approval cannot be stored; the log says why", http.StatusInternalServerError)
		return
	}
	a.log.Info("a server that dialled in is approved", "server", name, "principal", who.String(), "digest", digest)
	a.rebuild()
	w.WriteHeader(http.StatusNoContent)
}

// storeApproval stores the approved tools of a server that has dialled in: in the lock file or, with a cluster, in the cluster for all
// replicas.
func (a *App) storeApproval(ctx context.Context, key string, tools map[string]string) error {
	if c := a.state.cluster; c != nil {
		return c.Records().Change(ctx, approvalPrefix+key, func([]byte) ([]byte, time.Time, error) {
			return wire.Encode(Lock{key: tools}), forever, nil
		})
	}
	return ChangeLock(a.current.Load().config, func(lock Lock) { lock[key] = tools })
}

// forever is the end of records that do not expire.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// approvalPrefix is the beginning of the keys under which the cluster stores approvals.
const approvalPrefix = "approved."

// approvals are the approved tools that all replicas share. A nil *approvals is empty.
type approvals struct {
	mu  sync.Mutex
	all Lock
}

// follow copies the approvals in the cluster to s: all that are there now, and later each one that a replica stores. After each copy it
// calls changed.
func (s *approvals) follow(c *cluster.Cluster, changed func()) {
	c.Records().Watch(approvalPrefix, func(value []byte) {
		var one Lock
		if json.Unmarshal(value, &one) == nil {
			s.mu.Lock()
			maps.Copy(s.all, one)
			s.mu.Unlock()
			changed()
		}
	})
}

// renew stores the approvals in the cluster again, and so encrypts them with its first key. Otherwise they would be lost when the key with
// which they were encrypted leaves the config.
func (s *approvals) renew(ctx context.Context, c *cluster.Cluster) error {
	for key := range s.merge(nil) {
		err := c.Records().Change(ctx, approvalPrefix+key, func(now []byte) ([]byte, time.Time, error) { return now, forever, nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// merge returns lock together with the shared approvals. If the two have different approvals for a key, it takes the shared one.
func (s *approvals) merge(lock Lock) Lock {
	if s == nil {
		return lock
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	both := maps.Clone(s.all)
	for key, tools := range lock {
		if both[key] == nil {
			both[key] = tools
		}
	}
	return both
}
