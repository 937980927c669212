package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// dialFleet starts mcpx dial against the balancer of a fleet.
func dialFleet(t *testing.T, h *home, f *fleet, name string, args ...string) *lockedBuffer {
	t.Helper()
	return dialHome(t, h, &hosted{url: f.url}, name, args...)
}

// stateAt returns the state of a dialled server at a replica.
func stateAt(t *testing.T, r *replica, served string) string {
	t.Helper()
	_, listed := fetch(t, "GET", r.site()+"/api/dialled", "")
	var all struct {
		Servers []struct{ Name, State string }
	}
	_ = json.Unmarshal([]byte(listed), &all)
	for _, s := range all.Servers {
		if s.Name == served {
			return s.State
		}
	}
	return ""
}

// servedByAll calls a dialled server through each replica, in each way to call, and returns the name that it has there.
func servedByAll(t *testing.T, f *fleet, name string) (served string) {
	t.Helper()
	here := 0
	for _, r := range f.replicas {
		served = dialledName(t, r.hosted, name)
		if stateAt(t, r, served) == "dialled in" {
			here++
		}
		v := visitAt(t, r.hosted)
		call := func(arguments string) string {
			return v.ask(r.hosted, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","_meta":{"progressToken":"p"},"arguments":`+arguments+`}}`)
		}
		for way, arguments := range waysToExec {
			if answer := call(arguments(served, "echo", `{"text":"hello"}`)); !strings.Contains(answer, "hello") || strings.Contains(answer, `"isError":true`) {
				t.Errorf("%s, %s: %s", r.name, way, answer)
			}
		}
		answer := call(execArgs(served, "progress", `{"steps":3}`))
		if !strings.Contains(answer, "notifications/progress") || !strings.Contains(answer, `"progressToken":"p"`) {
			t.Errorf("%s: no progress: %s", r.name, answer)
		}
	}
	if here != 1 {
		t.Errorf("%d replicas have the connection", here)
	}
	return served
}

// TestReplicas_Dialled: a server that has dialled in is served by three replicas, whichever has its connection, also to
// programs, with progress. If that replica is killed, an open call gets one clear error, and the server is back after it has
// dialled in again. A connection at another replica replaces the older one.
func TestReplicas_Dialled(t *testing.T) {
	mcptest.Parallel(t)
	f := startReplicas(t, 3, map[string]server{}, map[string]any{"dial": dialAll})
	device := newHome(t)
	device.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{})}, nil)
	said := dialFleet(t, device, f, "laptop", "alpha")
	served := servedByAll(t, f, "laptop")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	holder := slices.IndexFunc(f.replicas, func(r *replica) bool { return stateAt(t, r, served) == "dialled in" })
	other := f.replicas[(holder+1)%3]
	v, ended := visitAt(t, other.hosted), make(chan string, 1)
	// The goroutine ends when the replica with the connection is killed.
	go func() { ended <- v.ask(other.hosted, execute(3, served, "slow", `{"while":"`+file+`"}`)) }()
	// The answer to this call shows that the slow call has begun.
	v.ask(other.hosted, execute(4, served, "echo", `{"text":"later"}`))
	gone := f.replicas[holder]
	_ = gone.cmd.Process.Kill()
	<-gone.exited
	f.forget(gone)
	if answer := <-ended; strings.Count(answer, `"id":3`) != 1 || !strings.Contains(answer, "LOST") && !strings.Contains(answer, "lost") {
		t.Errorf("the open call ends with %s", answer)
	}
	mcptest.WaitFor(t, "it has dialled in again", patience, func() bool { return strings.Count(said.String(), "connected to ") == 2 })
	mcptest.WaitFor(t, "a replica has it", patience, func() bool {
		return slices.ContainsFunc(f.replicas, func(r *replica) bool { return stateAt(t, r, served) == "dialled in" })
	})
	servedByAll(t, f, "laptop")
	if !mcptest.Full {
		return
	}
	f.start(t, gone.name)
	servedByAll(t, f, "laptop")
	newer := newHome(t)
	newer.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{})}, nil)
	for turn := range 2 { // at least one of two connections is at another replica than the one before
		again := dialFleet(t, newer, f, "laptop", "alpha")
		mcptest.WaitFor(t, "the older connection is told", patience, func() bool { return strings.Contains(said.String(), "(4001): replaced") })
		if said = again; turn == 1 {
			servedByAll(t, f, "laptop")
		}
	}
}
