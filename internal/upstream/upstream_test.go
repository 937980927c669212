package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestCall: over every transport, the same calls return exactly the bytes that the server sent.
func TestCall(t *testing.T) {
	eachVariant(t, mcptest.Spec{Instructions: "Use it well."}, func(t *testing.T, v variant, spec Spec, _ func() mcptest.Log) {
		u := ready(t, spec)
		status := u.Status()
		if status.Modern != v.modern || status.Instructions != "Use it well." || status.Title != "fake" || status.Version != "1.0.0" || !status.Known {
			t.Errorf("status: %+v", status)
		}
		want := mcptest.LegacyVersion
		if v.modern {
			want = mcptest.ModernVersion
		}
		if status.Protocol != want || len(status.Tools) != 18 {
			t.Errorf("protocol %q, %d tools", status.Protocol, len(status.Tools))
		}
		if got, err := text(u, "add", `{"a":9007199254740993,"b":1}`); err != nil || got != `{"sum":9007199254740994}` {
			t.Errorf("add: got %q, %v", got, err)
		}
		raw, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("content", nil)})
		if got := strings.Replace(string(raw), `"resultType":"complete",`, "", 1); err != nil || got != mcptest.ContentResult {
			t.Errorf("content: got %s, %v", got, err)
		}
		_, err = u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("rpc_error", nil)})
		var rpc *wire.RPCError
		if !errors.As(err, &rpc) || rpc.Code != -32050 || rpc.Message != "told to fail" || string(rpc.Data) != `{"reason":"test","limit":9007199254740993}` {
			t.Errorf("rpc_error: got %#v", err)
		}
		// Line breaks in arguments do not end a message.
		if got, err := text(u, "echo", "{\n\"text\":\r\n\"a\\nb\"}"); err != nil || got != "a\nb" {
			t.Errorf("echo: got %q, %v", got, err)
		}
	})
}

// TestOddBytes: mcpx copes with odd bytes around and between messages, and with odd answers.
func TestOddBytes(t *testing.T) {
	tests := []struct {
		name string
		fake mcptest.Spec
	}{
		{"noise", mcptest.Spec{Noise: true}},
		{"byte order marks", mcptest.Spec{BOM: true}},
		{"CRLF", mcptest.Spec{CRLF: true}},
		{"one byte at a time", mcptest.Spec{OneByteWrites: true, Tools: json.RawMessage(`[{"name":"echo"}]`)}},
		{"noise and marks and CRLF", mcptest.Spec{Noise: true, BOM: true, CRLF: true}},
		{"ids as strings", mcptest.Spec{StringIDs: true}},
		{"every answer twice", mcptest.Spec{DuplicateAnswers: true}},
		{"answers to nobody", mcptest.Spec{UnknownIDs: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachVariant(t, tt.fake, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
				u := ready(t, spec)
				for i := range 5 {
					want := fmt.Sprintf("text %d", i)
					if got, err := text(u, "echo", `{"text":"`+want+`"}`); err != nil || got != want {
						t.Errorf("echo: got %q, %v, want %q", got, err, want)
					}
				}
			})
		})
	}
}

// TestAnswersBeforeRequests: a server that guesses ids and answers requests before they are sent can spoil only
// its own calls that get these ids.
func TestAnswersBeforeRequests(t *testing.T) {
	eachVariant(t, mcptest.Spec{AnswerBeforeRequest: true}, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
		u := ready(t, spec)
		for range 3 {
			if got, err := text(u, "echo", `{"text":"x"}`); err != nil || (got != "x" && got != "answered too early") {
				t.Errorf("echo: got %q, %v", got, err)
			}
		}
		mustEcho(t, u)
	})
}

// TestNoiseIsLoggedOnce: output that is no message is logged once, not for each line.
func TestNoiseIsLoggedOnce(t *testing.T) {
	spec := stdio(t, mcptest.Spec{Noise: true})
	log := logged(&spec)
	u := ready(t, spec)
	for range 20 {
		mustEcho(t, u)
	}
	if n := strings.Count(log.String(), "stdout has lines"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log)
	}
}

func TestInvalidUTF8(t *testing.T) {
	eachVariant(t, mcptest.Spec{InvalidUTF8: true}, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
		raw, err := ready(t, spec).Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`))})
		if err != nil || !strings.Contains(string(raw), "\"text\":\"\ufffdx\"") {
			t.Errorf("got %q, %v", raw, err)
		}
	})
}

// TestTruncatedAnswers: a call whose answer is cut off fails in time, and the server stays ready.
func TestTruncatedAnswers(t *testing.T) {
	variantsAtOnce(t, mcptest.Spec{TruncateAnswers: true}, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
		spec.Timeouts.Call = 300 * time.Millisecond
		u := ready(t, spec)
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`))})
		var timeout *request.TimeoutError
		var answer *request.AnswerError
		var lost *request.LostError
		if !errors.As(err, &timeout) && !errors.As(err, &answer) && !errors.As(err, &lost) {
			t.Errorf("got %v", err)
		}
		if state := u.Status().State; state != catalog.Ready {
			t.Errorf("state %s", state)
		}
	})
}

func TestMultiplexing(t *testing.T) {
	variantsAtOnce(t, mcptest.Spec{}, func(t *testing.T, _ variant, spec Spec, log func() mcptest.Log) {
		u := ready(t, spec)
		hold(t, u, request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`))}, func() int { return len(log().Calls("slow")) })
		var calls sync.WaitGroup
		for i := range 50 { // these calls are answered while the first is open
			calls.Go(func() {
				if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(fmt.Sprintf(`{"ms":%d}`, 200-i))), Times: request.Times{Timeout: patience}})); err != nil || got != fmt.Sprintf("slept %d ms", 200-i) {
					t.Errorf("call %d: got %q, %v", i, got, err)
				}
			})
		}
		calls.Wait()
	})
}

// TestAnswerOverLimit: only calls whose answer or request is over the size limit fail.
func TestAnswerOverLimit(t *testing.T) {
	variantsAtOnce(t, mcptest.Spec{}, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
		spec.MaxMessage = 128 << 10
		u := ready(t, spec)
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() { // these calls are open while the large answers come
				if got, err := text(u, "slow", `{"ms":300}`); err != nil || got != "slept 300 ms" {
					t.Errorf("slow: got %q, %v", got, err)
				}
			})
		}
		for _, size := range []int{128 << 10, 300 << 10, 5 << 20} {
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("big", json.RawMessage(fmt.Sprintf(`{"bytes":%d}`, size))), Times: request.Times{Timeout: patience}})
			var large *request.TooLargeError
			if !errors.As(err, &large) || large.Request || large.Limit != 128<<10 {
				t.Errorf("%d bytes: got %v", size, err)
			}
		}
		if got, err := text(u, "big", `{"bytes":120000}`); err != nil || len(got) != 120000 {
			t.Errorf("below the limit: got %d bytes, %v", len(got), err)
		}
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"`+strings.Repeat("x", 128<<10)+`"}`))})
		var large *request.TooLargeError
		if !errors.As(err, &large) || !large.Request {
			t.Errorf("a request over the limit: got %v", err)
		}
		calls.Wait()
		if n := u.Status().Restarts; n != 0 {
			t.Errorf("%d restarts", n)
		}
	})
}

func TestLargeArguments(t *testing.T) {
	eachVariant(t, mcptest.Spec{}, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
		long := strings.Repeat("0123456789", 10<<10) // more than the buffer of any pipe holds
		if got, err := text(ready(t, spec), "echo", `{"text":"`+long+`"}`); err != nil || got != long {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}

// TestCancel: in every era and over every transport the server gets the cancellation of a call, and answers later
// calls as before.
func TestCancel(t *testing.T) {
	eachVariant(t, mcptest.Spec{AnswerAfterCancel: true}, func(t *testing.T, v variant, spec Spec, log func() mcptest.Log) {
		u := ready(t, spec)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			_, err := u.Call(ctx, request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`))})
			ended <- err
		}()
		// One call stays open: a cancellation neither waits for it nor ends it.
		stay, leave := context.WithCancel(context.Background())
		defer leave()
		stayed := make(chan error, 1)
		go func() { // the goroutine ends when leave is called
			_, err := u.Call(stay, request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`))})
			stayed <- err
		}()
		mcptest.WaitFor(t, "the calls", patience, func() bool { return len(log().Calls("slow")) == 2 })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(log().Event(mcptest.EventCancel)) == 1 })
		how := log().Event(mcptest.EventCancel)[0]
		if want := map[bool]string{true: "disconnect", false: "notification"}[v.name == "http modern"]; how.Text != want {
			t.Errorf("cancelled by %s, want %s", how.Text, want)
		}
		mustEcho(t, u)
		select {
		case err := <-stayed:
			t.Errorf("the other call ended: %v", err)
			stayed <- err
		default:
		}
		leave()
		<-stayed
	})
}

func TestTimeout(t *testing.T) {
	mcptest.Parallel(t)
	variantsAtOnce(t, mcptest.Spec{}, func(t *testing.T, _ variant, spec Spec, log func() mcptest.Log) {
		u := ready(t, spec)
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`)), Times: request.Times{Timeout: silence}})
		var timeout *request.TimeoutError
		if !errors.As(err, &timeout) || timeout.After != silence || timeout.Idle {
			t.Errorf("got %#v", err)
		}
		mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(log().Event(mcptest.EventCancel)) == 1 })
		mustEcho(t, u)
	})
}

// TestProgress: the caller gets all progress notifications in order, and none after the answer.
func TestProgress(t *testing.T) {
	eachVariant(t, mcptest.Spec{LateProgress: true}, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
		u := ready(t, spec)
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				var mu sync.Mutex
				var got []string
				over := false
				_, err := u.Call(context.Background(), request.Request{From: request.From{Sink: request.Sink{Progress: func(params json.RawMessage) {
					var p struct{ Progress json.Number }
					_ = json.Unmarshal(params, &p)
					mu.Lock()
					defer mu.Unlock()
					if over {
						t.Error("progress after the answer")
					}
					got = append(got, p.Progress.String())
				}}}, Method: "tools/call", Params: request.ToolParams("progress", json.RawMessage(`{"steps":50}`))})
				mu.Lock()
				over = true
				mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				want := make([]string, 50)
				for i := range want {
					want[i] = fmt.Sprint(i + 1)
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %v", got)
				}
			})
		}
		calls.Wait()
		mustEcho(t, u) // by now the late progress notification has arrived
	})
}

// TestCloseDuringCalls: Close ends open calls, and leaves nothing running.
func TestCloseDuringCalls(t *testing.T) {
	eachVariant(t, mcptest.Spec{}, func(t *testing.T, _ variant, spec Spec, log func() mcptest.Log) {
		u := New(spec)
		u.Start()
		awaitState(t, u, catalog.Ready)
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`)), Times: request.Times{Timeout: patience, Wait: time.Second}})
				var lost *request.LostError
				if !errors.As(err, &lost) || !lost.MayHaveRun {
					t.Errorf("got %v", err)
				}
			})
		}
		mcptest.WaitFor(t, "the calls", patience, func() bool { return len(log().Calls("slow")) == 5 })
		u.Close(0)
		calls.Wait()
		if _, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Wait: time.Millisecond}}); err == nil {
			t.Error("a call after Close has a result")
		}
	})
}

func TestCloseWithoutStart(t *testing.T) {
	spec, _ := inProcess(t, mcptest.Spec{})
	New(spec).Close(0)
}

func TestConcurrencyLimit(t *testing.T) {
	bubble(t, concurrencyLimit)
}

func concurrencyLimit(t *testing.T) {
	spec, all := inProcess(t, mcptest.Spec{})
	spec.Concurrency.Max = 3
	u := ready(t, spec)
	var calls sync.WaitGroup
	for range 12 {
		calls.Go(func() {
			if _, err := text(u, "slow", `{"ms":20}`); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	open, most := 0, 0
	for _, entry := range all.all() {
		switch {
		case entry.Event == mcptest.EventCall:
			open++
		case entry.Event == mcptest.EventAnswer && entry.Tool != "":
			open--
		}
		most = max(most, open)
	}
	if most != 3 {
		t.Errorf("%d calls at once, want 3", most)
	}

	ctx, cancel := context.WithCancel(context.Background())
	for range 3 {
		calls.Go(func() {
			_, _ = u.Call(ctx, request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`))})
		})
	}
	mcptest.WaitFor(t, "three calls", patience, func() bool { return len(all.all().Calls("slow")) == 15 })
	_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Timeout: 50 * time.Millisecond}})
	var busy *semaphore.BusyError
	if !errors.As(err, &busy) || busy.Open != 3 {
		t.Errorf("a fourth call: got %v", err)
	}
	cancel()
	calls.Wait()
	mustEcho(t, u)
}

// TestServerThatNeverReads: a server that stops reading delays only its own calls, and these end in time.
func TestServerThatNeverReads(t *testing.T) {
	mcptest.Parallel(t)
	other := ready(t, stdio(t, mcptest.Spec{}))
	u := ready(t, stdio(t, mcptest.Spec{NeverReadStdin: true}))
	long := json.RawMessage(`{"text":"` + strings.Repeat("x", 100<<10) + `"}`)
	var calls sync.WaitGroup
	for range 80 { // more messages than the pipe and the queue can hold
		calls.Go(func() {
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", long), Times: request.Times{Timeout: 500 * time.Millisecond}})
			var timeout *request.TimeoutError
			if !errors.As(err, &timeout) {
				t.Errorf("got %v", err)
			}
		})
	}
	for range 20 {
		mustEcho(t, other)
	}
	calls.Wait()
}
