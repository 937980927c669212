package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

// page is a decoded page of tools/list.
type page struct {
	Tools      []Tool
	NextCursor json.RawMessage
	Faults     []string
}

func decodePage(result json.RawMessage) (page, error) {
	list, err := ReadPage(Tools, result)
	tools, faults := DecodeTools(list.Items)
	return page{tools, list.NextCursor, append(faults, list.Faults...)}, err
}

func TestDecodePage(t *testing.T) {
	page, err := decodePage(json.RawMessage(`{"tools":[
		{"name":"good","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993}}},"annotations":{"readOnlyHint":true,"idempotentHint":"yes"}},
		{"name":7,"inputSchema":{}},
		"text",
		{"name":"odd","inputSchema":{"type":["object","null"]},"outputSchema":true,"extra":1.10},
		{"name":"none"}
	],"nextCursor":"c2"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(page.Tools), 3; got != want {
		t.Fatalf("got %d tools, want %d: %+v", got, want, page.Tools)
	}
	if got, want := len(page.Faults), 2; got != want {
		t.Errorf("got %d faults, want %d: %v", got, want, page.Faults)
	}
	good, odd, none := page.Tools[0], page.Tools[1], page.Tools[2]
	if want := `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`; string(good.InputSchema) != want {
		t.Errorf("schema: got %s, want %s", good.InputSchema, want)
	}
	if !good.Hints.IsReadOnly() || good.Hints.Idempotent != nil {
		t.Errorf("hints: got %+v, want read-only and no idempotent", good.Hints)
	}
	if string(odd.OutputSchema) != "true" || string(odd.Raw) != `{"name":"odd","inputSchema":{"type":["object","null"]},"outputSchema":true,"extra":1.10}` {
		t.Errorf("odd tool was changed: %s, %s", odd.OutputSchema, odd.Raw)
	}
	if none.InputSchema != nil {
		t.Errorf("schema of a tool without one: got %s, want nil", none.InputSchema)
	}
	if string(page.NextCursor) != `"c2"` {
		t.Errorf("cursor: got %s", page.NextCursor)
	}
}

// TestDecodePageBounds: of a page with very many definitions only the first maxDefinitions are read, and only the
// first maxFaults faults are described.
func TestDecodePageBounds(t *testing.T) {
	many := func(one string, n int) json.RawMessage {
		return json.RawMessage(`{"tools":[` + strings.Repeat(one+",", n-1) + one + `]}`)
	}
	page, err := decodePage(many(`{}`, maxFaults+7))
	if err != nil || len(page.Faults) != maxFaults+1 || page.Faults[maxFaults] != "7 more tools are refused" {
		t.Errorf("got %d faults, the last %q, %v", len(page.Faults), page.Faults[len(page.Faults)-1], err)
	}
	page, err = decodePage(many(`{"name":"a"}`, maxDefinitions+1))
	if err != nil || len(page.Tools) != maxDefinitions || len(page.Faults) != 1 || !strings.Contains(page.Faults[0], "left out") {
		t.Errorf("got %d tools, faults %q, %v", len(page.Tools), page.Faults, err)
	}
}

func TestDecodePageRefuses(t *testing.T) {
	for _, in := range []string{`[]`, `{"tools":{}}`, `{"tools":"x"}`, `nonsense`} {
		if _, err := decodePage(json.RawMessage(in)); err == nil {
			t.Errorf("DecodePage(%s): no error", in)
		}
	}
	for _, in := range []string{`{}`, `{"tools":null}`, `{"tools":[],"nextCursor":null}`, `{"tools":[],"nextCursor":""}`} {
		page, err := decodePage(json.RawMessage(in))
		if err != nil || len(page.Tools) != 0 || page.NextCursor != nil {
			t.Errorf("DecodePage(%s) = %+v, %v; want an empty last page", in, page, err)
		}
	}
}

func TestUniqueKeepsTheFirst(t *testing.T) {
	kept, faults := Unique([]Tool{{Name: "a", Title: "1"}, {Name: "b"}, {Name: "a", Title: "2"}})
	if len(kept) != 2 || kept[0].Title != "1" || len(faults) != 1 {
		t.Errorf("Unique: got %+v, %v", kept, faults)
	}
}

func FuzzDecodePage(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"x"}`))
	f.Add([]byte(`{"tools":[{"name":"a","annotations":{"readOnlyHint":1}},{"name":null},7]}`))
	f.Add([]byte(`{"tools":[[[[]]]]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		page, err := decodePage(in)
		if err != nil {
			return
		}
		for _, tool := range page.Tools {
			if tool.Name == "" || !json.Valid(tool.Raw) {
				t.Fatalf("tool %q with definition %q", tool.Name, tool.Raw)
			}
			for _, raw := range []json.RawMessage{tool.InputSchema, tool.OutputSchema, tool.Annotations} {
				if raw != nil && !json.Valid(raw) {
					t.Fatalf("invalid JSON kept: %q", raw)
				}
			}
		}
	})
}
