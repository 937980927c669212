package executor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/programs"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// ways are the ways to make one call, for tests of what every call passes: alone, by each, and as the call of a program. The text
// of a result is the same by all of them.
var ways = map[string]func(t testing.TB, e *Executor, r Request) *results.Result{"alone": exec, "each": byEach, "program": byProgram}

// byEach makes a call as the only one of a request with each.
func byEach(t testing.TB, e *Executor, r Request) *results.Result {
	t.Helper()
	if r.Each = []json.RawMessage{r.Arguments}; r.Arguments == nil {
		r.Each[0] = json.RawMessage(`{}`)
	}
	got := exec(t, e, r)
	for i, raw := range got.Content {
		block := wire.ReadBlock(raw)
		text := strings.TrimPrefix(strings.TrimPrefix(block.Text, "#1\n"), "#1 ")
		for code := range strings.SplitSeq(text, ":") { // the answer to several calls has no code of its own
			if got.IsError && i == 0 && strings.ToUpper(code) == code {
				got.Code = code
			}
			break
		}
		got.Content[i] = block.WithText(text)
	}
	return got
}

// byProgram makes a call as a program does, without a helper process, which a test with synctest cannot have.
func byProgram(t testing.TB, e *Executor, r Request) *results.Result {
	t.Helper()
	r.Event = e.journal.Begin("tools/call", r.Client) // the event of the program, which nothing ends here
	q := &request.Request{From: r.From, Scope: r.Scope, Apps: r.Apps, ReadOnly: r.ReadOnly, Consent: r.Consent}
	in := &inside{Executor: e, q: q, asking: make(chan struct{}, 1)}
	if r.Arguments == nil {
		r.Arguments = json.RawMessage(`{}`)
	}
	value, _, failure := in.call(context.Background(), programs.Call{
		Server: r.Server, Tool: r.Tool, Arguments: r.Arguments, Hold: func() func() { return func() {} },
	})
	if failure != nil {
		return &results.Result{IsError: true, Code: failure.Code, Content: []json.RawMessage{wire.TextBlock(failure.Message)}}
	}
	text, ok := wire.WholeText(value)
	if !ok {
		text = string(value)
	}
	return &results.Result{Content: []json.RawMessage{wire.TextBlock(text)}}
}
