package executor

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// TestSaved: tokens that are cut off a result count as saved. If the model reads the rest, in whatever way, the event of the
// reading names the tool of the result, so that the tokens can be subtracted again. If a program reads the rest, nothing is
// subtracted, since the model does not get it. What select, grep and programs leave out does not count as saved, and reading it
// subtracts nothing.
func TestSaved(t *testing.T) {
	mcptest.NoLeaks(t)
	var events []request.Event
	filter := jq.New(jq.Limits{}, nil)
	t.Cleanup(filter.Close)
	rows := mcptest.TableText(400)
	log := strings.Repeat("A line of some words, and of some others.\n", 2000) + "a needle\n"
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"table"},{"name":"log"}]`), Results: map[string]json.RawMessage{
		"table": json.RawMessage(`{"content":[` + string(wire.TextBlock(rows)) + `]}`),
		"log":   json.RawMessage(`{"content":[` + string(wire.TextBlock(log)) + `]}`),
	}}
	options := Options{
		Journal: observed(func(r *request.Event) { events = append(events, *r) }), Filter: filter, TOON: true, ResultTokens: 2000, PreviewTokens: 300,
	}
	e := executing(t, withPrograms(t, options), nil, piped(t, "one", fake))
	handles := regexp.MustCompile(`"handle":"([^"]+)"`)
	call := func(r Request) (event request.Event, text, handle string) {
		t.Helper()
		events = nil
		text = all(t, exec(t, e, r))
		if len(events) == 0 {
			t.Fatalf("no event for %+v: %s", r, text)
		}
		if found := handles.FindStringSubmatch(text); found != nil {
			handle = found[1]
		}
		return events[len(events)-1], text, handle
	}
	read := func(handle, more string) request.Event {
		t.Helper()
		event, text, _ := call(Request{Server: builtin.Name, Tool: results.Tool, Arguments: json.RawMessage(`{"handle":"` + handle + `"` + more + `}`)})
		if event.Outcome != request.OutcomeResult || event.Sent == 0 || event.Answered {
			t.Fatalf("%s: %+v", text, event)
		}
		return event
	}

	cut, _, handle := call(Request{Server: "one", Tool: "table"})
	if cut.Cut < cut.Sent || cut.Compression() < cut.Cut/4 || cut.LeftOut != 0 || handle == "" {
		t.Fatalf("a cut table: %+v, compression %d", cut.Sizes, cut.Compression())
	}
	left := cut.Cut
	for _, more := range []string{`,"offset":300`, `,"grep":"name 1"`, `,"select":".[7]"`, `,"select":"map(.id)"`} {
		if event := read(handle, more); event.ReadOn == nil || *event.ReadOn != (request.Target{Server: "one", Tool: "table"}) {
			t.Errorf("%s: %+v", more, event.ReadOn)
		}
	}
	for offset := 0; offset < 400; offset += 50 {
		left -= read(handle, `,"limit":50,"offset":`+string(wire.Encode(offset))).Sent
	}
	if left > cut.Cut/20 {
		t.Errorf("all was read, but of %d tokens %d are still counted as left behind", cut.Cut, left)
	}

	for name, r := range map[string]Request{
		"select": {Server: "one", Tool: "table", Select: "length"}, "grep": {Server: "one", Tool: "log", Grep: "needle"},
		"a failing select": {Server: "one", Tool: "table", Select: ".a"}, "a select of nothing": {Server: "one", Tool: "log", Select: ".x?"},
	} {
		event, text, handle := call(r)
		if event.Cut != 0 || event.LeftOut <= 0 || event.Compression() < 0 || event.Compression() > event.Received*9/10 {
			t.Errorf("%s: %+v, compression %d, %s", name, event.Sizes, event.Compression(), text)
		}
		if handle != "" {
			if on := read(handle, `,"limit":1`).ReadOn; on != nil {
				t.Errorf("%s: reading on counts for %+v", name, on)
			}
		}
	}
	selected, _, handle := call(Request{Server: "one", Tool: "table", Select: "map(.)"})
	if selected.Cut <= 0 || handle == "" || read(handle, "").ReadOn == nil {
		t.Errorf("a selection that is cut: %+v", selected.Sizes)
	}

	event, text, handle := call(program(nil, `const all = await call("one", "table"); return all.map(row => ({...row, more: "words, and some others"}))`))
	inner := events[0]
	if inner.Tool != "table" || inner.Compression() != 0 || inner.Cut != 0 || inner.LeftOut != inner.Received {
		t.Errorf("a call of a program: %+v", inner.Sizes)
	}
	if event.Received != 0 || event.Cut <= 0 || event.LeftOut >= 0 || event.Compression() < 0 || handle == "" {
		t.Errorf("a program: %+v, compression %d, %s", event.Sizes, event.Compression(), text)
	}
	if on := read(handle, `,"limit":1`).ReadOn; on == nil || *on != (request.Target{Server: builtin.Name, Tool: builtin.RunTool}) {
		t.Errorf("the value of a program: %+v", on)
	}
	call(program(nil, `return (await call("mcpx", "read_result", {handle: "`+handle+`"})).length`))
	if inner := events[0]; inner.Tool != results.Tool || inner.Sent != 0 {
		t.Errorf("a program that reads on: %+v", inner)
	}
}
