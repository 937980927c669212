package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// providers is the process of all authorization servers of the tests (npm's oidc-provider). TestMain starts and ends it: to the
// leak check, a process that a test started and that outlives the test is a fault.
var providers struct {
	mu    sync.Mutex
	cmd   *exec.Cmd // nil if the suite is not installed
	in    io.WriteCloser
	lines *bufio.Scanner
}

// provider starts an authorization server and returns its port. settings are explained in provider.mjs. The suite must be
// installed (findSuite).
func provider(t testing.TB, settings map[string]any) string {
	t.Helper()
	line, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	providers.mu.Lock()
	defer providers.mu.Unlock()
	if _, err := providers.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("asking for an authorization server: %v", err)
	}
	for providers.lines.Scan() { // oidc-provider prints notices before the port
		if _, err := strconv.Atoi(providers.lines.Text()); err == nil {
			return providers.lines.Text()
		}
	}
	t.Fatalf("the authorization server did not start: %v", errors.Join(providers.lines.Err(), io.ErrUnexpectedEOF))
	return ""
}

// startProviders starts the process, if the suite is installed.
func startProviders() error {
	if _, err := os.Stat(newerNode()); err != nil {
		return nil
	}
	cmd := exec.Command(newerNode(), filepath.Join(testdata(), "conformance", "provider.mjs"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	providers.cmd, providers.in, providers.lines = cmd, in, bufio.NewScanner(out)
	return nil
}

// endProviders ends the process, if it was started.
func endProviders() {
	if providers.cmd != nil {
		_ = providers.in.Close()
		_ = providers.cmd.Wait()
	}
}
