package mcptest

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// NATS is a real NATS server with JetStream, behind a Proxy, so that it has the same address after a restart.
type NATS struct {
	URL   string
	Proxy *Proxy

	t       testing.TB
	program string
	store   string
	running *exec.Cmd
}

// StartNATS starts a NATS server that ends with the test. It skips the test if the server is not built. With
// MCPX_REQUIRE_NPM it fails instead.
func StartNATS(t testing.TB) *NATS {
	t.Helper()
	program := filepath.Join(moduleRoot(t), "testdata", "nats", "nats-server")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if _, err := os.Stat(program); err != nil {
		const text = "the NATS server is not built (in testdata/nats: go build -o . github.com/nats-io/nats-server/v2): %v"
		if os.Getenv("MCPX_REQUIRE_NPM") != "" {
			t.Fatalf(text, err)
		}
		t.Skipf(text, err)
	}
	n := &NATS{t: t, program: program, store: t.TempDir()}
	t.Cleanup(n.Kill)
	n.Start()
	return n
}

// moduleRoot returns the folder above the working directory that has the go.mod of mcpx.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("the folder of the module is not found")
	return ""
}

// Start starts the server again after Kill. It has what it has stored.
func (n *NATS) Start() {
	n.t.Helper()
	ports := n.t.TempDir()
	n.running = exec.Command(n.program, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", n.store, "--ports_file_dir", ports)
	if err := n.running.Start(); err != nil {
		n.t.Fatal(err)
	}
	var address string
	WaitFor(n.t, "the NATS server listens", time.Minute, func() bool {
		files, _ := filepath.Glob(filepath.Join(ports, "*.ports"))
		for _, file := range files {
			var is struct{ NATS []string }
			data, err := os.ReadFile(file)
			if err == nil && json.Unmarshal(data, &is) == nil && len(is.NATS) > 0 {
				address = strings.TrimPrefix(is.NATS[0], "nats://")
			}
		}
		return address != ""
	})
	if n.Proxy == nil {
		n.Proxy = NewProxy(n.t, address)
		n.URL = (&url.URL{Scheme: "nats", Host: n.Proxy.Addr()}).String()
		return
	}
	n.Proxy.mu.Lock()
	n.Proxy.target = address
	n.Proxy.mu.Unlock()
	n.Proxy.Set(ProxyPass)
}

// Kill kills the server.
func (n *NATS) Kill() {
	if n.running == nil {
		return
	}
	if n.Proxy != nil {
		n.Proxy.Set(ProxyRefuse)
	}
	_ = n.running.Process.Kill()
	_ = n.running.Wait()
	n.running = nil
}

// Forget deletes what the server has stored. It must not be running.
func (n *NATS) Forget() {
	if err := os.RemoveAll(n.store); err != nil {
		n.t.Error(err)
	}
}
