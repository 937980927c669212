package app

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/transport"
)

// agents serves the HTTP paths of an older system, which mcpx can replace (config key dial.compat). In that system, an agent is a name that
// servers and clients share: tool servers connect at the path mcp/, and clients that call the tools connect at the path call/.
type agents struct {
	app   *App
	calls sync.WaitGroup // counts the connected clients

	mu      sync.Mutex
	clients map[string]int // the number of connected clients, by the ID of the agent
	ended   bool
}

// ServeHTTP implements http.Handler. Package httpd authenticates the requests for the paths mcp/ and call/ before it calls ServeHTTP.
func (g *agents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !compat(g.app.current.Load().config.Dial) {
		http.NotFound(w, r)
		return
	}
	switch strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, httpd.AgentsPath), "/") {
	case "":
		writeRPC(w, http.StatusOK, "result", map[string]string{"message": "mcpx", "version": Version(), "status": "running"})
	case "health":
		g.health(w, r)
	case "mcp":
		g.app.dialled.ServeAgent(w, r)
	case "call":
		g.call(w, r)
	default:
		http.NotFound(w, r)
	}
}

func compat(d *conf.Dial) bool { return d != nil && d.Compat != conf.CompatOff }

// call serves a client at the path call/. The client calls the tools of its agent, in the older system's meaning of the word (see
// agents), over a WebSocket. call returns when the connection has ended, the client's token is no longer valid, or mcpx shuts down.
func (g *agents) call(w http.ResponseWriter, r *http.Request) {
	a, who := g.app, caller.From(r.Context())
	one := a.views.get(viewAgent)
	if one == nil || !g.begin(who) {
		http.Error(w, "mcpx is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer g.end(who)
	if over := a.limits.OpenSession(who); over != nil {
		w.Header().Set("Retry-After", strconv.Itoa(over.Seconds()))
		http.Error(w, over.Error(), http.StatusTooManyRequests)
		return
	}
	defer a.limits.CloseSession(who)
	peer, err := transport.AcceptPeer(w, r, transport.PeerOptions{MaxMessage: a.Config.MaxMessageBytes, Name: "the client"})
	if err != nil {
		a.log.Info("a client of an agent could not connect", "principal", who.String(), "err", err)
		return
	}
	defer context.AfterFunc(r.Context(), func() {
		if errors.Is(context.Cause(r.Context()), caller.ErrRevoked) { // a shutdown ends the context too, but lets open calls finish
			_ = peer.CloseWith(transport.ClosePolicy, "the token is not valid any more")
		}
	})()
	a.log.Debug("a client of an agent has connected", "principal", who.String())
	err = one.front.ServeSocket(r, peer, a.grace())
	code, reason := transport.CloseGoingAway, "mcpx is shutting down"
	if until := caller.Until(r.Context()); !until.IsZero() && time.Until(until) <= 0 {
		code, reason = transport.ClosePolicy, "the token has expired"
	}
	_ = peer.CloseWith(code, reason)
	a.log.Debug("a client of an agent has left", "principal", who.String(), "err", err)
}

// begin counts a client as connected, until end is called for it. After close, begin counts nothing and returns false.
func (g *agents) begin(who *caller.Principal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.calls.Add(1)
	g.clients[agentOf(who)]++
	return true
}

func (g *agents) end(who *caller.Principal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clients[agentOf(who)]--; g.clients[agentOf(who)] == 0 {
		delete(g.clients, agentOf(who))
	}
	g.calls.Done()
}

// close ends the connections of all clients, and returns when they have ended. A connection ends when its open calls are finished,
// but not later than the config key shutdown_grace allows.
func (g *agents) close() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.app.views.EndStreams()
	g.calls.Wait()
}

// agentOf returns the ID of the agent whose principal is p.
func agentOf(p *caller.Principal) string { return strings.TrimPrefix(p.Name, conf.Agents) }

// codeUnauthorized is the error code for a wrong key. The older system that mcpx can replace (config key dial.compat) has the same code.
const codeUnauthorized = -32004

// health serves the path health, in the JSON form of the older system that mcpx can replace (config key dial.compat). If the query has the
// right key, the answer says which servers and clients each agent has. Otherwise health refuses the request.
func (g *agents) health(w http.ResponseWriter, r *http.Request) {
	key, known := []byte(r.URL.Query().Get("key")), 0
	for _, one := range g.app.current.Load().config.Dial.Keys {
		known |= subtle.ConstantTimeCompare(key, []byte(one))
	}
	if known == 0 {
		failure := map[string]any{"code": codeUnauthorized, "message": "the key is wrong or missing"}
		writeRPC(w, http.StatusUnauthorized, "error", failure)
		return
	}
	writeRPC(w, http.StatusOK, "result", map[string]any{"status": "success", "connections": g.connections()})
}

// connections is the part of health's answer that counts the connected servers and clients. The JSON names come from the older
// system that mcpx can replace (config key dial.compat). In that system, a client is called a robot.
type connections struct {
	Servers        int                               `json:"mcp_server_connections"`
	Robots         int                               `json:"robot_connections"`
	All            int                               `json:"total_connections"`
	RobotsByAgent  map[string]int                    `json:"robot_connections_by_agent"`
	ServersByAgent map[string]map[string]agentServer `json:"mcp_servers"`
	Tools          int                               `json:"total_tools"`
	Several        bool                              `json:"multi_server_support"`
	Agents         []string                          `json:"available_agents"`
}

// agentServer describes a server of an agent, in the answer of the method health.
type agentServer struct {
	Tools     int               `json:"tools_count"`
	ToolNames []string          `json:"tools"`
	Info      map[string]string `json:"server_info"`
	// State and Reason are additions of mcpx. The older system that mcpx can replace (config key dial.compat) does not say why a server is
	// missing.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

func (g *agents) connections() connections {
	out := connections{ServersByAgent: make(map[string]map[string]agentServer), Several: true}
	g.mu.Lock()
	out.RobotsByAgent = maps.Clone(g.clients)
	g.mu.Unlock()
	for _, n := range out.RobotsByAgent {
		out.Robots += n
	}
	snap := g.app.Registry.Snapshot()
	for _, s := range g.app.dialled.Servers() {
		agent, ok := strings.CutPrefix(s.Owner, identity.AgentKind+" ")
		if !ok {
			continue
		}
		one := agentServer{State: g.app.dialled.State(s.Dialled.Server), ToolNames: []string{}, Info: map[string]string{}}
		if known, ok := snap.Server(s.Dialled.Server); ok {
			one.Tools, one.Reason = len(known.Tools), known.Reason
			for i := range known.Tools {
				one.ToolNames = append(one.ToolNames, known.Tools[i].Name)
			}
			one.Info = map[string]string{"name": cmp.Or(known.Title, s.Name), "version": known.Version}
		}
		if out.ServersByAgent[agent] == nil {
			out.ServersByAgent[agent] = make(map[string]agentServer)
		}
		out.ServersByAgent[agent][s.Name] = one
		out.Tools += one.Tools
		if one.State != dial.Away {
			out.Servers++
		}
	}
	out.All, out.Agents = out.Servers+out.Robots, slices.Sorted(maps.Keys(out.ServersByAgent))
	return out
}

// writeRPC writes an HTTP response in the form of JSON-RPC, like the older system that mcpx can replace (config key dial.compat). member is
// "result" or "error"; value is the value of this member.
func writeRPC(w http.ResponseWriter, status int, member string, value any) {
	httpd.WriteJSON(w, status, map[string]any{"jsonrpc": "2.0", "id": nil, member: value})
}
