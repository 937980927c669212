package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestPeople_ServerGone: when a server has left the config, mcpx logins still lists the logins of people at it. Such a login is
// revoked at the server by mcpx logins end, whether mcpx runs or not, and when the last token of the person is deleted while
// mcpx runs. The logins of others go on.
func TestPeople_ServerGone(t *testing.T) {
	mcptest.Parallel(t)
	c := startCompany(t, nil, "alice", "bob", "carl", "dora")
	config := filepath.Join(c.h.dir, "mcpx.json")
	accounts := map[string]string{"alice": "anna", "bob": "berta", "carl": "caesar", "dora": "dorothea"}
	for who, account := range accounts {
		link, code := c.code(t, who)
		if status, page := newBrowser(t, account).visit(t, link, url.Values{"code": {code}}); !strings.Contains(page, "tracker is connected") {
			t.Fatalf("%s: %d %s", who, status, page)
		}
		if text := c.agent(t, who, modern).exec(t, "tracker", "echo", `{"text":"hello"}`).text(t); text != "hello" {
			t.Fatalf("%s: %s", who, text)
		}
	}
	c.h.must(t, 0, "--config", config, "remove", "tracker")
	c.h.must(t, 0, "--config", config, "reload")
	list := func(wanted ...string) {
		t.Helper()
		out, stderr, code := c.h.run(t, "", "--config", config, "logins")
		for who := range accounts {
			listed := false
			for line := range strings.Lines(out) {
				listed = listed || strings.Contains(line, " "+who+" ") && strings.Contains(line, "account at tracker")
			}
			if want := strings.Contains(" "+strings.Join(wanted, " ")+" ", " "+who+" "); listed != want || code != 0 {
				t.Errorf("%s is listed: %v\n%s%s", who, listed, out, stderr)
			}
		}
	}
	revoked := func(gone string, stay ...string) {
		t.Helper()
		mcptest.WaitFor(t, "the login of "+gone+" to be revoked", patience, func() bool { return !good(t, c.tracker)[accounts[gone]] })
		for _, who := range stay {
			if !good(t, c.tracker)[accounts[who]] {
				t.Errorf("the login of %s has ended with that of %s", who, gone)
			}
		}
	}
	list("alice", "bob", "carl", "dora")
	c.h.must(t, 0, "--config", config, "logins", "end", "alice")
	revoked("alice", "bob", "carl", "dora")
	list("bob", "carl", "dora")
	c.h.must(t, 0, "--config", config, "token", "delete", "bob")
	c.h.must(t, 0, "--config", config, "reload")
	revoked("bob", "carl", "dora")
	terminate(c.cmd)
	<-c.exited
	c.h.must(t, 0, "--config", config, "token", "delete", "carl")
	list("carl", "dora")
	c.h.must(t, 0, "--config", config, "logins", "end", "carl")
	revoked("carl", "dora")
	list("dora")
}
