package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// TestVariants: a client sees the list for its own capabilities before its first call, in both eras and also if other clients
// have other capabilities. One session for each kind of client is enough. If the calls of one client change its list, no other
// client sees that.
func TestVariants(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		hang := make(chan struct{})
		var hangs atomic.Bool
		r := start(t, Options{}, Server{Definition: "x", PerClient: true, Spec: upstream.Spec{
			Options: transport.Options{Name: "x", Type: transport.InProcess, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
				begun.Add(1)
				if hangs.Load() {
					select {
					case <-hang:
					case <-ctx.Done():
					}
				}
				return choosy(ctx, in, out)
			}},
		}})
		tried(t, r)
		var told atomic.Int32
		client := func(id, capabilities string, modern bool) *caller.Client {
			c := caller.Client{ID: id, Name: "agent", Capabilities: json.RawMessage(capabilities)}
			if c.Notify = func(string, json.RawMessage) { told.Add(1) }; modern {
				c.Notify, c.Version = nil, "2026-07-28"
				c = c.AtHome(&caller.Connection{ID: uint64(len(id)), Life: t.Context()})
			}
			return &c
		}
		all, few := []string{"plain", "grow", "asks"}, []string{"plain", "grow"}
		sees := func(c *caller.Client, want []string, opens int32) {
			t.Helper()
			before := begun.Load()
			bounded, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			r.WaitOwn(bounded, c, func(string) bool { return true })
			if s, _ := r.SnapshotOf(c).Server("x"); !slices.Equal(s.ToolNames(), want) {
				t.Errorf("client %s sees %v", c.ID, s.ToolNames())
			}
			if n := begun.Load() - before; n != opens {
				t.Errorf("client %s opened %d sessions", c.ID, n)
			}
		}
		poor, rich := client("poor", `{}`, false), client("rich", `{"elicitation":{}}`, false)
		sees(poor, few, 1)
		sees(rich, all, 1)
		sees(client("modern", `{}`, true), few, 0)
		sees(client("another", `{"elicitation":{}}`, false), all, 0)
		sees(client("first of its kind", `{"sampling":{}}`, true), few, 1)
		if s, _ := r.SnapshotOf(nil).Server("x"); !slices.Equal(s.ToolNames(), all) {
			t.Errorf("a command sees %v", s.ToolNames())
		}
		synctest.Wait()
		if n := told.Load(); n != 0 {
			t.Errorf("%d notifications of lists that the clients waited for", n)
		}
		if _, err := call(r, "x", poor, "grow", `{}`); err != nil && told.Load() > 0 {
			t.Error(err)
		}
		<-time.After(5 * time.Second)
		sees(poor, append(slices.Clone(few), "grown"), 0)
		sees(client("other poor", `{}`, false), few, 0)
		r.ForgetClient("poor")
		sees(poor, few, 0)
		// If a server hangs, a client of each kind waits for it only once.
		hangs.Store(true)
		for i, most := range []time.Duration{5 * time.Second, 0} {
			began := time.Now()
			sees(client(fmt.Sprint("slow ", i), `{"roots":{}}`, false), all, int32(1-i))
			if took := time.Since(began); took > most {
				t.Errorf("list %d took %v", i, took)
			}
		}
		close(hang)
		<-time.After(time.Second)
		sees(client("slow 0", `{"roots":{}}`, false), few, 0)
		for i := range 2 * maxVariants {
			c := client(fmt.Sprint("hostile ", i), fmt.Sprintf(`{"roots":{"n":%d}}`, i), false)
			sees(c, few, 1)
			r.ForgetClient(c.ID)
		}
		if n := len(r.variants); n > maxVariants {
			t.Errorf("%d variants", n)
		}
		r.Close(0)
	})
}

// choosyServer returns choosy as a server with a session for each client. The session with the number hang, counted from 1,
// never answers.
func choosyServer(name string, hang int32) Server {
	var begun atomic.Int32
	return Server{Definition: name, PerClient: true, Spec: upstream.Spec{
		Options: transport.Options{Name: name, Type: transport.InProcess, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
			if begun.Add(1) == hang {
				<-ctx.Done()
				return ctx.Err()
			}
			return choosy(ctx, in, out)
		}},
	}}
}

func poorClient(id string) *caller.Client {
	return &caller.Client{ID: id, Capabilities: json.RawMessage(`{}`), Notify: func(string, json.RawMessage) {}}
}

// waitOwn calls WaitOwn for one server, with the same time limit as a list request.
func waitOwn(t *testing.T, r *Registry, client *caller.Client, server string) {
	t.Helper()
	bounded, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r.WaitOwn(bounded, client, func(name string) bool { return name == server })
}

func names(r *Registry, client *caller.Client, server string) []string {
	s, _ := r.SnapshotOf(client).Server(server)
	return s.ToolNames()
}

// TestVariants_Failed: one session gets no list, while another client's session gets one. The list of the other client stays
// stored.
func TestVariants_Failed(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, choosyServer("x", 2)) // the first session reads the catalogue
		tried(t, r)
		var waiting sync.WaitGroup
		waiting.Go(func() { waitOwn(t, r, poorClient("hangs"), "x") })
		synctest.Wait()
		waitOwn(t, r, poorClient("lists"), "x")
		few := []string{"plain", "grow"}
		for _, when := range []string{"listed", "failed"} {
			if got := names(r, poorClient("third"), "x"); !slices.Equal(got, few) {
				t.Errorf("%s: a third client sees %v", when, got)
			}
			waiting.Wait()
		}
		r.Close(0)
	})
}

// TestVariants_Beside: in a client's own session, one server lists other tools than to clients with the same capabilities. Of
// another server, with which it has no session yet, the client still sees what is later listed to a client with the same
// capabilities.
func TestVariants_Beside(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, choosyServer("x", 0), choosyServer("y", 0))
		tried(t, r)
		poor := poorClient("poor")
		waitOwn(t, r, poor, "x")
		_, _ = call(r, "x", poor, "grow", `{}`) // its result is empty
		<-time.After(5 * time.Second)
		if got := names(r, poor, "y"); len(got) != 3 {
			t.Errorf("before: y has %v", got)
		}
		waitOwn(t, r, poorClient("other"), "y")
		for server, want := range map[string][]string{"x": {"plain", "grow", "grown"}, "y": {"plain", "grow"}} {
			if got := names(r, poor, server); !slices.Equal(got, want) {
				t.Errorf("after: %s has %v", server, got)
			}
		}
		r.Close(0)
	})
}
