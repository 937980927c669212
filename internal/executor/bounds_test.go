package executor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/compress"
	"mcpx/internal/registry"
	"mcpx/internal/results"
)

// bounded returns an executor without servers.
func bounded(t *testing.T, options Options) run {
	t.Helper()
	return New(registry.New(nil, registry.Options{}), options).begin()
}

// TestUpstreamFault_IsBounded: the answer for a JSON-RPC error stays within the limit, and everything the server wrote can
// still be read.
func TestUpstreamFault_IsBounded(t *testing.T) {
	const limit = 1000
	long := strings.Repeat("It is broken. ", 50_000)
	rows := json.RawMessage(`["` + strings.Repeat(`row","`, 50_000) + `"]`)
	for _, tt := range []struct {
		name  string
		err   wire.RPCError
		kept  int
		data  string // expected in structuredContent
		holds string // expected in the text
	}{
		{"short", wire.RPCError{Code: 1, Message: "No.", Data: json.RawMessage(`{"a":1}`)}, 0, `"data":{"a":1}`, "UPSTREAM_ERROR: No. (code 1)\n" + `{"a":1}`},
		{"null", wire.RPCError{Code: 1, Message: "No.", Data: json.RawMessage(`null`)}, 0, `"data":null`, "UPSTREAM_ERROR: No. (code 1)"},
		{"a long message", wire.RPCError{Code: 1, Message: long}, 1, `"upstream_code":1`, "UPSTREAM_ERROR: It is broken. It is broken."},
		{"data", wire.RPCError{Code: 1, Message: "No.", Data: json.RawMessage(`["row","row"]`)}, 0, `"data":["row","row"]`, "UPSTREAM_ERROR: No. (code 1)\n[\"row"},
		{"long data", wire.RPCError{Code: 1, Message: "No.", Data: rows}, 1, `"upstream_code":1`, "pieces left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := bounded(t, Options{ResultTokens: limit})
			out := e.failure(&Request{}, target{}, &tt.err).Result(true)
			text := wire.ReadBlock(out.Content[0]).Text
			if n := compress.Weigh(text); n > limit+limit/2 || !strings.Contains(text, tt.holds) {
				t.Errorf("%d tokens: %.300s", n, text)
			}
			if e.store.Len() != tt.kept || !strings.Contains(string(out.Structured), tt.data) || len(out.Structured) > 20*limit {
				t.Errorf("%d are kept; %.300s", e.store.Len(), out.Structured)
			}
		})
	}
}

// TestInvalidFault_IsBounded: the types in a VALIDATION_ERROR are left out or cut if they are longer than the limit.
func TestInvalidFault_IsBounded(t *testing.T) {
	var properties []string
	for i := range 3000 {
		properties = append(properties, fmt.Sprintf(`"property_%d":{"type":"string"}`, i))
	}
	tool := &catalog.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)}
	for _, typescript := range []bool{true, false} {
		for most, want := range map[int]string{1000: "type Args = {property_0?: string; ", 30: "what inspect says"} {
			e := bounded(t, Options{ResultTokens: most, TypeScript: typescript})
			out := e.failure(&Request{}, target{tool: tool}, arguments.Invalid("/a: is missing")).Result(true)
			text := wire.ReadBlock(out.Content[0]).Text
			if compress.Weigh(text) > min(most, 400) || !strings.HasPrefix(text, "VALIDATION_ERROR: /a: is missing\nExpected: "+want) {
				t.Errorf("got %.300s", text)
			}
		}
	}
}

// TestReadResult_KeepsAnItemOnce: if a client reads a long item several times, the item is stored only once.
func TestReadResult_KeepsAnItemOnce(t *testing.T) {
	settings := NewSettings(Options{ResultTokens: 500}, nil)
	e := bounded(t, Options{Current: func() *Settings { return settings }})
	array := `["short",{"text":"` + strings.Repeat("word ", 5000) + `"},"short"]`
	handle := e.pages(&Request{}).Keep(array, false)
	var before string
	for range 5 {
		got, err := e.Exec(t.Context(), Request{Server: builtin.Name, Tool: results.Tool, Arguments: json.RawMessage(`{"handle":"` + handle + `","offset":1}`)})
		if err != nil || before != "" && string(got.Content[0]) != before {
			t.Errorf("got %s, %v, want %s", got.Content, err, before)
		}
		before = string(got.Content[0])
	}
	if e.store.Len() != 2 || !strings.Contains(before, "pieces of .[0].text of this item left") {
		t.Errorf("%d are kept; %s", e.store.Len(), before)
	}
	// With another limit, the item is split into other lines, so it is stored again.
	settings = NewSettings(Options{ResultTokens: 300}, settings)
	got, err := e.Exec(t.Context(), Request{Server: builtin.Name, Tool: results.Tool, Arguments: json.RawMessage(`{"handle":"` + handle + `","offset":1}`)})
	if err != nil || e.store.Len() != 3 {
		t.Errorf("%d are kept; %s, %v", e.store.Len(), got.Content, err)
	}
}

// TestReadResult_SelectTwice: a call of read_result with two filters is refused.
func TestReadResult_SelectTwice(t *testing.T) {
	e := bounded(t, Options{})
	got, err := e.Exec(t.Context(), Request{Server: builtin.Name, Tool: results.Tool, Arguments: json.RawMessage(`{"handle":"r","select":"."}`), Select: ".a"})
	if err != nil || !strings.HasPrefix(wire.ReadBlock(got.Content[0]).Text, "VALIDATION_ERROR: /select: is given twice") {
		t.Errorf("got %s, %v", got.Content, err)
	}
}

// TestShape_LongResource: the text of an embedded resource is cut like a text block, and the rest can be read. A resource
// within the limit is not changed, even if its text is JSON.
func TestShape_LongResource(t *testing.T) {
	lines := strings.Repeat("a line of a file\n", 2000)
	resource := func(text string) json.RawMessage {
		return json.RawMessage(`{"type":"resource","resource":{"uri":"repo://x","mimeType":"text/plain","text":` + string(wire.Encode(text)) + `},"annotations":{"priority":1.0}}`)
	}
	image := json.RawMessage(`{"type":"image","data":"eA==","mimeType":"image/png"}`)
	blob := json.RawMessage(`{"type":"resource","resource":{"uri":"repo://y","blob":"` + strings.Repeat("eA==", 2000) + `"}}`)
	for _, tt := range []struct {
		name    string
		content []json.RawMessage
		want    []string // "" means unchanged
	}{
		{"short", []json.RawMessage{wire.TextBlock("done"), resource("{ \"a\": 1 }")}, []string{"", ""}},
		{"long", []json.RawMessage{wire.TextBlock("done"), resource(lines), image}, []string{"", "a line of a file\na line", ""}},
		{"two", []json.RawMessage{resource(lines), resource(lines), image}, []string{"a line of a file\na line", "\n[1 of 1 text blocks left: exec {", ""}},
		{"no text", []json.RawMessage{blob, image}, []string{"", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := bounded(t, Options{ResultTokens: 1000})
			raw := json.RawMessage(`{"content":` + string(wire.Encode(tt.content)) + `}`)
			answer := e.answer(&Request{}, target{})
			out, err := answer.Of(t.Context(), raw)
			if err != nil || len(out.Content) != len(tt.want) {
				t.Fatalf("got %s, %v", out.Content, err)
			}
			total := 0
			for i, want := range tt.want {
				b := wire.ReadBlock(out.Content[i])
				total += compress.Weigh(b.Text)
				if want == "" && string(b.Raw) != string(tt.content[i]) || !strings.HasPrefix(b.Text, want) {
					t.Errorf("block %d: got %.300s, want %.300s", i, b.Raw, tt.content[i])
				}
				if !json.Valid(b.Raw) {
					t.Errorf("block %d is no JSON: %.300s", i, b.Raw)
				}
			}
			if total > 1000 {
				t.Errorf("%d tokens", total)
			}
			if tt.name == "long" {
				if tail := string(out.Content[1]); !strings.Contains(tail, `lines left: exec {`) || !strings.HasSuffix(tail, `"},"annotations":{"priority":1.0}}`) || !strings.HasPrefix(tail, `{"type":"resource","resource":{"uri":"repo://x"`) {
					t.Errorf("got %s", tail)
				}
			}
		})
	}
}

// TestAnswer_Uncut: a client that cuts results itself gets the whole text, unless a rule of the config sets a limit for it.
func TestAnswer_Uncut(t *testing.T) {
	long := strings.Repeat("a line of a file\n", 2000)
	raw := json.RawMessage(`{"content":[` + string(wire.TextBlock(long)) + `]}`)
	for bytes, whole := range map[int]bool{0: true, 5000: false} {
		e := bounded(t, Options{ResultTokens: 1000})
		answer := e.answer(&Request{Format: results.Format{Uncut: true, Bytes: bytes}}, target{})
		out, err := answer.Of(t.Context(), raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := wire.ReadBlock(out.Content[0]).Text; (got == long) != whole || e.store.Len() > 0 == whole {
			t.Errorf("%d bytes: got %d of %d, %d are kept", bytes, len(got), len(long), e.store.Len())
		}
	}
}

// TestSelect_NoFilters: without a runner for jq filters, a call with a filter fails, but its result is stored.
func TestSelect_NoFilters(t *testing.T) {
	e := bounded(t, Options{})
	answer := e.answer(&Request{Select: ".a"}, target{})
	out, err := answer.Of(t.Context(), json.RawMessage(`{"structuredContent":{"a":1}}`))
	if err != nil || !out.IsError || e.store.Len() != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
}
