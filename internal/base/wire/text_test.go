package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", `a"b\c/d`, "\n\t\r\b\f\x00\x1f", "\u2028\u2029<>&é漢😀", "\xff\xfe", `\u0041`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := AppendQuoted(nil, s)
		want := strings.ToValidUTF8(s, "\ufffd")
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil {
			t.Fatalf("AppendQuoted(%q) = %s: %v", s, quoted, err)
		}
		// Both encoding/json and AppendQuoted replace each single invalid byte; ToValidUTF8 replaces several in a row
		// by one U+FFFD.
		if strings.ToValidUTF8(back, "\ufffd") != back || strings.ReplaceAll(back, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Fatalf("AppendQuoted(%q) reads back as %q", s, back)
		}
		standard, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range [][]byte{quoted, standard} {
			got, ok := Text(in)
			if !ok || got != back {
				t.Fatalf("Text(%s) = %q, %v; want %q", in, got, ok, back)
			}
		}
	})
}

// FuzzDecode compares decoding a JSON string with encoding/json.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a", `\n\u0041\ud83d\ude00`, `\ud800\ud800x\udc00`, `\q`, `\u12`, `\`, "aaaaaaaa\\", "\xff\\n", `"`, "\x01\\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, inner string) {
		quoted := []byte(`"` + inner + `"`)
		got, ok := Text(quoted)
		var want string
		if json.Unmarshal(quoted, &want) != nil {
			if ok && strings.Contains(inner, "\\") {
				t.Fatalf("Text takes %q, which is no JSON, for %q", quoted, got)
			}
			return
		}
		if ok != utf8.ValidString(inner) {
			t.Fatalf("Text(%q): ok is %t", quoted, ok)
		}
		// Text replaces consecutive halves of surrogate pairs by a single U+FFFD.
		if whole, isWhole := WholeText(quoted); ok && (isWhole && whole != want || strings.ReplaceAll(got, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "")) {
			t.Fatalf("Text(%q) = %q, want %q", quoted, got, want)
		}
	})
}

func TestTextRefuses(t *testing.T) {
	for _, in := range []string{``, `"`, `x`, `7`, `"a\x"`, `"a\"`} {
		if got, ok := Text([]byte(in)); ok {
			t.Errorf("Text(%s) = %q, want none", in, got)
		}
	}
}

func BenchmarkText(b *testing.B) {
	inner := strings.Repeat(`{"id":1,"name":"x y z","note":"row of a table"},`+"\n", 20000)
	quoted := AppendQuoted(nil, inner)
	b.SetBytes(int64(len(quoted)))
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(quoted)))
		for b.Loop() {
			Text(quoted)
		}
	})
	b.Run("decode-standard", func(b *testing.B) {
		b.SetBytes(int64(len(quoted)))
		var s string
		for b.Loop() {
			_ = json.Unmarshal(quoted, &s)
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(quoted)))
		for b.Loop() {
			AppendQuoted(nil, inner)
		}
	})
}

func TestWholeText(t *testing.T) {
	for quoted, want := range map[string]bool{
		`""`: true, `"a"`: true, `"\ud83d\ude00"`: true, `"\uD83D\uDE00\uD83d\uDe00"`: true, `"\\ud800"`: true, `"\\\\uDFFF"`: true,
		`"\u0041\u00e9\ud7ff\ue000"`: true, `"\ufffd"`: true,
		`"\ud800"`: false, `"\uDFFF"`: false, `"\udc00\ud800"`: false, `"\ud800x"`: false, `"\ud83d\ud83d\ude00"`: false,
		`"\\\ud800"`: false, `"\ud83d\\ude00"`: false, `"\ud83d\ude00\udbff"`: false,
	} {
		if _, got := WholeText([]byte(quoted)); got != want {
			t.Errorf("%s: got %v", quoted, got)
		}
	}
}

func TestMembers_KeysAsWritten(t *testing.T) {
	var got []string
	err := Members([]byte(` { "a" : 1 , "\ud800":[2], "\u0062" :"x"}`), func(key string, written, value []byte) bool {
		got = append(got, key+" "+string(written)+" "+string(value))
		return true
	})
	want := []string{`a "a" 1`, "\ufffd \"\\ud800\" [2]", `b "\u0062" "x"`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}
