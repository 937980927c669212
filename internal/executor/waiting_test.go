package executor

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

var runningHandle = regexp.MustCompile(`^\[still running after (\d+) s; do not repeat the call, wait for its result: exec \{"server_name":"mcpx","tool_name":"wait_result","arguments":\{"handle":"(r\w+)"\}\}\]$`)

// parked returns the handle from the answer to a call that is still running after the given number of seconds.
func parked(t *testing.T, r *results.Result, seconds string) string {
	t.Helper()
	found := runningHandle.FindStringSubmatch(said(t, r))
	if found == nil || found[1] != seconds || r.IsError {
		t.Fatalf("got %s, want it to run after %s s", r.Content, seconds)
	}
	return found[2]
}

func waitFor(handle string, form results.Format) Request {
	return Request{Server: builtin.Name, Tool: builtin.WaitTool, Arguments: json.RawMessage(`{"handle":"` + handle + `"}`), Format: form}
}

// TestWaiting: a client that waits for a minute at a time gets the result of a call that takes three minutes, and the progress
// while it waits. The server gets one call, which is not interrupted.
func TestWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec := mcptest.Spec{}.WithFiles(t)
		e := executing(t, Options{}, nil, piped(t, "s", spec))
		form := results.Format{Wait: time.Minute}
		counts := make([]int, 4)
		count := func(i int) func(json.RawMessage) { return func(json.RawMessage) { counts[i]++ } }
		call := func(i int, r Request) *results.Result {
			r.Sink.Progress = count(i)
			began := time.Now()
			got := exec(t, e, r)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("answered after %v", took)
			}
			return got
		}
		got := call(0, Request{Server: "s", Tool: "progress", Arguments: json.RawMessage(`{"steps":17,"ms":10000}`), Format: form})
		first := parked(t, got, "60")
		second := parked(t, call(1, waitFor(first, form)), "120")
		result := call(2, waitFor(second, form))
		if said(t, result) != "did 17 steps" {
			t.Errorf("got %s", result.Content)
		}
		// Each handle of the call returns its result, immediately and more than once.
		for _, handle := range []string{first, second} {
			if again := call(3, waitFor(handle, form)); said(t, again) != said(t, result) {
				t.Errorf("again: %s", again.Content)
			}
		}
		if counts[0] < 5 || counts[1] < 5 || counts[2] < 4 || counts[3] != 0 {
			t.Errorf("progress: %v", counts)
		}
		if n := len(spec.Log(t).Calls("progress")); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestWaiting_Asked: while the user of a modern client is asked, the client does not wait: the question is the answer to its
// request. Its next request, with the user's answer, starts a new wait.
func TestWaiting_Asked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := executing(t, Options{}, nil, piped(t, "s", mcptest.Spec{}))
		client := &caller.Client{ID: "1", Version: "2026-07-28", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		client.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
			time.Sleep(10 * time.Minute)
			return json.RawMessage(`{"action":"accept","content":{"word":"mellon"}}`), nil
		}
		got := exec(t, e, Request{From: request.From{Client: client}, Server: "s", Tool: "ask", Format: results.Format{Wait: time.Minute}})
		if !strings.Contains(said(t, got), "mellon") {
			t.Errorf("got %s", got.Content)
		}
	})
}

// TestWaiting_Close: a large result waits until it may be processed (Executor.work). Close drops it instead of waiting for that,
// because nobody can ask for the result any more.
func TestWaiting_Close(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := executing(t, Options{}, nil, piped(t, "s", mcptest.Spec{}))
		e.work = semaphore.New(1, semaphore.Queue{Calls: 1, Wait: time.Hour})
		if err := e.work.Enter(t.Context(), "carol"); err != nil {
			t.Fatal(err)
		}
		defer e.work.Leave("carol")
		parked(t, exec(t, e, Request{Server: "s", Tool: "table", Arguments: json.RawMessage(`{"rows":20000}`), Format: results.Format{Wait: time.Minute}}), "60")
		began := time.Now()
		if e.Close(); time.Since(began) > time.Second {
			t.Errorf("closed after %v", time.Since(began))
		}
	})
}

// TestWaiting_URLs: a server answers with the error that the user must open a URL first, when its client has stopped waiting.
// wait_result says so in a text, with the URL: as an error it would only make the client repeat wait_result.
func TestWaiting_URLs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := executing(t, Options{}, nil, piped(t, "s", mcptest.Spec{}))
		asks := func(next request.Handler) request.Handler {
			return func(ctx context.Context, r *request.Request) (json.RawMessage, error) {
				if r.Tool.Name == "echo" {
					time.Sleep(90 * time.Second)
					return nil, &wire.RPCError{Code: -32042, Message: "log in", Data: json.RawMessage(`{"elicitations":[{"url":"https://x.example"}]}`)}
				}
				return next(ctx, r)
			}
		}
		e.registry.Use(append(e.Chain(nil, nil), asks)...)
		client := &caller.Client{ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{"url":{}}}`)}
		form := results.Format{Wait: time.Minute}
		wait := waitFor(parked(t, exec(t, e, Request{From: request.From{Client: client}, Server: "s", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`), Format: form}), "60"), form)
		wait.Client = client
		got := exec(t, e, wait)
		if text := said(t, got); !got.IsError || !strings.Contains(text, "log in") || !strings.Contains(text, "https://x.example") || !strings.Contains(text, "call it again") {
			t.Errorf("got %s", text)
		}
	})
}

// TestWaiting_Ends: a call that ends before the wait is over is answered as if there were no limit. If the client cancels its
// request before that, the call is cancelled. If the client only stops waiting for a running call, the call continues.
func TestWaiting_Ends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec := mcptest.Spec{}.WithFiles(t)
		e := executing(t, Options{}, nil, piped(t, "s", spec))
		form := results.Format{Wait: time.Minute}
		slow := func(ms string) Request {
			return Request{Server: "s", Tool: "slow", Arguments: json.RawMessage(`{"ms":` + ms + `}`), Format: form}
		}
		if got := said(t, exec(t, e, slow("59000"))); got != "slept 59000 ms" {
			t.Errorf("in time: %s", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := e.Exec(ctx, slow("90000")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(spec.Log(t).Method("notifications/cancelled")) == 1 })
		ctx, cancel = context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		kept, err := e.Exec(ctx, slow("90000"))
		if err != nil {
			t.Fatal(err)
		}
		handle := parked(t, kept, "60")
		if _, err := e.Exec(ctx, waitFor(handle, form)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("not waited for any more: %v", err)
		}
		if got := said(t, exec(t, e, waitFor(handle, form))); got != "slept 90000 ms" {
			t.Errorf("waited for again: %s", got)
		}
		if n := len(spec.Log(t).Method("notifications/cancelled")); n != 1 {
			t.Errorf("%d cancellations", n)
		}
	})
}

// TestWaiting_Failures: a call that continues after its answer ends with its timeout or its server, and wait_result returns
// that failure. Only its principal can use the handle, and read_result does not accept it.
func TestWaiting_Failures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := piped(t, "s", mcptest.Spec{})
		server.Spec.Timeouts.Call = 90 * time.Second
		r := registry.New([]registry.Server{server}, registry.Options{})
		r.Start()
		r.WaitTried(t.Context())
		e := chained(r, Options{})
		form := results.Format{Wait: time.Minute, Structured: results.StructuredAlways}
		slow := Request{From: request.From{Client: &caller.Client{ID: "1", Principal: &caller.Principal{ID: "p"}}}, Server: "s", Tool: "slow", Arguments: json.RawMessage(`{"ms":900000}`), Format: form}
		got := exec(t, e, slow)
		handle := parked(t, got, "60")
		if want := `{"still_running":{"handle":"` + handle + `","seconds":60}}`; string(got.Structured) != want {
			t.Errorf("structuredContent %s, want %s", got.Structured, want)
		}
		for what, request := range map[string]Request{
			"/handle: is unknown or has expired": waitFor(handle, form), // another principal
			"/handle: is the handle of a call":   {From: request.From{Client: slow.Client}, Server: builtin.Name, Tool: "read_result", Arguments: json.RawMessage(`{"handle":"` + handle + `"}`)},
			"/select: belongs to the call":       {From: request.From{Client: slow.Client}, Server: builtin.Name, Tool: builtin.WaitTool, Arguments: json.RawMessage(`{"handle":"` + handle + `"}`), Select: "."},
			"/handle: is missing":                {From: request.From{Client: slow.Client}, Server: builtin.Name, Tool: builtin.WaitTool},
		} {
			if got := said(t, exec(t, e, request)); !strings.Contains(got, what) {
				t.Errorf("want %s, got %s", what, got)
			}
		}
		wait := waitFor(handle, form)
		wait.Client = slow.Client
		if got := said(t, exec(t, e, wait)); !strings.HasPrefix(got, "TIMEOUT: no answer from s.slow within 90 s") {
			t.Errorf("got %s", got)
		}
		handle = parked(t, exec(t, e, slow), "60")
		r.Close(0)
		synctest.Wait() // Close of the executor would otherwise end the call before it has heard from the registry
		e.Close()
		wait = waitFor(handle, form)
		wait.Client = slow.Client
		if got := said(t, exec(t, e, wait)); !strings.HasPrefix(got, "CONNECTION_LOST") && !strings.HasPrefix(got, "SERVER_UNAVAILABLE") {
			t.Errorf("got %s", got)
		}
		synctest.Wait()
	})
}

// TestWaiting_Panic: a panic ends only its call, even if the call runs in a separate goroutine.
func TestWaiting_Panic(t *testing.T) {
	var outcomes []string
	// the nil registry causes the panic
	e := New(nil, Options{Journal: observed(func(r *request.Event) { outcomes = append(outcomes, r.Outcome) })})
	seen := catalog.NewSnapshot([]catalog.Server{catalog.Server{Name: "s", Known: true, State: catalog.Ready}.WithTools([]catalog.Tool{{Name: "t"}})})
	got := exec(t, e, Request{Catalogue: seen, Server: "s", Tool: "t", Format: results.Format{Wait: time.Minute}})
	if text := said(t, got); !strings.HasPrefix(text, "EXECUTION_ERROR: internal error of mcpx") {
		t.Errorf("got %s", text)
	}
	if len(outcomes) != 1 || outcomes[0] != results.CodeExecution {
		t.Errorf("outcomes: %q", outcomes)
	}
}
