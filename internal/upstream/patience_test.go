package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestWaitIsForTheWholeCall: the time that a call may wait for sessions is bounded in total, however many sessions
// it waits for.
func TestWaitIsForTheWholeCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{InitDelay: 8 * time.Second})
		spec.Era = EraLegacy
		u := connect(t, spec)
		began := time.Now()
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("crash", json.RawMessage(`{}`)), Repeatable: true, Times: request.Times{Wait: 10 * time.Second}})
		var lost *request.LostError
		if !errors.As(err, &lost) || !lost.MayHaveRun {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("took %v, want 10 s", took)
		}
	})
}
