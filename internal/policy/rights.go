package policy

import (
	"slices"
	"strings"
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/lru"
	"mcpx/internal/caller"
)

// Right is a rule of the configuration: what some principals may see and do. right is one in use.
type (
	Right = conf.Right
	right conf.Right
)

// of reports whether the rule is for a principal.
func (r *right) of(p *caller.Principal) bool {
	has := func(wanted, own []string) bool {
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(name string) bool { return slices.Contains(own, name) })
	}
	is := func(glob string) bool { return fits(glob, p.Name) }
	return has(r.Groups, p.Groups) && has(r.Scopes, p.Scopes) &&
		(len(r.Principals) == 0 || slices.ContainsFunc(r.Principals, is))
}

// fits reports whether a glob matches the name of a principal. Of a user of an issuer,
// whose name is SUB@ISSUER, both parts are matched by themselves, and by no glob without
// an @ but "*": who chooses their SUB may choose one that begins like the name of a token.
func fits(glob, name string) bool {
	if glob == "*" {
		return true
	}
	in, at := strings.LastIndexByte(glob, '@'), strings.LastIndexByte(name, '@')
	if in < 0 || at < 0 {
		return in == at && Match([]string{glob}, name)
	}
	return Match([]string{glob[:in]}, name[:at]) && Match([]string{glob[in+1:]}, name[at+1:])
}

// whole reports whether the rule gives what servers have beside tools.
func (r *right) whole() bool { return len(r.Allow)+len(r.Deny) == 0 }

// reaches reports whether the rule may give something of a server: a tool that Allow
// names may have yet to be listed.
func (r *right) reaches(server string) bool {
	return (r.Servers == nil || Match(r.Servers, server)) &&
		(len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, func(glob string) bool { return Begins(glob, server+".") }))
}

// sees reports whether the rule gives a tool of a server.
func (r *right) sees(s *catalog.Server, t *catalog.Tool) bool {
	is := func(globs []string) bool {
		return Match(globs, s.Name+"."+t.Name) || t.Own != "" && Match(globs, s.Name+"."+t.Own)
	}
	return (r.Servers == nil || Match(r.Servers, s.Name)) && (len(r.Allow) == 0 || is(r.Allow)) && !is(r.Deny) &&
		(!r.ReadOnly || t.Hints.IsReadOnly())
}

// Begins reports whether a glob matches some longer name that begins like that.
func Begins(glob, prefix string) bool {
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*':
			if Match([]string{glob[:i+1]}, prefix) {
				return true
			}
		case '\\':
			i++
		case '[':
			if end := strings.IndexByte(glob[i+1:], ']'); end >= 0 {
				i += end + 1
			}
		}
		if i+1 < len(glob) && Match([]string{glob[:i+1]}, prefix) {
			return true
		}
	}
	return false
}

// The bounds of what is remembered ([lru.Map]): of sets of rules, and of principals in views.
// Who has which groups is up to issuers; rules are few, and so are their sets. A principal is
// one value as long as its token is.
const (
	maxGrants = 500
	maxKnown  = 5_000
)

// Rights are what each principal may see and do. A principal that no rule is for has
// nothing. Nil Rights are those of an endpoint that asks nobody who they are: everybody
// may do everything. Safe for concurrent use.
type Rights struct {
	rules []right
	all   bool // without rules everybody who is known has everything, but is no admin

	mu     sync.Mutex
	grants *lru.Map[string, Permissions]   // by the numbers of the rules
	known  *lru.Map[visitor, *Permissions] // of grants
}

// visitor is a principal in a view.
type visitor struct {
	p    *caller.Principal
	view string
}

// NewRights makes the rights of an endpoint that asks principals who they are; of nil
// rules those of one where that is enough.
func NewRights(rules []Right) *Rights {
	r := &Rights{
		all:    rules == nil,
		grants: lru.New[string, Permissions](maxGrants, nil), known: lru.New[visitor, *Permissions](maxKnown, nil),
	}
	for _, one := range rules {
		r.rules = append(r.rules, right(one))
	}
	return r
}

// Admin reports whether a principal may see the state of mcpx and change its servers.
// Where principals are asked who they are, nobody in particular is none.
func (r *Rights) Admin(p *caller.Principal) bool {
	return r == nil || p != nil && slices.ContainsFunc(r.rules, func(one right) bool { return one.Admin && one.of(p) })
}

// Opens reports whether a principal may connect to a view: another one does not exist for
// it. part is what the view shows. A view of everything is there for a principal
// without any right too, which finds nothing in it.
func (r *Rights) Opens(p *caller.Principal, view string, part *Scope) bool {
	switch {
	case r == nil:
		return true
	case p == nil:
		return false
	case r.all:
		return true
	}
	g := r.Of(p, view)
	if len(g.rules) == 0 {
		return part == nil && !r.Names(p)
	}
	return part == nil || part.Servers == nil || slices.ContainsFunc(part.Servers, g.reaches)
}

// Names reports whether some rule is for a principal.
func (r *Rights) Names(p *caller.Principal) bool {
	return slices.ContainsFunc(r.rules, func(one right) bool { return one.of(p) })
}

// Of is what a principal may see and do in a view; nil = everything. The principals that
// the same rules are for share one. A nil principal is mcpx itself, or its client over
// stdio.
func (r *Rights) Of(p *caller.Principal, view string) *Permissions {
	if r == nil || p == nil || r.all {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.known.Get(visitor{p, view})
	if *g == nil {
		*g = r.permissions(p, view)
	}
	return *g
}

// grant is the Grant of the rules that are for a principal in a view. The caller holds the
// lock.
func (r *Rights) permissions(p *caller.Principal, view string) *Permissions {
	which := make([]byte, 0, 16) // on the stack; two bytes a rule
	for i := range r.rules {
		if one := &r.rules[i]; (one.Views == nil || Match(one.Views, view)) && one.of(p) {
			which = append(which, byte(i>>8), byte(i))
		}
	}
	g := r.grants.Find(string(which))
	if g == nil {
		g = &Permissions{}
		for i := 0; i < len(which); i += 2 {
			g.rules = append(g.rules, &r.rules[int(which[i])<<8|int(which[i+1])])
		}
		r.grants.Put(string(which), g)
	}
	return g
}

// RightsOf are those that came with a snapshot.
func RightsOf(snap *catalog.Snapshot) *Rights {
	if rules, ok := snap.Rules.(*Rules); ok {
		return rules.Rights
	}
	return nil
}

// Permissions are what some rules give together: what one of them gives is there. Nil gives
// everything. Safe for concurrent use.
type Permissions struct {
	rules   []*right
	visible Catalogues
}

// byRights is what [Permissions.See] says of a tool that no rule gives. No client reads it.
const byRights = "auth.rights"

// See implements [catalog.Rules].
func (g *Permissions) See(s *catalog.Server, t *catalog.Tool) (seen *catalog.Tool, hiddenBy string) {
	if slices.ContainsFunc(g.rules, func(r *right) bool { return r.sees(s, t) }) {
		return t, ""
	}
	return nil, byRights
}

func (g *Permissions) reaches(server string) bool {
	return slices.ContainsFunc(g.rules, func(r *right) bool { return r.reaches(server) })
}

// Confirms says which calls of a tool a user must confirm: the strictest of the rules
// that give it decides.
func (g *Permissions) Confirms(s *catalog.Server, t *catalog.Tool) Confirm {
	strictest := ConfirmNone
	if g != nil {
		for _, r := range g.rules {
			if r.Confirm > strictest && (t == nil && r.reaches(s.Name) || t != nil && r.sees(s, t)) {
				strictest = r.Confirm
			}
		}
	}
	return strictest
}

// Of is what is left of a catalogue, made once of each. A server of which nothing is left
// is not there.
func (g *Permissions) Of(snap *catalog.Snapshot) *catalog.Snapshot {
	if g == nil {
		return snap
	}
	return snap.Derived(g, func() *catalog.Snapshot {
		servers := make([]catalog.Server, 0, len(snap.Servers))
		for i := range snap.Servers {
			if s, some := g.server(snap.Servers[i]); some {
				servers = append(servers, s)
			}
		}
		reached := catalog.NewSnapshot(servers)
		if reached.Rules = g; len(servers) == 0 {
			reached.Empty = nothing
		}
		seen := g.visible.of(reached, true) // what apps alone may see is hidden before, or not
		empty := func(s catalog.Server) bool { return s.Known && len(s.Tools) == 0 && !g.whole(s.Name) }
		if !slices.ContainsFunc(seen.Servers, empty) {
			return seen
		}
		left := catalog.NewSnapshot(slices.DeleteFunc(slices.Clone(seen.Servers), empty))
		if len(left.Servers) == 0 {
			left.Empty = nothing
		}
		return left
	})
}

// nothing is what a principal sees that no rule gives anything.
const nothing = "Nothing is allowed here for who is logged in. The operator of mcpx can allow it (auth.rights)."

// whole reports whether some rule gives what a server has beside tools.
func (g *Permissions) whole(server string) bool {
	return slices.ContainsFunc(g.rules, func(r *right) bool { return r.whole() && r.reaches(server) })
}

// server is a server without what no rule gives of it beside tools. some is false if
// no rule gives anything.
func (g *Permissions) server(s catalog.Server) (left catalog.Server, some bool) {
	s.Limited = true
	for _, r := range g.rules {
		if !r.reaches(s.Name) {
			continue
		}
		some = true
		if r.whole() && !r.ReadOnly && r.Confirm == ConfirmNone {
			s.Limited = false
		}
	}
	if some && !g.whole(s.Name) {
		s.Offers, s.Items, s.Listed, s.ToolsOnly = catalog.Offers{Tasks: s.Offers.Tasks}, nil, true, true
	}
	return s, some
}
