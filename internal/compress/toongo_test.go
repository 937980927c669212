package compress

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	toon "github.com/toon-format/toon-go"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// toonGoValue converts node i to a value that toon-go can encode.
func toonGoValue(d *wire.Document, i int32) any {
	n := &d.Nodes[i]
	switch n.Kind {
	case wire.Null:
		return nil
	case wire.False, wire.True:
		return n.Kind == wire.True
	case wire.Number:
		return json.Number(d.Str(n.Text))
	case wire.String:
		return d.Str(n.Text)
	case wire.Array:
		items := []any{}
		for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
			items = append(items, toonGoValue(d, c))
		}
		return items
	}
	var fields []toon.Field
	for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
		fields = append(fields, toon.Field{Key: d.Str(d.Nodes[c].Key), Value: toonGoValue(d, c)})
	}
	return toon.Object{Fields: fields}
}

// toonGoGate returns why toon-go (TOON 2.0) cannot write the document without changing it, or "" if it can.
func toonGoGate(d *document) string {
	for i := range d.Nodes {
		if why := toonGoNode(d, int32(i)); why != "" {
			return why
		}
	}
	return ""
}

func toonGoNode(d *document, i int32) string {
	n := &d.Nodes[i]
	switch n.Kind {
	case wire.Number:
		s := d.Str(n.Text)
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || decimalOf(s) != decimalOf(strconv.FormatFloat(f, 'f', -1, 64)) {
			return "number beyond float64"
		}
	case wire.String:
		return toonGoString(d.Str(n.Text))
	case wire.Object:
		for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
			key := d.Str(d.Nodes[c].Key)
			if key == "" {
				return "empty key"
			}
			if why := toonGoString(key); why != "" {
				return why
			}
		}
	case wire.Array:
		for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
			m := &d.Nodes[c]
			switch {
			case m.Kind == wire.Object && m.Count == 0:
				return "{} in a list"
			case m.Kind == wire.Object && d.forms[i].layout == layoutBlock && d.Nodes[c+1].Kind.Container():
				return "list item with a container first"
			case m.Kind == wire.Array && m.Count > 0 && d.Nodes[c+1].Kind == wire.Object:
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

// toonFourOnly returns the first feature of the document that is written differently in TOON 2.0 than in TOON 4, or by toon-go
// than by this package.
func toonFourOnly(d *document) string {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		switch {
		case d.forms[i].layout == layoutKeyed:
			return "keyed table"
		case d.forms[i].layout == layoutTable && d.Nodes[i+1].Next != int32(i)+2+d.Nodes[i+1].Count:
			return "group of columns"
		case n.Kind == wire.Array && n.Count == 0:
			return "empty array (key[0]: in 2.0)"
		case n.Kind == wire.String && leadingZero(d.Str(n.Text)):
			return "string with a leading zero (quoted in 2.0)"
		case n.Kind == wire.String && unicodeEdge(d.Str(n.Text)):
			return "string with wide white space at an end (quoted in 2.0)"
		case n.Kind == wire.Number && d.Str(n.Text) != javaScript(d.Str(n.Text)):
			return "number as it is written"
		case n.Kind == wire.Array && anotherOrder(d.Document, int32(i)):
			return "rows with another order of members"
		}
	}
	return ""
}

func unicodeEdge(s string) bool { return strings.TrimSpace(s) != strings.Trim(s, " \t\r\n") }

func leadingZero(s string) bool { return len(s) > 1 && s[0] == '0' && '0' <= s[1] && s[1] <= '9' }

// TestEncode_SameAsToonGo compares the encoder with toon-go, which other people have written from the specification. Both must
// write the same bytes unless TOON 2.0 and 4 differ or toon-go has an error.
func TestEncode_SameAsToonGo(t *testing.T) {
	gated, other, same := map[string]int{}, map[string]int{}, 0
	for _, doc := range documents(t) {
		compact, ok := wire.Compact(doc.text)
		if !ok || compact[0] != '{' && compact[0] != '[' {
			continue
		}
		d, _, _ := read(compact, true)
		if d == nil {
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
		want, err := toon.MarshalString(toonGoValue(d.Document, 0))
		if err != nil {
			t.Errorf("%s: toon-go: %v", doc.name, err)
			continue
		}
		got, _ := d.encode(0, 0)
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

// TestText_AgainstToonGo measures how much our own encoder saves, compared with making the same choice with toon-go wherever
// toon-go can write the document.
func TestText_AgainstToonGo(t *testing.T) {
	var compact, ours, theirs, n int
	var meanOurs, meanTheirs float64
	for _, doc := range corpusDocuments(t) {
		if doc.made() {
			continue
		}
		text, ok := wire.Compact(doc.text)
		if !ok {
			continue
		}
		c := tokens.Count(text)
		a, b := c, c
		if o := Text(doc.text, Options{TOON: true}); o.Form == FormTOON {
			a = tokens.Count(o.Text)
		}
		if s, ok := toonGoText(text); ok && tokens.Estimate(s)*100 <= tokens.Estimate(text)*shareTOON {
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
	d, _, _ := read(compact, true)
	if d == nil {
		return "", false
	}
	inTables, ok := d.plan()
	if !ok || inTables*100 < d.leaves()*minInTables || toonGoGate(d) != "" {
		return "", false
	}
	s, err := toon.MarshalString(toonGoValue(d.Document, 0))
	return s, err == nil
}
