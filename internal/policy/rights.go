package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/lru"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// right is a rule of auth.rights, with what is needed to apply it.
type right struct {
	conf.Right
	names map[string]string // from the served name of a server to its name in the config file, if they differ
}

// of reports whether the rule applies to a principal. The rule may have lists of groups, scopes and principals. In each list that
// it has, one element must fit.
func (r *right) of(p *caller.Principal) bool {
	has := func(wanted, own []string) bool {
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(name string) bool { return slices.Contains(own, name) })
	}
	is := func(glob string) bool { return fits(glob, p.Name) }
	return has(r.Groups, p.Groups) && has(r.Scopes, p.Scopes) &&
		(len(r.Principals) == 0 || slices.ContainsFunc(r.Principals, is))
}

// fits reports whether a glob matches a principal's name; "*" matches all names. A user of an issuer has the name SUB@ISSUER. A
// glob for it must also have an @, and the parts before and after the @ are matched separately: otherwise users who choose their
// SUB could imitate the name of a token. A glob for a name that begins with "agent:" (see the func agent) must begin with "agent:"
// too, because whoever makes the tokens of agents chooses their names.
func fits(glob, name string) bool {
	if glob == "*" {
		return true
	}
	if strings.HasPrefix(name, conf.Agents) && !strings.HasPrefix(glob, conf.Agents) {
		return false
	}
	in, at := strings.LastIndexByte(glob, '@'), strings.LastIndexByte(name, '@')
	if in < 0 || at < 0 {
		return in == at && Match([]string{glob}, name)
	}
	return Match([]string{glob[:in]}, name[:at]) && Match([]string{glob[in+1:]}, name[at+1:])
}

// whole reports whether the rule permits whole servers, including their resources and prompts.
func (r *right) whole() bool { return len(r.Allow)+len(r.Deny) == 0 }

// on reports whether the rule is for a server. server is the name in the config file.
func (r *right) on(server string) bool {
	return r.Servers == nil || Match(r.Servers, server) || slices.Contains(r.Servers, server)
}

// inFile returns the name that a server has in the config file.
func (r *right) inFile(server string) string { return cmp.Or(r.names[server], server) }

// in reports whether the rule applies in a view. A view is an address of mcpx that shows a part of the catalogue.
func (r *right) in(view string) bool {
	if server, ok := strings.CutPrefix(view, "servers/"); ok {
		view = "servers/" + r.inFile(server)
	}
	return r.Views == nil || Match(r.Views, view) || slices.Contains(r.Views, view)
}

// reaches reports whether the rule may permit some tool of a server, perhaps one that the server has not listed yet.
func (r *right) reaches(server string) bool {
	server = r.inFile(server)
	return r.on(server) && (len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, func(glob string) bool {
		return Begins(glob, server+".") || strings.HasPrefix(glob, server+".")
	}))
}

// sees reports whether the rule permits a tool: whether its servers, tools.allow, tools.deny and read_only all do.
func (r *right) sees(s *catalog.Server, t *catalog.Tool) bool {
	server := r.inFile(s.Name)
	is := func(globs []string) bool {
		return MatchTool(globs, server, t.Name) || t.Own != "" && MatchTool(globs, server, t.Own)
	}
	return r.on(server) && (len(r.Allow) == 0 || is(r.Allow)) && !is(r.Deny) && !r.deniesServed(s, t) &&
		(!r.ReadOnly || t.Hints.IsReadOnly())
}

// MatchTool reports whether one of the globs matches a tool of a server, as SERVER.TOOL. server is the name in the config file.
// This name may contain glob characters. So a glob also matches if it begins with exactly this name, and its rest matches TOOL.
func MatchTool(globs []string, server, tool string) bool {
	return Match(globs, server+"."+tool) || slices.ContainsFunc(globs, func(glob string) bool {
		rest, ok := strings.CutPrefix(glob, server+".")
		return ok && Match([]string{rest}, tool)
	})
}

// deniesServed reports whether Deny matches the tool under the served name of its server. Rules should use the server's name in the
// config file. But if somebody has used the served name to deny a tool, the tool stays denied.
func (r *right) deniesServed(s *catalog.Server, t *catalog.Tool) bool {
	return r.names[s.Name] != "" && (Match(r.Deny, s.Name+"."+t.Name) || t.Own != "" && Match(r.Deny, s.Name+"."+t.Own))
}

// Begins reports whether the glob can match a name that begins with prefix and is longer than prefix.
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

// These are the bounds of two caches of Rights ([lru.Map]): maxGrants for the permissions of combinations of rules, maxKnown for
// the permissions of principals in views. There are few combinations, but any number of principals. The cache finds a principal by
// its pointer, which stays the same as long as the principal's token is in use.
const (
	maxGrants = 500
	maxKnown  = 5_000
)

// Rights decide what each principal may see and do. If there are rules, a principal to which none applies may use only servers with
// which it has dialled in. Nil Rights are for an endpoint without authentication, and permit everything. Several goroutines may use
// Rights at the same time.
type Rights struct {
	rules []right
	// all means that the config has no rules. Then principals may do everything except administer mcpx. This does not apply to
	// agents (see the func agent).
	all bool
	// dialled are the servers that have opened the connection to mcpx themselves (see [Dialled]).
	dialled []Dialled

	mu     sync.Mutex
	grants *lru.Map[string, Permissions]   // the key is made by the method permissions
	known  *lru.Map[visitor, *Permissions] // the Permissions in grants, by principal and view
}

// visitor is the key for a principal in one view.
type visitor struct {
	p    *caller.Principal
	view string
}

// NewRights makes the rights for an endpoint with authentication. Nil rules permit everything to every authenticated principal that
// is not an agent (see the func agent). Rules name servers as the config file does. names maps the served name of a server to its
// name in the config file, if mcpx serves it under a different name. So if a served name becomes free and another server gets it,
// no rule applies to that server by mistake.
func NewRights(rules []conf.Right, names map[string]string) *Rights {
	r := &Rights{
		all:    rules == nil,
		grants: lru.New[string, Permissions](maxGrants, nil), known: lru.New[visitor, *Permissions](maxKnown, nil),
	}
	for _, one := range rules {
		r.rules = append(r.rules, right{one, names})
	}
	return r
}

// Admin reports whether a principal may see the state of mcpx and change its servers. A nil principal may do so only if there is no
// authentication at all.
func (r *Rights) Admin(p *caller.Principal) bool {
	return r == nil || p != nil && !r.Out(p) && slices.ContainsFunc(r.rules, func(one right) bool { return one.Admin && one.of(p) })
}

// Opens reports whether a principal may connect to a view. For other principals the view does not exist. part is what the view
// shows; nil means the whole catalogue. A principal to which no rule gives anything may connect only to a view of the whole
// catalogue, where it sees nothing.
func (r *Rights) Opens(p *caller.Principal, view string, part *Scope) bool {
	switch {
	case r == nil:
		return true
	case p == nil:
		return false
	case r.everything(p):
		return true
	}
	g := r.Of(p, view)
	if len(g.rules) == 0 {
		return part == nil && !r.Names(p)
	}
	return part == nil || part.Servers == nil || slices.ContainsFunc(part.Servers, g.reaches)
}

// everything reports whether a principal may use everything, because no rules are configured and no servers have dialled in. It is
// false for an agent (see the func agent), because the tokens of agents may be made by somebody who does not configure the servers.
// An agent may use only the servers with which it has dialled in, and what rules give it.
func (r *Rights) everything(p *caller.Principal) bool {
	return r.all && len(r.dialled) == 0 && !agent(p)
}

// agent reports whether a principal is an agent of the older system that mcpx can replace (dial.compat in the config). Such an
// agent dials in with servers of its own, and proves who it is by a token that dial.compat permits.
func agent(p *caller.Principal) bool { return strings.HasPrefix(p.Name, conf.Agents) }

// Names reports whether any rule that gives something applies to a principal.
func (r *Rights) Names(p *caller.Principal) bool {
	return slices.ContainsFunc(r.rules, func(one right) bool { return !one.takes() && one.of(p) })
}

// Of returns what a principal may see and do in a view; nil means everything. Principals to which the same rules apply share the
// result. p is nil for mcpx itself, and for clients where there is no authentication.
func (r *Rights) Of(p *caller.Principal, view string) *Permissions {
	if r == nil || p == nil || r.everything(p) {
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

// permissions finds the Permissions of the rules that apply to a principal in a view, or makes them. The caller holds the lock.
func (r *Rights) permissions(p *caller.Principal, view string) *Permissions {
	which := make([]byte, 0, 16) // on the stack; two bytes for each rule
	for i := range r.rules {
		if one := &r.rules[i]; one.takes() && one.takesFrom(p) || !one.takes() && one.in(view) && one.of(p) {
			which = append(which, byte(i>>8), byte(i))
		}
	}
	rules := len(which)
	which, hidden, own := r.dialledFor(p, which)
	if agent(p) {
		which = append(which, 0xff) // agents have a text of their own in Permissions.empty
	}
	g := r.grants.Find(string(which))
	if g == nil {
		g = &Permissions{hidden: hidden, empty: nothing}
		if agent(p) {
			g.empty = nothingDialled
		} else if r.all {
			g.rules = append(g.rules, &right{})
		}
		if len(own) > 0 {
			g.rules = append(g.rules, &right{Right: conf.Right{Servers: own}})
		}
		which = which[:rules]
		for i := 0; i < len(which); i += 2 {
			one := &r.rules[int(which[i])<<8|int(which[i+1])]
			if one.takes() {
				g.taken = append(g.taken, one)
			} else {
				g.rules = append(g.rules, one)
			}
		}
		g.digest = digestOf(slices.Concat(g.rules, g.taken), hidden)
		r.grants.Put(string(which), g)
	}
	return g
}

func digestOf(rules []*right, hidden []string) string {
	all := make([]any, 0, 2*len(rules)+1)
	if len(hidden) > 0 {
		all = append(all, hidden)
	}
	for _, one := range rules {
		all = append(all, one.Right, one.names)
	}
	sum := sha256.Sum256(wire.Encode(all))
	return hex.EncodeToString(sum[:16])
}

// RightsOf returns the Rights in the rules of a snapshot, or nil if there are none.
func RightsOf(snap *catalog.Snapshot) *Rights {
	if rules := RulesOf(snap); rules != nil {
		return rules.Rights
	}
	return nil
}

// Permissions combine the rules that apply to a principal. Something is permitted if at least one rule permits it and no rule takes
// it away. Nil permits everything. Several goroutines may use Permissions at the same time.
type Permissions struct {
	rules   []*right
	taken   []*right // the rules that take something away
	hidden  []string // servers that have dialled in and that no rule can permit to this principal
	empty   string   // the text for a principal that sees no server
	digest  string
	visible Catalogues
}

// Digest returns a text that identifies the rules and the hidden servers. It is the same after a restart.
func (g *Permissions) Digest() string { return g.digest }

// byRights is the reason that [Permissions.See] returns for a hidden tool. Clients do not see the reason.
const byRights = "auth.rights"

// See implements [catalog.Rules]. It returns the tool if the rules permit it, and otherwise byRights.
func (g *Permissions) See(s *catalog.Server, t *catalog.Tool) (seen *catalog.Tool, hiddenBy string) {
	if !g.hides(s.Name) && !g.takesTool(s, t) && slices.ContainsFunc(g.rules, func(r *right) bool { return r.sees(s, t) }) {
		return t, ""
	}
	return nil, byRights
}

// Denies reports whether a rule denies a tool of the built-in server by its name. No other rule restricts the tools of this server:
// every caller may call them, but with them callers reach only what the rules permit.
func (g *Permissions) Denies(s *catalog.Server, tool string) bool {
	return g != nil && (slices.ContainsFunc(g.rules, func(r *right) bool { return Match(r.Deny, s.Name+"."+tool) }) ||
		slices.ContainsFunc(g.taken, func(r *right) bool { return r.takesTool(s.Name, tool) }))
}

func (g *Permissions) reaches(server string) bool {
	return !g.hides(server) && !g.takesServer(server) && slices.ContainsFunc(g.rules, func(r *right) bool { return r.reaches(server) })
}

// hides reports whether a server is hidden from this principal, so that no rule can permit it: another principal has dialled in
// with the server, and has not opened it to this principal, or no admin has approved it yet.
func (g *Permissions) hides(server string) bool { return slices.Contains(g.hidden, server) }

// Confirms says which calls of a tool the user must confirm. It returns the strictest Confirm of the rules that permit the tool.
// For requests with methods that mcpx does not know, t is nil: then all rules that reach the server count.
func (g *Permissions) Confirms(s *catalog.Server, t *catalog.Tool) conf.Confirm {
	strictest := conf.ConfirmNone
	if g != nil {
		for _, r := range g.rules {
			if r.Confirm > strictest && (t == nil && r.reaches(s.Name) || t != nil && r.sees(s, t)) {
				strictest = r.Confirm
			}
		}
	}
	return strictest
}

// Of returns the part of a catalogue that the permissions allow. It leaves out servers of which nothing is permitted. It computes
// the part of a catalogue only once.
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
			reached.Empty = g.empty
		}
		seen := g.visible.of(reached, true) // true keeps tools for apps; snap has them only if they may be visible
		empty := func(s catalog.Server) bool { return s.Known && len(s.Tools) == 0 && !g.whole(s.Name) }
		if !slices.ContainsFunc(seen.Servers, empty) {
			return seen
		}
		left := catalog.NewSnapshot(slices.DeleteFunc(slices.Clone(seen.Servers), empty))
		if len(left.Servers) == 0 {
			left.Empty = g.empty
		}
		return left
	})
}

// nothing is the text for a principal to which no rule permits anything.
const nothing = "Nothing is allowed here for who is logged in. The operator of mcpx can allow it (auth.rights)."

// nothingDialled is the text for an agent that has no server.
const nothingDialled = "No tool server of this agent has connected. It connects to /mcp_endpoint/mcp/ with a token of this agent."

// whole reports whether any rule permits a server together with its resources and prompts. No rule may take a part of the server
// away.
func (g *Permissions) whole(server string) bool {
	return !g.takesSome(server) && slices.ContainsFunc(g.rules, func(r *right) bool { return r.whole() && r.reaches(server) })
}

// server returns a server without its resources and prompts, unless a rule permits the whole server. It clears the field Limited
// only if a rule permits the whole server without any condition. permitted is false if no rule permits any part of the server.
func (g *Permissions) server(s catalog.Server) (left catalog.Server, permitted bool) {
	if g.hides(s.Name) || g.takesServer(s.Name) {
		return s, false
	}
	s.Limited = true
	taken := g.takesSome(s.Name)
	for _, r := range g.rules {
		if !r.reaches(s.Name) {
			continue
		}
		permitted = true
		if r.whole() && !r.ReadOnly && r.Confirm == conf.ConfirmNone && !taken {
			s.Limited = false
		}
	}
	if permitted && !g.whole(s.Name) {
		s.Offers, s.Items, s.Listed, s.ToolsOnly = catalog.Offers{Tasks: s.Offers.Tasks}, nil, true, true
	}
	return s, permitted
}
