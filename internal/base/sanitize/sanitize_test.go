package sanitize

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		name string
		in   string
		max  int
		want string
	}{
		{"plain", "Read a file", 0, "Read a file"},
		{"white space", "  Read\r\n\ta\u00a0 \u2028file\v\n", 0, "Read a file"},
		{"controls", "a\x00b\x08c\x7fd\u0084e", 0, "abcde"},
		{"colours", "\x1b[1;31mred\x1b[0m text \u009b32mgreen", 0, "red text green"},
		{"title", "\x1b]0;evil\x07a\x1b]8;;http://x\x1b\\b", 0, "ab"},
		{"unterminated", "\x1b]0;the rest stays", 0, "0;the rest stays"},
		{"charset", "\x1b(Btext\x1b", 0, "text"},
		{"bidi", "abc\u202etxt.exe\u2069\u200f", 0, "abctxt.exe"},
		{"zero width", "a\u200bb\u200dc\ufeffd\u00ade\u2060f", 0, "abcdef"},
		{"tags and selectors", "a\U000e0053\U000e007fb\ufe0f\U000e0101c", 0, "abc"},
		{"fillers", "a\u3164\u115f\u034fb", 0, "ab"},
		{"not UTF-8", "a\xffb", 0, "a\ufffdb"},
		{"visible formats", "\u0600\u06f1", 0, "\u0600\u06f1"},
		{"fits", "Read a file", 11, "Read a file"},
		{"fits after cleaning", "Read a file\x1b[0m \u200b ", 11, "Read a file"},
		{"cut on a word", "Read a file and return it", 20, "Read a file and..."},
		{"cut between words", "Read a file, return it", 15, "Read a file..."},
		{"one long word", "abcdefghijklmnop", 10, "abcdefg..."},
		{"runes", "日本語日本語日本語日本語", 10, "日本語日本語日..."},
		{"tiny", "abcdef", 3, "abc"},
		{"empty", " \n ", 5, ""},
	} {
		if got := Line(c.in, c.max); got != c.want {
			t.Errorf("%s: Line(%q, %d) = %q, want %q", c.name, c.in, c.max, got, c.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"Read\na  file", "\x1b[31mred\x1b]0;t\x07", "\u009b\u009d\x1b\\", "a\u202eb\U000e0041", "\xff\xfe\x1b", "日本 語"} {
		f.Add(s, 0)
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		got := Line(s, max)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if max > 0 && utf8.RuneCountInString(got) > max {
			t.Errorf("%q has more than %d runes", got, max)
		}
		if strings.TrimSpace(got) != got || strings.Contains(got, "  ") {
			t.Errorf("white space in %q", got)
		}
		for _, r := range got {
			if r != ' ' && unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r >= 0xe0000 && r <= 0xe0fff {
				t.Errorf("%U in %q", r, got)
			}
		}
		if again := Line(got, max); again != got {
			t.Errorf("again: %q, first %q", again, got)
		}
	})
}

func TestLine_linear(t *testing.T) {
	for _, part := range []string{"\x1b]", "\u009d", "\x1b[", "\x1b]a", "\u0090 "} {
		s := strings.Repeat(part, 1<<19)
		Line(s, 0) // takes hours if the time is quadratic
	}
}

var linesCases = []struct{ in, want string }{
	{"a  b\n\tc ", "a  b\n\tc "},
	{"if x:\r\n    go()\r\n\tend  \r\n", "if x:\n    go()\n\tend  \n"},
	{"  a\u200b  b\n    c", "  a  b\n    c"},
	{"  \x1b[1;31mred\x1b[0m  x\n    y", "  red  x\n    y"},
	{"10 %\r100 %\r\x1b[K\ndone", "10 %\n100 %\ndone"},
	{"\x1b]0;a title\x07  a\x1b]8;;u\x1b\\b\x1b[2 qc", "  abc"},
	{"\x1b]0;the rest\n  stays", "0;the rest\n  stays"},
	{"\u009b32mgreen\x1b(B \u0085 x\u2028y\vz\x1b", "green \n x\ny\nz"},
	{"\x1b\x1b[31[31mm\x00\u202e\ufeff", "31mm"},
	{"a\xffb\u200b", "a\ufffdb"},
}

func TestLines(t *testing.T) {
	for _, tt := range linesCases {
		if got := Lines(tt.in); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

// FuzzLines: from valid UTF-8, Lines removes the same characters as [Line], apart from white space. A second Lines changes
// nothing.
func FuzzLines(f *testing.F) {
	for _, tt := range linesCases {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Lines(text)
		if utf8.ValidString(text) && Line(got, 0) != Line(text, 0) {
			t.Errorf("%q: got %q", text, got)
		}
		if again := Lines(got); again != got {
			t.Errorf("%q: got %q, then %q", text, got, again)
		}
	})
}
