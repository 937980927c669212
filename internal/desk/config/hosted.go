package config

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/conf"
)

// Audit has the keys for the audit trail.
type Audit struct {
	// File is the path of the trail, absolute if [Config.Path] is.
	File string
	// Required means that mcpx refuses a call that it cannot record.
	Required bool
	// Keys are the keys for the HMACs that chain the lines of the trail. mcpx makes the HMACs of new lines with the first key, and
	// checks older lines with any of the keys. Without keys, lines have no HMACs.
	Keys []string `json:"-"`
	// MaxBytes is the size in bytes at which mcpx renames the file and starts a new one; 0 means the default. Keep is how many
	// renamed files mcpx keeps; 0 means all.
	MaxBytes int64
	Keep     int
}

const (
	minAuditKey   = 16       // characters; a short key could be guessed, and the trail then forged
	minAuditBytes = 64 << 10 // enough for some hundred lines
)

func (l *loader) auditObject(a *Audit) object {
	return object{name: "audit", strict: true, keys: []key{
		enabled,
		{"file", l.path(&a.File), "the trail; a relative name begins at the config file"},
		{"required", l.boolean(&a.Required), "no call is made that cannot be recorded"},
		{"key", l.secrets(&a.Keys, minAuditKey, "whoever guesses it can forge the trail", false), "at least 16 characters: each line has its HMAC; may be `${…}`. Of a list the first is for new lines, and all check older ones"},
		{"max_bytes", whole(l, &a.MaxBytes, minAuditBytes, math.MaxInt64), "the size at which the file is renamed; without it 100 MiB"},
		{"keep", l.count(&a.Keep, 0), "how many renamed files stay; 0 is all"},
	}}
}

func (l *loader) checkAudit(n *node, a *Audit) {
	if a.File == "" && len(l.faults) == 0 {
		l.fault(n, `needs a "file"`)
	}
}

// Telemetry has the keys for metrics and traces.
type Telemetry struct {
	// Metrics means that mcpx serves metrics at /metrics, to admins and to principals whose names match one of the globs in
	// MetricsFor.
	Metrics    bool
	MetricsFor []string
	// OTLP is the collector to which traces are sent; nil means that no traces are sent.
	OTLP *OTLP
}

// OTLP is an OpenTelemetry collector that is reached over HTTP.
type OTLP struct {
	// Endpoint is the complete URL, which usually ends in /v1/traces.
	Endpoint string
	Headers  map[string]string `json:"-"`
	// Sample is a share, from 0 to 1. mcpx sends this share of the traces that it begins itself. If a client began a trace, the
	// client decides whether mcpx sends it.
	Sample float64
}

func (l *loader) telemetry(n *node) {
	if n.kind != objectKind && n.off() {
		l.cfg.Telemetry.Metrics = false
		return
	}
	if l.expectKind(objectKind, n) {
		l.members(n, l.telemetryObject(), nil)
	}
}

func (l *loader) telemetryObject() object {
	t := &l.cfg.Telemetry
	metrics, globs := l.boolean(&t.Metrics), l.globs(&t.MetricsFor).read
	metrics.schema = `{"anyOf": [{"type": "boolean"}, ` + texts + `]}`
	served := metrics.read
	metrics.read = func(n *node) {
		if n.kind == arrayKind {
			globs(n)
			return
		}
		served(n)
	}
	return object{name: "telemetry", keys: []key{
		{"metrics", metrics, "`/metrics`, for admins; a list of globs adds the principals of these names"},
		{"otlp", optional(l, &t.OTLP, OTLP{Sample: 1}, l.otlpObject, l.checkOTLP), "an OpenTelemetry collector, for traces"},
	}}
}

func (l *loader) checkOTLP(n *node, o *OTLP) {
	if o.Endpoint == "" && len(l.faults) == 0 {
		l.fault(n, `needs an "endpoint"`)
	}
}

func (l *loader) otlpObject(o *OTLP) object {
	return object{name: "otlp", keys: []key{
		enabled,
		{"endpoint", value{schema: text, read: func(n *node) {
			text, ok := l.expanded(n)
			u, err := url.Parse(text)
			switch {
			case !ok:
			case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
				l.fault(n, "must be the URL of a collector, such as http://127.0.0.1:4318")
			case strings.Trim(u.Path, "/") == "":
				u.Path = "/v1/traces"
				text = u.String()
			}
			o.Endpoint = text
		}}, "its URL; `/v1/traces` is added to one without a path"},
		{"headers", value{schema: `{"type": "object", "additionalProperties": {"type": "string"}}`, read: func(n *node) {
			if !l.expectKind(objectKind, n) {
				return
			}
			o.Headers = make(map[string]string)
			for _, m := range n.members {
				if !headerKey.MatchString(m.key) {
					l.fault(m, "is not the name of a header")
					continue
				}
				o.Headers[m.key], _ = l.expanded(m)
				l.cfg.Secrets = append(l.cfg.Secrets, o.Headers[m.key])
			}
		}}, "headers of the requests to it; may be `${…}`"},
		{"sample", value{into: &o.Sample, schema: `{"type": "number", "minimum": 0, "maximum": 1}`, read: func(n *node) {
			share, err := strconv.ParseFloat(n.text, 64)
			if n.kind != numberKind || err != nil || !(share >= 0 && share <= 1) {
				l.fault(n, "must be a number from 0 to 1")
			}
			o.Sample = share
		}}, "the share that is sent of the traces that begin here"},
	}}
}

func (l *loader) tls(n *node) {
	if !n.on() || !l.expectKind(objectKind, n) {
		return
	}
	l.cfg.TLS = &conf.TLS{}
	l.members(n, l.tlsObject(l.cfg.TLS), nil)
	for _, key := range []string{"cert", "key"} {
		if !slices.ContainsFunc(n.members, func(m *node) bool { return m.key == key && m.kind != nullKind }) {
			l.fault(n, "needs %s, the name of a PEM file", key)
		}
	}
}

func (l *loader) tlsObject(t *conf.TLS) object {
	return object{name: "tls", strict: true, keys: []key{
		enabled,
		{"cert", l.path(&t.Cert), "the certificate with its intermediate ones, a PEM file"},
		{"key", l.path(&t.Key), "its private key, a PEM file"},
		{"client_ca", l.path(&t.ClientCA), "the authorities that sign the certificates of clients. Every client then needs a certificate, unless `auth.certificates` makes it one of several credentials"},
	}}
}
