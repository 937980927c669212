package app

import (
	"fmt"
	"testing"
	"time"

	"mcpx/internal/request"
)

// TestCosts: the record of a program says what its calls have cost. Other records have no such member.
func TestCosts(t *testing.T) {
	cost := func(tool, outcome string, ms time.Duration) request.Cost {
		return request.Cost{Server: "s", Tool: tool, Outcome: outcome, Duration: ms * time.Millisecond, Received: 10}
	}
	of := &request.Event{OfProgram: request.OfProgram{Costs: []request.Cost{cost("a", "RESULT", 20), cost("a", "RESULT", 30), cost("a", "TIMEOUT", 500), cost("b", "RESULT", 1)}}}
	if got, want := fmt.Sprint(costs(nil, of)), "[calls=2 s.a RESULT 0.050 s 20 tokens; 1 s.a TIMEOUT 0.500 s 10 tokens; 1 s.b RESULT 0.001 s 10 tokens]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := costs(nil, &request.Event{}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
