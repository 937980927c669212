package executor

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// limited starts servers and returns an executor with limits for their callers.
func limited(t *testing.T, o conf.Limits, servers ...registry.Server) *Executor {
	t.Helper()
	l := limits.New(o)
	r := registry.New(servers, registry.Options{SessionLimit: l.ServerSession})
	r.Start()
	t.Cleanup(func() { r.Close(0) })
	r.WaitTried(t.Context())
	return chainedWith(r, Options{}, nil, l.Limit)
}

func as(id string, r Request) Request {
	r.Client = &caller.Client{ID: id, Principal: &caller.Principal{ID: id}}
	return r
}

// TestRateLimited: a call over the limit fails, and the failure says when to try again. Calls that never reach a server (an
// unknown tool, invalid arguments) do not count towards the limit. Reading a resource does.
func TestRateLimited(t *testing.T) {
	for way, by := range ways {
		t.Run(way, func(t *testing.T) { rateLimited(t, by) })
	}
}

func rateLimited(t *testing.T, by func(testing.TB, *Executor, Request) *results.Result) {
	bubble(t, func(t *testing.T) {
		fake := mcptest.Spec{Resources: json.RawMessage(`[{"uri":"a://b","name":"b"}]`)}
		e := limited(t, conf.Limits{Principal: conf.Quota{CallsPerMinute: 3}}, piped(t, "s", fake))
		e.registry.WaitListedOne(t.Context(), "s")
		echo := Request{Server: "s", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}
		for _, free := range []Request{
			{Server: "s", Tool: "none"},
			{Server: "s", Tool: "echo", Arguments: json.RawMessage(`{"text":5}`)},
		} {
			for range 5 {
				if got := said(t, by(t, e, as("alice", free))); strings.HasPrefix(got, results.CodeRateLimited) {
					t.Fatalf("%s.%s: %s", free.Server, free.Tool, got)
				}
			}
		}
		for range 2 {
			if got := said(t, by(t, e, as("alice", echo))); got != "x" {
				t.Fatal(got)
			}
		}
		read := Request{Server: builtin.Name, Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"a://b"}`)}
		by(t, e, as("alice", read))
		const want = "RATE_LIMITED: over the limit of 3 calls a minute; retry_after: 20 s"
		for _, over := range []Request{echo, read, {Server: "s", Tool: "echo", Arguments: echo.Arguments, Native: true}} {
			if got := said(t, by(t, e, as("alice", over))); got != want {
				t.Errorf("%s.%s: got %s, want %s", over.Server, over.Tool, got, want)
			}
			over.Format = always
			result := exec(t, e, as("alice", over))
			if got := said(t, result); got != want || !result.IsError {
				t.Errorf("%s.%s: got %s, want %s", over.Server, over.Tool, got, want)
			}
			if got := string(result.Structured); got != `{"error":{"code":"RATE_LIMITED","message":"over the limit of 3 calls a minute; retry_after: 20 s","retry_after":20}}` {
				t.Errorf("structuredContent: %s", got)
			}
		}
		if got := said(t, by(t, e, as("bob", echo))); got != "x" {
			t.Errorf("another principal: %s", got)
		}
		if got := said(t, by(t, e, echo)); got != "x" {
			t.Errorf("nobody in particular: %s", got)
		}
		<-time.After(20 * time.Second)
		if got := said(t, by(t, e, as("alice", echo))); got != "x" {
			t.Errorf("after the wait: %s", got)
		}
	})
}

// TestRateLimited_Builtin: reading a stored result, waiting for one, or listing resources costs mcpx as much as a call, so it
// counts as a call of its principal. The limits for servers do not apply to the built-in server.
func TestRateLimited_Builtin(t *testing.T) {
	for _, tool := range []string{results.Tool, builtin.WaitTool, "list_resources"} {
		bubble(t, func(t *testing.T) {
			e := limited(t, conf.Limits{Principal: conf.Quota{CallsPerMinute: 3}, Server: conf.Quota{CallsPerMinute: 4}}, piped(t, "s", mcptest.Spec{}))
			read := Request{Server: builtin.Name, Tool: tool, Arguments: json.RawMessage(`{"handle":"x"}`)}
			for i, who := range []string{"alice", "alice", "alice", "alice", "bob", "bob", "bob", "bob"} {
				got := said(t, exec(t, e, as(who, read)))
				if over := strings.HasPrefix(got, results.CodeRateLimited+": over the limit of 3 calls a minute;"); over != (i%4 == 3) {
					t.Errorf("%s, call %d of %s: %s", tool, i%4+1, who, got)
				}
			}
		})
	}
}

// TestRateLimited_Waits: a request that waits for a running call does not count towards the limit of concurrent calls, because
// the call itself counts. But only a few requests may wait for the same call.
func TestRateLimited_Waits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := limited(t, conf.Limits{Principal: conf.Quota{ConcurrentCalls: 1}}, piped(t, "s", mcptest.Spec{}))
		slow := as("alice", Request{Server: "s", Tool: "slow", Arguments: json.RawMessage(`{"ms":20000}`)})
		slow.Format.Wait = time.Second
		handle := regexp.MustCompile(`"handle":"(r\w+)"`).FindStringSubmatch(said(t, exec(t, e, slow)))
		if handle == nil {
			t.Fatal("no handle")
		}
		wait := as("alice", Request{Server: builtin.Name, Tool: builtin.WaitTool, Arguments: json.RawMessage(`{"handle":"` + handle[1] + `"}`)})
		answers := make(chan string, 6)
		for range 6 {
			go func() { answers <- said(t, exec(t, e, wait)) }() // ends with the call
			synctest.Wait()
		}
		if refused := len(answers); refused != 2 {
			t.Errorf("%d waits are refused, want 2", refused)
		}
		for i := range 6 {
			want := "slept 20000 ms"
			if i < 2 {
				want = "RATE_LIMITED: over the limit of 4 waits for one call; retry_after: 1 s"
			}
			if got := <-answers; got != want {
				t.Errorf("wait %d: %s", i+1, got)
			}
		}
	})
}

// TestRateLimited_Queue: at a busy server, the number of waiting calls and the time they wait are limited as configured.
func TestRateLimited_Queue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := piped(t, "slow", mcptest.Spec{})
		slow.Spec.Concurrency.Max, slow.Spec.Concurrency.Queue = 1, semaphore.Queue{Calls: 1, Wait: 5 * time.Second}
		e := limited(t, conf.Limits{}, slow)
		ended := make(chan struct{})
		go func() { // ends with its call
			defer close(ended)
			exec(t, e, Request{Server: "slow", Tool: "slow", Arguments: json.RawMessage(`{"ms":20000}`)})
		}()
		synctest.Wait()
		const want = `RATE_LIMITED: over the limit of 1 calls at once of "slow"; retry_after: 1 s`
		waited := make(chan string)
		go func() { // ends with its call
			waited <- said(t, exec(t, e, Request{Server: "slow", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}))
		}()
		synctest.Wait()
		began := time.Now()
		if got := said(t, exec(t, e, Request{Server: "slow", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})); got != want || time.Since(began) != 0 {
			t.Errorf("one too many: %s after %v", got, time.Since(began))
		}
		if got := <-waited; got != want || time.Since(began) != 5*time.Second {
			t.Errorf("the one that waited: %s after %v", got, time.Since(began))
		}
		<-ended
	})
}

// TestRateLimited_Sessions: a server has at most the configured number of sessions that each belong to one client.
func TestRateLimited_Sessions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one := piped(t, "s", mcptest.Spec{})
		one.PerClient = true
		e := limited(t, conf.Limits{Server: conf.Quota{Sessions: 1}}, one)
		echo := Request{Server: "s", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}
		for _, step := range []struct{ who, want string }{
			{"a", "x"}, {"a", "x"},
			{"b", "RATE_LIMITED: over the limit of 1 sessions of this server with single clients; retry_after: 60 s"},
		} {
			if got := said(t, exec(t, e, as(step.who, echo))); got != step.want {
				t.Errorf("%s: %s, want %s", step.who, got, step.want)
			}
		}
		e.registry.ForgetClient("a")
		if got := said(t, exec(t, e, as("b", echo))); got != "x" {
			t.Error(got)
		}
	})
}
