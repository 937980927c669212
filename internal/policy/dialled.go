package policy

import (
	"slices"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

// Dialled is a server that a principal has dialled in with.
type Dialled struct {
	Server string // the name under which it is served
	Owner  string // the ID of the principal
	// For says who sees it. A server for the owner alone is visible to the owner without any rule of auth.rights; other
	// servers are visible to those whom a rule permits them.
	For string
	// Groups are the groups of the principals that see it, with [conf.DialGroup].
	Groups []string
	// Unapproved means that no admin has approved it for others yet: only the owner sees it.
	Unapproved bool `json:"-"`
}

// opens reports whether a principal may see the server, if its rights permit that.
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

// With returns rights that also decide about these servers.
func (r *Rights) With(dialled []Dialled) *Rights {
	if r == nil || len(dialled) == 0 {
		return r
	}
	r.dialled = dialled
	return r
}

// dialledFor returns the servers that a principal must not see, and those that it sees without a rule. It also returns key,
// extended by what it decided about each server; principals with equal keys share their Permissions.
func (r *Rights) dialledFor(p *caller.Principal, key []byte) (longer []byte, hidden, own []string) {
	if len(r.dialled) > 0 {
		key = append(key, 0xff) // separates these bytes from the indexes of rules before them
	}
	for i := range r.dialled {
		mark := byte(0)
		switch d := &r.dialled[i]; {
		case !d.opens(p):
			hidden = append(hidden, d.Server)
		case d.For == conf.DialSelf:
			mark, own = 1, append(own, d.Server)
		default:
			mark = 2
		}
		key = append(key, mark)
	}
	return key, hidden, own
}

// MayDial returns the first rule that lets a principal dial in under a name; nil if there is none. Without authentication p is
// nil, and only rules for every principal apply.
func MayDial(rules []conf.DialRule, p *caller.Principal, name string) *conf.DialRule {
	for i := range rules {
		rule := &rules[i]
		of := right{Right: Right{Principals: rule.Principals, Groups: rule.Groups, Scopes: rule.Scopes}}
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
