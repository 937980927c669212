package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowedImports is the map of docs/design.md: which packages of mcpx each
// package may import directly.
var allowedImports = map[string][]string{
	"cmd/mcpx": {
		"internal/app", "internal/hosted/audit", "internal/budget", "internal/base/catalog", "internal/compress", "internal/desk/config",
		"internal/describe", "internal/executor", "internal/front", "internal/hosted/httpd", "internal/hosted/identity",
		"internal/base/helper", "internal/jq", "internal/desk/logins", "internal/base/sanitize", "internal/base/proc",
		"internal/desk/terminal", "internal/desk/secret", "internal/desk/setup", "internal/tokens", "internal/view", "internal/base/wire",
	},
	"internal/resources": {"internal/base/catalog", "internal/registry", "internal/upstream", "internal/base/wire"},
	"internal/app": {
		"internal/base/atomicfile", "internal/hosted/audit", "internal/hosted/authserver", "internal/base/catalog", "internal/desk/config",
		"internal/desk/demo", "internal/executor", "internal/front", "internal/hosted/httpd", "internal/hosted/identity", "internal/jq",
		"internal/hosted/limits", "internal/desk/logins", "internal/hosted/page", "internal/base/sanitize", "internal/policy", "internal/base/proc",
		"internal/registry", "internal/desk/secret", "internal/desk/setup", "internal/hosted/telemetry", "internal/upstream",
		"internal/view", "internal/base/wiretrace",
	},
	"internal/arguments":         {"internal/base/sanitize", "internal/tokens", "internal/base/wire"},
	"internal/base/atomicfile":   {},
	"internal/hosted/audit":      {},
	"internal/hosted/authserver": {"internal/base/atomicfile", "internal/hosted/identity", "internal/base/netguard", "internal/base/sanitize", "internal/base/lru"},
	"internal/budget": {
		"internal/base/catalog", "internal/compress", "internal/describe", "internal/base/sanitize", "internal/desk/terminal",
		"internal/tokens", "internal/base/wire",
	},
	"internal/base/catalog": {},
	"internal/compress":     {"internal/tokens", "internal/base/wire"},
	"internal/desk/config":  {"internal/base/netguard", "internal/base/pattern", "internal/base/sanitize"},
	"internal/desk/demo":    {},
	"internal/describe":     {"internal/base/catalog", "internal/base/pattern", "internal/base/sanitize", "internal/schemats", "internal/tokens"},
	"internal/executor": {
		"internal/resources", "internal/arguments", "internal/base/catalog", "internal/compress", "internal/describe",
		"internal/hosted/identity", "internal/jq", "internal/hosted/limits", "internal/results", "internal/base/sanitize", "internal/policy",
		"internal/registry", "internal/search", "internal/tokens", "internal/upstream", "internal/base/wire",
	},
	"internal/front": {
		"internal/resources", "internal/base/catalog", "internal/executor", "internal/hosted/identity", "internal/hosted/limits",
		"internal/upstream", "internal/view", "internal/base/wire",
	},
	"internal/hosted/httpd": {
		"internal/front", "internal/hosted/identity", "internal/hosted/limits", "internal/base/netguard", "internal/base/sanitize",
		"internal/base/wire",
	},
	"internal/hosted/identity": {"internal/base/netguard", "internal/base/lru"},
	"internal/base/helper":     {"internal/base/proc"},
	"internal/jq":              {"internal/base/helper", "internal/base/proc"},
	"internal/desk/keyring":    {},
	"internal/hosted/limits":   {"internal/hosted/identity", "internal/base/lru", "internal/upstream"},
	"internal/mcptest":         {},
	"internal/desk/logins":     {"internal/base/atomicfile", "internal/desk/keyring", "internal/base/netguard", "internal/base/sanitize", "internal/base/lru"},
	"internal/base/netguard":   {},
	"internal/hosted/page": {
		"internal/base/catalog", "internal/executor", "internal/hosted/identity", "internal/base/sanitize", "internal/tokens",
		"internal/upstream", "internal/view", "internal/base/wire",
	},
	"internal/results":          {"internal/compress", "internal/jq", "internal/base/pattern", "internal/base/sanitize", "internal/base/wire"},
	"internal/base/pattern":     {},
	"internal/base/sanitize":    {"internal/base/pattern"},
	"internal/policy":           {"internal/base/catalog", "internal/hosted/identity", "internal/base/lru", "internal/base/wire"},
	"internal/base/proc":        {},
	"internal/base/lru":         {},
	"internal/registry":         {"internal/base/catalog", "internal/hosted/identity", "internal/hosted/limits", "internal/base/pattern", "internal/upstream"},
	"internal/schemats":         {"internal/base/sanitize", "internal/base/wire"},
	"internal/desk/terminal":    {},
	"internal/search":           {"internal/base/catalog", "internal/base/pattern"},
	"internal/desk/secret":      {"internal/base/atomicfile", "internal/desk/keyring", "internal/base/pattern"},
	"internal/desk/setup":       {"internal/base/atomicfile", "internal/desk/config", "internal/base/pattern"},
	"internal/hosted/telemetry": {"internal/executor"},
	"internal/tokens":           {},
	"internal/upstream": {
		"internal/base/catalog", "internal/hosted/identity", "internal/base/pattern", "internal/base/sanitize", "internal/base/proc",
		"internal/base/wire",
	},
	"internal/view": {
		"internal/resources", "internal/base/catalog", "internal/describe", "internal/executor", "internal/base/sanitize",
		"internal/policy", "internal/registry", "internal/search", "internal/upstream", "internal/base/wire",
	},
	"internal/base/wire":      {},
	"internal/base/wiretrace": {"internal/base/pattern"},
	"tools/release":           {},
}

// allowedModules says who may import what is not ours, by the longest prefix of
// the import path. Test files are free to use any of it.
var allowedModules = map[string][]string{
	"github.com/MicahParks/jwkset":           {"internal/hosted/identity"},
	"github.com/MicahParks/keyfunc":          {"internal/hosted/authserver", "internal/hosted/identity"},
	"github.com/alecthomas/kong":             {"cmd/mcpx"},
	"github.com/charmbracelet/x/ansi":        {"internal/desk/terminal"},
	"github.com/coder/websocket":             {"internal/upstream"},
	"github.com/dlclark/regexp2":             {"internal/arguments"},
	"github.com/gofrs/flock":                 {"internal/hosted/audit", "internal/desk/logins"},
	"github.com/golang-jwt/jwt":              {"internal/hosted/authserver", "internal/hosted/identity", "internal/desk/logins"},
	"github.com/itchyny/gojq":                {"internal/desk/demo", "internal/jq"},
	"github.com/kljensen/snowball":           {"internal/search"},
	"github.com/mark3labs/mcp-go/mcp":        {"internal/desk/demo", "internal/front", "internal/mcptest", "internal/upstream"},
	"github.com/mark3labs/mcp-go/server":     {"internal/desk/demo", "internal/front", "internal/mcptest"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/desk/logins"},
	"github.com/pelletier/go-toml/v2":        {"internal/desk/setup"},
	"github.com/prometheus/client_golang":    {"internal/hosted/telemetry"},
	"github.com/rogpeppe/go-internal":        {"internal/base/atomicfile", "internal/desk/setup"},
	"github.com/santhosh-tekuri/jsonschema":  {"internal/arguments"},
	"github.com/tailscale/hujson":            {"internal/desk/config", "internal/desk/setup"},
	"github.com/toon-format/toon-go":         {"internal/budget"},
	"github.com/zalando/go-keyring":          {"internal/desk/keyring"},
	"go.opentelemetry.io/otel":               {"internal/hosted/telemetry"},
	"golang.org/x/oauth2":                    {"internal/hosted/authserver", "internal/desk/logins"},
	"golang.org/x/sys":                       {"internal/base/helper", "internal/base/proc", "internal/desk/terminal"},
	"golang.org/x/term":                      {"internal/desk/terminal"},
	"golang.org/x/text":                      {"internal/arguments", "internal/search"},
	"golang.org/x/time":                      {"internal/hosted/identity"},
	"gopkg.in/natefinch/lumberjack.v2":       {"cmd/mcpx"},
}

// TestImports_Direction holds the map over what the code really imports, on
// every system that mcpx is built for.
func TestImports_Direction(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		command := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "mcpx/...")
		command.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		var stderr strings.Builder
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			t.Fatalf("listing imports for %s: %v\n%s", system, err, stderr.String())
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(lines) < 15 {
			t.Fatalf("only %d packages for %s: %q", len(lines), system, lines)
		}
		for _, line := range lines {
			imports := strings.Fields(line)
			checkImports(t, system, strings.TrimPrefix(imports[0], "mcpx/"), imports[1:])
		}
	}
}

func checkImports(t *testing.T, system, name string, imports []string) {
	t.Helper()
	allowed, known := allowedImports[name]
	if !known {
		t.Errorf("%s is not in the map: give it a row here and a sentence in the design", name)
		return
	}
	for _, path := range imports {
		if ours, ok := strings.CutPrefix(path, "mcpx/"); ok {
			if !slices.Contains(allowed, ours) {
				t.Errorf("%s: %s must not import %s", system, name, ours)
			}
			continue
		}
		if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
			continue // the standard library
		}
		if !slices.Contains(modulesOf(path), name) {
			t.Errorf("%s: %s must not import %s", system, name, path)
		}
	}
}

// modulesOf is who may import a foreign package.
func modulesOf(path string) []string {
	longest := ""
	for prefix := range allowedModules {
		if len(prefix) > len(longest) && (path == prefix || strings.HasPrefix(path, prefix+"/")) {
			longest = prefix
		}
	}
	return allowedModules[longest]
}
