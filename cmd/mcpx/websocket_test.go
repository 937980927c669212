package main

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// pythonSocket starts a WebSocket server with the Python SDK.
func pythonSocket(t *testing.T) (address string) {
	t.Helper()
	program := exec.Command(filepath.Join(python(t), "sdk1", "bin", "python"), filepath.Join(testdata(), "pypi", "websocket_server.py"))
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestWebSocket: mcpx connects over WebSocket if the server's URL begins with ws:.
func TestWebSocket(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"socket": {"url": pythonSocket(t)}}, patient)
	got, stderr, code := h.run(t, "", "--config", config, "exec", "socket", "add", `{"a":2,"b":40}`)
	if code != 0 || got != "42\n" {
		t.Errorf("exit %d: %s%s", code, got, stderr)
	}
}

// TestWebSocket_Login: mcpx sends the token of a login with the WebSocket handshake. If the server refuses the
// handshake, mcpx renews the token, or says that a login is needed.
func TestWebSocket_Login(t *testing.T) {
	mcptest.Parallel(t)
	g, h := guard(t, 600), newHome(t)
	behind, err := url.Parse(strings.Replace(pythonSocket(t), "ws:", "http:", 1))
	if err != nil {
		t.Fatal(err)
	}
	connections, hangUp := context.WithCancel(context.Background())
	t.Cleanup(func() { hangUp() })
	g.with(func() {
		g.behind = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var open context.Context
			g.with(func() { open = connections })
			pass := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
				p.Out.URL.Scheme, p.Out.URL.Host, p.Out.URL.Path = "http", behind.Host, behind.Path
			}}
			pass.ServeHTTP(w, r.WithContext(open))
		})
	})
	config := h.config(t, map[string]server{"tracker": {"url": strings.Replace(g.url, "http:", "ws:", 1)}}, patient)
	if stdout, _, code := h.run(t, "", "check", "--config", config); code != 1 || !strings.Contains(stdout, "needs mcpx login tracker") {
		t.Fatalf("check: exit %d\n%s", code, stdout)
	}
	c := h.client(t, config)
	add := func() string { return c.exec(t, "tracker", "add", `{"a":2,"b":40}`).text(t) }
	if got := add(); !strings.HasPrefix(got, "SERVER_UNAVAILABLE") || !strings.Contains(got, "needs mcpx login tracker") {
		t.Errorf("before the login: %s", got)
	}
	if out, _ := h.login(t, 0, "--config", config, "tracker"); !strings.Contains(out, "logged in to tracker at "+g.issuer) {
		t.Fatalf("login: %s", out)
	}
	c.awaitReady(t, "tracker")
	if got := add(); got != "42" {
		t.Errorf("after the login: %s", got)
	}
	// The token expires, and then the connection ends.
	before := g.count("/token")
	g.ended(t)
	reconnect := func() {
		g.with(func() {
			hangUp()
			connections, hangUp = context.WithCancel(context.Background())
		})
	}
	reconnect()
	mcptest.WaitFor(t, "a WebSocket with another token", patience, func() bool { return add() == "42" })
	if n := g.count("/token") - before; n != 1 {
		t.Errorf("%d tokens were asked for", n)
	}
	if stdout, _, code := h.run(t, "", "logout", "--config", config, "tracker"); code != 0 {
		t.Fatalf("logout: %s", stdout)
	}
	reconnect()
	mcptest.WaitFor(t, "the word of the login", patience, func() bool { return strings.Contains(add(), "needs mcpx login tracker") })
}
