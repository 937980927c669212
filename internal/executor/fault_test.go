package executor

import (
	"testing"

	"mcpx/internal/upstream"
)

// An answer that is of no use does not mean that nothing was done; a request that
// was not sent does.
func TestFault_MayHaveRun(t *testing.T) {
	const may = "The call may have been executed; check before you repeat it"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errNoResult, "the upstream's answer is no tool result. " + may},
		{errTask, "the upstream answered with a task, which was not asked for. " + may},
		{&upstream.AnswerError{Reason: "no MCP; is the URL right?"}, "no MCP; is the URL right? " + may},
		{&upstream.TooLargeError{Limit: 9}, "the answer is over the limit of 9 bytes; ask for less, for example a page or a filter. " + may},
		{&upstream.TooLargeError{Limit: 9, Request: true}, "the request is over the limit of 9 bytes; send less at once"},
	} {
		if got := New(nil, Options{}).begin().fault(Request{}, target{}, tt.err); got.Code != CodeExecution || got.Message != tt.want {
			t.Errorf("got %s: %s, want %s", got.Code, got.Message, tt.want)
		}
	}
}
