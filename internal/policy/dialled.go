package policy

import (
	"slices"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

// Dialled is a server that has dialled in: it has itself opened the connection to mcpx, with the credential of a principal.
type Dialled struct {
	Server string // the name under which mcpx serves it
	Owner  string // the ID of the principal that has dialled in
	// For says who sees the server. With [conf.DialSelf], only the owner sees it, and needs no rule of auth.rights. With any other
	// value, a principal sees the server only if a rule also permits it.
	For string
	// Groups are set if For is [conf.DialGroup]: principals that have one of these groups see the server.
	Groups []string
	// Unapproved means that no admin has approved the server for others yet. Only its owner sees it until then.
	Unapproved bool `json:"-"`
}

// opens reports whether For, Owner, Groups and Unapproved let a principal see the server. It does not check the rules of
// auth.rights. Unless For is [conf.DialSelf], one of these rules must permit the server, too.
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

// With makes r also decide about the servers in dialled, and returns r. It must be called before r is used.
func (r *Rights) With(dialled []Dialled) *Rights {
	if r == nil || len(dialled) == 0 {
		return r
	}
	r.dialled = dialled
	return r
}

// dialledFor sorts the servers that have dialled in: hidden are those that the principal must not see, and owned those that it sees
// without a rule. It also appends one byte for each of these servers to key. The byte says whether the server is in hidden, in
// owned or in neither. The result, longer, becomes the principal's key in Rights.grants: principals with equal keys share their
// Permissions.
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

// MayDial returns the first rule that lets a principal dial in with a server under a name; nil if there is none. Without
// authentication p is nil, and only rules that are for every principal apply.
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
