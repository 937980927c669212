package policy

import (
	"slices"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

// Dialled is a server that has connected to mcpx by itself (dialled in), on behalf of a principal.
type Dialled struct {
	Server string // the name under which mcpx serves it
	Owner  string // the ID of the principal
	// For says who sees the server. If the server is only for its owner, the owner sees it without any rule of auth.rights. Any
	// other server is visible only to principals to whom a rule permits it.
	For string
	// If For is [conf.DialGroup], Groups are the groups of the principals that see the server.
	Groups []string
	// Unapproved means that no admin has approved the server for others yet: only its owner sees it.
	Unapproved bool `json:"-"`
}

// opens reports whether the server is meant for a principal. Unless For is [conf.DialSelf], a rule must also permit the server.
func (d *Dialled) opens(p *caller.Principal) bool {
	switch {
	case d.Unapproved:
	case d.For == conf.DialAll:
		return true
	case d.For == conf.DialGroup:
		return d.Owner == p.ID || slices.ContainsFunc(d.Groups, func(group string) bool { return slices.Contains(p.Groups, group) })
	}
	return d.Owner == p.ID
}

// With makes r decide about these servers too, and returns r. It must be called before r is used.
func (r *Rights) With(dialled []Dialled) *Rights {
	if r == nil || len(dialled) == 0 {
		return r
	}
	r.dialled = dialled
	return r
}

// dialledFor returns the dialled-in servers that a principal must not see (hidden), and those that it sees without a rule
// (owned). key is the principal's key in the cache of Permissions. longer is key with one more byte for each dialled-in server: the
// byte says whether the principal sees the server. Principals with equal keys share their Permissions.
func (r *Rights) dialledFor(p *caller.Principal, key []byte) (longer []byte, hidden, owned []string) {
	if len(r.dialled) > 0 {
		key = append(key, 0xff) // separates the bytes that follow from the indexes of rules
	}
	for i := range r.dialled {
		mark := byte(0)
		switch d := &r.dialled[i]; {
		case !d.opens(p):
			hidden = append(hidden, d.Server)
		case d.For == conf.DialSelf:
			mark, owned = 1, append(owned, d.Server)
		default:
			mark = 2
		}
		key = append(key, mark)
	}
	return key, hidden, owned
}

// MayDial returns the first rule that lets a principal connect a server of its own to mcpx under a name; nil if there is none.
// Without authentication p is nil, and only rules for every principal apply.
func MayDial(rules []conf.DialRule, p *caller.Principal, name string) *conf.DialRule {
	for i := range rules {
		rule := &rules[i]
		of := right{Right: conf.Right{Principals: rule.Principals, Groups: rule.Groups, Scopes: rule.Scopes}}
		known := len(rule.Principals)+len(rule.Groups)+len(rule.Scopes) == 0
		if p != nil {
			known = of.of(p)
		}
		if known && Match(rule.Names, name) {
			return rule
		}
	}
	return nil
}
