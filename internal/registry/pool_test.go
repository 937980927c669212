package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/upstream"
)

// sharing starts a registry that shares this server under a key.
func sharing(t *testing.T, pool *Pool, key string, server Server) *Registry {
	t.Helper()
	server.Shared = key
	r := start(t, Options{Pool: pool}, server)
	tried(t, r)
	return r
}

func newPool(t *testing.T, idle time.Duration) *Pool {
	pool := NewPool(idle, slog.New(slog.DiscardHandler))
	t.Cleanup(pool.Close)
	return pool
}

func upstreamOf(r *Registry) *upstream.Upstream { return r.running("x").upstream }

// TestPool_Idle: registries with the same key share one upstream, which outlives each of them. It ends when no registry has used it
// for the idle time of the pool. A registry that joins before that keeps it running.
func TestPool_Idle(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, time.Minute)
		var running atomic.Int32
		server := counted(piped(t, "x", mcptest.Spec{}), &running)
		one, two, other := sharing(t, pool, "a", server), sharing(t, pool, "a", server), sharing(t, pool, "b", server)
		first := upstreamOf(one)
		if upstreamOf(two) != first || upstreamOf(other) == first {
			t.Error("the key does not decide what is shared")
		}
		one.Close(0)
		if got, err := call(two, "x", nil, "echo", `{"text":"still"}`); got != "still" || err != nil {
			t.Errorf("after the end of the first user: %q %v", got, err)
		}
		two.Close(0)
		time.Sleep(59 * time.Second)
		three := sharing(t, pool, "a", server)
		if upstreamOf(three) != first {
			t.Error("the upstream has ended before its time")
		}
		time.Sleep(time.Hour)
		if got, err := call(three, "x", nil, "echo", `{"text":"long"}`); got != "long" || err != nil {
			t.Errorf("after an hour: %q %v", got, err)
		}
		three.Close(0)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if n := running.Load(); n != 1 {
			t.Errorf("%d run beside the one that is used", n-1)
		}
		if four := sharing(t, pool, "a", server); upstreamOf(four) == first {
			t.Error("an upstream that has ended is shared")
		}
	})
}

// TestPool_Leaves: an upstream ends as soon as the config of its last user no longer has the server. After Renew it ends as soon
// as the last registry that uses it is closed.
func TestPool_Leaves(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, time.Hour)
		var running atomic.Int32
		server := counted(piped(t, "x", mcptest.Spec{}), &running)
		one := sharing(t, pool, "a", server)
		one.Apply(nil, Options{Pool: pool}, nil)
		synctest.Wait()
		time.Sleep(time.Second)
		if n := running.Load(); n != 0 {
			t.Errorf("%d run, although no config has the server", n)
		}
		two := sharing(t, pool, "a", server)
		second := upstreamOf(two)
		pool.Renew("x")
		three := sharing(t, pool, "a", server)
		if n := running.Load(); upstreamOf(three) == second || n != 2 {
			t.Errorf("after Renew %d run", n)
		}
		two.Close(0)
		synctest.Wait()
		time.Sleep(time.Second)
		if got, err := call(three, "x", nil, "echo", `{"text":"new"}`); got != "new" || err != nil || running.Load() != 1 {
			t.Errorf("%q %v, and %d run", got, err, running.Load())
		}
	})
}

// TestPool_Close: Close also ends the upstreams that Renew has removed, whether their last user left before Renew or after it.
func TestPool_Close(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, left := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			pool := newPool(t, time.Hour)
			var running atomic.Int32
			one := sharing(t, pool, "a", counted(piped(t, "x", mcptest.Spec{}), &running))
			if left {
				one.Close(0)
			}
			pool.Renew("x")
			one.Close(0)
			pool.Close()
			if n := running.Load(); n != 0 {
				t.Errorf("left before Renew %t: %d run after Close", left, n)
			}
		})
	}
}

// TestPool_Asked: a server that has asked a client something is not shared with registries that come later. This holds in both
// eras, whether mcpx itself asks the client or passes the server's input_required result on (Relay).
func TestPool_Asked(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, test := range []struct {
		era   string
		relay bool
	}{{mcptest.EraLegacy, false}, {mcptest.EraModern, false}, {mcptest.EraModern, true}} {
		synctest.Test(t, func(t *testing.T) {
			pool, server := newPool(t, time.Minute), piped(t, "x", mcptest.Spec{Era: test.era})
			one := sharing(t, pool, "a", server)
			client := &caller.Client{
				ID: "one", Version: map[string]string{mcptest.EraLegacy: "2025-11-25", mcptest.EraModern: "2026-07-28"}[test.era],
				Capabilities: json.RawMessage(`{"elicitation":{}}`), Notify: func(string, json.RawMessage) {},
				Request: func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
					return json.RawMessage(`{"action":"accept"}`), nil
				},
			}
			raw, err := follow(t.Context(), one, "x", request.Request{
				From: request.From{Client: client}, Method: "tools/call", Params: request.ToolParams("ask", nil), Relay: test.relay,
				Times: request.Times{Timeout: patience},
			})
			if err != nil {
				t.Fatalf("%+v: %s %v", test, raw, err)
			}
			two := sharing(t, pool, "a", server)
			if upstreamOf(two) == upstreamOf(one) {
				t.Errorf("%+v: a server that asks is shared: %s", test, raw)
			}
		})
	}
}

// TestPool_Logs: a log message outside of a call reaches all clients that share the server if no call of the last minutes can
// have caused it. If the calls of only one client can have caused it, it reaches that client; otherwise it reaches nobody, not even
// the client of an open call.
func TestPool_Logs(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, time.Hour)
		server := piped(t, "x", mcptest.Spec{})
		serve := server.Spec.Serve
		var out io.Writer
		server.Spec.Serve = func(ctx context.Context, in io.Reader, w io.Writer) error {
			out = w
			return serve(ctx, in, w)
		}
		var mu sync.Mutex
		got := ""
		var all []*Registry
		var clients []*caller.Client
		for _, id := range []string{"a", "b"} {
			r := sharing(t, pool, "k", server)
			client := &caller.Client{ID: id, Version: mcptest.LegacyVersion, Notify: func(method string, params json.RawMessage) {
				mu.Lock()
				defer mu.Unlock()
				if method == "notifications/message" && strings.Contains(string(params), `"logger":"x"`) {
					got += id
				}
			}}
			r.Own(client)
			all, clients = append(all, r), append(clients, client)
		}
		check := func(when, want string) {
			t.Helper()
			fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"news"}}`)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if letters := slices.Sorted(strings.SplitSeq(got, "")); strings.Join(letters, "") != want {
				t.Errorf("%s: the message reached %q, want %q", when, got, want)
			}
			got = ""
		}
		echo := func(r *Registry, client *caller.Client) {
			t.Helper()
			if _, err := call(r, "x", client, "echo", `{"text":"up"}`); err != nil {
				t.Fatal(err)
			}
		}
		check("before all calls", "ab")
		echo(all[0], clients[0])
		check("after a call of a", "a")
		during := func(when, want string) {
			t.Helper()
			log := func(params json.RawMessage) { clients[1].Notify("notifications/message", params) }
			go func() { // ends with the call
				_, _ = follow(t.Context(), all[1], "x", request.Request{
					From:   request.From{Client: clients[1], Sink: request.Sink{Log: log}},
					Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":1000}`)), Times: request.Times{Timeout: patience},
				})
			}()
			synctest.Wait()
			check(when, want)
			time.Sleep(time.Minute)
		}
		during("during a call of b, soon after one of a", "")
		time.Sleep(time.Hour)
		during("during a call of b", "b")
		time.Sleep(time.Hour)
		echo(all[0], clients[0])
		time.Sleep(90 * time.Second)
		echo(all[1], clients[1])
		check("after calls of both", "")
		time.Sleep(time.Minute)
		check("after a call of b, long after that of a", "b")
		time.Sleep(time.Hour)
		echo(all[0], nil)
		check("after mcpx exec", "")
		time.Sleep(time.Hour)
		check("long after all calls", "ab")
	})
}
