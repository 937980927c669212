package main

import (
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestDaemon_FirstUse: a server that is not shared starts when its session first uses it. Before that, its catalogue is the one
// on disk.
func TestDaemon_FirstUse(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	open := func() *client {
		c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e"}
		c.open(t)
		return c
	}
	open().awaitTried(t, "fake")
	started := len(spec.Pids(t))
	c := open()
	if tools := c.list(t); !strings.Contains(tools[0].Description, "echo(text)") {
		t.Errorf("got %s", tools[0].Description)
	}
	mcptest.WaitFor(t, "the state idle", patience, func() bool {
		return strings.Contains(string(c.tool(t, "inspect", `{}`).Structured), `"name":"fake","state":"idle"`)
	})
	if n := len(spec.Pids(t)); n != started {
		t.Errorf("%d processes were started, then %d", started, n)
	}
	c.exec(t, "fake", "echo", `{"text":"up"}`)
	if n := len(spec.Pids(t)); n != started+1 {
		t.Errorf("%d processes were started, then %d", started, n)
	}
}

// TestDaemon_Share: sessions share a server as the key share says, also with mcpx exec. A shared server outlives the session
// that has started it, and ends when the config no longer has it.
func TestDaemon_Share(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	servers := make(map[string]server)
	for _, share := range []string{"user", "folder", "session"} {
		servers[share] = fake(t, mcptest.Spec{})
		servers[share]["share"] = share
	}
	config := h.config(t, servers, map[string]any{"daemon_idle": 600})
	here, there := t.TempDir(), t.TempDir()
	type session struct {
		*client
		peer *stdioPeer
		pids map[string]string
	}
	open := func(folder, era string) *session {
		cmd := h.command(t, "--config", config)
		cmd.Dir = folder
		p := startStdio(t, cmd)
		s := &session{&client{peer: p, era: era, name: "e2e"}, p, make(map[string]string)}
		s.open(t)
		for name := range servers {
			s.pids[name] = s.exec(t, name, "pid", `{}`).text(t)
		}
		return s
	}
	all := []*session{open(here, legacy), open(here, modern), open(there, legacy)}
	for i, one := range all {
		for j, other := range all[:i] {
			for name := range servers {
				want := name == "user" || name == "folder" && j == 0 && i == 1
				if got := one.pids[name] == other.pids[name]; got != want {
					t.Errorf("sessions %d and %d, %s: shared %v, want %v", i, j, name, got, want)
				}
			}
		}
	}
	cmd := h.command(t, "--config", config, "exec", "user", "pid")
	cmd.Dir = here
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != all[0].pids["user"] {
		t.Errorf("mcpx exec: %v, %s", err, out)
	}
	_ = all[0].peer.cmd.Process.Kill()
	all[0].peer.wait(t)
	for name, pid := range all[0].pids {
		number, _ := strconv.Atoi(pid)
		if name == "session" {
			mcptest.WaitFor(t, "the end of the server of the killed session", patience, func() bool { return !mcptest.Alive(number) })
		} else if !mcptest.Alive(number) {
			t.Errorf("%s has ended with a session of several", name)
		}
	}
	for name, pid := range all[1].pids {
		if again := all[1].exec(t, name, "pid", `{}`).text(t); again != pid {
			t.Errorf("%s is %s, then %s", name, pid, again)
		}
	}
	delete(servers, "folder")
	h.config(t, servers, map[string]any{"daemon_idle": 600})
	number, _ := strconv.Atoi(all[1].pids["folder"])
	mcptest.WaitFor(t, "the end of a server that no config has any more", patience, func() bool { return !mcptest.Alive(number) })
}

// TestDaemon_ShareEnds: a shared server ends when it had no session for daemon_idle, and so does the daemon.
func TestDaemon_ShareEnds(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	one := fake(t, mcptest.Spec{})
	one["share"] = "user"
	p := h.serveStdio(t, "--config", h.config(t, map[string]server{"one": one}, map[string]any{"daemon_idle": 0.2}))
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	pid, _ := strconv.Atoi(c.exec(t, "one", "pid", `{}`).text(t))
	p.stdin.Close()
	p.wait(t)
	mcptest.WaitFor(t, "the end of the server", patience, func() bool { return !mcptest.Alive(pid) })
	mcptest.WaitFor(t, "the end of the daemon", patience, func() bool { return len(h.daemons(t)) == 0 })
}

// TestDaemon_ShareAsked: a server that asks the user gets its answer from the client of the call. From then on each new session
// has a process of its own. The same holds for a server that asks with its results, as the modern era does.
func TestDaemon_ShareAsked(t *testing.T) {
	mcptest.Parallel(t)
	for _, era := range []string{legacy, modern} {
		h := newDaemonHome(t)
		one := fake(t, mcptest.Spec{Era: map[string]string{legacy: mcptest.EraLegacy, modern: mcptest.EraModern}[era]})
		one["share"] = "user"
		config := h.config(t, map[string]server{"one": one}, nil)
		open := func() (*client, string) {
			c := &client{peer: h.serveStdio(t, "--config", config), era: era, name: "e2e", caps: `{"elicitation":{}}`}
			c.open(t)
			return c, c.exec(t, "one", "pid", `{}`).text(t)
		}
		_, first := open()
		asking, second := open()
		if first != second {
			t.Fatalf("%s: %s and %s are not shared", era, first, second)
		}
		m, questions := asking.consenting(t, "tools/call", `{"name":"exec","arguments":`+execArgs("one", "ask", `{}`)+`}`, "accept")
		if len(questions) != 1 || !strings.Contains(string(m.Result), "accept") {
			t.Errorf("%s: %s %s after %q", era, m.Result, m.Error, questions)
		}
		if _, third := open(); third == first {
			t.Errorf("%s: a server that asks is shared: %s", era, third)
		}
	}
}

// TestDaemon_ShareLogs: a server's log message or request that may belong to the call of either of two sessions reaches none of
// them, as over HTTP. mcpx logs has the message.
func TestDaemon_ShareLogs(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	one := fake(t, spec)
	one["share"] = "user"
	config := h.config(t, map[string]server{"one": one}, nil)
	var all []*client
	for range 2 {
		c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e", caps: `{"elicitation":{}}`}
		c.open(t)
		c.result(t, "logging/setLevel", `{"level":"debug"}`)
		all = append(all, c)
	}
	notify := func(data string) {
		t.Helper()
		all[1].exec(t, "one", "notify", `{"method":"notifications/message","params":{"level":"info","data":"`+data+`"}}`)
	}
	notify("alone")
	if got := all[1].notes("notifications/message"); len(got) != 1 || !strings.Contains(string(got[0].Params), "alone") {
		t.Errorf("the session of the only call got %v", got)
	}
	all[0].start(t, "tools/call", `{"name":"exec","arguments":`+execArgs("one", "slow", `{"ms":3600000}`)+`}`, "")
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(spec.Log(t).Calls("slow")) == 1 })
	notify("whose")
	out, stderr, code := h.run(t, "", "--config", config, "logs", "one")
	if code != 0 || !strings.Contains(out, `may belong to any client" server=one`) || !strings.Contains(out, "whose") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	asked := all[1].exec(t, "one", "ask", `{}`)
	if !asked.IsError && !strings.Contains(asked.text(t), "several clients have calls open") {
		t.Errorf("a question that may belong to either session: %s", asked.Content)
	}
	if a, b := len(all[0].notes("notifications/message")), len(all[1].notes("notifications/message")); a != 0 || b != 1 {
		t.Errorf("the sessions got %d and %d messages", a, b)
	}
}

// TestDaemon_Owner: a server process that only one session uses gets the capabilities of the client of this session, as without
// the daemon.
func TestDaemon_Owner(t *testing.T) {
	mcptest.Parallel(t)
	h := newDaemonHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"own": fake(t, spec)}, nil)
	for range 2 { // the catalogue is unknown, then on disk
		c := &client{peer: h.serveStdio(t, "--config", config), era: legacy, name: "e2e", caps: `{"roots":{"listChanged":true}}`}
		c.open(t)
		c.exec(t, "own", "echo", `{"text":"up"}`)
		all := spec.Log(t).Method("initialize")
		if got := string(all[len(all)-1].Message); !strings.Contains(got, `"capabilities":{"roots":{`) {
			t.Errorf("the server got %s", got)
		}
	}
}
