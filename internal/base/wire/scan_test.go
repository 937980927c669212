package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestValid_Positions: in strings of up to 19 bytes, every byte at every position is accepted or refused as by
// encoding/json. The scanner reads eight bytes at a time, so positions around multiples of eight matter.
func TestValid_Positions(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				text := bytes.Repeat([]byte("a"), length)
				text[at] = byte(c)
				in := []byte(`["` + string(text) + `","b"]`)
				if got, want := Valid(in), json.Valid(in) && utf8.Valid(in); got != want {
					t.Fatalf("Valid(%q) is %t", in, got)
				}
			}
		}
	}
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		`1`: `1`, ` [ 1 , 2.50 ] `: `[1,2.50]`, "{\n \"a b\" :\t\" \\u0041 \" , \"c\":[ ]\r\n}": `{"a b":" \u0041 ","c":[]}`, ` { } `: `{}`,
		"[\"\xff\" ]": "[\"\xff\"]",
	} {
		if got, ok := Compact(in); !ok || got != want {
			t.Errorf("Compact(%q) = %q, %t; want %q", in, got, ok, want)
		}
	}
	limit := strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)
	if _, ok := Compact(limit); !ok {
		t.Errorf("Compact refuses %d levels", maxNesting)
	}
	if _, ok := Compact("[" + limit + "]"); ok {
		t.Errorf("Compact accepts %d levels", maxNesting+1)
	}
}

func TestRead(t *testing.T) {
	d, ok := Read(` {"a":[1.10,{}],"\u0061":"x\ny","b":"\ud800","c":[[[null]]],"d":true} `)
	if !ok || !d.Lone || !d.UTF8 || d.Depth != 4 {
		t.Fatalf("got %+v, %t", d, ok)
	}
	var out strings.Builder
	for _, n := range d.Nodes {
		fmt.Fprintf(&out, "%d:%q:%q:%d:%d ", n.Kind, d.Str(n.Key), d.Str(n.Text), n.Count, n.Next)
	}
	want := `6:"":"":5:11 5:"a":"":2:4 3:"":"1.10":0:3 6:"":"":0:4 4:"a":"x\ny":0:5 4:"b":"\xed\xa0\x80":0:6 ` +
		`5:"c":"":1:10 5:"":"":1:10 5:"":"":1:10 0:"":"":0:10 2:"d":"":0:11 `
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", out.String(), want)
	}
}

// FuzzScan compares the scanner, and the functions that use it, with encoding/json.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e+3,true,false,null,"x\u00e9\ud83d\ude00\ud800\n"]}`, " [ 1 , { } ] ", `[1,]`, `{"a":1,}`, `01`, `"a`, "\"\x1f\"",
		"\"\xff\"", `[[[]`, `{"a" 1}`, `"\u12g4"`, `1e`, `-`, `nul`, `[1]x`, `"aaaaaaaa\"aaaaaaa\\"`, `{"":""}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		valid := json.Valid([]byte(in))
		if got := Valid([]byte(in)); got != (valid && utf8.ValidString(in)) {
			t.Fatalf("Valid is %t, encoding/json says %t", got, valid)
		}
		compact, ok := Compact(in)
		d, again, read := ReadCompact(in)
		if ok != valid || read != valid || compact != again {
			t.Fatalf("Compact %t %q, ReadCompact %t %q; encoding/json says %t", ok, compact, read, again, valid)
		}
		if !valid {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(in)); err != nil || want.String() != compact {
			t.Fatalf("Compact gives %q, want %q", compact, want.String())
		}
		if d.UTF8 != utf8.ValidString(in) {
			t.Fatalf("UTF8 is %t", d.UTF8)
		}
		var same, back any
		rest, err := written(d, 0)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(strings.NewReader(in))
		decoder.UseNumber()
		if err := decoder.Decode(&same); err != nil {
			t.Fatal(err)
		}
		decoder = json.NewDecoder(strings.NewReader(rest))
		decoder.UseNumber()
		if err := decoder.Decode(&back); err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		if a, b := fmt.Sprintf("%#v", same), fmt.Sprintf("%#v", back); a != b && d.UTF8 && !d.Lone {
			t.Fatalf("got %s, want %s", b, a)
		}
	})
}

// written returns node i of d as JSON.
func written(d *Document, i int32) (string, error) {
	n := d.Nodes[i]
	switch n.Kind {
	case Null, False, True:
		return [...]string{"null", "false", "true"}[n.Kind], nil
	case Number:
		return d.Str(n.Text), nil
	case String:
		return string(AppendQuoted(nil, d.Str(n.Text))), nil
	}
	var parts []string
	for c := i + 1; c < n.Next; c = d.Nodes[c].Next {
		part, err := written(d, c)
		if err != nil {
			return "", err
		}
		if n.Kind == Object {
			part = string(AppendQuoted(nil, d.Str(d.Nodes[c].Key))) + ":" + part
		}
		parts = append(parts, part)
	}
	if len(parts) != int(n.Count) {
		return "", fmt.Errorf("node %d: %d children, Count is %d", i, len(parts), n.Count)
	}
	if n.Kind == Array {
		return "[" + strings.Join(parts, ",") + "]", nil
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}
