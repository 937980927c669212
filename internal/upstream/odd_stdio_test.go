package upstream

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

// awkward is a server in a shell. It records each start in a file, and exits when it reads a line that is not
// JSON, as servers do that parse each line. body is a script that it runs for each message; $n is the number of
// the start.
func awkward(t *testing.T, body string) (Spec, func() int) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	starts := filepath.Join(t.TempDir(), "starts")
	script := `echo start >>"$1"; n=$(grep -c start "$1")
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
	case $line in
	'{'*) ;;
	*) echo "unparsable line" >&2; exit 3 ;;
	esac
	id=$(expr "$line" : '.*"id":\([0-9]*\)')
	` + body + `
	case $line in
	*'"initialize"'*) answer '{"protocolVersion":"2025-06-18"}' ;;
	*'"tools/list"'*) answer '{"tools":[]}' ;;
	esac
done`
	spec := Spec{Options: transport.Options{Name: "awkward", Type: transport.Stdio, Launch: transport.Launch{Command: shell, Args: []string{"-c", script, "sh", starts}, Env: os.Environ()}}, Era: EraLegacy, Timeouts: Timeouts{Connect: childSilence}}
	return spec, func() int {
		data, _ := os.ReadFile(starts)
		return strings.Count(string(data), "\n")
	}
}

// TestFramingAfterSlowStart: after one slow start, mcpx does not take a server for one that uses Content-Length
// headers.
func TestFramingAfterSlowStart(t *testing.T) {
	mcptest.Parallel(t)
	tests := []struct {
		name, body string
		starts     int
	}{
		// The second attempt uses headers, and the server exits at once. The third attempt uses lines again.
		{"all of it", `[ "$n" -eq 1 ] && continue`, 3},
		// The server has answered in lines, so mcpx does not try headers.
		{"only the list", `case "$n$line" in 1*'"tools/list"'*) continue ;; esac`, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Parallel(t)
			spec, starts := awkward(t, tt.body)
			ready(t, spec)
			if n := starts(); n < tt.starts { // there may be more starts if the machine is slow
				t.Errorf("%d starts, want %d", n, tt.starts)
			}
		})
	}
}

// TestLastWords: the reason quotes the last output of a child, however long earlier lines are, and also text on
// stdout.
func TestLastWords(t *testing.T) {
	mcptest.Parallel(t)
	long := strings.Repeat("at frame ", 200)
	tests := []struct {
		name  string
		fake  mcptest.Spec
		parts []string
	}{
		{"long line before", mcptest.Spec{ExitAtOnce: true, ExitCode: 3, StderrLines: []string{long, "FATAL: API key is missing"}}, []string{"FATAL: API key is missing (the process ended: exit status 3)"}},
		{"long lines", mcptest.Spec{ExitAtOnce: true, ExitCode: 3, StderrLines: []string{long, long + "panic: missing token"}}, []string{"exit status 3; stderr: ...", "panic: missing token"}},
		{"silent", mcptest.Spec{NeverInit: true, StderrLines: []string{long, "waiting for a login"}}, []string{"no answer to initialize", "waiting for a login"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Parallel(t)
			spec := stdio(t, tt.fake)
			if tt.fake.NeverInit {
				spec.Timeouts.Connect = childSilence
			}
			status := awaitState(t, connect(t, spec), catalog.Unavailable)
			contains(t, "reason", status.Reason, tt.parts...)
		})
	}
	t.Run("text on stdout", func(t *testing.T) {
		mcptest.Parallel(t)
		shell, err := exec.LookPath("sh")
		if err != nil {
			t.Skip("no shell")
		}
		status := awaitState(t, connect(t, Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: shell, Args: []string{"-c", "echo please log in first; cat >/dev/null"}, Env: os.Environ()}}, Timeouts: Timeouts{Connect: childSilence}}), catalog.Unavailable)
		contains(t, "reason", status.Reason, "no answer to initialize", "stdout has text instead of messages: please log in first")

		status = awaitState(t, connect(t, Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: shell, Args: []string{"-c", "echo no token, set TOKEN; exit 4"}, Env: os.Environ()}}}), catalog.Unavailable)
		contains(t, "reason", status.Reason, "exit status 4; stdout has text instead of messages: no token, set TOKEN")
	})
}
