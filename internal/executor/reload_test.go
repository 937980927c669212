package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
)

// answering calls hook before it writes the result of a tool.
type answering struct {
	io.Writer
	hook func()
}

func (a answering) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"content"`)) {
		a.hook()
	}
	return a.Writer.Write(p)
}

// TestExec_OptionsChangeMeanwhile: a call keeps the options from its beginning; the next call has the new ones.
func TestExec_OptionsChangeMeanwhile(t *testing.T) {
	mcptest.NoLeaks(t)
	table := mcptest.TableText(20)
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"list"}]`), Results: map[string]json.RawMessage{
		"list": json.RawMessage(`{"content":[{"type":"text","text":` + string(wire.Encode(table)) + `}]}`),
	}}
	var settings atomic.Pointer[Settings]
	settings.Store(NewSettings(Options{TOON: true}, nil))
	server := piped(t, "one", fake)
	serve := server.Spec.Serve
	server.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
		return serve(ctx, in, answering{out, func() { settings.Store(NewSettings(Options{ResultTokens: 50}, nil)) }})
	}
	e := executing(t, Options{Current: settings.Load}, nil, server)
	text := textOf(t, exec(t, e, Request{Server: "one", Tool: "list"}).Content[0])
	if !strings.HasPrefix(text, "[20]{") || strings.Contains(text, results.Tool) {
		t.Errorf("the call that was under way: got %s", text)
	}
	text = textOf(t, exec(t, e, Request{Server: "one", Tool: "list"}).Content[0])
	if !strings.HasPrefix(text, "[{") || !strings.Contains(text, results.Tool) {
		t.Errorf("the next one: got %s", text)
	}
}
