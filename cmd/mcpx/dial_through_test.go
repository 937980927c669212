package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// dialHome starts mcpx dial in a home, and ends it with the test. It returns what the command prints.
func dialHome(t testing.TB, h *home, hosted *hosted, name string, args ...string) *lockedBuffer {
	t.Helper()
	to := strings.Replace(hosted.site(), "http:", "ws:", 1) + "/dial/" + name
	process := h.command(t, append([]string{"--config", filepath.Join(h.dir, "mcpx.json"), "dial", to}, args...)...)
	said := &lockedBuffer{}
	process.Stderr = said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(os.Interrupt)
		_ = process.Wait()
		if t.Failed() {
			t.Logf("mcpx dial says:\n%s", said.String())
		}
	})
	mcptest.WaitFor(t, "mcpx dial connects", patience, func() bool { return strings.Contains(said.String(), "connected to ") })
	return said
}

// dialledName waits until a hosted mcpx without auth has a server that dialled in under a name, and returns the name that it
// has there.
func dialledName(t testing.TB, hosted *hosted, name string) (served string) {
	t.Helper()
	mcptest.WaitFor(t, name+" is served", patience, func() bool {
		_, listed := fetch(t, "GET", hosted.site()+"/api/dialled", "")
		var all struct {
			Servers []struct {
				Name, State string
				Tools       []string
			}
		}
		_ = json.Unmarshal([]byte(listed), &all)
		for _, s := range all.Servers {
			if strings.HasPrefix(s.Name, name+"-") && strings.HasPrefix(s.State, "dialled in") && len(s.Tools) > 0 {
				served = s.Name
			}
		}
		return served != ""
	})
	return served
}

// dialAll is a config that lets everybody dial in.
var dialAll = map[string]any{"allow": []any{map[string]any{"names": []string{"*"}}}}

// TestDial_Through: if mcpx dial offers one server, its tools keep their names and texts. If it offers several servers, their
// tools are as in the view tools. Progress, cancellations and long results come through. A message that exceeds the limit of
// either end is refused with a clear error.
func TestDial_Through(t *testing.T) {
	mcptest.Parallel(t)
	host, device := newHome(t), newHome(t)
	hosted := host.serveHTTP(t, "--config", host.config(t, map[string]server{}, map[string]any{"dial": dialAll, "max_message_bytes": 3 << 20}))
	log := mcptest.Spec{}.WithFiles(t)
	device.config(t, map[string]server{"alpha": fake(t, log), "beta": fake(t, mcptest.Spec{})}, map[string]any{"max_message_bytes": 1 << 20})
	said := dialHome(t, device, hosted, "one", "alpha")
	one, both := dialledName(t, hosted, "one"), ""
	dialHome(t, device, hosted, "both")
	both = dialledName(t, hosted, "both")
	if lines := said.String(); !regexp.MustCompile(`^mcpx: offers alpha: \d+ tools\nmcpx: connected to 127\.0\.0\.1:\d+\n$`).MatchString(lines) {
		t.Errorf("it says %q", lines)
	}
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			c := &client{peer: hosted.peer(t), era: era, name: "e2e"}
			c.open(t)
			if r := c.exec(t, one, "echo", `{"text":"hello"}`); r.text(t) != "hello" {
				t.Errorf("one: %s", r.Content)
			}
			for _, name := range []string{"alpha__echo", "beta__echo"} {
				if r := c.exec(t, both, name, `{"text":"hello"}`); r.text(t) != "hello" {
					t.Errorf("%s: %s", name, r.Content)
				}
			}
			if r := c.exec(t, one, "big", `{"bytes":900000}`); !strings.Contains(r.text(t), "900,000") && len(r.text(t)) < 10_000 {
				t.Errorf("a long result: %.300s", r.Content)
			}
			c.listen(t)
			id := c.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs(one, "progress", `{"steps":3}`)+`}`, `"progressToken":"p1"`)
			c.answer(t, id)
			if n := len(c.notes("notifications/progress")); n == 0 {
				t.Error("no progress")
			}
			for way, r := range map[string]toolResult{
				"at the hosted end": c.exec(t, one, "big", `{"bytes":4000000}`), "at the device": c.exec(t, one, "echo", `{"text":"`+strings.Repeat("x", 2<<20)+`"}`),
			} {
				if text := fmt.Sprintf("%s", r.Content); !r.IsError || !strings.Contains(text, "limit") || !strings.Contains(text, "bytes") {
					t.Errorf("a large message %s: %.300s", way, text)
				}
			}
			if r := c.exec(t, one, "echo", `{"text":"after"}`); r.text(t) != "after" {
				t.Errorf("after the large messages: %s", r.Content)
			}
		})
	}
	if lines := said.String(); !strings.Contains(lines, "a message of the hosted mcpx was refused: it is over the limit of 1048576 bytes (max_message_bytes)") {
		t.Errorf("it says %q", lines)
	}
	t.Run("cancellation", func(t *testing.T) { cancelThrough(t, hosted, one, log) })
}

// cancelThrough cancels a call at the hosted end, and waits until the server at the device learns it.
func cancelThrough(t *testing.T, hosted *hosted, one string, log mcptest.Spec) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := visitAt(t, hosted)
	ended := make(chan string, 1)
	go func() { ended <- v.ask(hosted, execute(7, one, "slow", `{"while":"`+file+`"}`)) }() // ends with the cancellation
	has := func(event, text string) func() bool {
		return func() bool {
			return slices.ContainsFunc(log.Log(t), func(one mcptest.Entry) bool {
				return one.Event == event && strings.Contains(one.Tool+string(one.Message), text)
			})
		}
	}
	mcptest.WaitFor(t, "the call", patience, has(mcptest.EventCall, "slow"))
	v.ask(hosted, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	<-ended
	mcptest.WaitFor(t, "the cancellation at the device", patience, has(mcptest.EventCancel, ""))
}

// TestDial_Conformance: the conformance suite gives the same results, for both revisions, for a server that has dialled in as for
// a server that mcpx starts.
func TestDial_Conformance(t *testing.T) {
	if !mcptest.Full {
		t.Skip("takes a minute: MCPX_FULL=1")
	}
	s := findSuite(t)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			protocol := "auto"
			if revision == revisions[1] {
				protocol = "modern"
			}
			host, device := newHome(t), newHome(t)
			hosted := host.serveHTTP(t, "--config", host.config(t, map[string]server{}, map[string]any{"dial": dialAll}))
			device.config(t, map[string]server{
				"suite": {"command": s.node, "args": []string{filepath.Join(s.dir, "server.mjs")}, "protocol": protocol},
			}, nil)
			dialHome(t, device, hosted, "suite", "suite")
			url := hosted.url + "/servers/" + dialledName(t, hosted, "suite")
			s.run(t, newHome(t), fmt.Sprintf("expected/server-tools-%s.yml", revision), "server", "--url", url, "--requirements", revision)
		})
	}
}
