package executor

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// limited starts servers with limits for their callers.
func limited(t *testing.T, o limits.Options, servers ...registry.Server) *Executor {
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

// Over a limit a call is a failure that says when to try again. What no server was asked
// for does not count: a call of a tool that does not exist, invalid arguments, the tools
// that read kept results. Reading a resource does.
func TestRateLimited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fake := mcptest.Spec{Resources: json.RawMessage(`[{"uri":"a://b","name":"b"}]`)}
		e := limited(t, limits.Options{Principal: limits.Quota{CallsPerMinute: 3}}, piped(t, "s", fake))
		e.registry.WaitListedOne(t.Context(), "s")
		echo := Request{Server: "s", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}
		for _, free := range []Request{
			{Server: "s", Tool: "none"},
			{Server: "s", Tool: "echo", Arguments: json.RawMessage(`{"text":5}`)},
			{Server: builtin.Name, Tool: "read_result", Arguments: json.RawMessage(`{"handle":"x"}`)},
		} {
			for range 5 {
				if got := said(t, exec(t, e, as("alice", free))); strings.HasPrefix(got, results.CodeRateLimited) {
					t.Fatalf("%s.%s: %s", free.Server, free.Tool, got)
				}
			}
		}
		for range 2 {
			if got := said(t, exec(t, e, as("alice", echo))); got != "x" {
				t.Fatal(got)
			}
		}
		read := Request{Server: builtin.Name, Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"a://b"}`)}
		exec(t, e, as("alice", read))
		const want = "RATE_LIMITED: over the limit of 3 calls a minute; retry_after: 20 s"
		for _, over := range []Request{echo, read, {Server: "s", Tool: "echo", Arguments: echo.Arguments, Native: true}} {
			over.Format = always
			result := exec(t, e, as("alice", over))
			if got := said(t, result); got != want || !result.IsError {
				t.Errorf("%s.%s: got %s, want %s", over.Server, over.Tool, got, want)
			}
			if got := string(result.Structured); got != `{"error":{"code":"RATE_LIMITED","message":"over the limit of 3 calls a minute; retry_after: 20 s","retry_after":20}}` {
				t.Errorf("structuredContent: %s", got)
			}
		}
		if got := said(t, exec(t, e, as("bob", echo))); got != "x" {
			t.Errorf("another principal: %s", got)
		}
		if got := said(t, exec(t, e, echo)); got != "x" {
			t.Errorf("nobody in particular: %s", got)
		}
		<-time.After(20 * time.Second)
		if got := said(t, exec(t, e, as("alice", echo))); got != "x" {
			t.Errorf("after the wait: %s", got)
		}
	})
}

// A server that is busy lets so many calls wait, and only so long, as configured.
func TestRateLimited_Queue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := piped(t, "slow", mcptest.Spec{})
		slow.Spec.Concurrency.Max, slow.Spec.Concurrency.Queue = 1, semaphore.Queue{Calls: 1, Wait: 5 * time.Second}
		e := limited(t, limits.Options{}, slow)
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

// A server has no more sessions with single clients than it may have.
func TestRateLimited_Sessions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one := piped(t, "s", mcptest.Spec{})
		one.PerClient = true
		e := limited(t, limits.Options{Server: limits.Quota{Sessions: 1}}, one)
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
