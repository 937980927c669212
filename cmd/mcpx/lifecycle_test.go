package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// slack is how much longer than designed something may take, because the machine may be busy. Things for which
// mcpx must not wait take longer than slack.
const slack = time.Minute

// stubborn is an upstream server that ignores TERM and the end of its input, and that has a child process.
func stubborn(t *testing.T) mcptest.Spec {
	return mcptest.Spec{IgnoreTERM: true, IgnoreEOF: true, ForkGrandchild: true, GrandchildHoldsPipes: true}.WithFiles(t)
}

// checkGone waits until all processes of these upstream servers have ended.
func checkGone(t *testing.T, specs ...mcptest.Spec) {
	t.Helper()
	for _, spec := range specs {
		pids := spec.Pids(t)
		if len(pids) == 0 {
			t.Error("the upstream was never started")
		}
		for _, process := range pids {
			mcptest.WaitFor(t, fmt.Sprintf("the end of %s %d", process.Role, process.PID), patience, func() bool {
				return !mcptest.Alive(process.PID)
			})
		}
	}
}

// TestStdio_EOF: after the end of its input mcpx delivers the answers of open calls, but does not wait for calls that never
// end. Then mcpx and all processes of servers end. On a busy machine that may take until slack; TestStdio_InputEnds of package
// front has the times that mcpx itself allows.
func TestStdio_EOF(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	quiet, hard := mcptest.Spec{}.WithFiles(t), stubborn(t)
	config := h.config(t, map[string]server{"quiet": fake(t, quiet), "hard": fake(t, hard)}, nil)
	for _, test := range []struct {
		name  string
		calls [][3]string // server, tool, arguments
		want  []string    // a piece of each answer, by call
	}{
		{"nothing open", nil, nil},
		{"short calls", [][3]string{{"quiet", "slow", `{"ms":2}`}, {"hard", "slow", `{"ms":1}`}}, []string{"slept 2 ms", "slept 1 ms"}},
		{"a call without end", [][3]string{{"quiet", "slow", `{"ms":1}`}, {"hard", "slow", `{"ms":600000}`}}, []string{"slept 1 ms", "error"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := h.serveStdio(t, "--config", config)
			c := &client{peer: p, era: legacy, name: "e2e"}
			c.open(t)
			for _, name := range []string{"quiet", "hard"} {
				if r := c.exec(t, name, "echo", `{"text":"up"}`); r.text(t) != "up" {
					t.Fatalf("got %s", r.Content)
				}
			}
			var ids []string
			for _, call := range test.calls {
				ids = append(ids, c.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs(call[0], call[1], call[2])+`}`, ""))
			}
			began := time.Now()
			p.stdin.Close()
			p.wait(t)
			if took := time.Since(began); took > slack {
				t.Errorf("mcpx needed %v to end", took)
			} else {
				t.Logf("ended after %v", took)
			}
			for i, id := range ids {
				if m := c.answer(t, id); !strings.Contains(string(m.Result)+`"error":`+string(m.Error), test.want[i]) {
					t.Errorf("call %d: no %q in %s %s", i, test.want[i], m.Result, m.Error)
				}
			}
			if code := p.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit %d", code)
			}
			checkGone(t, quiet, hard)
		})
	}
}

// TestSignal_Ends: TERM ends mcpx within its grace period, KILL ends it at once. In both cases no process that
// mcpx has started is left.
func TestSignal_Ends(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals on Windows")
	}
	mcptest.Parallel(t)
	for _, over := range []string{"stdio", "http"} {
		for _, signal := range []string{"TERM", "KILL"} {
			t.Run(over+" "+signal, func(t *testing.T) {
				mcptest.Parallel(t)
				h := newHome(t)
				quiet, hard := mcptest.Spec{ForkGrandchild: true}.WithFiles(t), stubborn(t)
				config := h.config(t, map[string]server{"quiet": fake(t, quiet), "hard": fake(t, hard)}, nil)
				c, p := serveOver(t, h, over, legacy, "--config", config)
				c.open(t)
				c.exec(t, "quiet", "echo", `{"text":"up"}`)
				c.exec(t, "hard", "echo", `{"text":"up"}`)
				c.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs("hard", "slow", `{"ms":600000}`)+`}`, "")
				mcptest.WaitFor(t, "the call", patience, func() bool { return len(hard.Log(t).Calls("slow")) > 0 })
				began := time.Now()
				if signal == "TERM" {
					terminate(p.cmd)
				} else if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				p.wait(t)
				if took := time.Since(began); took > 5*time.Second+slack {
					t.Errorf("mcpx needed %v to end", took)
				}
				checkGone(t, quiet, hard)
			})
		}
	}
}

// TestStdio_IDs: each answer has the id exactly as the client wrote it. The ids that mcpx itself sends are
// integers that every client and server can represent, whatever ids it received.
func TestStdio_IDs(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	p := h.serveStdio(t, "--config", config)
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	for _, id := range []string{
		`9007199254740993`, `123456789012345678901234567890`, `-17`, `"a string"`, `"7"`, `"\u00e9\n<&>"`, `0`, `""`, `1.50`,
	} {
		for _, method := range []string{
			`"method":"ping"`, `"method":"tools/list"`, `"method":"no/such"`,
			`"method":"tools/call","params":{"name":"exec","arguments":` + execArgs("fake", "echo", `{"text":"x"}`) + `}`,
			`"method":"tools/call","params":{"name":"nonsense"}`,
		} {
			before := len(p.answers())
			p.send(t, `{"jsonrpc":"2.0","id":`+id+`,`+method+`}`)
			mcptest.WaitFor(t, "an answer", patience, func() bool { return len(p.answers()) > before })
			if got := string(p.answers()[before].ID); got != id {
				t.Errorf("%s: id %s came back as %s", method, id, got)
			}
		}
	}
	calls := spec.Log(t).Calls("echo")
	for _, call := range calls {
		if id, err := strconv.ParseInt(string(call.ID), 10, 64); err != nil || id < 0 || id >= 1<<53 {
			t.Errorf("the upstream was asked with id %s", call.ID)
		}
	}
	if len(calls) == 0 {
		t.Error("the upstream was not asked: the test shows nothing")
	}
	p.mu.Lock()
	p.unwanted = nil // the test has used the same ids again on purpose, which is not an error
	p.mu.Unlock()
}

// answers returns all responses received so far, in order. It leaves out notifications.
func (b *inbox) answers() []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.all), func(m message) bool { return m.Method != "" })
}

// TestStdio_ContentLength: mcpx also answers a client that sends Content-Length headers before its messages.
func TestStdio_ContentLength(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	frame := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	cmd := h.command(t, "serve", "--demo")
	cmd.Stdin = strings.NewReader(
		frame(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+legacy+`","capabilities":{},"clientInfo":{"name":"framed","version":"1"}}}`) +
			frame(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) +
			frame("{\n\"jsonrpc\":\"2.0\",\n\"id\":2,\"method\":\"tools/list\"}"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]json.RawMessage)
	for len(out) > 0 {
		head, rest, ok := bytes.Cut(out, []byte("\r\n\r\n"))
		var n int
		if _, err := fmt.Sscanf(string(head), "Content-Length: %d", &n); err != nil || !ok || n > len(rest) {
			t.Fatalf("not framed: %.200q (%v)", out, err)
		}
		var m message
		if err := json.Unmarshal(rest[:n], &m); err != nil {
			t.Fatal(err)
		}
		got[string(m.ID)], out = m.Result, rest[n:]
	}
	if got["1"] == nil || !strings.Contains(string(got["2"]), `"inspect"`) {
		t.Errorf("got %v", got)
	}
}

// TestStdio_Noise: whatever upstream servers write, and however much mcpx logs, stdout has only messages
// (serveStdio checks each line).
func TestStdio_Noise(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{
		"noisy":  fake(t, mcptest.Spec{Noise: true, StderrFlood: 1 << 20, StderrLines: []string{"{\"jsonrpc\":\"2.0\"}"}, ListChangedStorm: 200, UnknownIDs: true}),
		"framed": fake(t, mcptest.Spec{ContentLength: true, AnyFraming: true}),
		"dying":  fake(t, mcptest.Spec{ExitAtOnce: true, StderrLines: []string{"goodbye"}}),
	}, map[string]any{"log_level": "debug"})
	p := h.serveStdio(t, "--config", config)
	c := &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	c.list(t)
	for _, name := range []string{"noisy", "framed"} {
		if r := c.exec(t, name, "echo", `{"text":"through the noise"}`); r.text(t) != "through the noise" {
			t.Errorf("%s: %s", name, r.Content)
		}
	}
	if !strings.Contains(p.stderr.String(), "level=DEBUG") {
		t.Error("no debug log: the test shows nothing")
	}
}
