package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Missing ends a test because a program or package that it needs is not installed: it skips the test or, if MCPX_REQUIRE_NPM is
// set, fails it.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("MCPX_REQUIRE_NPM") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Node returns the command that runs node with these arguments in the folder testdata/npm. If node, or the npm package called
// needs, is not installed, the test ends as Missing says.
func Node(t testing.TB, needs string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("node")
	dir := filepath.Join(moduleRoot(t), "testdata", "npm")
	if err == nil && needs != "" {
		_, err = os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(needs)))
	}
	if err != nil {
		Missing(t, "node, or a package of testdata/npm, is not installed (npm ci there): %v", err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	return cmd
}

// Answers runs a command that answers each question with a line. It writes the questions to the command's input, each as a line
// of JSON, and returns the answers, decoded from JSON.
func Answers[Answer, Question any](t testing.TB, cmd *exec.Cmd, questions []Question) (answers []Answer) {
	t.Helper()
	var in bytes.Buffer
	for _, question := range questions {
		line, err := json.Marshal(question)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %q: %v", cmd.Args, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var answer Answer
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatalf("%q answers %.300s: %v", cmd.Args, lines.Text(), err)
		}
		answers = append(answers, answer)
	}
	if err := lines.Err(); err != nil || len(answers) != len(questions) {
		t.Fatalf("%q: %d answers to %d questions, %v", cmd.Args, len(answers), len(questions), err)
	}
	return answers
}
