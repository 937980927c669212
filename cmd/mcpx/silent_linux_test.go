package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcpx/internal/mcptest"
)

// TestSilent: beside a running mcpx that does not answer, mcpx reload does not say that none runs, and mcpx logins end does not
// claim that the logins in it have ended.
func TestSilent(t *testing.T) {
	mcptest.Parallel(t)
	c := startCompany(t, nil, "alice")
	config := filepath.Join(c.h.dir, "mcpx.json")
	link, code := c.code(t, "alice")
	if status, page := newBrowser(t, "anna").visit(t, link, url.Values{"code": {code}}); !strings.Contains(page, "tracker is connected") {
		t.Fatalf("%d %s", status, page)
	}
	_ = c.cmd.Process.Signal(syscall.SIGSTOP)
	defer func() { _ = c.cmd.Process.Signal(syscall.SIGCONT) }()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"reload"}, "mcpx: error: 1 running mcpx does not answer"},
		{[]string{"logins", "end", "alice"}, "1 login has ended"},
	} {
		_, stderr, code := c.h.run(t, "", append([]string{"--config", config}, test.args...)...)
		if code != 1 || !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "does not answer") || strings.Contains(stderr, "no running mcpx") {
			t.Errorf("%s: exit %d\n%s", test.args, code, stderr)
		}
	}
}
