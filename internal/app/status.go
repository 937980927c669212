package app

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/lru"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/savings"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/request"
)

// readiness is the long answer to /readyz, with the numbers of servers and tools. The embedded Readiness is the short answer,
// which everyone gets.
type readiness struct {
	httpd.Readiness
	Servers int                   `json:"servers"`
	Tools   int                   `json:"tools"`
	States  map[catalog.State]int `json:"states"`
}

// readyState is what the answer to /readyz depends on, besides the states of the servers.
type readyState struct {
	began time.Time
	// settled is set by the method ready once mcpx has tried to connect to every server, or after readyWithin, and is never
	// reset. From then on, servers do not affect the readiness.
	settled atomic.Bool
	// clusterAway reports whether the cluster cannot be reached at present; nil without a cluster.
	clusterAway func() bool
}

// readyWithin is how long connecting to servers may keep a process from being ready. Without this bound, a server that hangs or
// takes long to install would keep all replicas from being ready.
const readyWithin = 2 * time.Minute

// ready returns the answers to /readyz, a short one and one with the numbers of servers and tools. The process is ready once mcpx
// has tried to connect to every server, or after readyWithin. A server that is down, or goes down later, does not make the process
// unready: otherwise one server would make all replicas unready at once. If the config requires the audit trail and the trail
// cannot be written, the process is not ready.
func (a *App) ready() (httpd.Readiness, any) {
	snap := a.Executor.Catalogue(nil)
	counts := make(map[catalog.State]int)
	for i := range snap.Servers {
		counts[snap.Servers[i].State]++
	}
	if counts[catalog.Connecting] == 0 || time.Since(a.began) > readyWithin {
		a.settled.Store(true)
	}
	public := httpd.Readiness{Ready: a.settled.Load()}
	if a.clusterAway != nil && a.clusterAway() { // degraded but ready: sessions, calls and reads still work
		public.Degraded = append(public.Degraded, "cluster: NATS away")
	}
	if failing, refuses := a.auditor.failing(); failing {
		public.Ready, public.Degraded = public.Ready && !refuses, append(public.Degraded, "audit")
	}
	return public, readiness{public, len(snap.Servers), snap.Tools(), counts}
}

type serverStatus struct {
	Name       string           `json:"name"`
	State      catalog.State    `json:"state"`
	Reason     string           `json:"reason,omitempty"`
	RetryAfter float64          `json:"retry_after,omitempty"`
	Transport  string           `json:"transport,omitempty"`
	Protocol   string           `json:"protocol,omitempty"`
	Dialled    string           `json:"dialled,omitempty"` // how a server that dials in is connected; the text of [dial.Hub.State]
	Tools      int              `json:"tools"`
	Restarts   int              `json:"restarts"`
	counts                      // the counts of this server's calls
	Savings    *savings.Figures `json:"savings,omitempty"`
}

// wholeStatus returns the answer to /status: the status, and also the names of all tools that are not hidden, the counts of
// each client, and the number of sessions.
func (a *App) wholeStatus() any {
	whole := a.status()
	names := make(map[string][]string)
	snap := a.Executor.Catalogue(nil)
	for i := range snap.Servers {
		names[snap.Servers[i].Name] = snap.Servers[i].ToolNames()
	}
	whole["tool_names"], whole["clients"], whole["sessions"] = names, a.history.activity.all(), a.sessions()
	return whole
}

// status returns what both /status and the status page show.
func (a *App) status() map[string]any {
	total, tools := savings.Figures{}, 0
	servers := a.serverStatuses()
	for _, one := range servers {
		tools += one.Tools
	}
	for _, one := range a.book.Servers() { // includes the server mcpx itself
		total.Add(one)
	}
	return map[string]any{"version": Version(), "tools": tools, "servers": servers, "savings": total}
}

func (a *App) serverStatuses() []serverStatus {
	snap, saved, calls := a.Executor.Catalogue(nil), a.book.Servers(), a.history.activity.byServer()
	servers := make([]serverStatus, 0, len(snap.Servers))
	for i := range snap.Servers {
		s := &snap.Servers[i]
		one := serverStatus{
			Name: s.Name, State: s.State, Reason: s.Reason, RetryAfter: s.RetryAfter,
			Transport: s.Transport, Protocol: s.Protocol, Tools: len(s.Tools), counts: calls[s.Name],
			Dialled: a.dialled.State(s.Name),
		}
		if status, ok := a.Registry.Status(s.Name); ok {
			one.Restarts = status.Restarts
		}
		if figures, ok := saved[s.Name]; ok {
			one.Savings = &figures
		}
		servers = append(servers, one)
	}
	return servers
}

// activity counts the calls of each server and client since the start, for /status and the status page. It is safe for
// concurrent use.
type activity struct {
	mu sync.Mutex
	// The maps are bounded ([lru.Usual]), because clients, and servers that dial in, choose their names.
	servers lru.Map[string, counts]
	clients lru.Map[clientKey, clientCounts]
}

type counts struct {
	Calls  int64 `json:"calls"`
	Errors int64 `json:"errors"`
}

type clientKey struct{ principal, name string }

// clientCounts has the counts of the calls that one principal makes with one client program.
type clientCounts struct {
	Principal string `json:"principal,omitempty"`
	Display   string `json:"display,omitempty"`
	Name      string `json:"name,omitempty"`
	counts
	LastCall time.Time `json:"last_call"`
}

func (c *counts) add(failed bool) {
	c.Calls++
	if failed {
		c.Errors++
	}
}

// add counts a tools/call, even if its tool is unknown or the middleware refused it. It counts the call as failed if the tool, the
// server or mcpx reported an error.
func (a *activity) add(r *request.Event) {
	if !r.Attempted || !r.IsCall() {
		return
	}
	failed := r.Failed()
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.KnownServer {
		a.servers.Get(r.Server).add(failed)
	}
	one := a.clients.Get(clientKey{r.Principal, r.Client})
	one.Principal, one.Display, one.Name = r.Principal, r.Display, sanitize.Line(r.Client, 80)
	one.add(failed)
	one.LastCall = r.Began
}

// byServer returns all counts in the map servers. It reads them with All, which does not mark them as used. Get does mark a value as
// used. This can make the map, which is bounded, drop values that were used less recently, even though nothing was added.
func (a *activity) byServer() map[string]counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string]counts, a.servers.Len())
	for name, one := range a.servers.All() {
		all[name] = *one
	}
	return all
}

// all returns the clients, the most recently active one first.
func (a *activity) all() []clientCounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []clientCounts{}
	for _, one := range a.clients.All() {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(x, y clientCounts) int {
		return cmp.Or(y.LastCall.Compare(x.LastCall), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Principal, y.Principal))
	})
	return all
}
