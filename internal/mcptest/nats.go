package mcptest

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	config  string
	route   *Proxy // where the other servers of a cluster find this one; nil without a cluster
	running *exec.Cmd
}

// StartNATS starts a NATS server that ends with the test; config are lines of its config file. It skips the test if the server is
// not built. If MCPX_REQUIRE_NPM is set, it fails the test instead.
func StartNATS(t testing.TB, config ...string) *NATS {
	t.Helper()
	n := newNATS(t, config...)
	n.Start()
	return n
}

// StartNATSCluster starts three NATS servers that are a cluster.
func StartNATSCluster(t testing.TB) []*NATS {
	t.Helper()
	// Each server must know the addresses of the other servers before these servers have any, so there is a proxy with a fixed
	// address in front of each server.
	var all []*NATS
	var routes []*Proxy
	var addresses []string
	for range 3 {
		route := NewProxy(t, "")
		route.Set(ProxyRefuse)
		routes, addresses = append(routes, route), append(addresses, "nats://"+route.Addr())
	}
	for i, route := range routes {
		n := newNATS(t, fmt.Sprintf("server_name: nats-%d", i+1), `http: "127.0.0.1:-1", cluster { name: tests, listen: "127.0.0.1:-1", no_advertise: true, routes: [`+strings.Join(addresses, ", ")+`] }`)
		n.route = route
		n.Start()
		all = append(all, n)
	}
	for _, n := range all {
		health := n.ports(t).Monitoring[0] + "/healthz"
		WaitFor(t, "the NATS cluster has a leader", time.Minute, func() bool {
			response, err := http.Get(health)
			if err != nil {
				return false
			}
			response.Body.Close()
			return response.StatusCode == http.StatusOK
		})
	}
	return all
}

func newNATS(t testing.TB, config ...string) *NATS {
	t.Helper()
	program := filepath.Join(moduleRoot(t), "testdata", "nats", "nats-server")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if _, err := os.Stat(program); err != nil {
		Missing(t, "the NATS server is not built (in testdata/nats: go build -o . github.com/nats-io/nats-server/v2): %v", err)
	}
	n := &NATS{t: t, program: program, store: t.TempDir(), config: filepath.Join(t.TempDir(), "nats.conf")}
	if err := os.WriteFile(n.config, []byte(strings.Join(config, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	return n
}

// moduleRoot returns the folder that has the go.mod of mcpx: the working directory or one above it.
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

// natsPorts are the addresses at which a NATS server listens, in the form in which the server writes them to a file.
type natsPorts struct{ NATS, Cluster, Monitoring []string }

// ports waits until the server listens, and returns its addresses.
func (n *NATS) ports(t testing.TB) (addresses natsPorts) {
	t.Helper()
	WaitFor(t, "the NATS server listens", time.Minute, func() bool {
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(n.config), "*.ports"))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil && json.Unmarshal(data, &addresses) == nil && len(addresses.NATS) > 0 {
				return true
			}
		}
		return false
	})
	return addresses
}

// Start starts the server, or starts it again after Kill. After Kill, the server still has what it stored before.
func (n *NATS) Start() {
	n.t.Helper()
	n.running = exec.Command(n.program, "-c", n.config, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", n.store, "--ports_file_dir", filepath.Dir(n.config))
	if err := n.running.Start(); err != nil {
		n.t.Fatal(err)
	}
	ports := n.ports(n.t)
	if n.route != nil {
		n.route.to(ports.Cluster[0])
	}
	address := ports.NATS[0]
	if n.Proxy == nil {
		n.Proxy = NewProxy(n.t, address)
		n.URL = n.Proxy.URL(address)
		return
	}
	n.Proxy.to(address)
}

// Kill kills the server, if it is running. Until Start, the address of the server refuses connections.
func (n *NATS) Kill() {
	if n.running == nil {
		return
	}
	for _, proxy := range []*Proxy{n.Proxy, n.route} {
		if proxy != nil {
			proxy.Set(ProxyRefuse)
		}
	}
	_ = n.running.Process.Kill()
	_ = n.running.Wait()
	n.running = nil
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(n.config), "*.ports"))
	for _, file := range files {
		_ = os.Remove(file)
	}
}

// Forget deletes what the server has stored. The server must not be running.
func (n *NATS) Forget() {
	if err := os.RemoveAll(n.store); err != nil {
		n.t.Error(err)
	}
}
