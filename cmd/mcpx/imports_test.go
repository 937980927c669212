package main

import (
	"cmp"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/app"
	"mcpx/internal/mcptest"
)

// layers are the packages directly under internal/ except mcptest, from top to bottom. Each may import the packages after it, and
// the packages in base. The package app may also import the packages in hosted and desk.
var layers = []string{
	"app", "budget", "front", "view", "executor", "learned", "builtin", "results", "resources", "registry", "upstream", "transport",
	"request", "policy", "caller", "files", "jq", "programs", "arguments", "describe", "search", "schemats", "preview", "compress", "tokens",
}

// module is the path of this module.
var module = strings.TrimSuffix(reflect.TypeFor[app.Options]().PkgPath(), "/internal/app")

// door stands for the package at the root, which other programs import. behindDoor has what it imports itself, beside base.
const door = "the door"

var behindDoor = []string{"app", "executor"}

// pure are packages that only compute: they import only each other and base.
var pure = []string{"arguments", "describe", "search", "schemats", "preview", "compress", "tokens"}

// forbidden returns the reason why a package of mcpx must not import another; it is empty if the import is
// allowed. Both paths are relative to internal/, or name a command.
func forbidden(from, to string) string {
	wing := func(path string) string {
		first, _, nested := strings.Cut(path, "/")
		if !nested && path != door {
			return "way"
		}
		return first
	}
	if from == door && (slices.Contains(behindDoor, to) || wing(to) == "base") {
		return ""
	}
	switch from, to := wing(from), wing(to); {
	case from == door:
		return "package mcpx is a thin door to app"
	case to == "base":
		return ""
	case from == "base":
		return "base imports base alone"
	case to == "hosted" && from != "hosted":
		return "internal/hosted is imported by app alone"
	case to == "desk" && from != "desk" && from != "cmd" && from != "tools":
		return "internal/desk is imported by app and the commands alone"
	case from == "desk" && to != "desk":
		return "internal/desk imports desk and base alone"
	case from == "cmd" || from == "tools" || to != "way" || from == "hosted":
		return ""
	}
	above, below := slices.Index(layers, from), slices.Index(layers, to)
	switch {
	case above < 0 || below < 0:
		return "a package directly under internal/ needs its place in the list layers"
	case above >= below:
		return "it is above"
	case slices.Contains(pure, from) && !slices.Contains(pure, to):
		return "a pure package imports pure ones and base alone"
	}
	return ""
}

// allowedModules has the packages that may import an external module, by the longest matching prefix of the
// import path. Test files may import all of them.
var allowedModules = map[string][]string{
	"github.com/MicahParks/jwkset":           {"internal/hosted/identity"},
	"github.com/MicahParks/keyfunc":          {"internal/hosted/authserver", "internal/hosted/identity"},
	"github.com/VictoriaMetrics/metrics":     {"internal/hosted/telemetry"},
	"github.com/alecthomas/kong":             {"cmd/mcpx"},
	"github.com/charmbracelet/x/ansi":        {"internal/base/terminal"},
	"github.com/coder/websocket":             {"internal/transport"},
	"github.com/dlclark/regexp2":             {"internal/arguments"},
	"github.com/gofrs/flock":                 {"internal/hosted/audit", "internal/desk/logins", "internal/desk/savings", "internal/base/state"},
	"github.com/golang-jwt/jwt":              {"internal/hosted/authserver", "internal/hosted/identity", "internal/desk/logins"},
	"github.com/itchyny/gojq":                {"internal/desk/demo", "internal/jq"},
	"github.com/kljensen/snowball":           {"internal/search"},
	"github.com/mark3labs/mcp-go/mcp":        {"internal/caller", "internal/desk/demo", "internal/front", "internal/mcptest", "internal/upstream", "internal/view"},
	"github.com/mark3labs/mcp-go/server":     {"internal/mcptest"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/desk/logins"},
	"github.com/nats-io/nats.go":             {"internal/hosted/cluster"},
	"github.com/pelletier/go-toml/v2":        {"internal/desk/setup"},
	"github.com/rogpeppe/go-internal":        {"internal/base/atomicfile", "internal/desk/setup"},
	"github.com/tailscale/hujson":            {"internal/desk/config", "internal/desk/setup"},
	"github.com/toon-format/toon-go":         {"internal/budget"},
	"github.com/zalando/go-keyring":          {"internal/desk/keyring"},
	"modernc.org/libc":                       {"internal/programs"},
	"modernc.org/libquickjs":                 {"internal/programs"},
	"modernc.org/quickjs":                    {"internal/programs"},
	"go.yaml.in/yaml/v3":                     {"internal/desk/setup"},
	"golang.org/x/oauth2":                    {"internal/hosted/authserver", "internal/desk/logins"},
	"golang.org/x/sys":                       {"internal/base/handover", "internal/base/helper", "internal/base/proc", "internal/base/terminal", "internal/desk/attach"},
	"golang.org/x/term":                      {"internal/base/terminal"},
	"golang.org/x/text":                      {"internal/policy"},
	"golang.org/x/time":                      {"internal/hosted/identity"},
	"gopkg.in/natefinch/lumberjack.v2":       {"cmd/mcpx"},
}

// TestImports_Direction checks the actual imports against these rules, for every operating system that mcpx is
// built for.
func TestImports_Direction(t *testing.T) {
	mcptest.Parallel(t)
	for _, system := range []string{"linux", "darwin", "windows"} {
		command := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"/...")
		command.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0", "GOFLAGS=") // without -race, which needs C
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
			checkImports(t, system, cmp.Or(strings.TrimPrefix(strings.TrimPrefix(imports[0], module), "/"), door), imports[1:])
		}
	}
}

func checkImports(t *testing.T, system, name string, imports []string) {
	t.Helper()
	from := strings.TrimPrefix(name, "internal/")
	if from == "mcptest" || from == "mcptest/fake" {
		return
	}
	for _, path := range imports {
		if path == module {
			if name != "cmd/mcpx" {
				t.Errorf("%s: %s must not import the door: that is for other programs, and for its roles in the command", system, name)
			}
			continue
		}
		if ours, ok := strings.CutPrefix(path, module+"/internal/"); ok {
			switch why := forbidden(from, ours); {
			case from == "app" && (strings.HasPrefix(ours, "hosted/") || strings.HasPrefix(ours, "desk/")):
			case ours == "mcptest":
				t.Errorf("%s: %s must not import mcptest: it is for tests", system, name)
			case why != "":
				t.Errorf("%s: %s must not import %s: %s", system, name, ours, why)
			}
			continue
		}
		if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
			continue // a package of the standard library
		}
		if !slices.Contains(modulesOf(path), name) {
			t.Errorf("%s: %s must not import %s", system, name, path)
		}
	}
}

// modulesOf returns the packages that may import an external package.
func modulesOf(path string) []string {
	longest := ""
	for prefix := range allowedModules {
		if len(prefix) > len(longest) && (path == prefix || strings.HasPrefix(path, prefix+"/")) {
			longest = prefix
		}
	}
	return allowedModules[longest]
}
