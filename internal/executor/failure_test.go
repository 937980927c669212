package executor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// TestFailure_MayHaveRun: if the answer of a server cannot be used, the failure says that the call may have been executed. If
// the request was not sent, the failure does not say so.
func TestFailure_MayHaveRun(t *testing.T) {
	const may = "The call may have been executed; check before you repeat it"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{results.ErrNoResult, "the upstream's answer is no tool result. " + may},
		{results.ErrTask, "the upstream answered with a task, which was not asked for. " + may},
		{&request.AnswerError{Reason: "no MCP; is the URL right?"}, "no MCP; is the URL right? " + may},
		{&request.TooLargeError{Limit: 9}, "the answer is over the limit of 9 bytes; ask for less, for example a page or a filter. " + may},
		{&request.TooLargeError{Limit: 9, Request: true}, "the request is over the limit of 9 bytes; send less at once"},
	} {
		if got := New(registry.New(nil, registry.Options{}), Options{}).begin().failure(&Request{}, target{}, tt.err); got.Code != results.CodeExecution || got.Message != tt.want {
			t.Errorf("got %s: %s, want %s", got.Code, got.Message, tt.want)
		}
	}
}

// TestFailure_Data: the structured data of a failure has the members defined for its code, with the right types, and has the
// text of the server unchanged.
func TestFailure_Data(t *testing.T) {
	odd := "if x:\r\n\tgo  on\u200b"
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"status", &request.HTTPError{Status: 503, Reason: "HTTP 503", RetryAfter: 2 * time.Second},
			`"may_have_been_executed":true,"status":503,"retry_after":2`},
		{"told to cancel", &request.TimeoutError{After: time.Second, Told: true}, `"seconds":1,"may_have_been_executed":true`},
		{"sent", &request.TimeoutError{After: time.Second, MayHaveRun: true}, `"seconds":1,"may_have_been_executed":true`},
		{"not sent", &request.TimeoutError{After: time.Second}, `"seconds":1,"may_have_been_executed":false`},
		{"code", &wire.RPCError{Code: -1, Message: "no"}, `"message":"no","upstream_code":-1,"upstream":{"code":-1,"message":"no"}`},
		{"fraction", &wire.RPCError{OddCode: json.RawMessage(`1.5`), Message: "no"}, `"upstream_code":1.5,"upstream":{"code":1.5,"message":"no"}`},
		{"code of letters", &wire.RPCError{OddCode: json.RawMessage(`"E42"`), Message: "no"}, `"message":"no (code E42)","upstream":{"message":"no"}`},
		{"no code", &wire.RPCError{NoCode: true, Message: "no"}, `"message":"no","upstream":{"message":"no"}`},
		{"odd text", &wire.RPCError{NoCode: true, Message: odd},
			`"message":"if x:\n\tgo  on","upstream":{"message":` + string(wire.Encode(odd)) + `}`},
	} {
		got := string(New(registry.New(nil, registry.Options{}), Options{}).begin().failure(&Request{}, target{}, tt.err).Result(true).Structured)
		if !json.Valid([]byte(got)) || !strings.Contains(got, tt.want+"}}") {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
