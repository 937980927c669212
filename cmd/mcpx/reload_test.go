//go:build unix

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

func (p *stdioPeer) hangUp(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// TestReload: a reload restarts the servers whose config has changed, and no others. Clients keep their
// sessions and are notified.
func TestReload(t *testing.T) {
	mcptest.Parallel(t)
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			mcptest.Parallel(t)
			h := newHome(t)
			kept := mcptest.Spec{}.WithFiles(t)
			servers := map[string]server{"keep": fake(t, kept), "change": fake(t, mcptest.Spec{}), "drop": fake(t, mcptest.Spec{})}
			config := h.config(t, servers, nil)
			c, p := openOver(t, h, over, "--config", config)
			pid := func(server string) string {
				t.Helper()
				return c.exec(t, server, "pid", `{}`).text(t)
			}
			keep, change := pid("keep"), pid("change")
			pid("drop")
			long := callExec(t, c, "keep", "slow", `{"ms":1500}`)
			mcptest.WaitFor(t, "the call", patience, func() bool { return len(kept.Log(t).Calls("slow")) > 0 })

			known := len(c.notes("notifications/tools/list_changed"))
			delete(servers, "drop")
			servers["keep"]["tools"] = map[string]any{"deny": []string{"fail"}}
			servers["keep"]["tool_timeouts"] = map[string]any{"sl*": 0.2}
			servers["keep"]["description"] = "What is kept."
			servers["change"] = fake(t, mcptest.Spec{Instructions: "Another one."})
			servers["add"] = fake(t, mcptest.Spec{})
			h.config(t, servers, map[string]any{"structured_content": "never", "clients": map[string]any{}, "shutdown_grace": 7})
			p.follow(t, loadedAgain, func() { p.hangUp(t) })

			if got := pid("keep"); got != keep {
				t.Errorf("an unchanged server went from process %s to %s", keep, got)
			}
			if got := pid("change"); got == change {
				t.Errorf("a changed server kept its process %s", got)
			}
			pid("add")
			if m := c.answer(t, long); !strings.Contains(string(m.Result), "slept 1500 ms") {
				t.Errorf("the open call of an unchanged server: %s %s", m.Result, m.Error)
			}
			for _, test := range []struct{ server, tool, arguments, want string }{
				{"drop", "pid", `{}`, "SERVER_NOT_FOUND"},
				{"keep", "fail", `{"message":"x"}`, "TOOL_NOT_FOUND"},
				{"keep", "slow", `{"ms":60000}`, "TIMEOUT: no answer from keep.slow within 0.2 s"},
			} {
				if r := c.exec(t, test.server, test.tool, test.arguments); !r.IsError || !strings.Contains(r.text(t), test.want) || r.Structured != nil {
					t.Errorf("%s.%s: want %s and no structuredContent, got %s %s", test.server, test.tool, test.want, r.Content, r.Structured)
				}
			}
			mcptest.WaitFor(t, "list_changed", patience, func() bool { return len(c.notes("notifications/tools/list_changed")) > known })
			mcptest.WaitFor(t, "the texts", patience, func() bool {
				text := c.list(t)[0].Description
				return strings.Contains(text, "Server: keep - What is kept.") && strings.Contains(text, "Server: change - Another one.") &&
					strings.Contains(text, "Server: add") && !strings.Contains(text, "Server: drop")
			})
			if p.logged("take effect after a restart", "shutdown_grace") != 1 || p.logged(loadedAgain, "started", "[add change]", "stopped", "[change drop]") != 1 {
				t.Error("the log does not say what was done")
			}
		})
	}
}

// TestReload_Faulty: mcpx refuses a config file with faults, reports each fault with its position, and
// continues with the old config. It also does so if the file is missing or empty.
func TestReload_Faulty(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	servers := map[string]server{"keep": fake(t, mcptest.Spec{})}
	config := h.config(t, servers, nil)
	c, p := openOver(t, h, "stdio", "--config", config)
	before := c.exec(t, "keep", "pid", `{}`).text(t)
	for _, test := range []struct {
		name, content string
		want          []string
	}{
		{"faults", `{"mcpServers":{"keep":{"comand":"x"},"mcpx":{"command":"x"}},"startup_wait":"soon"}`,
			[]string{"mcpServers.keep.comand", "mcpServers.mcpx: the name", "startup_wait: must be"}},
		{"not JSON", "{\n\"mcpServers\": nonsense}", []string{"mcpx.json:2:"}},
		{"empty", "", []string{"mcpx.json:1:1"}},
		{"gone", "gone", []string{"config file not found"}},
	} {
		told := p.logged(refused)
		h.write(t, "mcpx.json", test.content)
		if test.content == "gone" {
			if err := os.Remove(config); err != nil {
				t.Fatal(err)
			}
		}
		p.follow(t, refused, func() { p.hangUp(t) })
		mcptest.WaitFor(t, "all faults of "+test.name, patience, func() bool {
			for _, want := range test.want {
				if p.logged(refused, want) == 0 {
					return false
				}
			}
			return true
		})
		if n := p.logged(refused) - told; n != len(test.want) {
			t.Errorf("%s: %d lines, want %d", test.name, n, len(test.want))
		}
		if got := c.exec(t, "keep", "pid", `{}`).text(t); got != before {
			t.Errorf("%s: process %s became %s", test.name, before, got)
		}
	}
	servers["add"] = fake(t, mcptest.Spec{})
	h.config(t, servers, nil)
	p.follow(t, loadedAgain, func() { p.hangUp(t) })
	c.exec(t, "add", "pid", `{}`)
	// A fault in the entry of one server affects only that server.
	servers["unset"] = server{"command": "${MCPX_NOT_SET}"}
	h.config(t, servers, nil)
	p.follow(t, loadedAgain, func() { p.hangUp(t) })
	checkFault(t, "a server at fault", c.exec(t, "unset", "x", `{}`), "SERVER_UNAVAILABLE", "MCPX_NOT_SET")
	if got := c.exec(t, "keep", "pid", `{}`).text(t); got != before {
		t.Errorf("process %s became %s", before, got)
	}
}

// TestReload_Watch: with --watch mcpx notices a change in whatever way an editor writes the file.
func TestReload_Watch(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	servers := map[string]server{"keep": fake(t, mcptest.Spec{})}
	config := h.config(t, servers, nil)
	c, p := openOver(t, h, "stdio", "--config", config, "serve", "--watch")
	before := c.exec(t, "keep", "pid", `{}`).text(t)
	content := func(names ...string) []byte {
		all := maps.Clone(servers)
		for _, name := range names {
			all[name] = servers["keep"]
		}
		data, err := json.Marshal(map[string]any{"mcpServers": all})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(path string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.follow(t, loadedAgain, func() { // a new file is renamed to the old name
		write(config+".new", content("renamed"))
		if err := os.Rename(config+".new", config); err != nil {
			t.Fatal(err)
		}
	})
	c.exec(t, "renamed", "pid", `{}`)
	p.follow(t, loadedAgain, func() { // the file is emptied, and written a moment later
		write(config, nil)
		p.hangUp(t) // makes mcpx read the file while it is empty
		timer := time.NewTimer(300 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		write(config, content("written"))
	})
	c.exec(t, "written", "pid", `{}`)
	if n := p.logged(refused); n != 0 {
		t.Errorf("%d lines about a file that was empty for a moment", n)
	}
	// If the file stays invalid, mcpx reports it once.
	p.follow(t, refused, func() { write(config, []byte(`{"mcpServers":`)) })
	// The same content again, or other bytes with the same meaning, are no change.
	p.follow(t, loadedAgain, func() { write(config, content("last")) })
	loaded := p.logged(loadedAgain)
	p.follow(t, "config file not found", func() {
		write(config, append(content("last"), "\n// a comment\n"...))
		timer := time.NewTimer(2 * time.Second) // enough for mcpx to check the file twice
		defer timer.Stop()
		<-timer.C
		if err := os.Remove(config); err != nil {
			t.Fatal(err)
		}
	})
	if n := p.logged(loadedAgain); n != loaded {
		t.Errorf("a comment loaded the file %d times", n-loaded)
	}
	if n := p.logged(refused); n != 2 {
		t.Errorf("%d lines about two faulty states", n)
	}
	if got := c.exec(t, "keep", "pid", `{}`).text(t); got != before {
		t.Errorf("process %s became %s", before, got)
	}
}

// TestReload_OpenCalls: when a server's config changes, its open calls end within the grace period, with a
// result or an error. Calls that arrive meanwhile go to the new process of the server.
func TestReload_OpenCalls(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	first := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, first)}, map[string]any{"shutdown_grace": 5})
	c, p := openOver(t, h, "stdio", "--config", config)
	old := c.exec(t, "fake", "pid", `{}`).text(t)
	short, endless := callExec(t, c, "fake", "slow", `{"ms":600}`), callExec(t, c, "fake", "slow", `{"ms":600000}`)
	mcptest.WaitFor(t, "the calls", patience, func() bool { return len(first.Log(t).Calls("slow")) == 2 })
	h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{Instructions: "second"})}, map[string]any{"shutdown_grace": 5})
	p.follow(t, loadedAgain, func() { p.hangUp(t) })
	began := time.Now()
	if got := c.exec(t, "fake", "pid", `{}`).text(t); got == old {
		t.Error("a new call went to the old process")
	}
	if m := c.answer(t, short); !strings.Contains(string(m.Result), "slept 600 ms") {
		t.Errorf("the short call: %s %s", m.Result, m.Error)
	}
	if m := c.answer(t, endless); !strings.Contains(string(m.Result), "CONNECTION_LOST") || !strings.Contains(string(m.Result), "mcpx stopped the server") {
		t.Errorf("the endless call: %s %s", m.Result, m.Error)
	}
	if took := time.Since(began); took > 5*time.Second+slack {
		t.Errorf("the old calls took %v", took)
	}
	checkGone(t, first)
}

// TestLimits_All: calls over the global limit wait. If they have waited too long, their error says how many calls are under
// way. A changed limit takes effect at once.
func TestLimits_All(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	busy := mcptest.Spec{}.WithFiles(t)
	servers := map[string]server{"busy": fake(t, busy), "other": fake(t, mcptest.Spec{})}
	servers["other"]["call_timeout"] = 3
	config := h.config(t, servers, map[string]any{"max_concurrency": 2})
	c, p := openOver(t, h, "stdio", "--config", config)
	c.exec(t, "other", "echo", `{"text":"up"}`)
	for range 2 {
		callExec(t, c, "busy", "slow", `{"ms":600000}`)
	}
	mcptest.WaitFor(t, "the calls", patience, func() bool { return len(busy.Log(t).Calls("slow")) == 2 })
	r := c.exec(t, "other", "echo", `{"text":"x"}`)
	checkFault(t, "a third call", r, "SERVER_UNAVAILABLE", "busy: 2 calls are under way")
	if !strings.Contains(string(r.Structured), `"reason":"busy: 2 calls are under way`) || !strings.Contains(string(r.Structured), `"retry_after":1`) {
		t.Errorf("got %s", r.Structured)
	}
	waiting := callExec(t, c, "busy", "echo", `{"text":"waited"}`)
	h.config(t, servers, map[string]any{"max_concurrency": 3})
	p.follow(t, loadedAgain, func() { p.hangUp(t) })
	if m := c.answer(t, waiting); !strings.Contains(string(m.Result), "waited") {
		t.Errorf("got %s %s", m.Result, m.Error)
	}
}

// TestReload_Secrets: a reload reads again the values of the variables and secrets that the config names.
func TestReload_Secrets(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	web := mcptest.Spec{}.HTTP(t)
	key := h.write(t, "key", "first")
	config := h.config(t, map[string]server{"web": {"url": web.URL, "headers": map[string]string{"X-Key": "${file:key}-${command:cat " + key + "}"}}}, nil)
	_, p := openOver(t, h, "stdio", "--config", config)
	has := func(want string) {
		t.Helper()
		mcptest.WaitFor(t, want, patience, func() bool {
			all := web.Log().Event(mcptest.EventHTTP)
			return len(all) > 0 && all[len(all)-1].Header.Get("X-Key") == want
		})
	}
	has("first-first")
	h.write(t, "key", "second")
	p.follow(t, loadedAgain, func() { p.hangUp(t) })
	has("second-second")
	if p.logged("these commands gave values", "commands=[cat]") != 2 || p.logged(key) > 0 || p.logged("second") > 0 {
		t.Errorf("the log:\n%s", p.stderr.String())
	}
}

// TestReload_SlowSecret: while the config is reloaded, a command that should print a secret hangs. mcpx can
// still shut down, and until then the server runs with its old settings.
func TestReload_SlowSecret(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	web := mcptest.Spec{}.HTTP(t)
	hang, hangs := filepath.Join(h.dir, "hang"), filepath.Join(h.dir, "hangs")
	script := h.write(t, "get", "[ -e "+hang+" ] || exec echo value\ntouch "+hangs+"\nexec sleep 600\n")
	config := h.config(t, map[string]server{"web": {"url": web.URL, "headers": map[string]string{"X-Key": "${command:sh " + script + "}"}}}, nil)
	c, p := openOver(t, h, "stdio", "--config", config)
	c.exec(t, "web", "echo", `{"text":"x"}`)
	h.write(t, "hang", "")
	p.hangUp(t)
	mcptest.WaitFor(t, "the command", patience, func() bool { _, err := os.Stat(hangs); return err == nil })
	if got := c.exec(t, "web", "echo", `{"text":"y"}`).text(t); got != "y" {
		t.Errorf("meanwhile: %s", got)
	}
	began := time.Now()
	terminate(p.cmd)
	<-p.exited
	if took := time.Since(began); took > slack || p.logged(loadedAgain) > 0 {
		t.Errorf("ended after %v:\n%s", took, p.stderr.String())
	}
}
