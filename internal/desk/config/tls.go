package config

import (
	"slices"

	"mcpx/internal/base/conf"
)

// tls reads what mcpx serves HTTP with.
func (l *loader) tls(path string, n *node) {
	if n.kind != objectKind && n.off() || !l.is(objectKind, path, n) {
		return
	}
	t := &conf.TLS{}
	l.members(path, n, l.tlsObject(t), nil)
	for _, key := range []string{"cert", "key"} {
		if !slices.ContainsFunc(n.members, func(m member) bool { return m.key == key && m.value.kind != nullKind }) {
			l.fault(path, n.offset, "needs %s, the name of a PEM file", key)
		}
	}
	l.cfg.TLS = t
}

func (l *loader) tlsObject(t *conf.TLS) object {
	return object{name: "tls", strict: true, keys: []key{
		{"cert", l.path(&t.Cert), "the certificate with its intermediate ones, a PEM file"},
		{"key", l.path(&t.Key), "its private key, a PEM file"},
		{"client_ca", l.path(&t.ClientCA), "the authorities of certificates of clients: each client needs one then, unless `auth.certificates` makes it one way of several"},
	}}
}
