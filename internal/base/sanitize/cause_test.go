package sanitize

import (
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestCause: in the stderr of real programs, Cause finds what explains why they ended. Where it finds nothing, Ending returns
// the last lines that matter.
func TestCause(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/stderr.txtar")
	if err != nil {
		t.Fatal(err)
	}
	// "ends: " begins what Ending returns for the programs for which Cause finds nothing.
	want := map[string]string{
		"kubernetes":      "Error: unable to create kubernetes target provider: no current-context is set and no contexts are defined in kubeconfig.",
		"docker":          "docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.', FileNotFoundError(2, 'No such file or directory'))",
		"sqlite":          "AttributeError: 'Server' object has no attribute 'list_resources'",
		"node-module":     "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /home/me/a.mjs",
		"npx-offline":     "npm: FetchError: request to http://127.0.0.1:1/some-mcp-server failed, reason: connect ECONNREFUSED 127.0.0.1:1",
		"fetch-failed":    "TypeError: fetch failed; caused by Error: bad port",
		"filesystem":      "Error: None of the specified directories are accessible",
		"go-panic":        "panic: assignment to entry in nil map",
		"click":           "Error: No such option '--nope'.",
		"argparse":        "mcp-server-fetch: error: unrecognized arguments: --nope",
		"shell":           "ends: sh: 1: nosuchcmd: not found",
		"exception-group": "RuntimeError: no API key",
		"pydantic":        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings api_key Field required [type=missing, input_value={}, input_type=dict]",
		"rust":            "Error: cannot reach the database; caused by Connection refused (os error 111)",
		"rust-panic":      "thread 'main' (4711) panicked at src/main.rs:5:10: no API key",
		"clap":            "error: the following required arguments were not provided: --db-path <DB_PATH>",
		"uv":              "× No solution found when resolving tool dependencies: ╰─▶ Because no-such-server was not found in the package registry and you require no-such-server, we can conclude that your requirements are unsatisfiable.",
		"java":            `Exception in thread "main" java.lang.IllegalStateException: no API key; caused by java.io.IOException: no such file`,
		"log":             "2026-11-21 15:00:00,456 ERROR server: no API key",
		"yargs":           "ends: server <command> Options: --help Show help --error-format how an error: is written",
		"usage-only":      "ends: Usage: server [allowed-directory] At least one directory must be provided",
		"warnings-only":   "ends: ",
		"colours":         "Error: no API key",
	}
	for _, file := range archive.Files {
		text := string(file.Data)
		got := Cause(text)
		if got == "" {
			got = "ends: " + Line(Ending(text, 5), 0)
		}
		if got != want[file.Name] {
			t.Errorf("%s:\ngot  %s\nwant %s", file.Name, got, want[file.Name])
		}
		delete(want, file.Name)
		// With incomplete output, Cause and Ending must not panic or take long.
		for i := 0; i < len(text); i += 101 {
			Cause(text[:i])
			Ending(text[i:], 5)
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the archive: %v", want)
	}
}

// FuzzCause: no text makes Cause or Ending panic.
func FuzzCause(f *testing.F) {
	f.Add("Traceback (most recent call last):\n  | x: y\nusage: a\n")
	f.Add(strings.Repeat("npm error code X\n", 10))
	f.Fuzz(func(t *testing.T, text string) {
		if Cause(text) != "" && strings.TrimSpace(text) == "" {
			t.Error("something out of nothing")
		}
		Ending(text, 3)
	})
}
