package app

import (
	"mcpx/internal/base/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/httpd"
)

// readiness is the content of /readyz.
type readiness struct {
	httpd.Readiness
	Servers int                   `json:"servers"`
	Tools   int                   `json:"tools"`
	States  map[catalog.State]int `json:"states"`
}

// ready reports whether every server has a catalogue or was tried, with counts.
func (a *App) ready() (httpd.Readiness, any) {
	snap := a.Executor.Catalogue(nil)
	waiting, counts := 0, make(map[catalog.State]int)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		counts[s.State]++
		if !s.Known && s.State == catalog.Connecting {
			waiting++
		}
	}
	public := httpd.Readiness{Ready: waiting == 0}
	if failing, refuses := a.auditor.failing(); failing {
		public.Ready, public.Degraded = public.Ready && !refuses, []string{"audit"}
	}
	return public, readiness{public, len(snap.Servers), snap.Tools(), counts}
}

// serverStatus is one server on the status page.
type serverStatus struct {
	Name       string            `json:"name"`
	State      catalog.State     `json:"state"`
	Reason     string            `json:"reason,omitempty"`
	RetryAfter float64           `json:"retry_after,omitempty"`
	Transport  string            `json:"transport,omitempty"`
	Protocol   string            `json:"protocol,omitempty"`
	Tools      int               `json:"tools"`
	Restarts   int               `json:"restarts"`
	counts                       // of calls
	Results    *executor.Account `json:"results,omitempty"`
}

// wholeStatus is the content of /status: that of the page, with the names of tools, the clients
// and the sessions.
func (a *App) wholeStatus() any {
	whole := a.status()
	names := make(map[string][]string)
	snap := a.Executor.Catalogue(nil)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		list := make([]string, len(s.Tools))
		for j := range s.Tools {
			list[j] = s.Tools[j].Name
		}
		names[s.Name] = list
	}
	whole["tool_names"], whole["clients"], whole["sessions"] = names, a.activity.all(), a.sessions()
	return whole
}

// status is what the page shows: servers, states, tools, calls, tokens saved.
func (a *App) status() map[string]any {
	total, tools := executor.Account{}, 0
	servers := a.serverStatuses()
	for _, one := range servers {
		tools += one.Tools
		if one.Results != nil {
			total.Add(*one.Results)
		}
	}
	return map[string]any{"version": Version(), "tools": tools, "servers": servers, "results": total}
}

// serverStatuses are those of all servers.
func (a *App) serverStatuses() []serverStatus {
	snap, accounts := a.Executor.Catalogue(nil), a.Executor.Accounts()
	servers := make([]serverStatus, 0, len(snap.Servers))
	for i := range snap.Servers {
		s := &snap.Servers[i]
		one := serverStatus{
			Name: s.Name, State: s.State, Reason: s.Reason, RetryAfter: s.RetryAfter,
			Transport: s.Transport, Protocol: s.Protocol, Tools: len(s.Tools), counts: a.activity.of(s.Name),
		}
		if status, ok := a.Registry.Status(s.Name); ok {
			one.Restarts = status.Restarts
		}
		if account, ok := accounts[s.Name]; ok {
			one.Results = &account
		}
		servers = append(servers, one)
	}
	return servers
}
