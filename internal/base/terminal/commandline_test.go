package terminal

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestCommandLine: a shell reads the words as they were, and words that need no quotes have none.
func TestCommandLine(t *testing.T) {
	if got := CommandLine("mcpx", "check", "--set", "A=…", "/home/me/mcp.json"); got != "mcpx check --set A=… /home/me/mcp.json" {
		t.Errorf("got %s", got)
	}
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	words := []string{"a b", "it's", `"x"`, "$HOME", "`id`", "", "#x", "~", "*", "[a]", "{a,b}", "a\nb", `\`, "!x", "a;b&c|d<e>f(g)?", "\t"}
	out, err := exec.Command("sh", "-c", `printf '%s\0' `+CommandLine(words...)).Output()
	if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
		t.Errorf("%v: got %q, want %q", err, out, want)
	}
}
