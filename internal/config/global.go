package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// globals are the keys of the root that mcpx knows, but for the servers.
var globals = map[string]func(l *loader, path string, n *node){
	"schema_compression_enabled": func(l *loader, path string, n *node) { l.boolean(path, n, &l.cfg.SchemaCompression) },
	"toon_compression_enabled":   func(l *loader, path string, n *node) { l.boolean(path, n, &l.cfg.ToonCompression) },
	"max_description_len":        func(l *loader, path string, n *node) { l.count(path, n, 0, &l.cfg.MaxDescriptionLen) },
	"structured_content":         func(l *loader, path string, n *node) { l.structured(path, n, &l.cfg.StructuredContent) },
	"catalogue_token_budget":     func(l *loader, path string, n *node) { l.count(path, n, 1, &l.cfg.CatalogueTokenBudget) },
	"catalogue_char_limit":       func(l *loader, path string, n *node) { l.count(path, n, 0, &l.cfg.CatalogueCharLimit) },
	"result_token_limit":         func(l *loader, path string, n *node) { l.count(path, n, 0, &l.cfg.ResultTokenLimit) },
	"max_message_bytes":          func(l *loader, path string, n *node) { l.whole(path, n, 1024, &l.cfg.MaxMessageBytes) },
	"max_concurrency":            func(l *loader, path string, n *node) { l.count(path, n, 0, &l.cfg.MaxConcurrency) },
	"startup_wait":               func(l *loader, path string, n *node) { l.duration(path, n, time.Second, true, &l.cfg.StartupWait) },
	"exec_wait":                  func(l *loader, path string, n *node) { l.duration(path, n, time.Second, true, &l.cfg.ExecWait) },
	"shutdown_grace":             func(l *loader, path string, n *node) { l.duration(path, n, time.Second, true, &l.cfg.ShutdownGrace) },
	"disabled_tools":             (*loader).disabledTools,
	"clients":                    (*loader).clients,
	"health_check_enabled":       func(l *loader, path string, n *node) { l.boolean(path, n, &l.cfg.HealthCheck.Enabled) },
	"health_check_interval": func(l *loader, path string, n *node) {
		l.duration(path, n, time.Second, false, &l.cfg.HealthCheck.Interval)
	},
	"health_check_timeout": func(l *loader, path string, n *node) {
		l.duration(path, n, time.Second, false, &l.cfg.HealthCheck.Timeout)
	},
	"health_check_failure_threshold": func(l *loader, path string, n *node) {
		l.count(path, n, 1, &l.cfg.HealthCheck.FailureThreshold)
	},
	"log_level":  (*loader).logLevel,
	"log_format": func(l *loader, path string, n *node) { l.oneOf(path, n, &l.cfg.LogFormat, "text", "json") },

	"view":      (*loader).later,
	"groups":    (*loader).later,
	"separator": (*loader).later,
	"sse":       (*loader).later,
	"resources": (*loader).later,
	"prompts":   (*loader).later,

	"confirm": (*loader).confirm,
	"pin":     (*loader).unprotected,
	"auth":    (*loader).unprotected,
	"limits":  (*loader).unprotected,
	"audit":   (*loader).unprotected,
	"tls":     (*loader).unprotected,
	// The older systems.
	"auth_token":            (*loader).unprotected,
	"rate_limit_per_minute": (*loader).unprotected,
}

// The keys that hold servers: of Claude and Cursor, of VS Code, of the older mcpx.
const (
	claudeServers = "mcpServers"
	codeServers   = "servers"
	oldServers    = "mcp_servers"
)

// includeStructured is the older name of structured_content.
const includeStructured = "include_structured_content"

func (l *loader) root(n *node) {
	if n.kind != objectKind {
		l.fault("the file", n.offset, "must hold an object, not %s", n.kind)
		return
	}
	l.duplicates("", n)
	own := append(sortedKeys(globals), claudeServers, codeServers, oldServers, includeStructured)
	servers := false
	l.members("", n, own, func(key, at string, m member) bool {
		switch key {
		case claudeServers, codeServers, oldServers:
			servers = true
			l.servers(key, at, m.value)
			return true
		case includeStructured:
			l.includeStructured(at, m.value)
			return true
		}
		if read, ok := globals[key]; ok {
			read(l, at, m.value)
			return true
		}
		if looksLikeServer(m.value) {
			l.fault(at, m.offset, "looks like a server; servers belong in %q", claudeServers)
			return true
		}
		return l.ignoredKey(rootIgnored, key, "")
	})
	// A file with other faults says enough; one that is only empty of servers is
	// most likely the wrong file.
	if !servers && len(l.faults) == 0 {
		l.fault(claudeServers, n.offset, "is missing; it holds the servers by name, as in the file of an MCP client")
	}
}

func looksLikeServer(n *node) bool {
	return slices.ContainsFunc(n.members, func(m member) bool {
		return (m.key == "command" || m.key == "url") && m.value.kind == stringKind
	})
}

// structured reads auto, always or never.
func (l *loader) structured(path string, n *node, into *string) {
	l.oneOf(path, n, into, "auto", "always", "never")
}

func (l *loader) includeStructured(path string, n *node) {
	var always bool
	faults := len(l.faults)
	l.boolean(path, n, &always)
	if len(l.faults) > faults {
		return
	}
	l.cfg.StructuredContent = "never"
	if always {
		l.cfg.StructuredContent = "always"
	}
}

// disabledTools reads globs of SERVER.TOOL.
func (l *loader) disabledTools(path string, n *node) {
	l.globs(path, n, &l.cfg.DisabledTools)
	for i, item := range n.items {
		if item.kind == stringKind && item.text != "" && !strings.ContainsAny(item.text, ".*") {
			l.fault(index(path, i), item.offset, `must be "SERVER.TOOL", not %s`, quote(item.text))
		}
	}
}

func (l *loader) clients(path string, n *node) {
	if !l.is(objectKind, path, n) {
		return
	}
	own := []string{"structured_content", "description_chars"}
	for _, m := range n.members {
		at := join(path, m.key)
		if !l.glob(at, m.offset, m.key) || !l.is(objectKind, at, m.value) {
			continue
		}
		rule := ClientRule{Glob: m.key}
		l.members(at, m.value, own, func(key, at string, m member) bool {
			switch key {
			case "structured_content":
				l.structured(at, m.value, &rule.StructuredContent)
			case "description_chars":
				rule.DescriptionChars = NoLimit // where it says 0, as of the other limits
				limit := 0
				if l.count(at, m.value, 0, &limit); limit > 0 {
					rule.DescriptionChars = limit
				}
			default:
				return false
			}
			return true
		})
		l.cfg.Clients = append(l.cfg.Clients, rule)
	}
}

// later notes a key of a part of mcpx that does not exist yet.
func (l *loader) later(path string, _ *node) { l.unsupported.add(path, "") }

// logLevel reads a level; the case of its letters does not matter.
func (l *loader) logLevel(path string, n *node) {
	level := *n
	level.text = strings.ToLower(n.text)
	l.oneOf(path, &level, &l.cfg.LogLevel, "debug", "info", "warn", "error")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
