package executor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// tasking returns a server whose tool can run only as a task. Each poll returns the given status.
func tasking(t *testing.T, ttl, status string) mcptest.Spec {
	return mcptest.Spec{
		Tools:   json.RawMessage(`[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]`),
		Results: map[string]json.RawMessage{"t": json.RawMessage(`{"task":{"taskId":"a \" b","status":"working","ttl":` + ttl + `,"pollInterval":3000}}`)},
		MethodResults: map[string]json.RawMessage{
			"tasks/get":    json.RawMessage(`{"taskId":"a \" b","status":"` + status + `","statusMessage":"half done","pollInterval":3000}`),
			"tasks/result": json.RawMessage(`{"content":[{"type":"text","text":"the result"}]}`),
			"tasks/cancel": json.RawMessage(`{}`),
		},
	}.WithFiles(t)
}

func TestTask(t *testing.T) {
	for way, by := range ways {
		t.Run(way, func(t *testing.T) { oneTask(t, by) })
	}
}

func oneTask(t *testing.T, by func(testing.TB, *Executor, Request) *results.Result) {
	bubble(t, func(t *testing.T) {
		spec := tasking(t, "60000", "completed")
		e := executing(t, Options{}, nil, piped(t, "s", spec))
		began := time.Now()
		got := by(t, e, Request{Server: "s", Tool: "t"})
		if took := time.Since(began); said(t, got) != "the result" || took != 3*time.Second {
			t.Errorf("got %s after %v", got.Content, took)
		}
		for method, want := range map[string]string{
			"tools/call": `"task":{}`, "tasks/get": `"taskId":"a \" b"`, "tasks/result": `"taskId":"a \" b"`,
		} {
			if seen := spec.Log(t).Method(method); len(seen) != 1 || !strings.Contains(string(seen[0].Message), want) {
				t.Errorf("%s: %v", method, seen)
			}
		}
	})
}

// TestTask_Fraction: MCP lets ttl and pollInterval be any number, with a fraction or an exponent too.
func TestTask_Fraction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec := tasking(t, "6e4", "completed")
		spec.Results["t"] = json.RawMessage(strings.Replace(string(spec.Results["t"]), "3000", "1000.5", 1))
		spec.MethodResults["tasks/get"] = json.RawMessage(strings.Replace(string(spec.MethodResults["tasks/get"]), "3000", "3000.0", 1))
		e := executing(t, Options{}, nil, piped(t, "s", spec))
		began := time.Now()
		got := exec(t, e, Request{Server: "s", Tool: "t"})
		if took := time.Since(began); said(t, got) != "the result" || took != 1000500*time.Microsecond {
			t.Errorf("got %s after %v", got.Content, took)
		}
	})
}

// TestTask_Ends: a task may run as long as the ttl that its server gave. After that, or when the caller cancels, the server
// gets tasks/cancel.
func TestTask_Ends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec := tasking(t, "600000", "working")
		e := executing(t, Options{Servers: map[string]ServerOptions{"s": {CallTimeout: time.Minute}}}, nil, piped(t, "s", spec))
		var progress []string
		began := time.Now()
		got := exec(t, e, Request{From: request.From{Sink: request.Sink{Progress: func(params json.RawMessage) {
			progress = append(progress, string(params))
		}}}, Server: "s", Tool: "t"})
		if took := time.Since(began); !strings.HasPrefix(said(t, got), "TIMEOUT") || took.Round(time.Second) != 10*time.Minute {
			t.Errorf("got %s after %v", got.Content, took)
		}
		if len(progress) != 1 || progress[0] != `{"progress":2,"message":"half done","_meta":{"mcpx/origin":"s"}}` {
			t.Errorf("progress: %s", progress)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := e.Exec(ctx, Request{Server: "s", Tool: "t"}); err == nil {
			t.Error("no error")
		}
		if n := len(spec.Log(t).Method("tasks/cancel")); n != 2 {
			t.Errorf("cancelled %d tasks, want 2", n)
		}
	})
}

// TestTask_Unsent: if a message about a task was not sent before the deadline, the call may have been executed all the same.
func TestTask_Unsent(t *testing.T) {
	for _, method := range []string{"tasks/get", "tasks/result"} {
		bubble(t, func(t *testing.T) {
			r := registry.New([]registry.Server{piped(t, "s", tasking(t, "60000", "completed"))}, registry.Options{})
			r.Start()
			t.Cleanup(func() { r.Close(0) })
			r.WaitTried(t.Context())
			e := chainedWith(r, Options{}, nil, func(next request.Handler) request.Handler {
				return func(ctx context.Context, q *request.Request) (json.RawMessage, error) {
					if q.Method == method {
						return nil, &request.TimeoutError{After: time.Second, MayHaveRun: q.MayHaveRun}
					}
					return next(ctx, q)
				}
			})
			const want = "TIMEOUT: no answer from s.t within 1 s. The call may have been executed; check before you repeat it"
			if got := said(t, exec(t, e, Request{Server: "s", Tool: "t"})); got != want {
				t.Errorf("%s: got %s", method, got)
			}
		})
	}
}

// TestTask_Fails: if mcpx gives up a task because the server does not answer, or refuses to say how the task is or what came of
// it, the server gets tasks/cancel. If the task has ended by itself, there is nothing to cancel.
func TestTask_Fails(t *testing.T) {
	for name, tt := range map[string]struct {
		status      string
		hang, fail  []string
		want        string
		isCancelled bool
	}{
		"no result":   {status: "input_required", hang: []string{"tasks/result"}, want: "TIMEOUT", isCancelled: true},
		"no status":   {status: "working", hang: []string{"tasks/get"}, want: "TIMEOUT", isCancelled: true},
		"refused":     {status: "working", fail: []string{"tasks/get"}, want: "UPSTREAM_ERROR", isCancelled: true},
		"not allowed": {status: "input_required", fail: []string{"tasks/result"}, want: "UPSTREAM_ERROR", isCancelled: true},
		"ended":       {status: "completed", hang: []string{"tasks/result"}, want: "TIMEOUT"},
		"task failed": {status: "failed", fail: []string{"tasks/result"}, want: "UPSTREAM_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spec := tasking(t, "60000", tt.status)
				spec.HangMethods, spec.FailMethods = tt.hang, tt.fail
				e := executing(t, Options{Servers: map[string]ServerOptions{"s": {CallTimeout: time.Minute}}}, nil, piped(t, "s", spec))
				if got := said(t, exec(t, e, Request{Server: "s", Tool: "t"})); !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s", got)
				}
				if n := len(spec.Log(t).Method("tasks/cancel")); n == 1 != tt.isCancelled {
					t.Errorf("%d times tasks/cancel", n)
				}
			})
		})
	}
}

// TestTask_Lost: if a message about a task cannot be sent, the failure does not say that the call was not executed. It says that
// the session broke only if the session did break.
func TestTask_Lost(t *testing.T) {
	for want, failed := range map[string]error{
		`the session with "s" broke: exit status 1`:                                                    &request.LostError{Reason: "exit status 1"},
		`the call of "s" cannot go on: busy: 1 calls are under way, the most that are allowed at once`: &semaphore.BusyError{Open: 1},
		`the call of "s" cannot go on: busy: 2 calls are under way, the most that are allowed at once`: &semaphore.BusyError{Open: 2, Refused: true},
		`the call of "s" cannot go on: connecting: exit status 1`:                                      &request.UnavailableError{State: catalog.Connecting, Reason: "exit status 1"},
		`the call of "s" cannot go on: the config changed while the task ran`:                          &request.ReplacedError{Server: "s"},
	} {
		bubble(t, func(t *testing.T) {
			e := executing(t, Options{}, nil, piped(t, "s", tasking(t, "60000", "working")))
			e.registry.Use(append(e.Chain(nil, nil), func(next request.Handler) request.Handler {
				return func(ctx context.Context, r *request.Request) (json.RawMessage, error) {
					if r.Method == "tasks/get" {
						return nil, request.Begun(failed) // as for a message that continues a call of which an earlier part was sent
					}
					return next(ctx, r)
				}
			})...)
			if got := said(t, exec(t, e, Request{Server: "s", Tool: "t"})); got != "CONNECTION_LOST: "+want+". "+mayHaveRun {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestTask_Keys: while the key is replaced, one replica makes tags with the old key and another with the new one. Each accepts the
// ids of both, only for the principal that got them.
func TestTask_Keys(t *testing.T) {
	of := func(keys ...*state.Secret) *Executor {
		return &Executor{tags: caller.NewTags(keys, "a test")}
	}
	before, after := state.NewSecret(), state.NewSecret()
	one, two, strange := of(before, after), of(after, before), of(state.NewSecret())
	alice, bob := &caller.Client{Principal: &caller.Principal{ID: "alice"}}, &caller.Client{Principal: &caller.Principal{ID: "bob"}}
	const id = "server/~1~"
	for _, made := range []*Executor{one, two} {
		tagged := id + made.tagOf(alice)(id)
		for _, at := range []*Executor{one, two} {
			if own, ok := at.untag(alice)(tagged); !ok || own != id {
				t.Errorf("%q, %t", own, ok)
			}
			if _, ok := at.untag(bob)(tagged); ok {
				t.Error("bob has alice's task")
			}
		}
		for _, text := range []string{tagged, id, "", "~", tagged + "~", tagged[1:]} {
			if _, ok := strange.untag(alice)(text); ok {
				t.Errorf("valid with another key: %q", text)
			}
			if _, ok := one.untag(alice)(text); ok != (text == tagged) {
				t.Errorf("%q: %t", text, ok)
			}
		}
	}
}
