package transport

import (
	"testing"

	"mcpx/internal/base/wire"
)

// TestLogsOnAResumedStream: a log message in the response to a POST belongs to that call. On a resumed stream it may belong to
// any call, so it is passed on as a message of no call.
func TestLogsOnAResumedStream(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		of := int64(-1)
		l := &httpLink{life: newLifecycle(nil), in: func(_ wire.Message, call int64) { of = call }}
		a := &response{link: l, r: Outgoing{ID: 7}, resumed: resumed}
		a.accept([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`))
		if want := map[bool]int64{false: 7, true: 0}[resumed]; of != want {
			t.Errorf("resumed %v: of call %d, want %d", resumed, of, want)
		}
	}
}
