package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// outputPipe returns a pipe for an output of a child process. The test must close the child's end once the
// child runs; the other end is closed when the test ends.
func outputPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		read.Close()
		write.Close()
	})
	return read, write
}

// TestServe_Stderr: a client that never reads stderr, or has closed it, still gets its answers, and mcpx ends
// when its input ends.
func TestServe_Stderr(t *testing.T) {
	mcptest.Parallel(t)
	for _, closed := range []bool{false, true} {
		t.Run(map[bool]string{false: "never read", true: "closed"}[closed], func(t *testing.T) {
			h := newHome(t)
			// mcpx logs at this level what a server writes to stderr. Here it is more than fits in any pipe.
			config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{StderrFlood: 4 << 20})}, nil)
			read, write := outputPipe(t)
			cmd := h.command(t, "--log-level", "debug", "--config", config)
			cmd.Stderr = write
			p := startStdio(t, cmd)
			write.Close()
			if closed {
				read.Close()
			}
			c := &client{peer: p, era: legacy, name: "e2e"}
			c.open(t)
			for range 20 {
				c.exec(t, "fake", "echo", `{"text":"here"}`)
			}
			p.stdin.Close()
			p.wait(t)
			if code := p.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestServe_HTTPEnds: if serving over HTTP ends with an error, the error is written to stderr as soon as somebody reads stderr.
func TestServe_HTTPEnds(t *testing.T) {
	mcptest.Parallel(t)
	read, write := io.Pipe() // a write blocks until the test reads
	stderr := newDroppingWriter(write)
	s := streams{out: io.Discard, err: stderr}
	cmd := &serveCommand{Demo: true}
	a, log, _, err := cmd.assemble(t.Context(), &cli{}, s)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := a.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	code := report(write, cmd.serveHTTP(t.Context(), a, log, s, listener))
	go func() { // the goroutine ends when everything has been read
		stderr.close()
		<-stderr.ended
		write.Close()
	}()
	text, err := io.ReadAll(read)
	if code != exitFailed || err != nil || !strings.Contains(string(text), "serving over HTTP ended") {
		t.Errorf("exit code %d, %v; stderr: %s", code, err, text)
	}
}

// TestServe_StdoutGone: if a client has closed its end of stdout, mcpx ends even if stdin is still open, and
// so do the processes that it has started.
func TestServe_StdoutGone(t *testing.T) {
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("the test's pipes are those of Unix")
	}
	h := newHome(t)
	quiet := mcptest.Spec{ForkGrandchild: true}.WithFiles(t)
	config := h.config(t, map[string]server{"quiet": fake(t, quiet)}, nil)
	read, write := outputPipe(t)
	cmd := h.command(t, "--config", config)
	cmd.Stdout = write
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // the goroutine ends with the process
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(read)
	ask := func(message string) {
		if _, err := io.WriteString(stdin, message+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`)
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":` + execArgs("quiet", "echo", `{"text":"up"}`) + `}}`)
	for lines.Scan() && !strings.Contains(lines.Text(), `"id":2`) {
	}
	read.Close()
	// mcpx may have ended already because of a notification; then this message is not read.
	_, _ = io.WriteString(stdin, `{"jsonrpc":"2.0","id":3,"method":"ping"}`+"\n")
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("exit code %d; stderr: %s", code, stderr.String())
	}
	checkGone(t, quiet)
}

// TestDroppingWriter: if the output is read, a burst of lines arrives completely. If it is not read, whole
// lines are dropped and counted.
func TestDroppingWriter(t *testing.T) {
	mcptest.Parallel(t)
	const lines = 3 * stderrBytes / 100
	line := strings.Repeat("x", 99) + "\n"
	burst := &lockedBuffer{}
	d := newDroppingWriter(burst)
	for range stderrBytes / 100 {
		d.Write([]byte(line))
	}
	d.close()
	<-d.ended
	if got := strings.Count(burst.String(), line); got != stderrBytes/100 {
		t.Errorf("%d of %d lines of a burst", got, stderrBytes/100)
	}
	read, write := io.Pipe()
	d = newDroppingWriter(write)
	for range lines {
		d.Write([]byte(line))
	}
	go func() { // the goroutine ends when everything has been read
		d.close()
		<-d.ended
		write.Close()
	}()
	text, kept, left := bufio.NewScanner(read), 0, 0
	for text.Scan() {
		n := 0
		if _, err := fmt.Sscanf(text.Text(), "mcpx: %d lines are missing", &n); err != nil {
			kept++
		}
		left += n
	}
	if kept+left != lines || left == 0 || kept < stderrBytes/100 {
		t.Errorf("%d lines kept and %d left out, of %d", kept, left, lines)
	}
}
