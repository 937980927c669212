package mcpx_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpx"
	"mcpx/internal/mcptest"
)

// TestMain gives mcpx temporary folders for what it keeps of its user.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcpx-door")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "APPDATA", "LOCALAPPDATA"} {
		if err := os.Setenv(name, dir); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

func open(t *testing.T, o mcpx.Options) *mcpx.Gateway {
	t.Helper()
	g, err := mcpx.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func config(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNew: the servers of a config file and of the program are served together, with the filters of the config. Invalid options
// are an error.
func TestNew(t *testing.T) {
	url := mcptest.Spec{}.HTTP(t).URL
	text := `{"mcpServers": {"remote": {"url": "` + url + `"}}, "disabled_tools": ["greeter.greet"]}`
	g := open(t, mcpx.Options{Config: config(t, text), Servers: map[string]mcpx.Server{"greeter": greeter()}})
	raw, err := g.Call(t.Context(), "remote", "echo", json.RawMessage(`{"text": "over there"}`))
	if err != nil || !strings.Contains(string(raw), "over there") {
		t.Errorf("got %s, %v", raw, err)
	}
	for _, test := range [][3]string{
		{"greeter", "greet", "TOOL_NOT_FOUND"}, {"remote", "none", "TOOL_NOT_FOUND"}, {"none", "echo", "SERVER_NOT_FOUND"},
	} {
		_, err := g.Call(t.Context(), test[0], test[1], nil)
		if refused, ok := err.(*mcpx.Error); !ok || refused.Code != test[2] {
			t.Errorf("%v: got %v", test, err)
		}
	}
	for want, o := range map[string]mcpx.Options{
		"there are two servers remote": {Config: config(t, text), Servers: map[string]mcpx.Server{"remote": greeter()}},
		"a name has letters":           {Servers: map[string]mcpx.Server{"a b": greeter()}},
		"at most 64":                   {Servers: map[string]mcpx.Server{"..": greeter()}},
		"is not mcpx":                  {Servers: map[string]mcpx.Server{"mcpx": greeter()}},
		"is nil":                       {Servers: map[string]mcpx.Server{"a": nil}},
		"config file not found":        {Config: filepath.Join(t.TempDir(), "none.json")},
		"must be an https":             {Config: config(t, `{"mcpServers": {}, "registry": "x"}`)},
	} {
		if _, err := mcpx.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestHelpers: a filter runs in a helper, which is this very test binary: the init function of the package makes it one.
func TestHelpers(t *testing.T) {
	g := open(t, mcpx.Options{Servers: map[string]mcpx.Server{"greeter": greeter()}})
	h, err := g.Handler()
	if err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "exec", "arguments": {"server_name": "greeter",
		"tool_name": "greet", "arguments": {"name": "Ada"}, "select": "length"}}}`
	if code, got := post(t, h, body); code != http.StatusOK || !strings.Contains(got, `"11"`) {
		t.Errorf("got %d %s", code, got)
	}
}

// TestHandler_Page: the page shows the calls of clients and of the program.
func TestHandler_Page(t *testing.T) {
	g := open(t, mcpx.Options{Servers: map[string]mcpx.Server{"greeter": greeter()}})
	h, err := g.Handler()
	if err != nil {
		t.Fatal(err)
	}
	if code, got := post(t, h, `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "exec", "arguments":
		{"server_name": "greeter", "tool_name": "greet", "arguments": {"name": "Ada"}}}}`); code != http.StatusOK {
		t.Fatalf("got %d %s", code, got)
	}
	if _, err := g.Call(t.Context(), "greeter", "greet", json.RawMessage(`{"name": "Bo"}`)); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(h)
	defer site.Close()
	mcptest.WaitFor(t, "both calls", time.Minute, func() bool { // a call is recorded after its answer is written
		response, err := http.Get(site.URL + "/ui/calls")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), `"tool":"greet"`) == 2
	})
}

// TestHandler_Twice: a gateway with two handlers can be closed.
func TestHandler_Twice(t *testing.T) {
	g := open(t, mcpx.Options{Servers: map[string]mcpx.Server{"greeter": greeter()}})
	for range 2 {
		if _, err := g.Handler(); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	go func() { // ends with Close
		g.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("Close hangs")
	}
}

// post sends a message over loopback to a session of its own.
func post(t *testing.T, h http.Handler, body string) (code int, answer string) {
	t.Helper()
	site := httptest.NewServer(h)
	defer site.Close()
	session := ""
	for _, body := range []string{`{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
		"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}`, body} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			request.Header.Set("Mcp-Session-Id", session)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		session, code, answer = response.Header.Get("Mcp-Session-Id"), response.StatusCode, string(data)
	}
	return code, answer
}

// TestHandler_Guarded: without auth the handler answers only this machine, unless the program says otherwise. A config with a
// key that only the command can apply is refused.
func TestHandler_Guarded(t *testing.T) {
	elsewhere := func(h http.Handler) int {
		request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/status", nil)
		request = request.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request)
		return w.Code
	}
	for insecure, want := range map[bool]int{false: http.StatusForbidden, true: http.StatusOK} {
		h, err := open(t, mcpx.Options{Insecure: insecure}).Handler()
		if err != nil {
			t.Fatal(err)
		}
		if got := elsewhere(h); got != want {
			t.Errorf("insecure %v: got %d", insecure, got)
		}
	}
	guarded, err := open(t, mcpx.Options{Config: config(t, `{"mcpServers": {}, "auth": {"tokens": {"a": {"sha256": "`+strings.Repeat("0", 64)+`"}}}}`)}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	if got := elsewhere(guarded); got != http.StatusUnauthorized {
		t.Errorf("with auth: got %d", got)
	}
	for want, text := range map[string]string{
		`has "tls"`: `{"mcpServers": {}, "tls": {"cert": "a.pem", "key": "b.pem"}}`,
	} {
		if _, err := open(t, mcpx.Options{Config: config(t, text)}).Handler(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestClose ends the session that is open, and nothing begins afterwards.
func TestClose(t *testing.T) {
	g := open(t, mcpx.Options{Servers: map[string]mcpx.Server{"greeter": greeter()}})
	in, _ := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(t.Context(), in, io.Discard) }()
	if _, err := g.Call(t.Context(), "greeter", "greet", json.RawMessage(`{"name": "x"}`)); err != nil {
		t.Error(err)
	}
	g.Close()
	g.Close()
	<-ended
	if err := g.Serve(t.Context(), in, io.Discard); err == nil {
		t.Error("Serve begins after Close")
	}
	if _, err := g.Call(t.Context(), "greeter", "greet", nil); err == nil {
		t.Error("Call begins after Close")
	}
	if _, err := g.Handler(); err == nil {
		t.Error("Handler is made after Close")
	}
}
