package config

import (
	"mcpx/internal/base/conf"
)

func (l *loader) dialObject(d *conf.Dial) object {
	return object{name: "dial", strict: true, keys: []key{
		enabled,
		{"allow", list(l, &d.Allow, conf.DialRule{For: conf.DialSelf}, l.dialRule, l.checkDialRule), "rules: who may dial in, under which names, for whom. The first one that matches decides"},
		{"compat", value{schema: `{"const": false}`, read: func(n *node) {
			if !n.off() {
				l.fault(n, "can only be false: the paths of the older system are not served yet")
			}
		}}, "the paths of an older system; they are not served yet"},
	}}
}

func (l *loader) dialRule(r *conf.DialRule) object {
	of := &serverReader{l: l}
	return object{name: "dialRule", strict: true, keys: []key{
		{"principals", l.some(l.globs(&r.Principals)).notNull(), "globs of the names of principals; without it every principal"},
		{"groups", l.some(l.names(&r.Groups)).notNull(), "groups of which the principal must have one"},
		{"scopes", l.some(l.names(&r.Scopes)).notNull(), "scopes of which the principal must have one"},
		{"names", l.some(l.globs(&r.Names)).notNull(), "globs of the names under which they may dial in"},
		{"for", oneOf(l, &r.For, conf.DialSelf, conf.DialGroup, conf.DialAll), "who can use the servers: `self`, who dialled in; `group`, who has one of the same groups; `all`, whose `rights` allow it. For `group` and `all` an admin must approve the tools first"},
		{"overrides", value{named: true, of: func() object { return of.override(&conf.Override{}) }, read: func(n *node) {
			of.overrides(n)
			r.Overrides = of.s.Overrides
		}}, "repairs the definitions of their tools, like `overrides` of a server"},
	}}
}

func (l *loader) checkDialRule(n *node, r *conf.DialRule) {
	if len(r.Names) == 0 && len(l.faults) == 0 {
		l.fault(n, `needs "names", such as ["laptop-*"]`)
	}
}

func (l *loader) checkDial(n *node, d *conf.Dial) {
	if len(d.Allow) == 0 && len(l.faults) == 0 {
		l.fault(n, `needs "allow", such as [{"names": ["laptop-*"]}]: without a rule nobody may dial in`)
	}
}
