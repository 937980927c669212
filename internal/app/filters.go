package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
	"mcpx/internal/policy"
	"mcpx/internal/programs"
)

// Filtered says whether models see a tool. Why explains to the user why that is so, or under which name models see the tool.
type Filtered struct {
	Visible bool
	Why     string
}

// Explain says whether models see a tool of a server. It does not consider auth.rights and groups. s must have all tools of the
// server, as in the registry's snapshot. name is the name that the server gives the tool. refused has the errors of tool
// definitions that the registry has left out because they are broken.
func Explain(cfg *config.Config, s *catalog.Server, refused []string, name string) Filtered {
	tool, known := s.Tool(name)
	switch {
	case known:
		return explainKnown(cfg, s, tool)
	case !s.Known:
		return Filtered{Why: "the tools of this server are not known, as it is " + string(s.State)}
	}
	for _, fault := range refused {
		if strings.Contains(fault, fmt.Sprintf("%q", name)) {
			return Filtered{Why: "refused, its definition is broken: " + sanitize.Line(fault, 400)}
		}
	}
	return Filtered{Why: "the server has no tool of this name" + sanitize.DidYouMean(name, s.ToolNames())}
}

func explainKnown(cfg *config.Config, s *catalog.Server, tool *catalog.Tool) Filtered {
	lock, _ := LoadLock(cfg) // a fault of the lock file was logged when the Runtime was built
	rules := rulesOf(cfg, lock)
	seen, setting := rules.See(s, tool)
	of, at := cfg.Servers[slices.IndexFunc(cfg.Servers, func(of config.Server) bool { return of.Name == s.Name })], s.Name+"."
	// glob returns, in quotes, the first of the globs that match prefix followed by a name of the tool: the name that the server gives the
	// tool, or the name that the config gives it with overrides.
	glob := func(globs []string, prefix string) string {
		repaired := rules.Repaired(s, tool)
		i := slices.IndexFunc(globs, func(glob string) bool {
			return policy.Match([]string{glob}, prefix+tool.Name) || policy.Match([]string{glob}, prefix+repaired.Name)
		})
		return fmt.Sprintf("%q", globs[i])
	}
	switch setting {
	case policy.ByVisibility:
		return Filtered{Why: "hidden: its server means it for its own app only (_meta.ui.visibility)"}
	case policy.ByPin:
		return Filtered{Why: "hidden by pin: its definition is not the one that was approved; mcpx lock approves it"}
	case policy.ByAllow:
		return Filtered{Why: fmt.Sprintf("hidden: none of %stools.allow matches it (%s)", at, strings.Join(of.Tools.Allow, ", "))}
	case policy.ByDeny:
		return Filtered{Why: fmt.Sprintf("hidden by %stools.deny: %s", at, glob(of.Tools.Deny, ""))}
	case policy.ByReadOnly:
		return Filtered{Why: fmt.Sprintf("hidden by %sread_only: the tool does not declare readOnlyHint", at)}
	case policy.ByDisabled:
		return Filtered{Why: "hidden by disabled_tools: " + glob(cfg.DisabledTools, at)}
	}
	if seen.Name != tool.Name {
		return Filtered{true, "visible as " + seen.Name}
	}
	return Filtered{true, "visible"}
}

// Unmatched returns a message for each pattern for tools in a config that matches no tool. The key of the map is the name of the
// server, or "" for patterns outside of servers. snap must have all tools, as in the registry's snapshot. As long as the tools of a
// server are not known, Unmatched leaves out patterns that may match them. It checks no patterns in the entry of a server without
// tools. For auth.rights, it checks only patterns of tools.allow and tools.deny that name a server; for the others see
// UnknownInRights.
func Unmatched(cfg *config.Config, snap *catalog.Snapshot) map[string][]string {
	all := make(map[string][]string)
	rules := rulesOf(cfg, nil)
	for _, of := range cfg.Servers {
		s, ok := snap.Server(of.Name)
		if !ok || !s.Known || len(s.Tools) == 0 {
			continue
		}
		own, names := s.ToolNames(), filteredNames(rules, s)
		var timeouts, overrides []string
		for _, one := range of.ToolTimeouts {
			timeouts = append(timeouts, one.Glob)
		}
		for _, one := range of.Overrides {
			overrides = append(overrides, one.Glob)
		}
		all[of.Name] = slices.Concat(
			unmatchedTools("tools.allow", of.Tools.Allow, names), unmatchedTools("tools.deny", of.Tools.Deny, names),
			unmatchedTools("verbatim", of.Verbatim, own), unmatchedTools("tool_timeouts", timeouts, own),
			unmatchedTools("overrides", overrides, own))
	}
	served := namesIn(snap, rules, nil)
	for _, tool := range hideable(cfg) {
		name := builtin.Name + "." + tool
		served.tools, served.servers[name] = append(served.tools, name), builtin.Name
	}
	check := func(key string, globs []string) { all[""] = append(all[""], served.unmatched(key, globs)...) }
	check("disabled_tools", cfg.DisabledTools)
	for _, g := range cfg.Groups {
		check("groups."+g.Name+".tools.allow", g.Tools.Allow)
		check("groups."+g.Name+".tools.deny", g.Tools.Deny)
	}
	if cfg.Auth != nil {
		inFile, servers := namesIn(snap, rules, writtenNames(cfg)), namesInFile(cfg)
		// named leaves out globs that name no server, because UnknownInRights warns of them.
		named := func(globs, servers []string) []string {
			return slices.DeleteFunc(slices.Clone(globs), func(glob string) bool {
				return !slices.ContainsFunc(servers, func(name string) bool { return ofServer(glob, name) })
			})
		}
		either := slices.Concat(servers, slices.Collect(maps.Keys(writtenNames(cfg))))
		for i, r := range cfg.Auth.Rights {
			all[""] = append(all[""], inFile.unmatched(fmt.Sprintf("auth.rights[%d].tools.allow", i), named(r.Allow, servers))...)
			// A pattern of tools.deny also denies tools by the name under which mcpx serves their server. So a pattern that matches
			// such a name is left out.
			deny := slices.DeleteFunc(named(r.Deny, either), served.mayMatch)
			all[""] = append(all[""], inFile.unmatched(fmt.Sprintf("auth.rights[%d].tools.deny", i), deny)...)
		}
	}
	return all
}

// hideable returns the tools of the built-in server that filters can hide.
func hideable(cfg *config.Config) []string {
	names := []string{builtin.RunTool, builtin.SaveTool}
	if folder, required := programFolder(cfg); folder != "" {
		stored, _ := programs.ReadFolder(folder, required, builtin.Names)
		for _, one := range stored {
			names = append(names, one.Name)
		}
	}
	return names
}

// filteredNames returns the tool names of a server against which filters are matched: the names that the server gives the tools,
// and the names from overrides. Other keys of a server are matched only with the names that the server gives.
func filteredNames(rules *policy.Rules, s *catalog.Server) []string {
	names := s.ToolNames()
	for i := range s.Tools {
		if name := rules.Repaired(s, &s.Tools[i]).Name; name != s.Tools[i].Name {
			names = append(names, name)
		}
	}
	return names
}

// toolNames has the names of the servers and tools of a catalogue. Each server is called either by the name under which mcpx serves
// it, or by its name in the config file (see namesIn).
type toolNames struct {
	tools   []string          // SERVER.TOOL
	servers map[string]string // the server of each of tools
	unknown []string          // the servers whose tools are not known yet
}

// namesIn returns the names in a snapshot. written maps the name under which mcpx serves a server to its name in the config file.
// A server that is not in written has the name under which mcpx serves it.
func namesIn(snap *catalog.Snapshot, rules *policy.Rules, written map[string]string) toolNames {
	all := toolNames{servers: make(map[string]string)}
	for i := range snap.Servers {
		s := &snap.Servers[i]
		server := cmp.Or(written[s.Name], s.Name)
		if !s.Known {
			all.unknown = append(all.unknown, server)
		}
		for _, tool := range filteredNames(rules, s) {
			name := server + "." + tool
			all.tools, all.servers[name] = append(all.tools, name), server
		}
	}
	return all
}

// unmatched returns a message for each glob that matches no known tool. It leaves out globs that may match tools that are not known
// yet.
func (n *toolNames) unmatched(key string, globs []string) []string {
	return unmatched(key+toolFormat, slices.DeleteFunc(slices.Clone(globs), n.mayMatch), n.tools, n.matches)
}

// mayMatch reports whether the glob matches any known tool, or may match a tool that is not known yet.
func (n *toolNames) mayMatch(glob string) bool {
	of, _, _ := strings.Cut(glob, ".")
	return slices.ContainsFunc(n.unknown, func(server string) bool { return strings.HasPrefix(glob, server+".") || matches(of, server) }) ||
		slices.ContainsFunc(n.tools, func(name string) bool { return n.matches(glob, name) })
}

// matches reports whether the glob matches a tool that has this name in tools.
func (n *toolNames) matches(glob, name string) bool {
	server := n.servers[name]
	return policy.MatchTool([]string{glob}, server, name[len(server)+1:])
}

// unmatched returns a message for each glob for which matches is false with every name. The message is format with the glob in it, and then
// a similar name, if there is one.
func unmatched(format string, globs, names []string, matches func(glob, name string) bool) (all []string) {
	for _, glob := range globs {
		if !slices.ContainsFunc(names, func(name string) bool { return matches(glob, name) }) {
			all = append(all, fmt.Sprintf(format, glob)+sanitize.DidYouMean(strings.Trim(glob, "*?"), names))
		}
	}
	return all
}

const toolFormat = ": %q matches no tool"

func unmatchedTools(key string, globs, names []string) []string {
	return unmatched(key+toolFormat, globs, names, matches)
}

func matches(glob, name string) bool { return policy.Match([]string{glob}, name) }
