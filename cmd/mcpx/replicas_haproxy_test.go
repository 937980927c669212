//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// findHAProxy returns the program haproxy. It skips the test where there is none, and without MCPX_FULL.
func findHAProxy(t testing.TB) string {
	t.Helper()
	if !mcptest.Full {
		t.Skip("runs with MCPX_FULL=1")
	}
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/haproxy") // where Debian has it, which is in the PATH of root only
	}
	if err != nil {
		t.Skip("haproxy is not installed (apt-get install haproxy)")
	}
	return program
}

// haproxy starts HAProxy in front of the fleet, with the config of docs/replicas.md. It inherits the listener.
func haproxy(t testing.TB, f *fleet, public net.Listener) {
	t.Helper()
	program := findHAProxy(t)
	page := filepath.Join("..", "..", "docs", "replicas.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```haproxy\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no config of HAProxy", page)
	}
	for _, r := range f.replicas { // HAProxy sends no requests to a replica that is not ready
		mcptest.WaitFor(t, r.name+" is ready", patience, func() bool {
			response, _ := fetch(t, http.MethodGet, r.site()+"/readyz", "")
			return response.StatusCode == http.StatusOK
		})
	}
	config := strings.Replace(string(found[1]), "bind :80\n", "bind fd@3\n", 1)
	for _, r := range f.replicas {
		at, err := url.Parse(r.url)
		if err != nil {
			t.Fatal(err)
		}
		config = regexp.MustCompile(`(?m)^(\s*server `+r.name+`) \S+`).ReplaceAllString(config, "$1 "+at.Host)
	}
	inherited, err := public.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-db", "-f", newHome(t).write(t, "haproxy.cfg", config))
	var said lockedBuffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &said, &said, []*os.File{inherited}
	err = cmd.Start()
	inherited.Close()
	public.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("haproxy:\n%s\n%s", config, said.String())
		}
	})
}

// behindHAProxy starts three replicas behind HAProxy.
func behindHAProxy(t testing.TB, servers map[string]server, global map[string]any) *fleet {
	t.Helper()
	f := startReplicas(t, 3, servers, global)
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	haproxy(t, f, public)
	f.url = "http://" + public.Addr().String() + "/mcp"
	return f
}

// TestReplicas_HAProxy: what works behind the load balancer of these tests also works behind HAProxy.
func TestReplicas_HAProxy(t *testing.T) {
	findHAProxy(t)
	t.Run("SDKs", func(t *testing.T) { pairsAtReplicas(t, "shared", behindHAProxy) })
	t.Run("as one mcpx", func(t *testing.T) { sameAsOne(t, "shared", behindHAProxy) })
	t.Run("conformance", func(t *testing.T) { conformanceAtReplicas(t, behindHAProxy) })
	t.Run("a login", func(t *testing.T) { loginAtReplicas(t, haproxy) })
	t.Run("mcp-remote", func(t *testing.T) { remoteAtReplicas(t, haproxy) })
}

// TestReplicas_Remote: through mcp-remote, a client over stdio logs in at replicas, and makes calls.
func TestReplicas_Remote(t *testing.T) {
	mcptest.Parallel(t)
	remoteAtReplicas(t, roundRobin)
}

func remoteAtReplicas(t *testing.T, balance func(testing.TB, *fleet, net.Listener)) {
	npm, h := findPeers(t), newHome(t)
	f, _ := startFrontedFleet(t, balance)
	cmd := exec.Command(npm.node, filepath.Join(npm.dir, "node_modules", "mcp-remote", "dist", "proxy.js"), f.resource)
	said := &lockedBuffer{}
	cmd.Env, cmd.Dir, cmd.Stderr = append(h.env(), "BROWSER=true"), h.dir, said // the browser that it opens does nothing
	peer := startStdio(t, cmd)
	address := regexp.MustCompile(`(?m)^https?://\S+/oauth/authorize\?\S+`)
	mcptest.WaitFor(t, "mcp-remote asks for a login", patience, func() bool { return address.MatchString(said.String()) })
	f.logIn(t)(address.FindString(said.String()))
	c := &client{peer: peer, era: legacy, name: "e2e"}
	c.open(t)
	for i := range 6 {
		if got := c.exec(t, "box", "echo", fmt.Sprintf(`{"text":"call %d"}`, i)).text(t); got != fmt.Sprint("call ", i) {
			t.Errorf("call %d: %s\n%s", i, got, said.String())
		}
	}
}
