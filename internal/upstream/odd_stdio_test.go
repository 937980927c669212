package upstream

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
