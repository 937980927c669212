package app

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/request"
)

// activity counts the calls of each server and of each client since the start, for
// /status. The zero value is ready. Safe for concurrent use.
type activity struct {
	mu      sync.Mutex
	servers map[string]*counts
	clients map[clientKey]*clientCounts
}

type counts struct {
	Calls  int64 `json:"calls"`
	Errors int64 `json:"errors"`
}

type clientKey struct{ principal, name string }

// clientCounts are those of one program of one principal.
type clientCounts struct {
	Principal string `json:"principal,omitempty"`
	Name      string `json:"name,omitempty"`
	counts
	LastCall time.Time `json:"last_call"`
}

// maxClients bounds the clients that are kept, as clients choose their names. The one that has
// not called for the longest time is forgotten.
const maxClients = 1000

func (c *counts) add(failed bool) {
	c.Calls++
	if failed {
		c.Errors++
	}
}

// add counts a call, and as an error one that failed, be it by the tool, the server or mcpx.
func (a *activity) add(r *request.Event) {
	if !r.Attempted || !r.IsCall() {
		return
	}
	failed := r.Failed()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers == nil {
		a.servers, a.clients = make(map[string]*counts), make(map[clientKey]*clientCounts)
	}
	if r.KnownServer {
		one := a.servers[r.Server]
		if one == nil {
			one = &counts{}
			a.servers[r.Server] = one
		}
		one.add(failed)
	}
	key := clientKey{r.Principal, r.Client}
	one := a.clients[key]
	if one == nil {
		if len(a.clients) >= maxClients {
			delete(a.clients, a.quietest())
		}
		one = &clientCounts{Principal: r.Principal, Name: sanitize.Line(r.Client, 80)}
		a.clients[key] = one
	}
	one.add(failed)
	one.LastCall = r.Began
}

func (a *activity) quietest() (found clientKey) {
	var last time.Time
	for key, one := range a.clients {
		if last.IsZero() || one.LastCall.Before(last) {
			found, last = key, one.LastCall
		}
	}
	return found
}

// of are the counts of a server.
func (a *activity) of(server string) counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.servers[server]; one != nil {
		return *one
	}
	return counts{}
}

// all are the clients, the last active first.
func (a *activity) all() []clientCounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]clientCounts, 0, len(a.clients))
	for _, one := range a.clients {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(x, y clientCounts) int {
		return cmp.Or(y.LastCall.Compare(x.LastCall), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Principal, y.Principal))
	})
	return all
}
