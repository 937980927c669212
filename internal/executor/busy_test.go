package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
)

const busy = "RATE_LIMITED: too many filters and greps are under way; retry_after: 1 s"

// TestBusy: a filter or grep cannot run because too many filters or greps of other callers run. The answer does not say that the
// arguments are wrong. If the filter or grep was part of a call, the answer says that the call was made, and the result can be
// read later.
func TestBusy(t *testing.T) {
	mcptest.NoLeaks(t)
	filters := jq.New(jq.Limits{Time: time.Minute, Helpers: 1}, nil)
	t.Cleanup(filters.Close)
	for _, how := range []string{"grep", "select"} {
		t.Run(how, func(t *testing.T) {
			e := executing(t, Options{Filter: filters}, nil, piped(t, "one", mcptest.Spec{}))
			e.work = semaphore.New(1, semaphore.Queue{Calls: 1, Wait: time.Hour})
			var others sync.WaitGroup
			defer others.Wait()
			ctx, release := context.WithCancel(t.Context())
			defer release()
			occupy := func(who string) { // ends when release is called
				for ctx.Err() == nil { // refused if too many others run or wait: then it tries again
					if how == "select" {
						_, _ = filters.Run(ctx, who, "last(range(1e12))", []byte("1"))
					} else if e.work.Enter(ctx, who) == nil {
						<-ctx.Done()
						e.work.Leave(who)
					}
				}
			}
			for i := range map[string]int{"grep": 2, "select": 257}[how] {
				others.Go(func() { occupy(fmt.Sprint("mallory ", i)) })
			}
			mcptest.WaitFor(t, "all slots to be taken", patience, func() bool {
				probe, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				err := error(nil)
				if how == "select" {
					_, err = filters.Run(probe, "probe", ".", []byte("1"))
				} else if err = e.work.Enter(probe, "probe"); err == nil {
					e.work.Leave("probe")
				}
				refused, ok := errors.AsType[*semaphore.BusyError](err)
				return ok && refused.Refused
			})
			call := Request{Server: "one", Tool: "echo", Arguments: json.RawMessage(`{"text":"{\"a\":1,\"b\":2}"}`), Format: always}
			reading := `{"handle":"H","` + how + `":"` + map[string]string{"grep": "b", "select": ".b"}[how] + `"}`
			if how == "grep" {
				call.Grep = "b"
			} else {
				call.Select = ".b"
			}
			got := exec(t, e, as("alice", call))
			handle := regexp.MustCompile(`"handle":"(r[a-z0-9]{20})"`).FindStringSubmatch(said(t, got))
			if !strings.HasPrefix(said(t, got), busy+"\nThe call was made; its result is kept: ") || handle == nil {
				t.Fatalf("a call: %s", said(t, got))
			}
			failed := wire.Member(got.Structured, "error")
			if wire.MemberText(failed, "code") != results.CodeRateLimited || string(wire.Member(failed, "retry_after")) != "1" {
				t.Errorf("a call: %s", got.Structured)
			}
			read := Request{Server: builtin.Name, Tool: results.Tool, Arguments: json.RawMessage(strings.Replace(reading, "H", handle[1], 1))}
			if got := said(t, exec(t, e, as("alice", read))); !strings.HasPrefix(got, busy) {
				t.Errorf("a look: %s", got)
			}
			release()
			others.Wait()
			if got := said(t, exec(t, e, as("alice", read))); !strings.Contains(got, "2") || strings.Contains(got, "RATE") {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// TestBusy_Displaced: two large results of one principal wait until they may be processed (Executor.work), and no more may wait.
// When another principal wants to grep, one of the results is dropped to make room. Its answer says that the call was made.
func TestBusy_Displaced(t *testing.T) {
	mcptest.NoLeaks(t)
	large := `{"content":[{"type":"text","text":"` + strings.Repeat("x", largeResult) + `"}]}`
	e := executing(t, Options{}, nil, piped(t, "one", mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"t"}]`), Results: map[string]json.RawMessage{"t": json.RawMessage(large)},
	}))
	e.work = semaphore.New(1, semaphore.Queue{Calls: 2, Wait: time.Hour})
	if err := e.work.Enter(t.Context(), "carol"); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) {
		mcptest.WaitFor(t, "the slot", patience, func() bool {
			_, now := e.work.Use()
			return now == n
		})
	}
	answers := make(chan string, 2)
	for range 2 {
		go func() { answers <- said(t, exec(t, e, as("mallory", Request{Server: "one", Tool: "t"}))) }() // ends with its call
	}
	waiting(2)
	greps := make(chan error, 1)
	go func() { greps <- e.work.Enter(t.Context(), "alice") }() // ends when it is let in
	if got := <-answers; got != busy+"\nThe call was made; its result was dropped" {
		t.Errorf("the one that lost its place: %.200s", got)
	}
	waiting(2)
	e.work.Leave("carol")
	if err := <-greps; err != nil {
		t.Error(err)
	}
	e.work.Leave("alice")
	if got := <-answers; !strings.HasPrefix(got, "xxx") {
		t.Errorf("the one that waited: %.200s", got)
	}
}
