package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

const registryAnswers = "../../internal/desk/published/testdata/servers.json"

// withRegistry writes a config that names a registry with recorded answers, and returns the config's text.
func withRegistry(t *testing.T, h *home) string {
	t.Helper()
	text := fmt.Sprintf("{\n  // mine\n  \"registry\": %q,\n  \"mcpServers\": {}\n}\n", mcptest.ServeRegistry(t, registryAnswers))
	h.write(t, "config/mcpx/config.json", text)
	return text
}

func TestFind(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	before := withRegistry(t, h)
	hasAll(t, h.must(t, 0, "find", "github"), "io.github.github/github-mcp-server", "1.12.2", "oci, remote", "there are more", "mcpx add SERVER")
	out := h.must(t, 0, "find", "steals")
	if strings.Contains(out, "\x1b[31m") {
		t.Errorf("got %q", out)
	}
	hasAll(t, h.must(t, 0, "find", "Legacy", "weather"), "deprecated: Use weather-v2")
	hasAll(t, h.must(t, exitFailed, "find", "no such thing"), `no server with "no such thing"`)
	if got := readFile(t, h.own()); got != before {
		t.Errorf("got %s", got)
	}
	h.write(t, "config/mcpx/config.json", `{"registry": "http://127.0.0.1:1", "mcpServers": {}}`)
	for _, args := range [][]string{{"find", "x"}, {"add", "x"}, {"add", "io.github.x/x"}} {
		hasAll(t, h.must(t, exitFailed, args...), "the registry http://127.0.0.1:1: ", "refused", "mcpx add NAME -- COMMAND")
	}
	h.write(t, "config/mcpx/config.json", `{"registry": "http://example.com", "mcpServers": {}}`)
	hasAll(t, h.must(t, exitConfig, "find", "x"), "registry: must be an https:// URL")
}

// withNpx puts a program npx into h's PATH. The program writes its arguments into the file ran, and is a fake server.
func withNpx(t *testing.T, h *home, ran string) {
	t.Helper()
	var entry struct {
		Command string
		Args    []string
		Env     map[string]string
	}
	if err := json.Unmarshal([]byte(fakeEntry(t)), &entry); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho \"$@\" >>" + ran + "\n"
	for name, value := range entry.Env {
		script += "export " + name + "='" + value + "'\n"
	}
	npx := h.write(t, "bin/npx", script+"exec '"+entry.Command+"' '"+strings.Join(entry.Args, "' '")+"'\n")
	if err := os.Chmod(npx, 0o700); err != nil {
		t.Fatal(err)
	}
	h.extra = append(h.extra, "PATH="+filepath.Dir(npx)+":"+os.Getenv("PATH"))
}

// TestAdd_Published: add shows what a server of the registry would run, and writes and starts it only when told to.
func TestAdd_Published(t *testing.T) {
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("npx is a shell script here")
	}
	h := newHome(t)
	before := withRegistry(t, h)
	ran := filepath.Join(h.dir, "ran")
	withNpx(t, h, ran)

	const server = "io.github.mindstone/mcp-server-microsoft-sharepoint"
	hasAll(t, h.must(t, exitFailed, "add", server), "needs values: MS_CLIENT_ID (Microsoft Entra", "--set MS_CLIENT_ID=VALUE --set MS_CONFIG_DIR=VALUE --yes")
	given := []string{"add", server, "--as", "sharepoint", "--set", "MS_CLIENT_ID=id=1", "--set", "MS_CONFIG_DIR=bin"}
	out := h.must(t, exitFailed, given...)
	hasAll(t, out, "npx -y @mindstone/mcp-server-microsoft-sharepoint@0.2.1", "id=1", "github.com/mindstone", "also takes", "MS_ACCOUNT_EMAIL", "nothing was written",
		"mcpx add "+server+" --as sharepoint --set MS_CLIENT_ID=… --set MS_CONFIG_DIR=… --yes")
	if got := readFile(t, h.own()); got != before {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran unasked")
	}
	hasAll(t, h.must(t, 0, append(given, "--yes")...), "added sharepoint", "sharepoint is ready", "tools")
	hasAll(t, readFile(t, h.own()), "// mine", `"sharepoint": {`, `"MS_CLIENT_ID": "id=1"`, `"MS_CONFIG_DIR": "/`, `/bin"`) // clients start mcpx elsewhere
	hasAll(t, readFile(t, ran), "-y @mindstone/mcp-server-microsoft-sharepoint@0.2.1")
	hasAll(t, h.must(t, exitFailed, append(given, "--yes")...), "is in the config already", "--as NAME")

	// The last part of a name will do if only one server has it.
	hasAll(t, h.must(t, 0, "add", "ms-365-mcp-server", "--yes", "--no-check"), "io.github.Softeria/ms-365-mcp-server 0.156.2", "added ms-365-mcp-server")
	hasAll(t, h.must(t, 0, "add", "com.microsoft/workiq-teamsserver", "--yes", "--no-check", "--set", "tenant_id=t1"),
		"connects to  https://agent365.svc.cloud.microsoft/agents/tenants/t1/servers/mcp_TeamsServer")
	// Without a keyring, a secret comes from the environment.
	hasAll(t, h.must(t, 0, "add", "old-weather", "--yes", "--no-check"), "deprecated: Use weather-v2", "the environment variable WEATHER_API_KEY where mcpx runs")
	hasAll(t, readFile(t, h.own()), `"WEATHER_API_KEY": "${WEATHER_API_KEY}"`)

	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"weather"}, exitFailed, "lists no server weather, but io.github.example/old-weather"},
		{[]string{"nothing-like-it"}, exitFailed, "mcpx add nothing-like-it -- COMMAND"},
		{[]string{"io.github.example/none"}, exitFailed, "lists no server io.github.example/none"},
		{[]string{"io.github.hostile/steals", "--yes"}, exitFailed, "no way that mcpx can use"},
		{[]string{"io.github.example/text-editor"}, exitFailed, "npm, PyPI and OCI"},
		{[]string{"github-mcp-server", "--from", "npm"}, exitFailed, "has no npm, but oci, remote"},
		{[]string{"github-mcp-server", "--set", "TOKN=x"}, exitUsage, "takes no value TOKN"},
		{[]string{"github-mcp-server", "--env", "A=b"}, exitUsage, "--set NAME=VALUE"},
		{[]string{"https://example.com/mcp"}, exitUsage, "the server has no name"},
		{[]string{`{"mcpServers": {}}`}, exitUsage, "mcpx add NAME '…'"},
		{[]string{"x", "--as", "y", "--", "cmd"}, exitUsage, "are for a server of the MCP registry"},
	} {
		hasAll(t, h.must(t, test.code, append([]string{"add"}, test.args...)...), test.want)
	}
}

// TestAdd_PublishedAsked: at a terminal, add asks for the values, and then whether to write. Secrets go to the keyring.
func TestAdd_PublishedAsked(t *testing.T) {
	h := newHome(t)
	h.enter(t)
	before := withRegistry(t, h)
	say := func(answers string, args ...string) string {
		t.Helper()
		var out lockedBuffer
		code := run(context.Background(), args, streams{in: strings.NewReader(answers), out: &out, err: &out, terminal: true, getenv: os.LookupEnv})
		if code != 0 || strings.Contains(out.String(), "hush-") {
			t.Errorf("exit %d:\n%s", code, out.String())
		}
		return out.String()
	}
	const server = "io.github.example/database-manager"
	answers := "hush-1\nredis\n\nsales\nme\n"
	out := say(answers+"n\n", "add", server, "--no-check")
	hasAll(t, out, "DB_PASSWORD (Database password): ", "db_type (Type of database), one of postgres, mysql, mongodb, redis: ", "host (Database host) [localhost]: ",
		"docker run -i --rm --network host -e DB_PASSWORD -e DB_TYPE -e DB_USERNAME example/database-manager-mcp:3.1.0 --host localhost sales",
		"${keyring:database-manager.DB_PASSWORD}", "Add it to", "nothing was written")
	if got := readFile(t, h.own()); got != before {
		t.Errorf("got %s", got)
	}
	if out := say("", "secret", "list"); !strings.Contains(out, "there are no secrets") {
		t.Errorf("got %s", out)
	}
	// If the config cannot be written, the secret is not stored.
	if err := os.Chmod(h.own(), 0o400); err != nil {
		t.Fatal(err)
	}
	var refused lockedBuffer
	asked := streams{in: strings.NewReader(answers + "y\n"), out: &refused, err: &refused, terminal: true, getenv: os.LookupEnv}
	code := run(context.Background(), []string{"add", server, "--no-check"}, asked)
	hasAll(t, refused.String(), "is read-only")
	if out := say("", "secret", "list"); code != exitFailed || !strings.Contains(out, "there are no secrets") {
		t.Errorf("exit %d: %s", code, out)
	}
	if err := os.Chmod(h.own(), 0o600); err != nil {
		t.Fatal(err)
	}
	hasAll(t, say(answers+"y\n", "add", server, "--no-check"), "added database-manager", "gets database-manager.DB_PASSWORD")
	hasAll(t, readFile(t, h.own()), `"DB_PASSWORD": "${keyring:database-manager.DB_PASSWORD}"`, `"DB_TYPE": "redis"`)
	hasAll(t, say("", "secret", "list"), "database-manager.DB_PASSWORD")
}
