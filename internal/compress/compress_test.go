package compress

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestText_Golden compares what the model gets with golden files. Each file has a comment, input.txt, want.txt and form.
func TestText_Golden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			in := strings.TrimSuffix(parts["input.txt"], "\n")
			out := Text(in, Options{TOON: true})
			form := fmt.Sprintf("%s, %d tokens of %d\n", out.Form, tokens.Count(out.Text), tokens.Count(in))
			if *update {
				archive.Files = []txtar.File{{Name: "input.txt", Data: []byte(in + "\n")},
					{Name: "form", Data: []byte(form)}, {Name: "want.txt", Data: []byte(out.Text + "\n")}}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if form != parts["form"] || out.Text+"\n" != parts["want.txt"] {
				t.Errorf("got %s%s\nwant %s%s", form, out.Text, parts["form"], parts["want.txt"])
			}
		})
	}
}

// check tests what must be true for every output of Text: it has the same value as the input, and no more tokens.
func check(t *testing.T, count counter, name, in string, out Output) {
	t.Helper()
	if got, max := count.count(out.Text), count.count(in); got > max {
		t.Errorf("%s: %d tokens from %d received", name, got, max)
	}
	if trimmed := strings.Trim(in, " \t\r\n"); (out.JSON != "") != (json.Valid([]byte(in)) && (trimmed[0] == '{' || trimmed[0] == '[')) {
		t.Errorf("%s: JSON is %.100q", name, out.JSON)
	} else if out.JSON != "" && !sameJSON(in, out.JSON) {
		t.Errorf("%s: JSON says something else: %.300s", name, out.JSON)
	}
	switch out.Form {
	case FormText:
		if !sameText(in, out.Text) {
			t.Errorf("%s: a text was changed", name)
		}
	case FormJSON:
		if !sameValues(in, out.Text) {
			t.Errorf("%s: JSON says something else: %.300s", name, out.Text)
		}
	case FormTOON:
		got, err := decodeTOON(out.Text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if values, _ := items(in); !sameJSON(in, got) && !sameValues(in, got) {
			t.Errorf("%s: TOON says something else than the %d values: %.300s", name, len(values), out.Text)
		}
	}
}

// sameText reports whether text is in, or the contents of in if that is a JSON string.
func sameText(in, text string) bool {
	contents, ok := wire.WholeText([]byte(strings.TrimSpace(in)))
	return text == in || ok && text == contents
}

// items returns the elements of an array, if the text is one array, or otherwise the values of a sequence of JSON values.
func items(in string) ([]json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(in))
	var values []json.RawMessage
	for {
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF) && len(values) == 1 && values[0][0] == '[':
			var list []json.RawMessage
			return list, json.Unmarshal(values[0], &list)
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, err
		}
		values = append(values, value)
	}
}

// sameValues reports whether two sequences of JSON values, or arrays of them, are equal.
func sameValues(a, b string) bool {
	x, err := items(a)
	if err != nil {
		return false
	}
	y, err := items(b)
	if err != nil || len(x) != len(y) {
		return false
	}
	for i := range x {
		if !sameJSON(string(x[i]), string(y[i])) {
			return false
		}
	}
	return true
}

func TestText_NeverWorse(t *testing.T) {
	mcptest.OneGoroutine(t)
	for _, doc := range documents(t) {
		count := counter{}
		forms := doc.forms(t)
		compact := -1
		if c, ok := forms["compact"]; ok {
			compact = count.count(c)
		}
		for form, in := range forms {
			for _, toon := range []bool{true, false} {
				out := Text(in, Options{TOON: toon})
				check(t, count, doc.name+" "+form, in, out)
				if !toon && out.Form == FormTOON {
					t.Errorf("%s %s: TOON though it is off", doc.name, form)
				}
				if n := count.count(out.Text); out.Form != FormText && compact >= 0 && n > compact {
					t.Errorf("%s %s: %d tokens as %s, compact JSON has %d", doc.name, form, n, out.Form, compact)
				}
			}
		}
	}
}

// TestText_Made tests Text with random documents, which mix all kinds of scalars, ways to write them, and shapes.
func TestText_Made(t *testing.T) {
	mcptest.OneGoroutine(t)
	r := rand.New(rand.NewSource(1))
	forms := map[Form]int{}
	count := counter{}
	for i := range 200 {
		compact := makeValue(r, 4)
		for name, in := range (sample{fmt.Sprint("made ", i), compact}).forms(t) {
			out := Text(in, Options{TOON: true})
			forms[out.Form]++
			check(t, count, name+" "+compact, in, out)
		}
	}
	for _, f := range []Form{FormText, FormJSON, FormTOON} {
		if forms[f] < 50 {
			t.Errorf("%d texts came out as %s, want at least 50", forms[f], f)
		}
	}
}

// makeValue writes a random JSON value that is nested at most depth levels; many are tables.
func makeValue(r *rand.Rand, depth int) string {
	scalars := []string{"true", "false", "null", "0", "-1", "1.10", "1e5", "9007199254740993", `"a"`, `"hello world"`, `""`,
		`" a"`, `"é"`, `"\u4e2d\u6587"`, `"https://a.b/c?d=e"`, `"-"`, `"#x"`, `"1"`, `"a,b"`, `"\"q\""`, `"line\nline"`, `"\u0007"`, `"NULL"`}
	scalar := func() string { return scalars[r.Intn(len(scalars))] }
	keys := []string{"id", "name", "a b", "", "é", "x.y", "-", "1", "owner", "value"}
	if depth == 0 || r.Intn(6) == 0 {
		return scalar()
	}
	var items []string
	switch r.Intn(4) {
	case 0: // a table
		columns := keys[:1+r.Intn(len(keys))]
		for range 1 + r.Intn(8) {
			var row []string
			for _, k := range columns {
				row = append(row, marshal(k)+":"+scalar())
			}
			items = append(items, "{"+strings.Join(row, ",")+"}")
		}
		return "[" + strings.Join(items, ",") + "]"
	case 1: // an object
		for _, k := range keys[:r.Intn(len(keys))] {
			items = append(items, marshal(k)+":"+makeValue(r, depth-1))
		}
		return "{" + strings.Join(items, ",") + "}"
	case 2: // a keyed table
		for _, k := range keys[:r.Intn(len(keys))] {
			items = append(items, marshal(k)+`:{"v":`+scalar()+`,"w":{"x":`+scalar()+`}}`)
		}
		return "{" + strings.Join(items, ",") + "}"
	}
	for range r.Intn(5) {
		items = append(items, makeValue(r, depth-1))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// withJSON is a JSON string whose contents have JSON that is too short to be rewritten.
const withJSON = `"some text here is long enough, see {\"a\":1} and so on"`

func TestText(t *testing.T) {
	table := strings.Repeat(`{"id":1,"name":"some name","state":"open"},`, 10)
	lines := strings.ReplaceAll(table, "},", "}\n")
	tests := []struct {
		name, in string
		form     Form
		want     string // what the output must contain if it differs from in
	}{
		{"empty", "", FormText, ""},
		{"blank", " \n", FormText, ""},
		{"prose", "{ is not JSON", FormText, ""},
		{"prose with JSON", `Result: {"a": 1}`, FormText, ""},
		{"JSON with prose", `{"a": 1} was the result`, FormText, ""},
		{"scalar", " 1.10 ", FormText, ""},
		{"string", `"{\"a\": 1}"`, FormText, ""},
		{"string with JSON", withJSON, FormText, `some text here is long enough, see {"a":1} and so on`},
		{"true", "true", FormText, ""},
		{"byte order mark", "\ufeff{\"a\": 1}", FormText, ""},
		{"compact already", `{"a":1}`, FormJSON, `{"a":1}`},
		{"trimmed", "\n\t{\n  \"a\": 1\n}\r\n", FormJSON, `{"a":1}`},
		{"literals", "[\n  1.10,\n  -0,\n  1E400,\n  \"\\ud800\"\n]", FormJSON, `[1.10,-0,1E400,"\ud800"]`},
		{"duplicate keys", "{\n  \"a\": 1,\n  \"a\": 2\n}", FormJSON, `{"a":1,"a":2}`},
		{"escapes", `{"a":"\u4e2d\u6587 \u003ca\u003e \/ \u00e9\ud83d\ude00"}`, FormJSON, `{"a":"中文 <a> / é😀"}`},
		{"escapes that stay", `["\u0000\u001b\u200b\u202e\u2028\ufeff\u0022\u005c\ud83d\\u0041"]`, FormJSON,
			`["\u0000\u001b\u200b\u202e\u2028\ufeff\"\\\ud83d\\u0041"]`},
		{"two objects on a line", `{"a": 1} {"b": 2}`, FormText, ""},
		{"one line", "{\"a\": 1}\n", FormJSON, `{"a":1}`},
		{"lines", "{\"a\":  1}\r\n\n{\"b\":  [1, 2]}\n", FormJSON, "{\"a\":1}\n{\"b\":[1,2]}"},
		{"lines of arrays", "[1,  2]\n[3,  4]", FormText, ""},
		{"a line too many", "{\"a\":  1}\n{\"b\":  2}\nend", FormText, ""},
		{"table", "[" + table[:len(table)-1] + "]", FormTOON, "[10]{id,name,state}:" + strings.Repeat("\n  1,some name,open", 10)},
		{"lines of a table", lines, FormTOON, "[10]{id,name,state}:" + strings.Repeat("\n  1,some name,open", 10)},
		{"invalid UTF-8", "[\n  \"\xff\"\n]", FormJSON, "[\"\xff\"]"},
		{"code", "[x for x in y]", FormText, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if tt.form == FormText && want == "" {
				want = tt.in
			}
			out := Text(tt.in, Options{TOON: true})
			if out.Text != want || out.Form != tt.form {
				t.Errorf("got %s %q\nwant %s %q", out.Form, out.Text, tt.form, want)
			}
			check(t, counter{}, tt.name, tt.in, out)
		})
	}
}

func FuzzText(f *testing.F) {
	for _, doc := range committed(f) {
		if len(doc.text) < 2000 {
			f.Add(doc.text)
		}
	}
	for _, text := range awkward {
		f.Add(text)
	}
	f.Add("{\"a\":1}\n{\"a\":2}\n{\"a\":3}")
	f.Add(withJSON)
	f.Add(`[{"":"","00000":"00000000000000000000"}],`)
	f.Fuzz(func(t *testing.T, in string) {
		raw := []byte(in)
		out := Text(in, Options{TOON: true})
		if tokens.Estimate(out.Text) > tokens.Estimate(in) {
			t.Errorf("%q became more tokens: %q", in, out.Text)
		}
		values, err := items(in)
		inText := err != nil || len(values) > 0 && values[0][0] == '"' // only the JSON in a text, or in a JSON string, is rewritten
		if out.Form == FormText && !sameText(in, out.Text) || out.Form == FormJSON && !inText && !sameValues(in, out.Text) {
			t.Errorf("%q became %s %q", in, out.Form, out.Text)
		}
		Shape(raw, 100)
		if !json.Valid(raw) {
			if out.JSON != "" {
				t.Errorf("JSON of %q is %q", in, out.JSON)
			}
			return
		}
		if out.JSON != "" && (!Equal(raw, []byte(out.JSON)) || !sameJSON(in, out.JSON)) {
			t.Errorf("JSON of %q is %q", in, out.JSON)
		}
		text, ok := Encode(raw)
		if !ok {
			return
		}
		if got, err := decodeTOON(text); err != nil || !sameJSON(in, got) {
			t.Errorf("TOON of %q is %q, which decodes to %q: %v", in, text, got, err)
		}
	})
}
