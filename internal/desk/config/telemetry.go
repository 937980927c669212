package config

import (
	"net/url"
	"strconv"
	"strings"
)

// Telemetry says what others can measure.
type Telemetry struct {
	// Metrics are served at /metrics, to admins and to the principals whose names match one
	// of the globs in MetricsFor.
	Metrics    bool
	MetricsFor []string
	// OTLP is where traces go; nil: nowhere.
	OTLP *OTLP
}

// OTLP is a collector of OpenTelemetry, over HTTP.
type OTLP struct {
	// Endpoint is the whole URL, which mostly ends in /v1/traces.
	Endpoint string
	Headers  map[string]string `json:"-"`
	// Sample is the share of traces, 0 to 1, that is sampled of those that begin here. A
	// trace that the client has begun is sampled if the client samples it.
	Sample float64
}

// telemetry reads what others can measure.
func (l *loader) telemetry(path string, n *node) {
	if n.kind != objectKind && n.off() {
		l.cfg.Telemetry.Metrics = false
		return
	}
	if l.is(objectKind, path, n) {
		l.members(path, n, l.telemetryObject(), nil)
	}
}

func (l *loader) telemetryObject() object {
	t := &l.cfg.Telemetry
	metrics, of := l.boolean(&t.Metrics), l.globs(&t.MetricsFor)
	metrics.schema, metrics.read = `{"anyOf": [`+metrics.schema+`, `+texts+`]}`, func(path string, n *node) {
		if n.kind == arrayKind {
			of.read(path, n)
			return
		}
		l.boolean(&t.Metrics).read(path, n)
	}
	return object{name: "telemetry", keys: []key{
		{"metrics", metrics, "`/metrics`, for admins; a list of globs adds the principals of these names"},
		{"otlp", value{read: l.otlp, off: "off", of: func() object { return l.otlpObject(&OTLP{Sample: 1}) }}, "a collector of OpenTelemetry, for traces"},
	}}
}

func (l *loader) otlp(path string, n *node) {
	if n.off() || !l.is(objectKind, path, n) {
		return
	}
	o := &OTLP{Headers: map[string]string{}, Sample: 1}
	l.members(path, n, l.otlpObject(o), nil)
	if o.Endpoint == "" && len(l.faults) == 0 {
		l.fault(path, n.offset, `needs an "endpoint"`)
	}
	l.cfg.Telemetry.OTLP = o
}

func (l *loader) otlpObject(o *OTLP) object {
	return object{name: "otlp", keys: []key{
		enabled,
		{"endpoint", value{schema: text, read: func(path string, n *node) {
			text, ok := l.expanded(path, n)
			u, err := url.Parse(text)
			switch {
			case !ok:
			case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
				l.fault(path, n.offset, "must be the URL of a collector, such as http://127.0.0.1:4318")
			case strings.Trim(u.Path, "/") == "":
				u.Path = "/v1/traces"
				text = u.String()
			}
			o.Endpoint = text
		}}, "its URL; `/v1/traces` is added to one without a path"},
		{"headers", value{schema: `{"type": "object", "additionalProperties": {"type": "string"}}`, read: func(path string, n *node) {
			if !l.is(objectKind, path, n) {
				return
			}
			for _, m := range n.members {
				at := join(path, m.key)
				if !headerKey.MatchString(m.key) {
					l.fault(at, m.offset, "is no name of a header")
					continue
				}
				o.Headers[m.key], _ = l.expanded(at, m.value)
				l.cfg.Secrets = append(l.cfg.Secrets, o.Headers[m.key])
			}
		}}, "headers of the requests to it; may be `${…}`"},
		{"sample", value{into: &o.Sample, schema: `{"type": "number", "minimum": 0, "maximum": 1}`, read: func(path string, n *node) {
			share, err := strconv.ParseFloat(n.text, 64)
			if n.kind != numberKind || err != nil || !(share >= 0 && share <= 1) {
				l.fault(path, n.offset, "must be a number from 0 to 1")
			}
			o.Sample = share
		}}, "the share of traces that is sent of those that begin here"},
	}}
}
