package page

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/request"
)

func TestHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Hour{}
		cut := 0
		add := func(server, outcome string, received, sent int) {
			h.Add(&request.Event{
				Method: "tools/call", Attempted: true, Outcome: outcome, Answered: received > 0,
				Target:    request.Target{Server: server, KnownServer: server != "made up", Known: server != "made up"},
				Durations: request.Durations{Upstream: time.Millisecond},
				Sizes:     request.Sizes{Received: received, Sent: sent, Cut: cut},
			})
		}
		add("a", "RESULT", 100, 40)
		add("a", "TOOL_ERROR", 10, 10)
		add("b", "CANCELLED", 0, 0)
		call := func(outcome string, target request.Target) *request.Event {
			return &request.Event{Method: "tools/call", Attempted: true, Outcome: outcome, Target: target}
		}
		h.Add(call("CANCELLED", request.Target{Server: "b", KnownServer: true, Known: true})) // cancelled before it was sent to b
		h.Add(call("TOOL_NOT_FOUND", request.Target{Server: "b", KnownServer: true}))
		add("made up", "SERVER_NOT_FOUND", 0, 0)
		// The following are not calls of a tool, so they are not counted as calls.
		h.Add(&request.Event{Method: "resources/read", Attempted: true, Outcome: "RESULT", Target: request.Target{Server: "b", KnownServer: true}})
		h.Add(&request.Event{Method: "tools/call", Outcome: "RESULT"}) // not attempted: only inspected
		h.Add(&request.Event{Refused: &request.Refused{Status: 401}})
		h.Add(&request.Event{Method: "tools/list", Definitions: func() []request.Saving {
			return []request.Saving{{Server: "a", Tokens: 900}, {Server: "mcpx", Tokens: -200}}
		}})
		time.Sleep(time.Minute)
		cut = 10
		add("a", "RESULT", 50, 20)
		h.Add(&request.Event{Method: "tools/call", Definitions: func() []request.Saving { return []request.Saving{{Server: "mcpx", Tool: "inspect", Tokens: -50}} }})
		h.Add(&request.Event{Method: "tools/call", ReadOn: &request.Target{Server: "a", Tool: "t"}, Sizes: request.Sizes{Sent: 7}})

		last := h.last(time.Now())
		if got := last.Calls[minutes-2:]; !slices.Equal(got, []int{5, 1}) {
			t.Errorf("calls %v", got)
		}
		if got := last.Errors[minutes-2:]; !slices.Equal(got, []int{3, 0}) {
			t.Errorf("errors %v", got)
		}
		if got := last.Compression[minutes-2:]; !slices.Equal(got, []int{60, 20}) {
			t.Errorf("compression %v", got)
		}
		if got := last.Cut[minutes-2:]; !slices.Equal(got, []int{0, 10 - 7}) {
			t.Errorf("cut %v", got)
		}
		if got := last.Definitions[minutes-2:]; !slices.Equal(got, []int{900 - 200, -50}) {
			t.Errorf("definitions %v", got)
		}
		if len(last.Servers) != 2 || total(last.Servers["a"].Calls) != 3 || total(last.Servers["b"].Calls) != 2 {
			t.Errorf("servers %v", last.Servers)
		}

		time.Sleep((minutes - 1) * time.Minute) // now the ring reuses the entry of the first minute
		add("c", "RESULT", 1, 1)
		last = h.last(time.Now())
		if got := total(last.Calls); got != 2 {
			t.Errorf("%d calls an hour later", got)
		}
		time.Sleep(time.Minute)
		last = h.last(time.Now())
		if _, there := last.Servers["a"]; there || len(h.servers) != 1 {
			t.Errorf("%v is kept", h.servers)
		}
	})
}

// TestHour_Unseen: also if nobody looks at the page, servers without a call in the last hour are forgotten. Servers that dial in come
// and go under ever new names.
func TestHour_Unseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Hour{}
		for i := range 100 {
			h.Add(&request.Event{
				Method: "tools/call", Attempted: true, Outcome: "RESULT", Durations: request.Durations{Upstream: 1},
				Target: request.Target{Server: fmt.Sprint("s", i), KnownServer: true, Known: true},
			})
			time.Sleep(10 * time.Minute)
		}
		if n := len(h.servers); n != 6 {
			t.Errorf("%d servers are kept, want the 6 of an hour", n)
		}
	})
}
