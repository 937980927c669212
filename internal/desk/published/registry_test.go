package published

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/desk/setup"
	"mcpx/internal/mcptest"
)

// answers has entries as publishers gave them to the official registry (of 2026-09-28, shortened), and as the documents of the
// registry show them. The entries called "example" and "hostile" are made up.
const answers = "testdata/servers.json"

func TestFind(t *testing.T) {
	r := Registry{mcptest.ServeRegistry(t, answers)}
	servers, more, err := r.Find(t.Context(), "GitHub-mcp")
	if err != nil || len(servers) != 1 || servers[0].Version != "1.12.2" || !more {
		t.Fatalf("got %v, %t, %v", servers, more, err)
	}
	all, _, err := r.Find(t.Context(), "")
	names := make([]string, len(all))
	for i, server := range all {
		names[i] = server.Name
	}
	if err != nil || slices.Contains(names, "io.github.example/gone") || len(names) != 12 {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestLatest(t *testing.T) {
	r := Registry{mcptest.ServeRegistry(t, answers) + "/"}
	server, err := r.Latest(t.Context(), "io.github.example/old-weather")
	if err != nil || server.Deprecated != "deprecated: Use weather-v2" {
		t.Errorf("got %v, %v", server, err)
	}
	for _, name := range []string{"io.github.example/none", "io.github.example/gone", "../../x", ""} {
		if _, err := r.Latest(t.Context(), name); !errors.Is(err, ErrNoServer) && name != "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestOffline: if the registry cannot be reached, the error names its address once.
func TestOffline(t *testing.T) {
	const address = "http://127.0.0.1:1" // tcpmux, which no machine serves any more
	_, _, err := Registry{address}.Find(t.Context(), "x")
	if err == nil || strings.Count(err.Error(), address) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestWays(t *testing.T) {
	r := Registry{mcptest.ServeRegistry(t, answers)}
	for _, test := range []struct {
		name  string
		kinds string
		asks  string // what the first way asks for; a required value has an asterisk, a secret an exclamation mark
		given map[string]string
		want  setup.Entry
	}{
		{"io.github.mindstone/mcp-server-microsoft-sharepoint", "npm",
			"MS_CLIENT_ID* MS_CONFIG_DIR* MS_ACCOUNT_EMAIL MICROSOFT_REQUEST_TIMEOUT_MS", map[string]string{"MS_CLIENT_ID": "i", "MS_CONFIG_DIR": "/d"},
			setup.Entry{Command: "npx", Args: []string{"-y", "@mindstone/mcp-server-microsoft-sharepoint@0.2.1"},
				Env: map[string]string{"MS_CLIENT_ID": "i", "MS_CONFIG_DIR": "/d"}}},
		{"io.github.Softeria/ms-365-mcp-server", "npm", "", nil,
			setup.Entry{Command: "npx", Args: []string{"-y", "@softeria/ms-365-mcp-server"}}},
		{"io.github.Qiskit/qiskit-runtime-mcp-server", "pypi", "QISKIT_IBM_TOKEN*!", map[string]string{"QISKIT_IBM_TOKEN": "${keyring:q}"},
			setup.Entry{Command: "uvx", Args: []string{"qiskit-runtime-mcp-server@0.1.0"}, Env: map[string]string{"QISKIT_IBM_TOKEN": "${keyring:q}"}}},
		{"io.github.headroomlabs-ai/headroom", "pypi", "", nil,
			setup.Entry{Command: "uvx", Args: []string{"--from", "headroom-ai[mcp]", "headroom", "mcp", "serve"}}},
		{"io.github.D4Vinci/Scrapling", "pypi oci", "", nil, setup.Entry{Command: "uvx", Args: []string{"scrapling@0.4.3", "mcp"}}},
		{"ai.aliengiraffe/spotdb", "oci", "X_API_KEY!", map[string]string{"X_API_KEY": "k"},
			setup.Entry{Command: "docker", Args: []string{"run", "-i", "--rm", "-e", "X_API_KEY", "aliengiraffe/spotdb:0.1.0"}, Env: map[string]string{"X_API_KEY": "k"}}},
		{"io.github.github/github-mcp-server", "oci remote", "token!", map[string]string{"token": "${keyring:g}"},
			setup.Entry{Command: "docker", Args: []string{"run", "-i", "--rm", "-p", "127.0.0.1:8085:8085",
				"-e", "GITHUB_OAUTH_CALLBACK_PORT", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server:1.12.2"},
				Env: map[string]string{"GITHUB_OAUTH_CALLBACK_PORT": "8085", "GITHUB_PERSONAL_ACCESS_TOKEN": "${keyring:g}"}}},
		{"io.github.example/database-manager", "oci", "db_type* host* database_name* DB_USERNAME* DB_PASSWORD*! port SSL_MODE",
			map[string]string{"db_type": "redis", "database_name": "d", "DB_USERNAME": "u", "DB_PASSWORD": "p"},
			setup.Entry{Command: "docker", Args: []string{"run", "-i", "--rm", "--network", "host", "-e", "DB_PASSWORD", "-e", "DB_TYPE", "-e", "DB_USERNAME",
				"example/database-manager-mcp:3.1.0", "--host", "localhost", "d"}, Env: map[string]string{"DB_TYPE": "redis", "DB_USERNAME": "u", "DB_PASSWORD": "p"}}},
		{"com.microsoft/workiq-teamsserver", "remote", "tenant_id*", map[string]string{"tenant_id": "t1"},
			setup.Entry{Type: "http", URL: "https://agent365.svc.cloud.microsoft/agents/tenants/t1/servers/mcp_TeamsServer"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, err := r.Latest(t.Context(), test.name)
			if err != nil {
				t.Fatal(err)
			}
			ways, unusable := server.Ways()
			var kinds, asks []string
			for _, way := range ways {
				kinds = append(kinds, way.Kind)
			}
			for _, ask := range ways[0].Asks() {
				name := ask.Name
				if ask.Required {
					name += "*"
				}
				if ask.Secret {
					name += "!"
				}
				asks = append(asks, name)
			}
			if strings.Join(kinds, " ") != test.kinds || strings.Join(asks, " ") != test.asks || len(unusable) > 0 {
				t.Errorf("got %q, %q, %q", kinds, asks, unusable)
			}
			got, err := ways[0].Entry(test.given)
			if err != nil || !same(got, test.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

// same compares entries; a map may be nil or empty.
func same(a, b setup.Entry) bool {
	maps := func(a, b map[string]string) bool {
		for key, value := range a {
			if other, ok := b[key]; !ok || other != value {
				return false
			}
		}
		return len(a) == len(b)
	}
	return a.Type == b.Type && a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.URL == b.URL && maps(a.Env, b.Env) && maps(a.Headers, b.Headers)
}

// TestWays_OldContainer: older entries of a registry have the whole command line of docker. In the command that Entry makes of
// them, no word occurs twice, and the value of a variable does not occur, because other users can see it.
func TestWays_OldContainer(t *testing.T) {
	boolean := func(name string) Input { return Input{Type: "named", Name: name, Value: "true", Format: "boolean"} }
	s := Server{Packages: []Package{{RegistryType: OCI, Identifier: "ghcr.io/github/github-mcp-server:0.16.0", RuntimeArguments: []Input{
		{Type: "positional", Value: "run"}, boolean("-i"), boolean("--rm"),
		{Type: "named", Name: "-e", Value: "TOKEN={token}", IsRequired: true, Variables: map[string]Input{"token": {IsRequired: true, IsSecret: true}}},
		{Type: "positional", ValueHint: "image_name", Value: "ghcr.io/github/github-mcp-server"},
	}}}}
	ways, _ := s.Ways()
	got, err := ways[0].Entry(map[string]string{"token": "x"})
	want := []string{"run", "-i", "--rm", "-e", "TOKEN", "ghcr.io/github/github-mcp-server:0.16.0"}
	if err != nil || !slices.Equal(got.Args, want) || got.Env["TOKEN"] != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ways[0].Entry(nil); err == nil || !strings.Contains(err.Error(), "token needs a value") {
		t.Errorf("got %v", err)
	}
}

// TestWays_Unusable: Ways leaves out packages that mcpx cannot start, and entries that would read secrets of the user or pass
// options to the program that starts the package. It gives a reason for each.
func TestWays_Unusable(t *testing.T) {
	r := Registry{mcptest.ServeRegistry(t, answers)}
	for name, want := range map[string][]string{
		"io.github.example/text-editor": {"mcpb", "nuget", "by hand"},
		"io.github.hostile/steals":      {"variables of mcpx", "name or version", "name or version", "name or version", "variables of mcpx", "URL is none"},
	} {
		server, err := r.Latest(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		ways, unusable := server.Ways()
		if len(ways) != 0 || len(unusable) != len(want) {
			t.Fatalf("%s: got %v, %q", name, ways, unusable)
		}
		for i := range want {
			if !strings.Contains(unusable[i], want[i]) {
				t.Errorf("%s: got %q, want %q", name, unusable[i], want[i])
			}
		}
	}
}

// TestEntry_Choices: a value must be one of the choices.
func TestEntry_Choices(t *testing.T) {
	s := Server{Packages: []Package{{RegistryType: NPM, Identifier: "x", EnvironmentVariables: []Input{{Name: "MODE", Choices: []string{"a", "b"}}}}}}
	ways, _ := s.Ways()
	if _, err := ways[0].Entry(map[string]string{"MODE": "c"}); err == nil || !strings.Contains(err.Error(), "one of a, b") {
		t.Errorf("got %v", err)
	}
}
