package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// TestMemory: one client fills the store of long results several times over. The resident memory of mcpx
// always stays under its limit, and calls by another client work.
func TestMemory(t *testing.T) {
	mcptest.Parallel(t)
	if mcptest.Race {
		t.Skip("the race detector keeps memory of its own")
	}
	const memory = 160e6
	h := newHome(t)
	d := h.serveHTTP(t, "--config", h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"memory": "160MB"}))
	var filling sync.WaitGroup
	for range 4 {
		c := &client{peer: d.peer(t), era: modern, name: "hostile"}
		c.open(t)
		filling.Go(func() {
			for n := range 100 {
				c.exec(t, "fake", "big", fmt.Sprintf(`{"bytes":%d}`, 200_000+n))
				c.exec(t, "fake", "table", `{"rows":2000}`)
			}
		})
	}
	filling.Wait()
	other := &client{peer: d.peer(t), era: modern, name: "other"}
	other.open(t)
	if got := other.exec(t, "fake", "echo", `{"text":"x"}`).text(t); got != "x" {
		t.Errorf("another client: %s", got)
	}
	peak := peakMemory(t, d.cmd.Process.Pid)
	t.Logf("at most %d MB", peak/1_000_000)
	if peak > memory {
		t.Errorf("mcpx took %d MB, its limit is %d", peak/1_000_000, int(memory/1e6))
	}
}

// TestMemory_Programs: hostile programs hardly make mcpx itself grow, and calls by another client work beside them. The aim is 10
// MB, but the test allows more, because it depends on the garbage collector when memory is freed. Large results are not tested
// here: they need as much memory as large results of other tools.
func TestMemory_Programs(t *testing.T) {
	mcptest.Parallel(t)
	if mcptest.Race {
		t.Skip("the race detector keeps memory of its own")
	}
	h := newHome(t)
	d := h.serveHTTP(t, "--config", h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil))
	greedy, other := &client{peer: d.peer(t), era: modern, name: "hostile"}, &client{peer: d.peer(t), era: modern, name: "other"}
	greedy.open(t)
	other.open(t)
	run := func(code string) toolResult {
		arguments, _ := json.Marshal(map[string]any{"code": code, "timeout": 0.5})
		return greedy.exec(t, "mcpx", "run", string(arguments))
	}
	run("return 1")
	before := peakMemory(t, d.cmd.Process.Pid)
	for range 2 {
		for _, code := range []string{
			`for (;;) {}`, `for (;;) console.log("a")`, `const s = "a".repeat(1e5); for (;;) console.log(s)`, `const a = []; for (;;) a.push({})`,
			`return "a".repeat(2e6)`, `await call("fake", "echo", {text: "a".repeat(2e6)})`, `for (;;) try { await call("fake", "none") } catch (e) {}`,
			`await Promise.all(Array.from({length: 100}, () => call("fake", "slow", {ms: 60000})))`,
		} {
			run(code)
			if got := other.exec(t, "fake", "echo", `{"text":"x"}`).text(t); got != "x" {
				t.Errorf("another client: %s", got)
			}
		}
	}
	peak := peakMemory(t, d.cmd.Process.Pid)
	t.Logf("%d MB before, at most %d MB after", before/1_000_000, peak/1_000_000)
	if peak > before+25e6 {
		t.Errorf("mcpx grew from %d to %d MB", before/1_000_000, peak/1_000_000)
	}
}

// peakMemory returns the highest resident memory of a process so far, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	peak, _ := strconv.Atoi(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(status))[1])
	return peak * 1024
}
