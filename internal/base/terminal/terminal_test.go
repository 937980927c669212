package terminal

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// sized returns the Screen of a terminal of this size.
func sized(columns, rows int, colour bool) Screen {
	return New(func() (int, int) { return columns, rows }, colour, true)
}

func TestFormats(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Number(0), "0"}, {Number(999), "999"}, {Number(1000), "1,000"}, {Number(12345678), "12,345,678"}, {Number(-1234), "-1,234"}, {Number(-123), "-123"},
		{Dollars(1234.567), "1,234.57"}, {Dollars(0.005), "0.01"}, {Dollars(0), "0.00"},
		{Change(200, 100), "-50.0 %"}, {Change(100, 110), "10.0 %"}, {Change(100000, 99999), "0.0 %"}, {Change(0, 5), "0 %"},
		{Count(1, "server"), "1 server"}, {Count(1000, "server"), "1,000 servers"},
		{ClipMiddle("abcdefghijklmnop", 9), "ab...mnop"}, {ClipMiddle("short", 9), "short"},
		{Clip("abcdefgh", 6), "abc..."}, {Pad("日本", 6), "日本  "},
		{Screen{}.Bar(1, 4, 8), "##"}, {sized(80, 24, true).Bar(0, 4, 8), "█"},
		{Screen{}.Bold("x"), "x"}, {sized(80, 24, true).Bold("x"), "\x1b[1mx\x1b[0m"}, {sized(80, 24, true).Red(""), ""},
		{sized(40, 24, false).Hang("note: ", "one two three four five six seven eight nine"), "note: one two three four five six seven\n      eight nine\n"},
		{sized(40, 24, false).Hang("", "it is not found: see https://registry.example.com/x"), "it is not found: see\nhttps://registry.example.com/x\n"},
		{sized(40, 24, false).Wrap(2, strings.Repeat("x", 45)), "  " + strings.Repeat("x", 38) + "\n  " + strings.Repeat("x", 7) + "\n"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// TestOf: the Screen of a file that is not a terminal has neither colours nor a height.
func TestOf(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := Of(f, func(string) (string, bool) { return "", false })
	if s.Live() || s.Height() != 0 || s.Width() != 80 || s.Bold("x") != "x" {
		t.Errorf("got %+v", s)
	}
}

func TestTable(t *testing.T) {
	s := sized(40, 24, false)
	got := s.Table(2, []Row{
		{Cells: []string{"NAME", "STATE", "N"}},
		{Cells: []string{"a", s.Green("ready"), "1,000"}, Notes: []string{"what is to be known about it, in words"}},
		{},
		{Cells: []string{"a-name-that-is-far-too-long-for-this", "down", "-"}},
	})
	const want = "" +
		"NAME                        STATE      N\n" +
		"a                           ready  1,000\n" +
		"    what is to be known about it, in\n    words\n" +
		"----------------------------------------\n" +
		"a-name-...oo-long-for-this  down       -\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTable_TooWideForAnyName: if the table does not fit however short the names are, the lines wrap anyway, and the names stay
// whole.
func TestTable_TooWideForAnyName(t *testing.T) {
	got := sized(40, 24, false).Table(3, []Row{
		{Cells: []string{"SERVER", "RUNS"}},
		{Cells: []string{"filesystem-cursor", "npx @modelcontextprotocol/server-filesystem"}},
	})
	if !strings.Contains(got, "filesystem-cursor  npx @model") {
		t.Errorf("got\n%s", got)
	}
}

// terminal returns the lines that a terminal shows after it got the bytes written. It knows the escape sequences that [Live]
// uses.
func terminal(written string) []string {
	rows, at := []string{""}, 0
	for len(written) > 0 {
		switch {
		case strings.HasPrefix(written, "\x1b[K"):
			written = written[3:]
		case strings.HasPrefix(written, "\x1b[J"):
			rows = append(rows[:at], "")
			written = written[3:]
		case strings.HasPrefix(written, "\x1b["):
			n, i := 0, 2
			for ; written[i] >= '0' && written[i] <= '9'; i++ {
				n = 10*n + int(written[i]-'0')
			}
			at -= max(n, 1)
			written = written[i+1:]
		case written[0] == '\r':
			written = written[1:]
		default:
			line, rest, _ := strings.Cut(written, "\n")
			rows[at], written = strings.TrimSuffix(line, "\x1b[K"), rest
			if at++; at == len(rows) {
				rows = append(rows, "")
			}
		}
	}
	return rows
}

func TestLive(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(&out, sized(20, 5, false))
	out.WriteString("before\n")
	l.Draw([]string{"a starting", "b starting"})
	l.Draw([]string{"a ready, which is a long line"})
	if got := terminal(out.String()); strings.Join(got, "|") != "before|a ready, which i...|" {
		t.Errorf("got %q", got)
	}
	l.Draw([]string{"1", "2", "3", "4", "5", "6"})
	if got := terminal(out.String()); strings.Join(got, "|") != "before|1|2|3|4|" {
		t.Errorf("more than the rows: %q", got)
	}
	l.Clear()
	l.Clear()
	if got := terminal(out.String()); strings.Join(got, "|") != "before|" {
		t.Errorf("not cleared: %q", got)
	}
}
