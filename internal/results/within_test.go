package results

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// TestSelectable_Within: a filter is applied to the JSON within a text; if it fails on that, it is applied to the text itself.
func TestSelectable_Within(t *testing.T) {
	quoted := string(wire.AppendQuoted(nil, "Result:\n[{\"a\":1}]\nDone"))
	for _, tt := range []struct{ text, value, other string }{
		{"SQL query executed:\n{\n \"rows\": [1]\n}", "{\n \"rows\": [1]\n}", `"SQL query executed:\n{\n \"rows\": [1]\n}"`},
		{"one:\n{\"a\":1}\ntwo:\n[2]\n", `[{"a":1},[2]]`, `"one:\n{\"a\":1}\ntwo:\n[2]\n"`},
		{quoted, `[{"a":1}]`, string(wire.AppendQuoted(nil, quoted))},
		{"[{'a': Decimal('1.50'), 'b': datetime.date(2024, 2, 29)}]", `[{"a":1.50,"b":"2024-02-29"}]`, ""},
		{`"{\"a\":1}"`, `{"a":1}`, ""},
		{"no JSON, see [1] and [x]", `"no JSON, see [1] and [x]"`, ""},
		{`{"broken": [{"a":1},`, `"{\"broken\": [{\"a\":1},"`, ""},
		{strings.Repeat("A long manual. ", 200) + "\n{\"a\":1}\n", "", ""},
	} {
		blocks := []wire.Block{wire.ReadBlock(wire.TextBlock(tt.text))}
		value, other := selectable(".", Untyped, nil, blocks)
		if tt.value != "" && string(value) != tt.value || string(other) != tt.other || tt.value == "" && value[0] != '"' {
			t.Errorf("%.60q: %s, other %s", tt.text, value, other)
		}
	}
}

// TestPages_Within: a long list within prose is read by its items. The prose is only in the complete text, and is still there
// after the result was stored and read again.
func TestPages_Within(t *testing.T) {
	synctest.Test(t, pagesWithin) // a grep has two seconds, which a busy machine needs with the race detector
}

func pagesWithin(t *testing.T) {
	var rows []string
	for i := range 2000 {
		rows = append(rows, fmt.Sprintf(`{"id": %d, "name": "row number %d", "url": "https://example.com/rows/%d"}`, i, i, i))
	}
	text := "SQL query executed:\n[\n" + strings.Join(rows, ",\n") + "\n]\nEnd of the rows."
	store := NewStore(nil)
	p := Pages{Store: &store, Limit: 2000, Preview: 1000, Texts: compress.Options{TOON: true, JS: true}}
	h := p.divide(text, compress.Text(text, p.Texts).Text, false)
	if len(h.items) != 2000 {
		t.Fatalf("%d items", len(h.items))
	}
	encoded, err := json.Marshal(&Kept{result: h})
	var again Kept
	if err != nil || json.Unmarshal(encoded, &again) != nil || again.result.part(again.result.all()) != h.part(h.all()) {
		t.Errorf("kept: %v, %.100s", err, again.result.part(again.result.all()))
	}
	look := p.look(h, 2000)
	if !strings.HasPrefix(look, "SQL query executed:\n") || !strings.Contains(look, "End of the rows.") || !strings.Contains(look, "of 2000 items left") {
		t.Errorf("first look: %.300s … %s", look, look[max(0, len(look)-500):])
	}
	handle := p.Store.add(h)
	page, err := p.Read(context.Background(), ReadArguments{Handle: handle, Offset: 1500, Limit: 2})
	if err != nil || !strings.Contains(page.Text, "row number 1501") || strings.Contains(page.Text, "SQL") {
		t.Errorf("page: %v, %+v", err, page)
	}
	page, err = p.Read(context.Background(), ReadArguments{Handle: handle, Grep: "row number 77$|rows/77\""})
	if err != nil || !strings.Contains(page.Text, "offset 77") {
		t.Errorf("grep: %v, %+v", err, page)
	}
	p.Principal = "another"
	if _, err := p.Read(context.Background(), ReadArguments{Handle: handle}); err == nil {
		t.Error("another principal reads it")
	}
}

// TestPages_JavaScript: each page in JavaScript is complete, so it can be evaluated without the other pages.
func TestPages_JavaScript(t *testing.T) {
	var items []string
	for i := range 800 {
		items = append(items, fmt.Sprintf(`{"id":"%08x-77aa-4444-9999-abcdef012345","owner":{"login":"octo%d","type":"User","url":"https://api.example.com/users/octo%d"},"tags":["t%d"],"state":"open"}`, i*7919, i, i, i%7))
	}
	store := NewStore(nil)
	p := Pages{Store: &store, Limit: 3000, Texts: compress.Options{TOON: true, JS: true}}
	h := p.divide("["+strings.Join(items, ",")+"]", "", false)
	handle := p.Store.add(h)
	for _, offset := range []int{0, 40, 760} {
		page, err := p.Read(context.Background(), ReadArguments{Handle: handle, Offset: offset, Limit: 20})
		if err != nil || !strings.HasPrefix(page.Text, "const ") || strings.Count(page.Text, "const Item=") != 1 ||
			!strings.Contains(page.Text, fmt.Sprintf(`"octo%d"`, offset)) {
			t.Errorf("offset %d: %v, %.500s", offset, err, page.Text)
		}
	}
}

// TestOf_Joined: clients join the texts of a result, so an object beside another text does not become TOON, which does not show
// where it ends.
func TestOf_Joined(t *testing.T) {
	object := `{"rows":[` + strings.Repeat(`{"id":1,"name":"A"},`, 9) + `{"id":2,"name":"B"}],"total":10}`
	list := wire.Member([]byte(object), "rows")
	store := NewStore(nil)
	for name, tt := range map[string]struct {
		result string
		toon   bool
	}{
		"alone":             {`{"content":[` + string(wire.TextBlock(object)) + `]}`, true},
		"alone, structured": {`{"content":[],"structuredContent":` + object + `}`, true},
		"beside another":    {`{"content":[` + string(wire.TextBlock(object)) + `,` + string(wire.TextBlock("total: 10")) + `]}`, false},
		"a list":            {`{"content":[` + string(wire.TextBlock("total: 10")) + `,` + string(wire.TextBlock(string(list))) + `]}`, true},
	} {
		a := Answer{Pages: Pages{Store: &store, Limit: 20_000, Texts: compress.Options{TOON: true}}}
		got, err := a.Of(context.Background(), json.RawMessage(tt.result))
		if err != nil || strings.Contains(got.Text(), "[10]{id,name}:") != tt.toon || strings.Contains(got.Text(), `{"id":1,`) == tt.toon {
			t.Errorf("%s: %v: %s", name, err, got.Text())
		}
	}
}
