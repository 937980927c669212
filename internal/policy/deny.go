package policy

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
)

// A rule with the key deny takes something away from principals, even if other rules give it to them. Such a rule must also match
// if a name is written in a different way. So it matches more than a rule that gives: it ignores upper and lower case, and it
// treats the different forms that Unicode has for a text as the same.

// takes reports whether the rule takes something away. If not, it gives something.
func (r *right) takes() bool { return r.TakeAway != nil }

// folded returns a text in one fixed form: without white space around it, in lower case, and in the form NFKC of Unicode. Texts
// that differ only in these respects have the same result. folded converts letters to upper and then to lower case, because some
// letters have several lower-case forms, such as the Greek sigma at the end of a word.
func folded(text string) string {
	return strings.ToLower(strings.ToUpper(norm.NFKC.String(strings.TrimSpace(text))))
}

// loosely reports whether one of the globs equals a name or matches it. It compares them first as they are written, and then in the
// form that folded returns.
func loosely(globs []string, name string) bool {
	if slices.Contains(globs, name) || Match(globs, name) {
		return true
	}
	name = folded(name)
	return slices.ContainsFunc(globs, func(glob string) bool {
		glob = folded(glob)
		return glob == name || Match([]string{glob}, name)
	})
}

// takesFrom reports whether the rule takes something away from a principal. The rule may have lists of groups, scopes and
// principals. In each list that it has, one element must fit. For a principal with the name SUB@ISSUER, a glob that matches SUB is
// enough.
func (r *right) takesFrom(p *caller.Principal) bool {
	has := func(wanted, own []string) bool {
		return len(wanted) == 0 || slices.ContainsFunc(own, func(name string) bool {
			return slices.ContainsFunc(wanted, func(one string) bool { return folded(one) == folded(name) })
		})
	}
	names := []string{p.Name}
	if at := strings.LastIndexByte(p.Name, '@'); at >= 0 {
		names = append(names, p.Name[:at])
	}
	is := func(name string) bool { return loosely(r.Principals, name) }
	return has(r.Groups, p.Groups) && has(r.Scopes, p.Scopes) && (len(r.Principals) == 0 || slices.ContainsFunc(names, is))
}

// takesServer reports whether the rule takes away a whole server. The rule may name it as mcpx serves it, or as the config file
// does.
func (r *right) takesServer(server string) bool {
	return loosely(r.TakeAway, server) || loosely(r.TakeAway, r.inFile(server))
}

// takesTool reports whether the rule takes away a tool. names are the names of the tool: the one that callers see, and the one that
// its server uses.
func (r *right) takesTool(server string, names ...string) bool {
	return r.takesServer(server) || slices.ContainsFunc(names, func(name string) bool {
		return name != "" && (r.takesNamed(server, name) || r.takesNamed(r.inFile(server), name))
	})
}

// takesNamed reports whether a glob of the rule matches SERVER.TOOL, in the sense of loosely. The name of the server may contain
// glob characters. So a glob also matches if it begins with exactly this name, and its rest matches TOOL.
func (r *right) takesNamed(server, tool string) bool {
	return loosely(r.TakeAway, server+"."+tool) || slices.ContainsFunc(r.TakeAway, func(glob string) bool {
		rest, ok := strings.CutPrefix(folded(glob), folded(server+"."))
		return ok && Match([]string{rest}, folded(tool))
	})
}

// takesSome reports whether the rule takes away a server or any tool of the server. This may be a tool that the server has not
// listed yet.
func (r *right) takesSome(server string) bool {
	some := func(name string) bool {
		return slices.ContainsFunc(r.TakeAway, func(glob string) bool {
			glob, prefix := folded(glob), folded(name+".")
			return Begins(glob, prefix) || strings.HasPrefix(glob, prefix)
		})
	}
	return r.takesServer(server) || some(server) || some(r.inFile(server))
}

// takesAll reports whether the rule takes away all servers, whatever their names are. It tests two names that have nothing in
// common.
func (r *right) takesAll() bool {
	return slices.ContainsFunc(r.TakeAway, func(glob string) bool {
		return Match([]string{glob}, "a") && Match([]string{glob}, "Z9.-_")
	})
}

// Out reports whether a rule takes all servers away from a principal. Such a principal is never an admin, and none of its servers
// may dial in.
func (r *Rights) Out(p *caller.Principal) bool {
	if r == nil || p == nil {
		return false
	}
	return slices.ContainsFunc(r.rules, func(one right) bool { return one.takes() && one.takesAll() && one.takesFrom(p) })
}

func (g *Permissions) takesServer(server string) bool {
	return slices.ContainsFunc(g.taken, func(r *right) bool { return r.takesServer(server) })
}

func (g *Permissions) takesSome(server string) bool {
	return slices.ContainsFunc(g.taken, func(r *right) bool { return r.takesSome(server) })
}

func (g *Permissions) takesTool(s *catalog.Server, t *catalog.Tool) bool {
	return slices.ContainsFunc(g.taken, func(r *right) bool { return r.takesTool(s.Name, t.Name, t.Own) })
}
