package request

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"mcpx/internal/base/catalog"
)

// end is the last handler of a chain: it keeps the requests that it gets.
type end struct {
	got    []*Request
	result string
	err    error
}

func (e *end) handle(_ context.Context, r *Request) (json.RawMessage, error) {
	e.got = append(e.got, r)
	if e.err != nil {
		return nil, e.err
	}
	return json.RawMessage(e.result), nil
}

// tool returns a tool with the definition that its server sent.
func tool(t *testing.T, definition string) *catalog.Tool {
	t.Helper()
	decoded, err := catalog.DecodeTool(json.RawMessage(definition))
	if err != nil {
		t.Fatal(err)
	}
	return &decoded
}

// snapshot returns a catalogue of one server.
func snapshot(name string, tools ...*catalog.Tool) *catalog.Snapshot {
	all := make([]catalog.Tool, len(tools))
	for i := range tools {
		all[i] = *tools[i]
	}
	return catalog.NewSnapshot([]catalog.Server{catalog.Server{Name: name, Known: true, State: catalog.Ready}.WithTools(all)})
}

func TestChain(t *testing.T) {
	var order []string
	named := func(name string) Middleware {
		return func(next Handler) Handler {
			return func(ctx context.Context, r *Request) (json.RawMessage, error) {
				order = append(order, name)
				result, err := next(ctx, r)
				order = append(order, "after "+name)
				return result, err
			}
		}
	}
	last := &end{result: `{"a":1}`}
	result, err := Chain(last.handle, named("first"), nil, named("second"), nil)(t.Context(), &Request{Method: "m"})
	if err != nil || string(result) != `{"a":1}` || len(last.got) != 1 || last.got[0].Method != "m" {
		t.Errorf("got %s, %v, %v", result, err, last.got)
	}
	if want := []string{"first", "second", "after second", "after first"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}
