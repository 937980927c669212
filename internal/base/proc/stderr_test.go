package proc

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTail(t *testing.T) {
	tests := []struct {
		name   string
		max    int
		writes []string
		want   string
	}{
		{"empty", 10, nil, ""},
		{"fits", 10, []string{"one\n", "two\n"}, "one\ntwo\n"},
		{"fits exactly", 8, []string{"one\n", "two\n"}, "one\ntwo\n"},
		{"one byte too many", 8, []string{"one\n", "two\nx"}, "two\nx"},
		{"whole lines", 12, []string{"one\n", "two\n", "three\n", "four\n"}, "three\nfour\n"},
		{"a line broken", 10, []string{"one\n", "two\n", "three\n", "four\n"}, "four\n"},
		{"larger than the ring", 8, []string{"a", "bcdefghij\nklmn\n"}, "klmn\n"},
		{"no line end", 4, []string{"abcdefgh"}, "efgh"},
		{"only the last line's end", 4, []string{"abcdefg\n"}, "efg\n"},
		{"cut in a character", 4, []string{"aé€"}, "€"},
		{"cut in the first of two", 5, []string{"€€"}, "€"},
		{"invalid", 10, []string{"a\xffb"}, "a\uFFFDb"},
		{"many rounds", 5, []string{"0123456789", "abc", "defghijklmnop", "q"}, "mnopq"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tl := newTail(tt.max)
			for _, w := range tt.writes {
				tl.write([]byte(w))
			}
			if got := tl.text(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := newTail(0).max; got != 64<<10 {
		t.Errorf("a tail of no size keeps %d bytes, want 64 KiB", got)
	}
}

// FuzzTail: however the data is split into writes, the tail keeps its last bytes.
func FuzzTail(f *testing.F) {
	f.Add([]byte("one\ntwo\n"), uint8(3), uint8(2))
	f.Add([]byte("€\xff\n\n"), uint8(1), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, size, piece uint8) {
		limit := int(size) + 1
		tl := newTail(limit)
		for part := range slices.Chunk(data, int(piece)+1) {
			tl.write(part)
		}
		got := tl.text()
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		end := data[max(0, len(data)-limit):]
		if !bytes.HasSuffix(bytes.ToValidUTF8(end, []byte("\uFFFD")), []byte(got)) && utf8.Valid(data) {
			t.Errorf("%q is not the end of %q", got, end)
		}
		if len(data) <= limit && got != strings.ToValidUTF8(string(data), "\uFFFD") {
			t.Errorf("got %q, want all of %q", got, data)
		}
	})
}

func TestLineSplitter(t *testing.T) {
	long := strings.Repeat("x", lineBytes)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"lines", "one\ntwo\r\n\nlast", []string{"one", "two", "", "last"}},
		{"invalid", "a\xffb\n", []string{"a\uFFFDb"}},
		{"just fits", long + "\nnext\n", []string{long, "next"}},
		{"too long", long + "yz\nnext\n", []string{long, "yz", "next"}},
		{"much too long", long + long, []string{long, long}},
	}
	for _, tt := range tests {
		for _, piece := range []int{1, 7, 1 << 20} {
			var got []string
			l := lineSplitter{emit: func(s string) { got = append(got, s) }}
			for part := range slices.Chunk([]byte(tt.in), piece) {
				l.write(part)
			}
			l.flush()
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s, in pieces of %d: got %.60q, want %.60q", tt.name, piece, got, tt.want)
			}
		}
	}
}

func TestThrottle(t *testing.T) {
	start := time.Unix(1000, 0)
	f := throttle{last: start}
	if d := f.take(drainBurst, start); d != 0 {
		t.Errorf("within the burst: a pause of %v", d)
	}
	if d := f.take(drainRate/10, start); d.Round(time.Millisecond) != 100*time.Millisecond {
		t.Errorf("a tenth of a second's bytes too many: a pause of %v, want 100ms", d)
	}
	if d := f.take(0, start.Add(100*time.Millisecond)); d != 0 {
		t.Errorf("after that pause: another of %v", d)
	}
	if d := f.take(drainBurst, start.Add(time.Hour)); d != 0 {
		t.Errorf("after an hour of silence: a pause of %v", d)
	}
	// In one second of continuous writing, at whatever speed, no more bytes are read than the limits allow.
	now, total := start.Add(2*time.Hour), 0
	f = throttle{last: now}
	for end := now.Add(time.Second); now.Before(end); {
		total += 32 << 10
		now = now.Add(f.take(32<<10, now) + time.Microsecond)
	}
	if most := drainBurst + drainRate + 64<<10; total > most {
		t.Errorf("%d bytes in a second, want at most %d", total, most)
	}
}
