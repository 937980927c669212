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
		"internal/app", "internal/audit", "internal/budget", "internal/catalog", "internal/compress", "internal/config",
		"internal/describe", "internal/executor", "internal/front", "internal/httpd", "internal/identity",
		"internal/jq", "internal/oauth", "internal/plain", "internal/proc", "internal/screen", "internal/secret",
		"internal/setup", "internal/tokens", "internal/view", "internal/wire",
	},
	"internal/aggregate": {"internal/catalog", "internal/registry", "internal/upstream", "internal/wire"},
	"internal/app": {
		"internal/atomicfile", "internal/audit", "internal/authserver", "internal/catalog", "internal/config",
		"internal/demo", "internal/executor", "internal/front", "internal/httpd", "internal/identity", "internal/jq",
		"internal/limits", "internal/oauth", "internal/page", "internal/plain", "internal/policy", "internal/proc",
		"internal/registry", "internal/secret", "internal/setup", "internal/telemetry", "internal/upstream",
		"internal/view", "internal/wiretrace",
	},
	"internal/arguments":  {"internal/plain", "internal/tokens", "internal/wire"},
	"internal/atomicfile": {},
	"internal/audit":      {},
	"internal/authserver": {"internal/atomicfile", "internal/identity", "internal/outbound", "internal/plain", "internal/recent"},
	"internal/budget": {
		"internal/catalog", "internal/compress", "internal/describe", "internal/plain", "internal/screen",
		"internal/tokens", "internal/wire",
	},
	"internal/catalog":  {},
	"internal/compress": {"internal/tokens", "internal/wire"},
	"internal/config":   {"internal/outbound", "internal/pattern", "internal/plain"},
	"internal/demo":     {},
	"internal/describe": {"internal/catalog", "internal/pattern", "internal/plain", "internal/schemats", "internal/tokens"},
	"internal/executor": {
		"internal/aggregate", "internal/arguments", "internal/catalog", "internal/compress", "internal/describe",
		"internal/identity", "internal/jq", "internal/limits", "internal/pages", "internal/plain", "internal/policy",
		"internal/registry", "internal/search", "internal/tokens", "internal/upstream", "internal/wire",
	},
	"internal/front": {
		"internal/aggregate", "internal/catalog", "internal/executor", "internal/identity", "internal/limits",
		"internal/upstream", "internal/view", "internal/wire",
	},
	"internal/httpd": {
		"internal/front", "internal/identity", "internal/limits", "internal/outbound", "internal/plain",
		"internal/wire",
	},
	"internal/identity": {"internal/outbound", "internal/recent"},
	"internal/jq":       {"internal/proc"},
	"internal/keyring":  {},
	"internal/limits":   {"internal/identity", "internal/recent", "internal/upstream"},
	"internal/mcptest":  {},
	"internal/oauth":    {"internal/atomicfile", "internal/keyring", "internal/outbound", "internal/plain", "internal/recent"},
	"internal/outbound": {},
	"internal/page": {
		"internal/catalog", "internal/executor", "internal/identity", "internal/plain", "internal/tokens",
		"internal/upstream", "internal/view", "internal/wire",
	},
	"internal/pages":     {"internal/compress", "internal/jq", "internal/pattern", "internal/plain", "internal/wire"},
	"internal/pattern":   {},
	"internal/plain":     {"internal/pattern"},
	"internal/policy":    {"internal/catalog", "internal/identity", "internal/recent", "internal/wire"},
	"internal/proc":      {},
	"internal/recent":    {},
	"internal/registry":  {"internal/catalog", "internal/identity", "internal/limits", "internal/pattern", "internal/upstream"},
	"internal/schemats":  {"internal/plain", "internal/wire"},
	"internal/screen":    {},
	"internal/search":    {"internal/catalog", "internal/pattern"},
	"internal/secret":    {"internal/atomicfile", "internal/keyring", "internal/pattern"},
	"internal/setup":     {"internal/atomicfile", "internal/config", "internal/pattern"},
	"internal/telemetry": {"internal/executor"},
	"internal/tokens":    {},
	"internal/upstream": {
		"internal/catalog", "internal/identity", "internal/pattern", "internal/plain", "internal/proc",
		"internal/wire",
	},
	"internal/view": {
		"internal/aggregate", "internal/catalog", "internal/describe", "internal/executor", "internal/plain",
		"internal/policy", "internal/registry", "internal/search", "internal/upstream", "internal/wire",
	},
	"internal/wire":      {},
	"internal/wiretrace": {"internal/pattern"},
	"tools/release":      {},
}

// allowedModules says who may import what is not ours, by the longest prefix of
// the import path. Test files are free to use any of it.
var allowedModules = map[string][]string{
	"github.com/MicahParks/jwkset":           {"internal/identity"},
	"github.com/MicahParks/keyfunc":          {"internal/authserver", "internal/identity"},
	"github.com/alecthomas/kong":             {"cmd/mcpx"},
	"github.com/charmbracelet/x/ansi":        {"internal/screen"},
	"github.com/coder/websocket":             {"internal/upstream"},
	"github.com/dlclark/regexp2":             {"internal/arguments"},
	"github.com/gofrs/flock":                 {"internal/audit", "internal/oauth"},
	"github.com/golang-jwt/jwt":              {"internal/authserver", "internal/identity", "internal/oauth"},
	"github.com/itchyny/gojq":                {"internal/demo", "internal/jq"},
	"github.com/kljensen/snowball":           {"internal/search"},
	"github.com/mark3labs/mcp-go/mcp":        {"internal/demo", "internal/front", "internal/mcptest", "internal/upstream"},
	"github.com/mark3labs/mcp-go/server":     {"internal/demo", "internal/front", "internal/mcptest"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/oauth"},
	"github.com/pelletier/go-toml/v2":        {"internal/setup"},
	"github.com/prometheus/client_golang":    {"internal/telemetry"},
	"github.com/rogpeppe/go-internal":        {"internal/atomicfile", "internal/setup"},
	"github.com/santhosh-tekuri/jsonschema":  {"internal/arguments"},
	"github.com/tailscale/hujson":            {"internal/config", "internal/setup"},
	"github.com/toon-format/toon-go":         {"internal/budget"},
	"github.com/zalando/go-keyring":          {"internal/keyring"},
	"go.opentelemetry.io/otel":               {"internal/telemetry"},
	"golang.org/x/oauth2":                    {"internal/authserver", "internal/oauth"},
	"golang.org/x/sys":                       {"internal/jq", "internal/proc", "internal/screen"},
	"golang.org/x/term":                      {"internal/screen"},
	"golang.org/x/text":                      {"internal/arguments", "internal/search"},
	"golang.org/x/time":                      {"internal/identity"},
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
