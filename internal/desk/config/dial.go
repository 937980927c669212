package config

import (
	"mcpx/internal/base/conf"
)

func (l *loader) dialObject(d *conf.Dial) object {
	return object{name: "dial", strict: true, keys: []key{
		enabled,
		{"allow", list(l, &d.Allow, conf.DialRule{For: conf.DialSelf}, l.dialRule, l.checkDialRule), "rules: who may dial in, under which names, for whom. The first one that matches decides"},
		{"compat", switched(l, &d.Compat, "signed", "encrypted"), "the paths of an older system ([agents](docs/dial.md#agents-of-the-older-system)): `signed` accepts tokens of `mcpx token agent`; `encrypted` also the tokens of that system, which never end"},
		{"compat_key", l.secrets(&d.Keys, minCompatKey, "whoever guesses it can make tokens", true), "the secret by which agents' tokens are made, at least 32 characters. Of a list the first makes, and all open: `[NEW, OLD]` replaces it"},
	}}
}

func (l *loader) dialRule(r *conf.DialRule) object {
	reader := &serverReader{l: l}
	return object{name: "dialRule", strict: true, keys: []key{
		{"principals", l.appliesTo(l.globs(&r.Principals)).notNull(), "globs of the names of principals; without it every principal"},
		{"groups", l.appliesTo(l.names(&r.Groups)).notNull(), "groups of which the principal must have one"},
		{"scopes", l.appliesTo(l.names(&r.Scopes)).notNull(), "scopes of which the principal must have one"},
		{"names", l.appliesTo(l.globs(&r.Names)).notNull(), "globs of the names under which they may dial in"},
		{"for", oneOf(l, &r.For, conf.DialSelf, conf.DialGroup, conf.DialAll), "who can use the servers: `self`, who dialled in; `group`, who has one of the same groups; `all`, whose `rights` allow it. For `group` and `all` an admin must approve the tools first"},
		{"overrides", value{named: true, describe: func() object { return reader.override(&conf.Override{}) }, read: func(n *node) {
			reader.overrides(n)
			r.Overrides = reader.s.Overrides
		}}, "repairs the definitions of their tools, like `overrides` of a server"},
	}}
}

func (l *loader) checkDialRule(n *node, r *conf.DialRule) {
	if len(r.Names) == 0 && len(l.faults) == 0 {
		l.fault(n, `needs "names", such as ["laptop-*"]`)
	}
}

// minCompatKey is the smallest length, in bytes, that the value of dial.compat_key may have. mcp-endpoint-server, the older system
// whose paths dial.compat serves, made keys of this length.
const minCompatKey = 32

func (l *loader) checkDial(n *node, d *conf.Dial) {
	switch {
	case len(l.faults) > 0:
	case len(d.Allow) == 0 && d.Compat == conf.CompatOff:
		l.fault(n, `needs "allow", such as [{"names": ["laptop-*"]}]: without a rule nobody may dial in`)
	case d.Compat != conf.CompatOff && len(d.Keys) == 0:
		l.fault(n, `needs "compat_key" beside "compat": the secret by which agents' tokens are made`)
	}
}

// finishDial adds what the key dial.compat implies. With this key, programs that were made for mcp-endpoint-server (here called
// agents) use mcpx with their tokens. finishDial adds a last rule by which each agent may dial in, that is, connect to mcpx as
// a server. Only the agent itself can use this server. If the file has no auth, finishDial adds an empty Auth, so that all
// other clients need a credential.
func (l *loader) finishDial() {
	if !l.agents() {
		return
	}
	d := l.cfg.Dial
	d.Allow = append(d.Allow, conf.DialRule{Principals: []string{conf.Agents + "*"}, Names: []string{"*"}, For: conf.DialSelf})
	if d.Compat == conf.CompatEncrypted {
		l.warn("dial.compat: encrypted accepts tokens that never end, and that someone who has one can alter (AES in ECB mode); " +
			"give each agent a token of mcpx token agent, and then set signed")
	}
	if l.cfg.Auth == nil {
		l.cfg.Auth = &Auth{}
		l.warn("dial.compat: there is no auth, so only agents can connect over HTTP; mcpx token new NAME makes a token for others")
	}
}

// agents reports whether the key dial.compat lets programs that were made for mcp-endpoint-server dial in at its paths.
func (l *loader) agents() bool { return l.cfg.Dial != nil && l.cfg.Dial.Compat != conf.CompatOff }
