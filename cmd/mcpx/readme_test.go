package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// testsLine is the line in the README's blocks that TestReadme never runs, as it runs this test. The lines that build mcpx run
// with MCPX_FULL=1, since they compile it once more; otherwise mcpx is in the test's own PATH.
const testsLine = "go test ./..."

var buildLine = regexp.MustCompile(`^(go (run|install) .*\./cmd/mcpx|export PATH=.*go env GOPATH)`)

// commandBlocks returns the lines of the blocks of a document, without comments, and the blocks that are files of clients.
func commandBlocks(text string) (blocks [][]string, files []string) {
	comment := regexp.MustCompile(`\s{2,}#.*`)
	for _, block := range regexp.MustCompile(`(?m)(?:^ {4}.*\n)+`).FindAllString(text, -1) {
		block = regexp.MustCompile(`(?m)^ {4}`).ReplaceAllString(block, "")
		if strings.ContainsAny(block[:1], "{[") {
			files = append(files, block)
			continue
		}
		var lines []string
		for _, line := range strings.Split(strings.TrimSuffix(block, "\n"), "\n") {
			lines = append(lines, comment.ReplaceAllString(line, ""))
		}
		blocks = append(blocks, lines)
	}
	return blocks, files
}

// TestReadme runs the README from its first block to its last, in a fresh home: each line of a shell, and what each client's
// file starts. The registry, GitHub, npx and the command of Claude Code are fakes.
func TestReadme(t *testing.T) {
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("the lines are those of a shell")
	}
	h := newHome(t)
	withRegistry(t, h)
	withNpx(t, h, filepath.Join(h.dir, "ran"))
	replaced := h.programs(t)
	h.write(t, "Documents/a", "")
	h.extra = append(h.extra, "MCPX_YES=1", "GITHUB_TOKEN=secret")
	here := strings.NewReplacer(replaced...)
	blocks, files := commandBlocks(readFile(t, "../../README.md"))
	translated, _ := commandBlocks(readFile(t, "../../README.zh-CN.md"))
	if got, want := slices.Concat(translated...), slices.Concat(blocks...); !slices.Equal(got, want) {
		t.Errorf("README.zh-CN.md has the lines\n%s\nREADME.md\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	cursor := ""
	for _, lines := range blocks {
		var script []string
		for _, line := range lines {
			switch {
			case line == testsLine, !mcptest.Full && buildLine.MatchString(line) && !strings.HasPrefix(line, "go run"):
			case buildLine.MatchString(line), regexp.MustCompile(`^(TOKEN=\$\()?(mcpx|claude) `).MatchString(line):
				script = append(script, here.Replace(line))
			case strings.HasPrefix(lines[0], "[mcp_servers."):
				files = append(files, strings.Join(lines, "\n"))
			default:
				t.Errorf("%q is not run", line)
			}
		}
		if slices.Contains(script, "mcpx init") { // where there are clients with servers
			cursor = `{"mcpServers": {"fake": ` + fakeEntry(t) + "}}\n"
			h.write(t, ".cursor/mcp.json", cursor)
		}
		h.shell(t, strings.Join(script, "\n"))
		if i := slices.IndexFunc(script, func(line string) bool { return strings.HasPrefix(line, "export PATH=") }); i >= 0 {
			h.extra = append(h.extra, "PATH="+filepath.Join(h.dir, "bin")+":"+os.Getenv("PATH")+":"+
				filepath.Join(h.dir, "go", "bin")) // the profile of the shell
		}
	}
	if got := readFile(t, filepath.Join(h.dir, ".cursor/mcp.json")); got != cursor {
		t.Errorf("after disconnect: %s", got)
	}
	started := regexp.MustCompile(`"?command"? ?[:=] "mcpx",?\s*"?args"? ?[:=] (\[.*?\])`)
	tried := map[string]bool{}
	for _, file := range files {
		if args := started.FindStringSubmatch(file); args == nil { // a config of mcpx
			h.write(t, "sample.json", here.Replace(file))
			h.must(t, 0, "check", "--config", filepath.Join(h.dir, "sample.json"))
		} else if !tried[args[1]] {
			tried[args[1]] = true
			var words []string
			if err := json.Unmarshal([]byte(here.Replace(args[1])), &words); err != nil {
				t.Error(err)
			}
			h.greets(t, words)
		}
	}
	if len(tried) == 0 {
		t.Error("no client's file starts mcpx")
	}
}

// programs makes the programs that the lines of the README run. It returns what to replace in these lines, in pairs for
// strings.NewReplacer. With MCPX_FULL=1 mcpx is not there before the README builds it.
func (h *home) programs(t *testing.T) (replaced []string) {
	t.Helper()
	programs := map[string]string{"claude": `printf '%s\n' "$@" >` + h.dir + `/claude`}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	replaced = []string{"https://api.githubcopilot.com/mcp/", mcptest.Spec{}.HTTP(t).URL, "/path/to/config.json", h.own(),
		"127.0.0.1:8080 &", "127.0.0.1:0 & pid=$!"}
	if mcptest.Full {
		for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // keep this user's caches, although the commands have a new home
			out, err := exec.Command("go", "env", name).Output()
			if err != nil {
				t.Fatal(err)
			}
			h.extra = append(h.extra, name+"="+strings.TrimSpace(string(out)))
		}
		replaced = append(replaced, "go run ./", "go -C "+root+" run ./", "go install ", "go -C "+root+" install ")
	} else {
		programs["mcpx"] = `exec ` + binary(t) + ` "$@"`
		replaced = append(replaced, "go run ./cmd/mcpx", "mcpx")
	}
	for name, script := range programs {
		if err := os.Chmod(h.write(t, "bin/"+name, "#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return replaced
}

// greets checks that mcpx answers a client over stdio.
func (h *home) greets(t *testing.T, args []string) {
	t.Helper()
	out, stderr, code := h.run(t, greeting+"\n", args...)
	if code != 0 || !strings.Contains(out, `"serverInfo":{"name":"mcpx"`) {
		t.Errorf("mcpx %q: exit %d\n%s%s", args, code, out, stderr)
	}
}

const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// shell runs a block of the README. If the block told Claude Code about mcpx, it connects as Claude Code would.
func (h *home) shell(t *testing.T, script string) {
	t.Helper()
	script += "\nread -r _ || [ -z \"${pid-}\" ] || { kill $pid; wait $pid; }\n"
	cmd := exec.Command("sh", "-euc", script)
	cmd.Env, cmd.Dir = h.env(), h.dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = into, into
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	into.Close()
	defer said.Close()
	var all strings.Builder
	lines := bufio.NewScanner(said)
	if strings.Contains(script, "pid=$!") {
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			if address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); address != "" {
				h.calls(t, address)
				break
			}
		}
	}
	in.Close()
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, all.String())
	}
	told := filepath.Join(h.dir, "claude")
	if words, err := os.ReadFile(told); err == nil {
		if _, command, ok := strings.Cut(string(words), "\n--\nmcpx\n"); ok {
			h.greets(t, strings.Fields(command))
		}
		_ = os.Remove(told)
	}
}

// calls sends a message to mcpx at an address, first without and then with the header that the README gives to Claude Code.
// Without the header, mcpx must refuse the message.
func (h *home) calls(t *testing.T, address string) {
	t.Helper()
	for _, want := range []int{http.StatusUnauthorized, http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/mcp", strings.NewReader(greeting))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if want == http.StatusOK {
			words := strings.Split(readFile(t, filepath.Join(h.dir, "claude")), "\n")
			name, value, _ := strings.Cut(words[slices.Index(words, "--header")+1], ": ")
			request.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s", response.Status, body)
		}
	}
}
