package config

import (
	"mcpx/internal/base/conf"
)

// leastCompatKey is the least length of dial.compat_key with signed tokens, in bytes. The keys of the older system, for encrypted
// tokens, may have any length.
const leastCompatKey = 32

func (l *loader) dialObject(d *conf.Dial) object {
	return object{name: "dial", strict: true, keys: []key{
		enabled,
		{"allow", list(l, &d.Allow, conf.DialRule{For: conf.DialSelf}, l.dialRule, l.checkDialRule), "rules: who may dial in, under which names, for whom. The first one that matches decides"},
		{"compat", value{into: &d.Compat, schema: `{"enum": [false, "signed", "encrypted"]}`, read: func(n *node) {
			if n.off() {
				d.Compat = ""
				return
			}
			oneOf(l, &d.Compat, "signed", "encrypted").read(n)
		}}, "also the paths of the older system, with tokens in the URL: `signed` ones, which expire; `encrypted`: also its AES-ECB tokens, which never expire and can be forged in parts"},
		{"compat_key", value{schema: text, read: func(n *node) {
			d.CompatKey, _ = l.expanded(n)
			l.cfg.Secrets = append(l.cfg.Secrets, d.CompatKey)
		}}, "the key of those tokens; may be `${…}`"},
	}}
}

func (l *loader) dialRule(r *conf.DialRule) object {
	return object{name: "dialRule", strict: true, keys: []key{
		{"principals", l.some(l.globs(&r.Principals)).notNull(), "globs of the names of principals; without it every principal"},
		{"groups", l.some(l.names(&r.Groups)).notNull(), "groups of which the principal must have one"},
		{"scopes", l.some(l.names(&r.Scopes)).notNull(), "scopes of which the principal must have one"},
		{"names", l.some(l.globs(&r.Names)).notNull(), "globs of the names under which they may dial in"},
		{"for", oneOf(l, &r.For, conf.DialSelf, conf.DialGroup, conf.DialAll), "who can use the servers: `self`, who dialled in; `group`, who has one of the same groups; `all`, whose `rights` allow it. For `group` and `all` an admin must approve the tools first"},
	}}
}

func (l *loader) checkDialRule(n *node, r *conf.DialRule) {
	if len(r.Names) == 0 && len(l.faults) == 0 {
		l.fault(n, `needs "names", such as ["laptop-*"]`)
	}
}

func (l *loader) checkDial(n *node, d *conf.Dial) {
	switch {
	case len(l.faults) > 0:
	case d.Compat != "" && d.CompatKey == "":
		l.fault(n, `needs a "compat_key" for "compat"`)
	case d.Compat == "signed" && len(d.CompatKey) < leastCompatKey:
		l.fault(n, `the "compat_key" must be at least %d characters long, such as the output of: openssl rand -hex 32`, leastCompatKey)
	}
}
