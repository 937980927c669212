package config

import (
	"net/url"
	"slices"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/pattern"
)

// minClusterKey is the smallest length, in bytes, that the value of cluster.key may have.
const minClusterKey = 32

var (
	bucketForm  = pattern.New(`^[A-Za-z0-9_-]{1,64}$`)
	natsSchemes = []string{"nats", "tls", "ws", "wss"}
)

func (l *loader) clusterObject(c *conf.Cluster) object {
	return object{name: "cluster", strict: true, keys: []key{
		enabled,
		{"nats", l.severalOf(&c.NATS, l.natsURL), "the URL of a NATS server with JetStream, 2.11 or later, or a list of them; may be `${…}`"},
		{"credentials", l.secret(&c.Credentials), "the NATS credentials: the absolute path of a `.creds` file, or its content as `${…}`"},
		{"tls", l.nested(func() object { return l.clientTLSObject(&c.TLS) }), "certificates for the connections to NATS"},
		{"key", l.severalOf(&c.Keys, l.clusterKey), "at least 32 characters, the same at all replicas: everything that they share is sealed with it. In a list the first seals and all open, so that a key can be replaced"},
		{"name", l.str(&c.Name), "the name of this replica in logs; without it the name of the host"},
		{"bucket", value{into: &c.Bucket, schema: `{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}`, read: func(n *node) {
			switch {
			case !l.expectKind(stringKind, n):
			case !bucketForm.MatchString(n.text):
				l.fault(n, "must have 1 to 64 letters, digits, '_' and '-'")
			default:
				c.Bucket = n.text
			}
		}}, "the name of the cluster in NATS: of its key-value bucket, and in its subjects"},
	}}
}

func (l *loader) clientTLSObject(t *conf.ClientTLS) object {
	return object{name: "clientTLS", strict: true, keys: []key{
		{"ca", l.path(&t.CA), "the authorities that sign the server's certificate, a PEM file; without it those of the system"},
		{"cert", l.path(&t.Cert), "the certificate of mcpx, a PEM file"},
		{"key", l.path(&t.Key), "its private key, a PEM file"},
	}}
}

// severalOf reads a string or an array of strings, and expands the references in them. It calls the function check for each string
// in which all references have values.
func (l *loader) severalOf(into *[]string, check func(n *node, text string)) value {
	return value{schema: `{"anyOf": [` + text + `, ` + texts + `]}`, read: func(n *node) {
		items := []*node{n}
		if n.kind == arrayKind {
			items = n.items
		}
		*into = nil
		for _, item := range items {
			text, ok := l.expanded(item)
			if ok {
				check(item, text)
			}
			if ok || l.o.Absent {
				*into = append(*into, text)
			}
		}
	}}
}

func (l *loader) natsURL(n *node, text string) {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains(natsSchemes, u.Scheme) || u.Host == "" {
		l.fault(n, "must be the URL of a NATS server, such as nats://127.0.0.1:4222")
		return
	}
	if secret, ok := u.User.Password(); ok {
		l.cfg.Secrets = append(l.cfg.Secrets, secret)
	} else if u.User != nil {
		l.cfg.Secrets = append(l.cfg.Secrets, u.User.Username()) // without a password, NATS takes the user name as a token
	}
}

func (l *loader) clusterKey(n *node, text string) {
	if len(text) < minClusterKey {
		l.fault(n, "must have at least %d characters, such as the output of: openssl rand -hex 32", minClusterKey)
	}
	if text != "" {
		l.cfg.Secrets = append(l.cfg.Secrets, text)
	}
}

func (l *loader) checkCluster(n *node, c *conf.Cluster) {
	if len(l.faults) > 0 {
		return
	}
	switch {
	case len(c.NATS) == 0 || len(c.Keys) == 0:
		l.fault(n, "needs nats and key")
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		l.fault(n, "tls needs both cert and key, or neither")
	}
}
