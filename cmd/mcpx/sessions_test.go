package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/mcptest"
)

// address is an address that stays the same while mcpx restarts behind it. It passes HTTP on unchanged, and breaks
// connections while no mcpx listens, as the system would.
type address struct {
	url    string
	target atomic.Pointer[url.URL]
	out    http.Transport

	mu       sync.Mutex
	opened   int            // requests to initialize
	statuses map[string]int // number of answers to POST, by session and status
}

func newAddress(t *testing.T, path string) *address {
	t.Helper()
	a := &address{statuses: make(map[string]int)}
	proxy := &httputil.ReverseProxy{
		Transport: &a.out,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(a.target.Load())
			r.Out.URL.Path = r.In.URL.Path
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ModifyResponse: func(r *http.Response) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if id := r.Request.Header.Get("Mcp-Session-Id"); id != "" && r.Request.Method == http.MethodPost {
				a.statuses[id+" "+r.Status]++
			}
			return nil
		},
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if bytes.Contains(body, []byte(`"initialize"`)) {
			a.mu.Lock()
			a.opened++
			a.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	a.url = web.URL + path
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		a.out.CloseIdleConnections()
	})
	return a
}

// lead makes the address lead to an mcpx.
func (a *address) lead(t *testing.T, d *hosted) {
	t.Helper()
	to, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	a.out.CloseIdleConnections()
	a.target.Store(to)
}

// keeper is a client that keeps its session: one of the files restart-client.mjs and restart_client.py.
type keeper struct {
	in  io.Writer
	out *bufio.Reader
	err *lockedBuffer
}

func startKeeper(t *testing.T, h *home, command ...string) *keeper {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(h.env(), "PYTHONWARNINGS=ignore")
	k := &keeper{err: &lockedBuffer{}}
	cmd.Stderr = k.err
	in, out := start(t, cmd)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	k.in, k.out = in, bufio.NewReader(out)
	return k
}

// keeps lists the tools and calls one, and returns the tools.
func (k *keeper) keeps(t *testing.T, text string) (tools []string) {
	t.Helper()
	if _, err := io.WriteString(k.in, text+"\n"); err != nil {
		t.Errorf("%v\n%s", err, k.err)
		return nil
	}
	line, err := k.out.ReadString('\n')
	var answer struct {
		Tools       []string
		Text, Error string
	}
	if err != nil || json.Unmarshal([]byte(line), &answer) != nil || answer.Error != "" || answer.Text != text {
		t.Errorf("%s: %v, %s\n%.3000s", text, err, line, k.err)
	}
	return answer.Tools
}

// TestSession_Restart: real clients go on in their sessions, without an error and without a new handshake, after mcpx has
// stopped and started again, also with another config, or was killed. The sessions of two clients of each SDK are kept apart.
func TestSession_Restart(t *testing.T) {
	mcptest.Parallel(t)
	npm, bin := findPeers(t), python(t)
	py, js := filepath.Join(testdata(), "pypi", "restart_client.py"), "restart-client.mjs"
	// The quick check has one major version of each SDK: the older one for Python, the newer one for TypeScript.
	for _, client := range mcptest.Part(t, []struct {
		name    string
		command []string
	}{
		{"TypeScript 1", []string{npm.node, filepath.Join(testdata(), "npm", js)}},
		{"Python 1", []string{filepath.Join(bin, "sdk1", "bin", "python"), py}},
		{"Python 2", []string{filepath.Join(bin, "sdk2", "bin", "python"), py}},
		{"TypeScript 2", []string{newerNode(), filepath.Join(testdata(), "conformance", js)}},
	}, 2) {
		command := client.command
		t.Run(client.name, func(t *testing.T) {
			h := newHome(t)
			servers := map[string]server{"fake": fake(t, mcptest.Spec{})}
			global := map[string]any{"view": "tools"}
			d := h.serveHTTP(t, "--config", h.config(t, servers, global))
			to, err := url.Parse(d.url)
			if err != nil {
				t.Fatal(err)
			}
			a := newAddress(t, to.Path)
			a.lead(t, d)
			one, two := startKeeper(t, h, append(command, a.url)...), startKeeper(t, h, append(command, a.url)...)
			one.keeps(t, "one before")
			two.keeps(t, "two before")

			terminate(d.cmd)
			<-d.exited
			servers["more"] = fake(t, mcptest.Spec{})
			d = h.serveHTTP(t, "--config", h.config(t, servers, global))
			a.lead(t, d)
			if tools := one.keeps(t, "one after"); !slices.ContainsFunc(tools, func(tool string) bool { return strings.HasPrefix(tool, "more__") }) {
				t.Errorf("the tools after the restart are %v", tools)
			}
			two.keeps(t, "two after")

			_ = d.cmd.Process.Kill()
			<-d.exited
			d = h.serveHTTP(t, "--config", h.config(t, servers, global))
			a.lead(t, d)
			two.keeps(t, "two at the end")
			one.keeps(t, "one at the end")
			a.mu.Lock()
			defer a.mu.Unlock()
			if len(a.statuses) == 0 || a.opened != 2 {
				t.Errorf("%d handshakes of two clients", a.opened)
			}
			for seen := range a.statuses {
				if !strings.HasSuffix(seen, " 200 OK") && !strings.HasSuffix(seen, " 202 Accepted") {
					t.Errorf("%s", seen[strings.Index(seen, " "):])
				}
			}
		})
	}
}
