package config

import "slices"

// TLS names the PEM files of the server's certificate, as absolute paths.
type TLS struct {
	Cert, Key string
	// ClientCA has the authorities of certificates of clients; empty: clients need none.
	ClientCA string
}

// tls reads what mcpx serves HTTP with. Its unknown keys are faults: each may be meant to
// keep somebody out.
func (l *loader) tls(path string, n *node) {
	if n.kind != objectKind && n.off() || !l.is(objectKind, path, n) {
		return
	}
	t := &TLS{}
	l.only(path, n, map[string]reader{
		"cert":      l.path(&t.Cert),
		"key":       l.path(&t.Key),
		"client_ca": l.path(&t.ClientCA),
	})
	for _, key := range []string{"cert", "key"} {
		if !slices.ContainsFunc(n.members, func(m member) bool { return m.key == key && m.value.kind != nullKind }) {
			l.fault(path, n.offset, "needs %s, the name of a PEM file", key)
		}
	}
	l.cfg.TLS = t
}
