package app

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestAbout: lines of the text log and of the JSON log are about the server that they name, wherever in the line.
func TestAbout(t *testing.T) {
	for line, want := range map[string]bool{
		"level=INFO msg=connected server=fake era=modern\n":                    true,
		"level=INFO msg=\"stopped, as it was not used\" server=fake\n":         true,
		"level=INFO msg=\"stopped, as it was not used\" server=fake":           true,
		"level=INFO msg=connected server=fake2\n":                              false,
		"level=INFO msg=connected other_server=fake\n":                         false,
		`{"level":"INFO","msg":"stopped, as it was not used","server":"fake"}`: true,
		`{"level":"INFO","msg":"connected","server":"fake2"}`:                  false,
	} {
		text := []byte(line + "server")
		if got := About(text[:len(line)], "fake"); got != want || string(text) != line+"server" {
			t.Errorf("%q: %t, then %q", line, got, text)
		}
	}
}

// TestLines_Trimmed: if a log is long, only its newest lines are kept, each of them whole. A reader that comes back with its
// position gets the lines after it.
func TestLines_Trimmed(t *testing.T) {
	var r Lines
	line := func(i int) []byte { return fmt.Appendf(nil, "line %07d\n", i) }
	const all, middle = 200_000, 150_000
	var position int64
	var early []byte
	for i := range all {
		_, _ = r.Write(line(i))
		if i == middle {
			early, position, _ = r.From(0)
			early = bytes.Clone(early[len(early)-13:])
		}
	}
	kept, end, _ := r.From(0)
	if size := len(kept); size < recentBytes || size > recentBytes*5/4+len(line(0)) || size%13 != 0 || end != all*13 {
		t.Errorf("%d bytes are kept, up to position %d", size, end)
	}
	if string(early) != string(line(middle)) || !bytes.HasSuffix(kept, line(all-1)) {
		t.Errorf("the newest line was %q, then %q", early, kept[len(kept)-13:])
	}
	if later, _, _ := r.From(position); !bytes.HasPrefix(later, line(middle+1)) {
		t.Errorf("after position %d comes %q", position, later[:13])
	}
}

// BenchmarkLines writes the log line of a call, again and again.
func BenchmarkLines(b *testing.B) {
	var r Lines
	line := []byte(strings.Repeat("x", 250) + "\n")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = r.Write(line)
	}
}
