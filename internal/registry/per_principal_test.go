package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// TestPerPrincipal: all clients of a principal use one session, in both eras, whatever their name, capabilities and connection.
// Principals whose ids differ only in case or in the form of a letter are different. The session outlives its clients and ends
// when it was idle. Without a principal, each client has a session of its own.
func TestPerPrincipal(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var begun, open atomic.Int32
		server := piped(t, "one", mcptest.Spec{})
		serve := server.Spec.Serve
		server.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			begun.Add(1)
			open.Add(1)
			defer open.Add(-1)
			return serve(ctx, in, out)
		}
		server.PerClient, server.PerPrincipal, server.SessionIdle = true, true, time.Minute
		r := start(t, Options{ManyClients: true}, server)
		tried(t, r)
		shared := open.Load()
		clients := 0
		// opens makes a call as a new client, and returns how many sessions were opened for it.
		opens := func(principal, version, name, capabilities string) int32 {
			t.Helper()
			before := begun.Load()
			clients++
			from := caller.Client{ID: fmt.Sprint("client ", clients), Name: name, Version: version, Capabilities: json.RawMessage(capabilities)}
			if principal != "" {
				from.Principal = &caller.Principal{ID: principal}
			}
			if from.Modern() {
				from = from.AtHome(&caller.Connection{ID: uint64(clients), Life: t.Context()})
			} else {
				from.Notify = func(string, json.RawMessage) {}
			}
			if _, err := call(r, "one", &from, "echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
			if r.SnapshotOf(&from) == nil {
				t.Error("no snapshot")
			}
			r.ForgetClient(from.ID) // the client is gone
			synctest.Wait()
			return begun.Load() - before
		}
		for i, of := range []struct {
			principal, version, name, capabilities string
			opens                                  int32
		}{
			{"alice", "2026-07-28", "agent", "{}", 1}, {"alice", "2026-07-28", "agent", "{}", 0}, {"alice", "2025-11-25", "agent", "{}", 0},
			{"alice", "2025-11-25", "other", `{"elicitation":{},"roots":{}}`, 0}, {"alice", "2026-07-28", "other", `{"elicitation":{}}`, 0},
			{"Alice", "2026-07-28", "agent", "{}", 1}, {"alic\u00e9", "2026-07-28", "agent", "{}", 1}, {"alice\u0301", "2026-07-28", "agent", "{}", 1},
			{`alice" "agent`, "2026-07-28", "", "{}", 1}, {"mallory", "2025-11-25", "agent", "{}", 1},
			{"", "2025-11-25", "agent", "{}", 1}, {"", "2025-11-25", "agent", "{}", 1}, {"", "2026-07-28", "agent", "{}", 1},
		} {
			if got := opens(of.principal, of.version, of.name, of.capabilities); got != of.opens {
				t.Errorf("call %d, of %q, opened %d sessions", i, of.principal, got)
			}
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if left := open.Load(); left > shared {
			t.Errorf("%d sessions are open after the idle time, %d of them shared", left, shared)
		}
		if got := opens("alice", "2025-11-25", "agent", "{}"); got != 1 {
			t.Errorf("after the idle time %d sessions were opened", got)
		}
	})
}
