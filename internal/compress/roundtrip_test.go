package compress

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
)

// sameJSON reports whether got is the same JSON as want. Members must have the same order and numbers the same digits, but
// strings may have different escapes.
func sameJSON(want, got string) bool {
	w, ok := wire.Compact(want)
	if !ok {
		return false
	}
	g, ok := wire.Compact(got)
	return ok && canonical(readAll(w), 0, asWritten) == canonical(readAll(g), 0, asWritten)
}

func asWritten(number string) string { return number }

// asFloat returns a number as JavaScript reads it.
func asFloat(number string) string {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return "beyond float64"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// readAll reads a text that must be valid JSON.
func readAll(text string) *wire.Document {
	d, ok := wire.Read(text)
	if !ok {
		panic("no JSON: " + text)
	}
	return d
}

// canonical returns node i as JSON in which equal strings are always written in the same way. number converts the numbers.
func canonical(d *wire.Document, i int32, number func(string) string) string {
	n := &d.Nodes[i]
	switch n.Kind {
	case wire.Null:
		return "null"
	case wire.False:
		return "false"
	case wire.True:
		return "true"
	case wire.Number:
		return number(d.Str(n.Text))
	case wire.String:
		return marshal(d.Str(n.Text))
	}
	var out strings.Builder
	for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
		if c > i+1 {
			out.WriteByte(',')
		}
		if n.Kind == wire.Object {
			out.WriteString(marshal(d.Str(d.Nodes[c].Key)) + ":")
		}
		out.WriteString(canonical(d, c, number))
	}
	if n.Kind == wire.Object {
		return "{" + out.String() + "}"
	}
	return "[" + out.String() + "]"
}

func marshal(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can always be marshaled
	}
	return string(text)
}

func TestEncode_DecodesToTheSame(t *testing.T) {
	encoded := 0
	for _, doc := range documents(t) {
		text, ok := Encode([]byte(doc.text))
		if !ok {
			continue
		}
		encoded++
		got, err := decodeTOON(text)
		if err != nil {
			t.Errorf("%s: %v", doc.name, err)
		} else if !sameJSON(doc.text, got) {
			t.Errorf("%s: decodes to another value: %.300s", doc.name, got)
		}
	}
	if encoded < 200 {
		t.Errorf("%d documents encoded, want at least 200", encoded)
	}
}

// reference is the answer of the reference implementation for one text.
type reference struct {
	Value     string // the value that the reference decoder reads in strict mode, written as JSON
	Error     string
	Same      bool   // the reference encoder writes the same bytes
	Reference string // what the reference encoder writes if it is not the same
}

// TestEncode_Reference: the reference decoder in strict mode reads the right value from the TOON of every document that can be
// encoded, even if Text would not choose TOON for it, and from what Text returns for JSON Lines.
func TestEncode_Reference(t *testing.T) {
	type pair struct {
		JSON string `json:"json"`
		TOON string `json:"toon"`
	}
	var names []string
	var pairs []pair
	add := func(name, text string) {
		if toon, ok := Encode([]byte(text)); ok {
			names = append(names, name)
			pairs = append(pairs, pair{text, toon})
		}
	}
	for _, doc := range documents(t) {
		add(doc.name, doc.text)
	}
	for _, text := range awkward {
		add(text, text)
	}
	differ := map[string]int{}
	for i, a := range mcptest.Answers[reference](t, mcptest.Node(t, "@toon-format/toon", "check-toon.mjs"), pairs) {
		text := pairs[i].JSON
		compact, _ := wire.Compact(text)
		d := readAll(compact)
		switch {
		case a.Error != "":
			t.Errorf("%s: %s\n%.500s", names[i], a.Error, pairs[i].TOON)
		case !Equal([]byte(canonical(d, 0, asFloat)), []byte(a.Value)):
			t.Errorf("%s: reads %.300s\nwant %.300s", names[i], a.Value, text)
		case !a.Same:
			why := referenceDiffers(d)
			differ[why]++
			if why == "" {
				t.Errorf("%s: %s", names[i], firstDifference(pairs[i].TOON, a.Reference))
			}
		}
	}
	t.Logf("%d texts; other bytes than the reference encoder's: %v", len(pairs), differ)
}

// firstDifference is the first line in which two texts differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: got %.200q, want %.200q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

// referenceDiffers says why the reference encoder may write different bytes for this document. It returns "" if it should write
// the same.
func referenceDiffers(d *wire.Document) string {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		switch n.Kind {
		case wire.Number:
			if s := d.Str(n.Text); s != javaScript(s) {
				return "number as it is written"
			}
		case wire.Object:
			for c := int32(i) + 1; c < n.Next; c = d.Nodes[c].Next {
				if key := d.Str(d.Nodes[c].Key); key != "" && skipDigits(key, 0) == len(key) {
					return "JavaScript moves such keys to the front"
				}
			}
		case wire.Array:
			if anotherOrder(d, int32(i)) {
				return "rows with another order of members"
			}
		}
	}
	return ""
}

// javaScript returns a number as JavaScript writes it, or "" if JavaScript writes it with an exponent.
func javaScript(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	size := math.Abs(f)
	switch {
	case f == 0:
		return "0"
	case err != nil || size < 1e-6 || size >= 1e21:
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// anotherOrder reports whether two items of array i have the same keys in different orders.
func anotherOrder(d *wire.Document, i int32) bool {
	n := &d.Nodes[i]
	orders := map[string]string{}
	for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
		if d.Nodes[c].Kind != wire.Object {
			continue
		}
		var keys []string
		for m := c + 1; m < d.Nodes[c].Next; m = d.Nodes[m].Next {
			keys = append(keys, d.Str(d.Nodes[m].Key))
		}
		order := strings.Join(keys, "\x00")
		sorted := sortedJoin(keys)
		if was, ok := orders[sorted]; ok && was != order {
			return true
		}
		orders[sorted] = order
	}
	return false
}

func sortedJoin(keys []string) string {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return strings.Join(sorted, "\x00")
}

// awkward are documents for which TOON has special rules.
var awkward = []string{
	`{}`, `[]`, `[[]]`, `[{}]`, `[[],{}]`, `{"a":{}}`, `{"a":[]}`, `{"":1}`, `{"":[1,2]}`, `{"":{"":{}}}`, `{"a":[{}]}`,
	`[[1,2],[3]]`, `[[[1]],[]]`, `[[{"a":1},{"a":2}]]`, `[1,"1",true,"true",null,"null"]`, `[{"a":1},{"a":2}]`,
	`[{"a":1,"b":{"c":2,"d":"x"}},{"a":3,"b":{"c":4,"d":"y"}}]`, `[{"a":{"b":{"c":1}}},{"a":{"b":{"c":2}}}]`,
	`{"x":{"a":1,"b":2},"y":{"a":3,"b":4}}`, `{"k":{"x":{"a":1},"y":{"a":2}}}`, `[{"k":{"x":{"a":1},"y":{"a":2}},"z":1}]`,
	`[{"k":[{"a":1},{"a":2}],"z":1}]`, `[{"k":[1,2],"z":1},{"k":[],"z":[]}]`, `[{"k":{},"z":1}]`, `[{"k":{"a":1},"z":1}]`,
	`[{"k":[[1,2],[3]],"z":1}]`, `[{"k":[{"a":1},5],"z":{"q":[{"b":1}]}}]`, `{"a b":{"x y":1},"c:d":[1],"e[1]":2,"f{g}":3}`,
	`{"-":1,"#":2,"a.b":3,"1a":4,"a-b":5,"true":6,"null":7,"é":8,"\n":9,"\"":10,"\\":11}`,
	`["","  ","a ","\u0020a","#x","-","- a","-1","+1","1","1.0","1e5","01","0x1","1_000",".5","5.","1.","-x","tr ue"]`,
	`["a,b","a:b","a\"b","a\\b","[x]","{x}","a\tb","a\nb","a\rb","\u0000","\u001f","\u007f","\u0085","\u00a0","\u2028","\ufeff","|"]`,
	`[{"a":"","b":" "},{"a":"#","b":"x: y"}]`, `[{"#a":1},{"#a":2}]`, `[{"a,b":1,"c}":2},{"a,b":3,"c}":4}]`,
	`{"#a":{"x":1},"- b":{"x":2}}`, `{"a":{"x":"p,q"},"b":{"x":""}}`, `[9007199254740993,1.10,-0,1E5,1e-5,0.0,-0.0,1e300]`,
	`[{"n":18446744073709551615},{"n":1.50}]`, `[{"a":1,"b":2},{"b":3,"a":4}]`, `[{"a":1},{"a":{"b":1}}]`, `[{"a":1},{"a":1,"b":2}]`,
	`{"__proto__":{"a":1},"constructor":{"a":2}}`, `[{"__proto__":1},{"__proto__":2}]`, `{"toString":1}`, `["\ud83d\ude00","中文"]`,
	`[{"a":null,"b":true},{"a":false,"b":null}]`, `{"a":[[],[]],"b":[[1],[]]}`, `[[["x"]]]`, `{"a":"[]"}`, `["[]"]`, `["[0]:"]`,
	`[{"a":"- x"},{"a":"- "}]`, `["-"]`, `[{"a":-1},{"a":-2}]`, `[{"-":-1},{"-":-2}]`, `{"a":[{"b":[{"c":[{"d":1}]}]}]}`,
}

func TestEncode_Refuses(t *testing.T) {
	mcptest.OneGoroutine(t)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	wide := func(n int) string {
		var row strings.Builder
		for i := range n {
			if i > 0 {
				row.WriteByte(',')
			}
			row.WriteString(`"k` + strconv.Itoa(i) + `":1`)
		}
		return "[{" + row.String() + "},{" + row.String() + "}]"
	}
	tests := []struct {
		name, json string
		ok         bool
	}{
		{"64 levels", deep(64), true},
		{"65 levels", deep(65), false},
		{"four million levels", strings.Repeat("[", 4_000_000), false},
		{"256 columns", wide(256), true},
		{"257 columns", wide(257), false},
		{"8 MB", `["` + strings.Repeat("a", maxBytes-4) + `"]`, true},
		{"over 8 MB", `["` + strings.Repeat("a", maxBytes-3) + `"]`, false},
		{"duplicate keys", `{"a":1,"a":1}`, false},
		{"duplicate keys, escaped", `{"a":1,"\u0061":1}`, false},
		{"duplicate keys in rows", `[{"a":1,"a":2},{"a":3,"a":4}]`, false},
		{"duplicate keys in a later row", `[{"a":1,"b":2},{"a":3,"a":4}]`, false},
		{"lone high surrogate", `["\ud800"]`, false},
		{"lone low surrogate in a key", `{"\udc00":1}`, false},
		{"two high surrogates", `["\ud800\ud800"]`, false},
		{"surrogate pair", `["\ud83d\ude00"]`, true},
		{"invalid UTF-8", "[\"\xff\"]", false},
		{"encoded surrogate", "[\"\xed\xa0\x80\"]", false},
		{"beyond float64", `[1e400]`, false},
		{"beyond float64 in a table", `[{"a":1e400},{"a":1}]`, false},
		{"beyond float64 without exponent", "[1" + strings.Repeat("0", 400) + "]", false},
		{"scalar", `"a"`, false},
		{"no JSON", `{a:1}`, false},
		{"two values", `{}{}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, ok := Encode([]byte(tt.json))
			if ok != tt.ok {
				t.Fatalf("Encode gives %.80q, %v; want %v", text, ok, tt.ok)
			}
			minified, valid := wire.Compact(tt.json)
			if want := json.Valid([]byte(tt.json)); valid != want || valid && !Equal([]byte(minified), []byte(tt.json)) {
				t.Errorf("Compact gives %.80q, %v; want %v", minified, valid, want)
			}
			if !ok && valid {
				if out := Text(tt.json, Options{TOON: true}); out.Form == FormTOON {
					t.Errorf("Text gives TOON: %.80q", out.Text)
				}
			}
		})
	}
}
