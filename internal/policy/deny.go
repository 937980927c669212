package policy

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
)

// A rule with the key deny only takes away, whatever other rules give. It must not fail to match because somebody writes a name in
// another way, so it matches more than a rule that gives: names are compared also without regard to case and to the forms that
// Unicode has for one text.

// takes reports whether the rule takes away instead of giving.
func (r *right) takes() bool { return r.TakeAway != nil }

// folded returns one form of a text for all that look the same. Letters go through both cases, as some have several forms of one case,
// such as the Greek sigma at the end of a word.
func folded(text string) string {
	return strings.ToLower(strings.ToUpper(norm.NFKC.String(strings.TrimSpace(text))))
}

// loosely reports whether one of the globs equals a name or matches it. It compares them as they are, and folded.
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

// takesFrom reports whether the rule applies to a principal. A glob without an @ fits also the first part of SUB@ISSUER.
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

// takesServer reports whether the rule takes away a whole server, by the name under which it is served or its name in the
// config file.
func (r *right) takesServer(server string) bool {
	return loosely(r.TakeAway, server) || loosely(r.TakeAway, r.inFile(server))
}

// takesTool reports whether the rule takes away a tool that has these names: one for callers, and one that its server uses.
func (r *right) takesTool(server string, names ...string) bool {
	return r.takesServer(server) || slices.ContainsFunc(names, func(name string) bool {
		return name != "" && (r.takesNamed(server, name) || r.takesNamed(r.inFile(server), name))
	})
}

// takesNamed is like [loosely] for SERVER.TOOL, where the name of the server may have glob characters.
func (r *right) takesNamed(server, tool string) bool {
	return loosely(r.TakeAway, server+"."+tool) || slices.ContainsFunc(r.TakeAway, func(glob string) bool {
		rest, ok := strings.CutPrefix(folded(glob), folded(server+"."))
		return ok && Match([]string{rest}, folded(tool))
	})
}

// takesSome reports whether the rule takes away any part of a server, possibly a tool that the server has not listed yet.
func (r *right) takesSome(server string) bool {
	some := func(name string) bool {
		return slices.ContainsFunc(r.TakeAway, func(glob string) bool {
			glob, prefix := folded(glob), folded(name+".")
			return Begins(glob, prefix) || strings.HasPrefix(glob, prefix)
		})
	}
	return r.takesServer(server) || some(server) || some(r.inFile(server))
}

// takesAll reports whether the rule takes away every server there could be.
func (r *right) takesAll() bool {
	return slices.ContainsFunc(r.TakeAway, func(glob string) bool {
		return Match([]string{glob}, "a") && Match([]string{glob}, "Z9.-_")
	})
}

// Out reports whether rules take away everything from a principal. Then it is no admin, and may not dial in either.
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
