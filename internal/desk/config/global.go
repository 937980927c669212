package config

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// keys are the keys of the root that mcpx knows, but for the servers.
func (l *loader) keys() map[string]reader {
	c := l.cfg
	return map[string]reader{
		"schema_compression_enabled":     l.boolean(&c.SchemaCompression),
		"toon_compression_enabled":       l.boolean(&c.ToonCompression),
		"max_description_len":            l.count(&c.MaxDescriptionLen, 0),
		"structured_content":             l.structured(&c.StructuredContent),
		"include_structured_content":     l.includeStructured, // the older name
		"short_argument_names":           l.boolean(&c.ShortArgumentNames),
		"catalogue_token_budget":         l.count(&c.CatalogueTokenBudget, 1),
		"catalogue_char_limit":           l.count(&c.CatalogueCharLimit, 0),
		"result_token_limit":             l.count(&c.ResultTokenLimit, 0),
		"result_preview_tokens":          l.count(&c.ResultPreviewTokens, 0),
		"max_message_bytes":              whole(l, &c.MaxMessageBytes, 1024, math.MaxInt64),
		"max_concurrency":                l.count(&c.MaxConcurrency, 0),
		"connect_timeout":                l.timeout(&l.everyServer.ConnectTimeout),
		"start":                          l.oneOf(&l.everyServer.Start, "eager", "lazy"),
		"stop_idle":                      l.orOff(&l.everyServer.StopIdle),
		"startup_wait":                   l.wait(&c.StartupWait),
		"exec_wait":                      l.wait(&c.ExecWait),
		"shutdown_grace":                 l.wait(&c.ShutdownGrace),
		"disabled_tools":                 l.toolGlobs(&c.DisabledTools),
		"clients":                        l.clients,
		"resources":                      l.boolean(&c.Resources),
		"prompts":                        l.boolean(&c.Prompts),
		"health_check_enabled":           l.boolean(&c.HealthCheck.Enabled),
		"health_check_interval":          l.timeout(&c.HealthCheck.Interval),
		"health_check_timeout":           l.timeout(&c.HealthCheck.Timeout),
		"health_check_failure_threshold": l.count(&c.HealthCheck.FailureThreshold, 1),
		"log_file":                       l.path(&c.LogFile),
		"log_level":                      l.logLevel,
		"log_format":                     l.oneOf(&c.LogFormat, "text", "json"),

		"view":      l.view,
		"groups":    l.groups,
		"separator": l.separator,
		"prefix":    l.oneOf(&c.Prefix, "always", "conflict", "never"),
		"compress":  l.boolean(&c.Compress),
		"sse":       l.boolean(&c.SSE),
		"ui":        l.boolean(&c.UI),
		"api":       l.api,
		"confirm":   l.switched(&c.Confirm, "destructive", "all"),
		"read_door": l.boolean(&c.ReadDoor),
		"apps":      l.boolean(&c.Apps),
		"pin":       l.switched(&l.everyServer.Pin, "warn", "block"),

		"auth":            l.auth,
		"limits":          l.limits,
		"session_timeout": l.timeout(&c.SessionTimeout),
		"audit":           l.audit,
		"telemetry":       l.telemetry,
		"tls":             l.tls,
		// The older systems.
		"auth_token":            l.oldAuthToken,
		"rate_limit_per_minute": l.oldRateLimit,
	}
}

// The keys that hold servers: of Claude and Cursor, of VS Code, of the older mcpx.
const (
	claudeServers = "mcpServers"
	codeServers   = "servers"
	oldServers    = "mcp_servers"
)

func (l *loader) root(n *node) {
	if n.kind != objectKind {
		l.fault("the file", n.offset, "must hold an object, not %s", n.kind)
		return
	}
	l.duplicates("", n)
	keys, servers := l.keys(), false
	for _, key := range []string{claudeServers, codeServers, oldServers} {
		keys[key] = func(path string, n *node) {
			servers = true
			l.servers(path, n)
		}
	}
	settings := editorServers(n)
	if settings != nil { // whose other keys are none of ours, however near they are
		keys[settings.key] = func(path string, _ *node) {
			servers = true
			l.servers(strings.TrimSuffix(path+"."+settings.inner, "."), settings.servers)
		}
	}
	l.members("", n, keys, func(at string, m member) bool {
		if settings != nil {
			l.otherClients.add(label(m.key), "")
			return true
		}
		if l.proxies(at, m) {
			return true
		}
		if looksLikeServer(m.value) {
			l.fault(at, m.offset, "looks like a server; servers belong in %q", claudeServers)
			return true
		}
		return l.ignoredKey(rootOfOtherClients, rootOfOlderSystems, m.key, "")
	})
	// A file with other faults says enough; one that is only empty of servers is
	// most likely the wrong file.
	if !servers && len(l.faults) == 0 {
		l.fault(claudeServers, n.offset, "is missing; it holds the servers by name, as in the file of an MCP client (mcpx init --from FILE reads the file of any client)")
	}
}

func looksLikeServer(n *node) bool {
	return slices.ContainsFunc(n.members, func(m member) bool {
		return (m.key == "command" || m.key == "url") && m.value.kind == stringKind
	})
}

// api reads whether servers may be changed over HTTP; without the key it depends on auth.
func (l *loader) api(path string, n *node) {
	l.cfg.API = new(bool)
	l.boolean(l.cfg.API)(path, n)
}

// structured reads auto, always, once or never.
func (l *loader) structured(into *string) reader {
	return l.oneOf(into, "auto", "always", "once", "never")
}

func (l *loader) includeStructured(path string, n *node) {
	var always bool
	faults := len(l.faults)
	l.boolean(&always)(path, n)
	if len(l.faults) > faults {
		return
	}
	l.cfg.StructuredContent = "never"
	if always {
		l.cfg.StructuredContent = "always"
	}
}

// toolGlobs reads globs of SERVER.TOOL.
func (l *loader) toolGlobs(into *[]string) reader {
	return func(path string, n *node) {
		l.globs(into)(path, n)
		for i, item := range n.items {
			if item.kind == stringKind && item.text != "" && !strings.ContainsAny(item.text, ".*") {
				l.fault(index(path, i), item.offset, `must be "SERVER.TOOL", not %s`, quote(item.text))
			}
		}
	}
}

// allowed wraps the reader of globs of the tools that exist. An empty list could mean
// all tools or no tool, so it is a fault.
func (l *loader) allowed(globs reader) reader { return l.notEmpty(globs, "all tools are allowed") }

// notEmpty wraps the reader of a list that must have items. without says what its key means
// where it is not there.
func (l *loader) notEmpty(read reader, without string) reader {
	return func(path string, n *node) {
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(path, n.offset, "must not be empty; without it %s", without)
			return
		}
		read(path, n)
	}
}

func (l *loader) clients(path string, n *node) {
	if !l.is(objectKind, path, n) {
		return
	}
	for _, m := range n.members {
		at := join(path, m.key)
		if !l.glob(at, m.offset, m.key) || !l.is(objectKind, at, m.value) {
			continue
		}
		rule := ClientRule{Glob: m.key}
		l.members(at, m.value, map[string]reader{
			"structured_content": l.structured(&rule.StructuredContent),
			"description_chars":  l.limit(&rule.DescriptionChars, 1),
			"result_chars":       l.limit(&rule.ResultChars, 1000),
			"text":               l.oneOf(&rule.Text, "auto", "json"),
			"call_wait": func(path string, n *node) {
				l.wait(&rule.CallWait)(path, n)
				rule.CallWait = cmp.Or(rule.CallWait, maxDuration)
			},
		}, nil)
		l.cfg.Clients = append(l.cfg.Clients, rule)
	}
}

// limit reads a limit of a rule, at least least; 0 is no limit, as of the others.
func (l *loader) limit(into *int, least int) reader {
	return func(path string, n *node) {
		limit := 0
		l.count(&limit, 0)(path, n)
		if limit > 0 && limit < least {
			l.fault(path, n.offset, "must be at least %d, or 0 for no limit", least)
		}
		*into = cmp.Or(limit, NoLimit)
	}
}

// logLevel reads a level; the case of its letters does not matter.
func (l *loader) logLevel(path string, n *node) {
	level := *n
	level.text = strings.ToLower(n.text)
	l.oneOf(&l.cfg.LogLevel, "debug", "info", "warn", "error")(path, &level)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
