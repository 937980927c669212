package compress

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	toon "github.com/toon-format/toon-go"

	"mcpx/internal/tokens"
)

// toonGoValue is what toon-go encodes for node i.
func toonGoValue(d *document, i int32) any {
	n := &d.nodes[i]
	switch n.kind {
	case kindNull:
		return nil
	case kindFalse, kindTrue:
		return n.kind == kindTrue
	case kindNumber:
		return json.Number(d.str(n.text))
	case kindString:
		return d.str(n.text)
	case kindArray:
		items := []any{}
		for c := i + 1; c < n.next; c = d.nodes[c].next {
			items = append(items, toonGoValue(d, c))
		}
		return items
	}
	var fields []toon.Field
	for c := i + 1; c < n.next; c = d.nodes[c].next {
		fields = append(fields, toon.Field{Key: d.str(d.nodes[c].key), Value: toonGoValue(d, c)})
	}
	return toon.Object{Fields: fields}
}

// toonGoGate names why toon-go (TOON 2.0) cannot write the document faithfully, empty if it can.
func toonGoGate(d *document) string {
	for i := range d.nodes {
		if why := toonGoNode(d, int32(i)); why != "" {
			return why
		}
	}
	return ""
}

func toonGoNode(d *document, i int32) string {
	n := &d.nodes[i]
	switch n.kind {
	case kindNumber:
		s := d.str(n.text)
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || decimalOf(s) != decimalOf(strconv.FormatFloat(f, 'f', -1, 64)) {
			return "number beyond float64"
		}
	case kindString:
		return toonGoString(d.str(n.text))
	case kindObject:
		for c := i + 1; c < n.next; c = d.nodes[c].next {
			key := d.str(d.nodes[c].key)
			if key == "" {
				return "empty key"
			}
			if why := toonGoString(key); why != "" {
				return why
			}
		}
	case kindArray:
		for c := i + 1; c < n.next; c = d.nodes[c].next {
			m := &d.nodes[c]
			switch {
			case m.kind == kindObject && m.count == 0:
				return "{} in a list"
			case m.kind == kindObject && n.layout == layoutBlock && d.nodes[c+1].container():
				return "list item with a container first"
			case m.kind == kindArray && m.count > 0 && d.nodes[c+1].kind == kindObject:
				return "objects in an array in an array"
			}
		}
	}
	return ""
}

func toonGoString(s string) string {
	for i, c := range []byte(s) {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return "control character"
		}
		if i == 0 && (c == '#' || c == '+') {
			return "leading # or +"
		}
	}
	return ""
}

// toonFourOnly names the first feature of the document that TOON 2.0 writes in another way than 4, or
// toon-go in another way than this package.
func toonFourOnly(d *document) string {
	for i := range d.nodes {
		n := &d.nodes[i]
		switch {
		case n.layout == layoutKeyed:
			return "keyed table"
		case n.layout == layoutTable && d.nodes[i+1].next != int32(i)+2+d.nodes[i+1].count:
			return "group of columns"
		case n.kind == kindArray && n.count == 0:
			return "empty array (key[0]: in 2.0)"
		case n.kind == kindString && leadingZero(d.str(n.text)):
			return "string with a leading zero (quoted in 2.0)"
		case n.kind == kindString && unicodeEdge(d.str(n.text)):
			return "string with wide white space at an end (quoted in 2.0)"
		case n.kind == kindNumber && d.str(n.text) != javaScript(d.str(n.text)):
			return "number as it is written"
		case n.kind == kindArray && anotherOrder(d, int32(i)):
			return "rows with another order of members"
		}
	}
	return ""
}

func unicodeEdge(s string) bool { return strings.TrimSpace(s) != strings.Trim(s, " \t\r\n") }

func leadingZero(s string) bool { return len(s) > 1 && s[0] == '0' && '0' <= s[1] && s[1] <= '9' }

// TestEncode_SameAsToonGo holds the encoder against toon-go, which was written by others from the
// specification: where TOON 2.0 and 4 do not differ and toon-go is sound, both give the same bytes.
func TestEncode_SameAsToonGo(t *testing.T) {
	gated, other, same := map[string]int{}, map[string]int{}, 0
	for _, doc := range documents(t) {
		compact, ok := minify(doc.text)
		if !ok || compact[0] != '{' && compact[0] != '[' {
			continue
		}
		d, ok := read(compact)
		if !ok {
			continue
		}
		if _, ok := d.plan(); !ok {
			continue
		}
		if why := toonGoGate(d); why != "" {
			gated[why]++
			continue
		}
		if why := toonFourOnly(d); why != "" {
			other[why]++
			continue
		}
		want, err := toon.MarshalString(toonGoValue(d, 0))
		if err != nil {
			t.Errorf("%s: toon-go: %v", doc.name, err)
			continue
		}
		got, _ := d.encode(0)
		if got != want {
			t.Errorf("%s: %s", doc.name, firstDifference(got, want))
		}
		same++
	}
	t.Logf("%d the same; refused to toon-go: %v; other in TOON 4: %v", same, gated, other)
	if same < 50 {
		t.Errorf("%d documents compared, want at least 50", same)
	}
}

// TestText_AgainstToonGo measures what the encoder of our own is worth: the same choice, with toon-go
// behind its gates in its place.
func TestText_AgainstToonGo(t *testing.T) {
	var compact, ours, theirs, n int
	var meanOurs, meanTheirs float64
	for _, doc := range corpusDocuments(t) {
		if doc.made() {
			continue
		}
		text, ok := minify(doc.text)
		if !ok {
			continue
		}
		c := tokens.Count(text)
		a, b := c, c
		if o := Text(doc.text, Options{TOON: true}); o.Form == FormTOON {
			a = tokens.Count(o.Text)
		}
		if s, ok := toonGoText(text); ok && tokens.Estimate(s)*shareDen <= tokens.Estimate(text)*shareNum {
			b = tokens.Count(s)
		}
		compact, ours, theirs, n = compact+c, ours+a, theirs+b, n+1
		meanOurs += 1 - float64(a)/float64(c)
		meanTheirs += 1 - float64(b)/float64(c)
	}
	ratio := func(a int) string { return fmt.Sprintf("%.4f", float64(a)/float64(compact)) }
	t.Logf("%d documents, sum / compact: ours %s, toon-go %s; mean saved per document: ours %.2f %%, toon-go %.2f %%",
		n, ratio(ours), ratio(theirs), 100*meanOurs/float64(n), 100*meanTheirs/float64(n))
	if ours > theirs {
		t.Errorf("the encoder gives %d tokens, toon-go behind its gates %d", ours, theirs)
	}
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

func toonGoText(compact string) (string, bool) {
	d, ok := read(compact)
	if !ok {
		return "", false
	}
	tabled, ok := d.plan()
	if !ok || tabled*100 < d.leaves*minTabled || toonGoGate(d) != "" {
		return "", false
	}
	s, err := toon.MarshalString(toonGoValue(d, 0))
	return s, err == nil
}
