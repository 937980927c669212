package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/terminal"
)

// shown shows the progress of three servers for a little over nine seconds, and returns the output: a is ready
// after one second, b fails after five, and c never answers.
func shown(t *testing.T, s terminal.Screen) string {
	t.Helper()
	var out bytes.Buffer
	const end = 9*time.Second + redrawEvery/2 // after the last update
	synctest.Test(t, func(t *testing.T) {
		began, done := time.Now(), make(chan struct{})
		time.AfterFunc(end, func() { close(done) })
		p := &progress{w: &out, s: s, look: func() []attempt {
			all := []attempt{{name: "a", state: catalog.Connecting}, {name: "b-with-a-name-that-goes-on-and-on", state: catalog.Connecting}, {name: "c", state: catalog.Connecting}}
			if took := time.Since(began); took >= time.Second {
				all[0].state, all[0].tools = catalog.Ready, 14
				if took >= 5*time.Second {
					all[1].state, all[1].reason = catalog.Unavailable, "fell\n"+strings.Repeat("over ", 50)
				}
			}
			return all
		}}
		p.show(done)
		if took := time.Since(began); took != end {
			t.Errorf("returned after %v", took)
		}
	})
	return out.String()
}

// TestProgress_Plain: nothing is printed at first. Then mcpx prints which servers it waits for, and later
// which attempts have ended.
func TestProgress_Plain(t *testing.T) {
	const want = "mcpx: waiting for b-with-a-name-that-goes-on-and-on, c\nmcpx: b-with-a-name-that-goes-on-and-on is unavailable after 5.0 s\n"
	if got := shown(t, terminal.Screen{}); got != want {
		t.Errorf("got %q", got)
	}
}

// TestProgress_Live: each server has a line, which is updated, and is removed at the end.
func TestProgress_Live(t *testing.T) {
	for _, test := range []struct {
		width, height int
		want          []string // lines of the last update
	}{
		{80, 24, []string{
			"  a                           ready          1.0 s  14 tools",
			"  b-with-...t-goes-on-and-on  unavailable    5.0 s  fell over over over over...",
			"  c                           starting",
			"  2 tried, 1 to go, 9.0 s; Ctrl-C ends",
			"",
		}},
		{100, 30, nil},
		{80, 4, nil},
	} {
		got := shown(t, sized(test.width, test.height, false))
		if !strings.HasSuffix(got, "A\x1b[J") {
			t.Errorf("%dx%d: the lines stay: %q", test.width, test.height, got[len(got)-40:])
		}
		pictures := strings.Split(got, "\x1b[J")
		last := strings.Split(strings.ReplaceAll(pictures[len(pictures)-3], "\x1b[K", ""), "\n")
		for _, line := range last {
			if len(line) >= test.width+8 { // the first line also has an escape sequence
				t.Errorf("%dx%d: too long: %q", test.width, test.height, line)
			}
		}
		if n := len(last) - 1; n != min(4, test.height-1) {
			t.Errorf("%dx%d: %d lines: %q", test.width, test.height, n, last)
		}
		if test.height == 4 && !strings.Contains(strings.Join(last, "\n"), "  c") {
			t.Errorf("who is waited for is not shown: %q", last)
		}
		last[0] = strings.TrimPrefix(last[0], "\r\x1b[4A")
		if test.want != nil && !slices.Equal(last, test.want) {
			t.Errorf("got\n%s", strings.Join(last, "\n"))
		}
	}
}
