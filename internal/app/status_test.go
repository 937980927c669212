package app

import (
	"fmt"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/lru"
	"mcpx/internal/policy"
	"mcpx/internal/request"
)

// TestActivity_Bounded: the counts of servers and clients take a bounded room, because servers that dial in and clients choose their
// names. The counts of a server that is always in use stay.
func TestActivity_Bounded(t *testing.T) {
	var a activity
	began := time.Now()
	call := func(server, client string) {
		began = began.Add(time.Second)
		a.add(&request.Event{
			Method: "tools/call", Attempted: true, Outcome: "RESULT", Durations: request.Durations{Began: began},
			Target: request.Target{Server: server, KnownServer: true}, Who: request.Who{Client: client},
		})
	}
	const calls = 10_000
	for i := range calls {
		call(fmt.Sprint("dialled", i), fmt.Sprint("client", i))
		call("stays", "stays")
	}
	if servers, clients := a.servers.Len(), len(a.all()); servers > 2*lru.Usual || clients > 2*lru.Usual {
		t.Errorf("%d servers and %d clients are counted", servers, clients)
	}
	if got := a.byServer()["stays"]; got.Calls != calls {
		t.Errorf("got %+v", got)
	}
	if got := a.all()[0]; got.Name != "stays" || got.Calls != calls {
		t.Errorf("got %+v", got)
	}
}

// TestActivity_Read: reading the counts of more servers than are surely counted changes none of them.
func TestActivity_Read(t *testing.T) {
	var a activity
	const servers = lru.Usual + lru.Usual/2
	for i := range servers {
		a.add(&request.Event{
			Method: "tools/call", Attempted: true, Outcome: "RESULT",
			Target: request.Target{Server: fmt.Sprint("s", i), KnownServer: true},
		})
	}
	for range 3 {
		if got := len(a.byServer()); got != servers {
			t.Fatalf("%d of %d servers are counted", got, servers)
		}
	}
}

// TestCounted_Gone: the page keeps no tools of servers that are gone, because servers may dial in under ever new names.
func TestCounted_Gone(t *testing.T) {
	var c counted
	for i := range 100 {
		name := fmt.Sprint("s", i)
		snap := catalog.NewSnapshot([]catalog.Server{{Name: "stays", Known: true}, {Name: name, Known: true}})
		pinned := policy.ServerRules{Pin: conf.PinBlock}
		snap.Rules = &policy.Rules{Servers: map[string]policy.ServerRules{"stays": pinned, name: pinned}}
		for i := range snap.Servers {
			c.changed(snap, &snap.Servers[i])
		}
	}
	if len(c.all) != 2 {
		t.Errorf("the tools of %d servers are kept", len(c.all))
	}
}
