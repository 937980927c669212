package main

import (
	"testing"

	"mcpx/internal/mcptest"
)

// TestEmpty: the error for an empty config names two commands, and both fill the file.
func TestEmpty(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	for name, rest := range map[string][]string{"init": {"--yes"}, "add": {"one", "--", "no-such-program"}} {
		file := h.write(t, "my files/"+name+".json", "")
		c := &cli{Config: file}
		hasAll(t, h.must(t, exitConfig, "check", "--config", file), "the file is empty",
			c.hint("init")+"; or", c.hint("add", "NAME", "--", "COMMAND")+"\n")
		// Without a terminal mcpx init says that it has to be asked, and not that the file is empty.
		hasAll(t, h.must(t, exitFailed, "init", "--config", file, "--no-check"), "there is no terminal to ask at", "mcpx init --yes")
		if got := readFile(t, file); got != "" {
			t.Errorf("got %q", got)
		}
		h.must(t, 0, append([]string{name, "--config", file, "--no-check"}, rest...)...)
		hasAll(t, readFile(t, file), "mcpServers")
	}
}
