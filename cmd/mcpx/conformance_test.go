package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// suite is the official MCP conformance suite, installed under testdata/conformance together with the version
// of Node that it needs.
type suite struct {
	node string
	dir  string
}

// findSuite skips the test if the suite is not installed. With MCPX_REQUIRE_NPM it fails instead.
func findSuite(t *testing.T) suite {
	t.Helper()
	s := suite{newerNode(), filepath.Join(testdata(), "conformance")}
	if _, err := os.Stat(s.node); err != nil {
		if os.Getenv("MCPX_REQUIRE_NPM") != "" && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
			t.Fatal(err)
		}
		t.Skipf("the conformance suite is not installed (npm ci --prefix testdata/conformance): %v", err)
	}
	return s
}

// suiteTime is the time limit for one run of the suite, which takes one to two minutes.
const suiteTime = 5 * time.Minute

// run runs the suite for a client or a server. It fails if a check fails that is not in the file of expected
// failures, or if an expected failure passes.
func (s suite) run(t *testing.T, h *home, expected string, args ...string) {
	t.Helper()
	saved := t.TempDir()
	command := append([]string{filepath.Join(s.dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")}, args...)
	ctx, cancel := context.WithTimeout(t.Context(), suiteTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, append(command, "--timeout", "120000", "--output-dir", saved, "--expected-failures", filepath.Join(s.dir, expected))...)
	cmd.Env = append(h.env(), "NODE_OPTIONS=--require="+filepath.Join(s.dir, "slow.cjs"), "PATH="+filepath.Dir(s.node)+string(filepath.ListSeparator)+os.Getenv("PATH"), "MCPX_BIN="+binary(t))
	cmd.Dir = h.dir
	cmd.WaitDelay = 10 * time.Second // a program that the suite has started may still hold its output open
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		t.Errorf("%s: took more than %s, at the end of:\n%s", strings.Join(args, " "), suiteTime, out)
	case err != nil:
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, passed.ReplaceAll(out, nil))
		_, unexpected, _ := strings.Cut(string(out), "not in baseline")
		for _, name := range failed.FindAllStringSubmatch(unexpected, -1) {
			logs, _ := filepath.Glob(filepath.Join(saved, name[1]+"-*", "stderr.txt"))
			for _, log := range logs {
				text, _ := os.ReadFile(log)
				t.Logf("%s: stderr of the client:\n%s", name[1], text)
			}
		}
	}
}

// passed matches the lines of output that report no failure: about 200 of them come before the first failure.
var passed = regexp.MustCompile(`(?m)^(=== Running scenario: .*|Running (client )?scenario .*|Starting scenario: .*|Executing client: .*|With context: .*|Results saved to .*|✓ .*|)\n`)

// failed matches the line of a scenario that has failed.
var failed = regexp.MustCompile(`(?m)^ *✗ (\S+)$`)

// revisions are the revisions of MCP whose requirements the suite checks.
var revisions = []string{"2025-11-25", "2026-07-28"}

// scenarios are the client scenarios to run unless mcptest.Full is set: all scenarios of a revision would take
// 20 s of processor time.
var scenarios = map[string][]string{
	"2025-11-25": {"sse-retry", "auth/scope-step-up"},
	"2026-07-28": {"http-custom-headers", "sep-2322-client-request-state", "auth/iss-wrong-issuer"},
}

// notScored are the scenarios that the suite runs in addition to a revision's requirements, without evaluating
// the result. The scenarios for the tasks extension are missing: the suite's own server has no tools for them.
var notScored = map[string][]string{
	"2025-11-25": {"server-session-lifecycle", "server-sse-polling", "json-schema-2020-12"},
	"2026-07-28": {"http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"},
}

// throughExec returns the URL of a proxy in front of mcpx. It replaces each call of a tool of the suite's
// server by the call of exec that a model would make. Other requests, and all answers, pass unchanged.
func throughExec(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			host := r.In.Host
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path = target.Scheme, target.Host, target.Path
			if host == r.In.Context().Value(http.LocalAddrContextKey).(net.Addr).String() {
				host = target.Host
			}
			r.Out.Host = host // keeps a foreign Host header, which a scenario tests
			body, name := asExec(r.In)
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			if name != "" && r.Out.Header.Get("Mcp-Name") == name {
				r.Out.Header.Set("Mcp-Name", "exec")
			}
		},
	}
	web := httptest.NewServer(proxy)
	t.Cleanup(web.Close)
	return web.URL
}

// asExec reads the body of a request. If it is a tool call, asExec rewrites it as a call of exec and returns
// the tool's name. Otherwise the body is unchanged and the name is empty.
func asExec(r *http.Request) (body []byte, name string) {
	body, _ = io.ReadAll(r.Body)
	var message, params map[string]json.RawMessage
	var method string
	_ = json.Unmarshal(body, &message)
	_ = json.Unmarshal(message["method"], &method)
	_ = json.Unmarshal(message["params"], &params)
	_ = json.Unmarshal(params["name"], &name)
	if method != "tools/call" || name == "" || name == "inspect" || name == "exec" {
		return body, ""
	}
	arguments := map[string]any{"server_name": "suite", "tool_name": name}
	if params["arguments"] != nil {
		arguments["arguments"] = params["arguments"]
	}
	params["name"] = json.RawMessage(`"exec"`)
	params["arguments"], _ = json.Marshal(arguments)
	message["params"], _ = json.Marshal(params)
	body, _ = json.Marshal(message)
	return body, name
}

func TestConformanceOfTheServer(t *testing.T) {
	mcptest.Parallel(t)
	s := findSuite(t)
	for _, view := range []string{"tools", "exec"} {
		for _, revision := range revisions {
			if view == "exec" && revision != revisions[0] && !mcptest.Full {
				continue // for the tools through exec, one run is enough
			}
			t.Run(view+"/"+revision, func(t *testing.T) {
				mcptest.Parallel(t)
				h := newHome(t)
				protocol := "auto" // mcpx detects the protocol itself
				if revision == revisions[1] {
					protocol = "modern" // the server may be too slow for the detection
				}
				path := h.config(t, map[string]server{
					"suite": {"command": s.node, "args": []string{filepath.Join(s.dir, "server.mjs")}, "protocol": protocol},
				}, map[string]any{"startup_wait": 60, "exec_wait": 60, "prefix": "never"})
				d := h.serveHTTP(t, "--config", path)
				url := d.url + "/tools"
				if view == "exec" {
					url = throughExec(t, d.url)
				}
				s.run(t, h, fmt.Sprintf("expected/server-%s-%s.yml", view, revision), "server", "--url", url, "--requirements", revision)
				if view == "tools" { // calls of exec have no Mcp-Param headers, and exec lists no tool schemas
					for _, scenario := range mcptest.Part(t, notScored[revision], 1) {
						s.run(t, h, fmt.Sprintf("expected/server-tools-%s.yml", revision), "server", "--url", url, "--scenario", scenario, "--spec-version", revision)
					}
				}
			})
		}
	}
}

func TestConformanceOfTheClient(t *testing.T) {
	mcptest.Parallel(t)
	s := findSuite(t)
	port := turns(t, 4) // one client, one mcpx and one server of the suite take a turn
	run := func(t *testing.T, expected string, args ...string) {
		h := newHome(t)
		h.extra = append(h.extra, "TURNS="+port)
		s.run(t, h, expected, append([]string{"client", "--command", s.node + " " + filepath.Join(s.dir, "client.mjs")}, args...)...)
	}
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			mcptest.Parallel(t)
			expected := fmt.Sprintf("expected/client-%s.yml", revision)
			if mcptest.Full {
				run(t, expected, "--requirements", revision)
				return
			}
			for _, scenario := range scenarios[revision] {
				run(t, expected, "--scenario", scenario, "--spec-version", revision)
			}
		})
	}
	// Scenarios in addition to the required ones: OAuth grants that need no user, and servers of the revision 2025-03-26, which
	// have no protected resource metadata.
	for _, scenario := range mcptest.Part(t, []string{
		"auth/client-credentials-basic", "auth/client-credentials-jwt",
		"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback",
	}, 1) {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			run(t, "expected/client-2025-11-25.yml", "--scenario", scenario)
		})
	}
}

// turns returns the port of a listener that serves only atOnce connections at a time: it sends each one a byte
// when its turn comes, and its turn lasts until the connection ends.
func turns(t *testing.T, atOnce int) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		open.Wait()
	})
	taken := make(chan struct{}, atOnce)
	open.Go(func() { // the goroutine ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { // the goroutine ends with the client
				defer conn.Close()
				taken <- struct{}{}
				defer func() { <-taken }()
				_, _ = conn.Write([]byte("!"))
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
