package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// several returns a server whose instances are these fakes.
func several(t *testing.T, fakes ...mcptest.Spec) (webs []*mcptest.HTTPServer, server Server) {
	t.Helper()
	spec := upstream.Spec{Options: transport.Options{Name: "web", Type: transport.HTTP}, Health: conf.Health{Interval: 50 * time.Millisecond, Timeout: patience}}
	for _, fake := range fakes {
		web := fake.HTTP(t)
		webs, spec.Remote.URLs = append(webs, web), append(spec.Remote.URLs, web.URL)
	}
	spec.Remote.URL = spec.Remote.URLs[0]
	return webs, Server{Spec: spec, Definition: "web"}
}

func connected(id string) *caller.Client {
	return &caller.Client{ID: id, Notify: func(string, json.RawMessage) {}}
}

// state waits until the server has the given state, with a reason that contains the given text.
func state(t *testing.T, r *Registry, want catalog.State, reason string) {
	t.Helper()
	mcptest.WaitFor(t, string(want)+" "+reason, patience, func() bool {
		r.Refresh()
		s, _ := r.Snapshot().Server("web")
		return s.State == want && strings.Contains(s.Reason, reason) && (reason != "" || s.Reason == "")
	})
}

// TestInstances_Spread: a call is sent to the instance with the fewest open calls. max_concurrency limits the calls of all
// instances together.
func TestInstances_Spread(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Era: mcptest.EraModern, HangTools: []string{"slow"}}
	webs, server := several(t, fake, fake, fake)
	server.Spec.Concurrency.Max = 7
	r := start(t, Options{}, server)
	tried(t, r)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	arrived := func() (n int, each []int) {
		for _, web := range webs {
			each = append(each, web.Count("tools/call"))
			n += each[len(each)-1]
		}
		return n, each
	}
	for i := range 6 {
		calls.Go(func() {
			_, _ = follow(ctx, r, "web", request.Request{From: request.From{Client: connected("one")}, Method: "tools/call", Params: request.ToolParams("slow", nil), Times: request.Times{Timeout: time.Hour}})
		})
		mcptest.WaitFor(t, "the call", patience, func() bool { n, _ := arrived(); return n == i+1 })
	}
	if _, each := arrived(); fmt.Sprint(each) != "[2 2 2]" {
		t.Errorf("calls of the instances: %v", each)
	}
	if got, err := call(r, "web", nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
		t.Errorf("%q %v", got, err)
	}
}

// TestInstances_Dies: one of two instances dies repeatedly under load. All repeatable calls are answered. No other call is
// executed twice, and the error of a call that may have been executed says so.
func TestInstances_Dies(t *testing.T) {
	for era, fake := range map[string]mcptest.Spec{
		"modern": {Era: mcptest.EraModern}, "legacy": {}, "legacy without sessions": {NoSession: true},
	} {
		t.Run(era, func(t *testing.T) {
			mcptest.NoLeaks(t)
			webs, server := several(t, fake, fake)
			r := start(t, Options{}, server)
			tried(t, r)
			state(t, r, catalog.Ready, "")
			var done atomic.Bool
			var answered, lost atomic.Int64
			var callers sync.WaitGroup
			for i := range 8 {
				client := connected(fmt.Sprint(i))
				callers.Go(func() {
					for n := 0; !done.Load(); n++ {
						text := fmt.Sprintf("%d-%d", i, n)
						tool := []string{"echo", "idempotent_echo"}[i%2]
						got, err := follow(context.Background(), r, "web", request.Request{From: request.From{Client: client}, Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(`{"text":"`+text+`"}`)), Repeatable: i%2 == 1, Times: request.Times{Wait: patience, Timeout: patience}})
						broken, ok := errors.AsType[*request.LostError](err)
						switch {
						case err == nil && strings.Contains(string(got), text):
							answered.Add(1)
						case i%2 == 0 && ok && broken.MayHaveRun:
							lost.Add(1)
						default:
							t.Errorf("%s %s: %s %v", tool, text, got, err)
							return
						}
					}
				})
			}
			for round := range 4 {
				before := answered.Load()
				mcptest.WaitFor(t, "calls", patience, func() bool { return answered.Load() > before+40 })
				dying := webs[round%2]
				dying.Down()
				state(t, r, catalog.Degraded, "1 of 2 instances are up; "+transport.HostOf(dying.URL))
				before = answered.Load()
				mcptest.WaitFor(t, "calls of the other", patience, func() bool { return answered.Load() > before+40 })
				dying.Up()
				r.Retry("web")
				state(t, r, catalog.Ready, "")
			}
			done.Store(true)
			callers.Wait()
			executed := map[string]int{}
			for _, web := range webs {
				if web.Count("tools/call") < 40 {
					t.Errorf("%d calls came to %s", web.Count("tools/call"), web.URL)
				}
				for _, entry := range web.Log().Calls("echo") {
					executed[string(entry.Message)[strings.Index(string(entry.Message), `"text"`):]]++
				}
			}
			for text, n := range executed {
				if n > 1 {
					t.Errorf("%s was executed %d times", text, n)
				}
			}
			t.Logf("%d answered, %d may have been executed", answered.Load(), lost.Load())
		})
	}
}

// TestInstances_Unsent: one instance may have executed a call, and the request to the next one was not sent before the deadline.
// The error says that the call may have been executed.
func TestInstances_Unsent(t *testing.T) {
	mcptest.Parallel(t)
	webs, server := several(t, mcptest.Spec{}, mcptest.Spec{})
	gate := &mcptest.Unaccepted{Text: `"tools/call"`}
	gate.First.Store(2) // the first instance gets the request twice, since it is repeatable
	server.Spec.Remote.Transport = gate
	r := start(t, Options{}, server)
	tried(t, r)
	state(t, r, catalog.Ready, "")
	for _, web := range webs {
		web.Script(mcptest.Drop().On("tools/call").Always())
	}
	_, err := follow(context.Background(), r, "web", request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Repeatable: true, Times: request.Times{Timeout: 2 * time.Second}})
	if timeout, ok := errors.AsType[*request.TimeoutError](err); !ok || timeout.Told || !timeout.MayHaveRun || gate.First.Load() != -1 {
		t.Errorf("got %#v, %d requests too many", err, -gate.First.Load())
	}
}

// TestInstances_Hangs: one of two instances stops answering. The other one answers repeatable calls, and the status names the
// instance that does not answer.
func TestInstances_Hangs(t *testing.T) {
	mcptest.NoLeaks(t)
	webs, server := several(t, mcptest.Spec{NoSession: true}, mcptest.Spec{NoSession: true})
	proxy := mcptest.NewProxy(t, webs[0].URL)
	server.Spec.Remote.URLs[0] = proxy.URL(webs[0].URL)
	server.Spec.Remote.URL = server.Spec.Remote.URLs[0]
	server.Spec.Health = conf.Health{Interval: 20 * time.Millisecond, Timeout: 3 * time.Second, Threshold: 1}
	server.Spec.Timeouts.Connect = 3 * time.Second
	r := start(t, Options{}, server)
	tried(t, r)
	state(t, r, catalog.Ready, "")
	proxy.Set(mcptest.ProxyHalfOpen)
	var callers sync.WaitGroup
	for i := range 10 {
		callers.Go(func() {
			text := fmt.Sprintf(`{"text":"x%d"}`, i)
			got, err := follow(context.Background(), r, "web", request.Request{Method: "tools/call", Params: request.ToolParams("idempotent_echo", json.RawMessage(text)), Repeatable: true, Times: request.Times{Wait: patience, Timeout: patience}})
			if err != nil || !strings.Contains(string(got), fmt.Sprintf("x%d", i)) {
				t.Errorf("%s: %s %v", text, got, err)
			}
		})
	}
	callers.Wait()
	state(t, r, catalog.Degraded, "1 of 2 instances are up; "+proxy.Addr()+": ")
	proxy.Set(mcptest.ProxyPass)
	state(t, r, catalog.Ready, "")
}

// TestInstances_Home: if a server may keep state for a client, all calls of that client are sent to the same instance until
// that instance is down.
func TestInstances_Home(t *testing.T) {
	mcptest.NoLeaks(t)
	webs, server := several(t, mcptest.Spec{}, mcptest.Spec{})
	r := start(t, Options{}, server)
	tried(t, r)
	homeOf := func(client *caller.Client) (home int) {
		t.Helper()
		home = -1
		for range 3 {
			before := webs[0].Count("tools/call")
			if got, err := call(r, "web", client, "echo", `{"text":"x"}`); err != nil || got != "x" {
				t.Fatalf("%q %v", got, err)
			}
			at := 1
			if webs[0].Count("tools/call") > before {
				at = 0
			}
			if home >= 0 && at != home {
				t.Errorf("%+v: at both", client)
			}
			home = at
		}
		return home
	}
	homes := map[int]int{}
	clients := []*caller.Client{connected("a"), connected("b"), connected("c"), connected("d"), nil}
	for _, client := range clients {
		homes[homeOf(client)]++
	}
	if len(homes) != 2 {
		t.Errorf("homes: %v", homes)
	}
	// Requests without a session are sent to the same instance as long as they come over the same connection.
	for _, peer := range []string{"p", "q"} {
		at := -1
		for i := range 3 {
			now := homeOf(&caller.Client{ID: fmt.Sprint("request ", peer, i), Peer: peer})
			if at >= 0 && now != at {
				t.Errorf("requests of %s: at both", peer)
			}
			at = now
		}
	}
	moved := clients[0]
	old := homeOf(moved)
	webs[old].Down()
	state(t, r, catalog.Degraded, "1 of 2")
	if homeOf(moved) == old {
		t.Error("it stays where nobody is")
	}
	webs[old].Up()
	r.Retry("web")
	state(t, r, catalog.Ready, "")
	if homeOf(moved) == old {
		t.Error("it goes back, and loses what the other keeps for it")
	}
	for _, client := range clients[:4] {
		r.ForgetClient(client.ID)
	}
	if in := r.entries["web"].instances; len(in.home) != 1 {
		t.Errorf("homes of clients that are gone: %v", in.home)
	}
}

// warned counts the log messages about instances that list other tools.
type warned struct{ atomic.Int64 }

func (w *warned) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "lists other tools") {
		w.Add(1)
	}
	return len(line), nil
}

// TestInstances_Differ: the catalogue comes from the instance that answered first. When that instance is down, it comes from
// another.
func TestInstances_Differ(t *testing.T) {
	mcptest.NoLeaks(t)
	tool := func(name string) json.RawMessage {
		return json.RawMessage(`[{"name":"` + name + `","inputSchema":{"type":"object"}}]`)
	}
	webs, server := several(t, mcptest.Spec{Tools: tool("one")}, mcptest.Spec{Tools: tool("one")})
	var warnings warned
	r := start(t, Options{Logger: slog.New(slog.NewTextHandler(&warnings, nil))}, server)
	tried(t, r)
	state(t, r, catalog.Ready, "")
	source := r.entries["web"].instances.source
	other := webs[1-source]
	other.SetTools(tool("two"))
	state(t, r, catalog.Ready, "other tools than the catalogue has are listed by "+transport.HostOf(other.URL))
	listed := func() string {
		s, _ := r.Snapshot().Server("web")
		return s.Tools[0].Name
	}
	if listed() != "one" {
		t.Errorf("the catalogue is %s", listed())
	}
	webs[source].Down()
	state(t, r, catalog.Degraded, "1 of 2")
	if listed() != "two" {
		t.Errorf("after the end of the first the catalogue is %s", listed())
	}
	if n := warnings.Load(); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// TestInstances_AllDown: if all instances are down, the error says so, and the status says why the first of them failed. Calls
// work again when one is back.
func TestInstances_AllDown(t *testing.T) {
	mcptest.NoLeaks(t)
	webs, server := several(t, mcptest.Spec{}, mcptest.Spec{})
	r := start(t, Options{}, server)
	tried(t, r)
	for _, web := range webs {
		web.Down()
	}
	state(t, r, catalog.Unavailable, "0 of 2 instances are up; "+transport.HostOf(webs[0].URL)+": ")
	_, err := call(r, "web", nil, "echo", `{"text":"x"}`)
	if unavailable, ok := errors.AsType[*request.UnavailableError](err); !ok || !strings.Contains(unavailable.Reason, "0 of 2 instances are up") {
		t.Errorf("got %v", err)
	}
	webs[1].Up()
	r.Retry("web")
	state(t, r, catalog.Degraded, "1 of 2 instances are up; "+transport.HostOf(webs[0].URL)+": ")
	if got, err := call(r, "web", nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
		t.Errorf("%q %v", got, err)
	}
}

// TestInstances_Apply: a config with other addresses replaces all instances, and calls keep working.
func TestInstances_Apply(t *testing.T) {
	mcptest.NoLeaks(t)
	webs, server := several(t, mcptest.Spec{}, mcptest.Spec{}, mcptest.Spec{})
	all := server.Spec.Remote.URLs
	server.Spec.Remote.URLs = all[:2]
	r := start(t, Options{}, server)
	tried(t, r)
	state(t, r, catalog.Ready, "")
	server.Spec.Remote.URLs, server.Definition = all[1:], "others"
	server.Spec.Remote.URL = all[1]
	if changes := r.Apply([]Server{server}, Options{}, nil); fmt.Sprint(changes) != "{[web] [web]}" {
		t.Errorf("changes %v", changes)
	}
	tried(t, r)
	for range 4 {
		if got, err := call(r, "web", connected(fmt.Sprint(t.Name(), webs[2].Count("tools/call"))), "echo", `{"text":"x"}`); err != nil || got != "x" {
			t.Errorf("%q %v", got, err)
		}
	}
	mcptest.WaitFor(t, "the end of the sessions before", patience, func() bool {
		return webs[0].Sessions() == 0 && webs[1].Sessions() == 1 && webs[2].Sessions() == 1
	})
	if webs[0].Count("tools/call") != 0 || webs[2].Count("tools/call") == 0 {
		t.Errorf("%d calls to the old one, %d to the new one", webs[0].Count("tools/call"), webs[2].Count("tools/call"))
	}
}

// TestInstances_Lazy: calls start idle instances, even those that were never used.
func TestInstances_Lazy(t *testing.T) {
	mcptest.NoLeaks(t)
	webs, server := several(t, mcptest.Spec{Era: mcptest.EraModern}, mcptest.Spec{Era: mcptest.EraModern})
	server.Key = Key("web")
	dir := t.TempDir()
	first := start(t, Options{CacheDir: dir}, server)
	tried(t, first)
	first.Close(0)
	server.Spec.Lazy = true
	before := webs[0].Count("") + webs[1].Count("")
	r := start(t, Options{CacheDir: dir}, server)
	state(t, r, catalog.Idle, "")
	if n := webs[0].Count("") + webs[1].Count(""); n != before {
		t.Errorf("%d messages before anybody has asked", n-before)
	}
	mcptest.WaitFor(t, "calls over both", patience, func() bool {
		if got, err := call(r, "web", nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
			t.Fatalf("%q %v", got, err)
		}
		return webs[0].Count("tools/call") > 0 && webs[1].Count("tools/call") > 0
	})
}

// TestInstances_PerClient: the sessions of clients are distributed over the instances, and are opened at another instance when
// theirs is down.
func TestInstances_PerClient(t *testing.T) {
	mcptest.NoLeaks(t)
	webs, server := several(t, mcptest.Spec{}, mcptest.Spec{})
	server.PerClient = true
	r := start(t, Options{}, server)
	tried(t, r)
	for _, id := range []string{"a", "b", "c", "d"} {
		if got, err := call(r, "web", connected(id), "echo", `{"text":"x"}`); err != nil || got != "x" {
			t.Fatalf("%q %v", got, err)
		}
	}
	if webs[0].Count("tools/call") != 2 || webs[1].Count("tools/call") != 2 {
		t.Errorf("%d and %d calls", webs[0].Count("tools/call"), webs[1].Count("tools/call"))
	}
	webs[0].Down()
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		mcptest.WaitFor(t, "a session elsewhere", patience, func() bool {
			got, err := call(r, "web", connected(id), "echo", `{"text":"x"}`)
			return err == nil && got == "x"
		})
	}
	webs[1].Down()
	mcptest.WaitFor(t, "the word of both", patience, func() bool {
		_, err := call(r, "web", connected("g"), "echo", `{"text":"x"}`)
		return err != nil && strings.Contains(err.Error(), "none of its 2 instances answers; 127.0.0.1:")
	})
}
