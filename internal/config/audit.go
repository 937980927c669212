package config

import (
	"math"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// Audit says where the trail of what happened is kept.
type Audit struct {
	// File is an absolute path.
	File string
	// Required: a call that cannot be recorded is refused.
	Required bool
	// Key chains the lines; empty: no chain.
	Key string `json:"-"`
	// MaxBytes is the size at which the file is rotated, Keep the number of rotated files
	// that stay; 0 is the default, and all.
	MaxBytes int64
	Keep     int
}

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

const (
	// leastAuditKey is the length of the shortest audit.key: who guesses it can forge the trail.
	leastAuditKey = 16
	// leastAuditBytes holds some hundred lines.
	leastAuditBytes = 64 << 10
)

// audit reads where the trail is kept. Its unknown keys are faults: each may be meant to
// protect something.
func (l *loader) audit(path string, n *node) {
	if n.off() || !l.is(objectKind, path, n) {
		return
	}
	a := &Audit{}
	l.members(path, n, map[string]reader{
		"file":     l.path(&a.File),
		"required": l.boolean(&a.Required),
		"key": func(path string, n *node) {
			text, ok := l.expanded(path, n)
			if ok && len(text) < leastAuditKey {
				l.fault(path, n.offset, "must be at least %d characters long, such as the output of: openssl rand -hex 32", leastAuditKey)
			}
			a.Key = text
		},
		"max_bytes": whole(l, &a.MaxBytes, leastAuditBytes, math.MaxInt64),
		"keep":      l.count(&a.Keep, 0),
		"enabled":   func(string, *node) {}, // off says so otherwise
	}, l.noOther)
	if a.File == "" && len(l.faults) == 0 {
		l.fault(path, n.offset, `needs a "file"`)
	}
	l.cfg.Audit = a
}

// telemetry reads what others can measure.
func (l *loader) telemetry(path string, n *node) {
	t := &l.cfg.Telemetry
	if n.kind != objectKind && n.off() {
		t.Metrics = false
		return
	}
	if !l.is(objectKind, path, n) {
		return
	}
	l.members(path, n, map[string]reader{
		"metrics": func(path string, n *node) {
			if n.kind == arrayKind {
				l.globs(&t.MetricsFor)(path, n)
				return
			}
			l.boolean(&t.Metrics)(path, n)
		},
		"otlp": l.otlp,
	}, nil)
}

func (l *loader) otlp(path string, n *node) {
	if n.off() || !l.is(objectKind, path, n) {
		return
	}
	o := &OTLP{Headers: map[string]string{}, Sample: 1}
	l.members(path, n, map[string]reader{
		"endpoint": func(path string, n *node) {
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
		},
		"headers": func(path string, n *node) {
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
		},
		"sample": func(path string, n *node) {
			share, err := strconv.ParseFloat(n.text, 64)
			if n.kind != numberKind || err != nil || !(share >= 0 && share <= 1) {
				l.fault(path, n.offset, "must be a number from 0 to 1")
			}
			o.Sample = share
		},
		"enabled": func(string, *node) {},
	}, nil)
	if o.Endpoint == "" && len(l.faults) == 0 {
		l.fault(path, n.offset, `needs an "endpoint"`)
	}
	l.cfg.Telemetry.OTLP = o
}

// expanded is a text outside of the servers, with its references resolved. ok is false
// where the value is not known: after a fault, or as it has not been looked up. It never
// counts as it is written: what promises safety would be known to everybody.
func (l *loader) expanded(path string, n *node) (text string, ok bool) {
	if !l.is(stringKind, path, n) {
		return "", false
	}
	r := &serverReader{l: l, path: path, secrets: map[string]bool{}}
	text = r.expand(path, n.offset, n.text)
	l.wanted[""] = append(l.wanted[""], r.wanted...)
	l.faults = append(l.faults, r.faults...)
	for value := range r.secrets {
		l.cfg.Secrets = append(l.cfg.Secrets, value)
	}
	later := l.answers == nil && len(r.wanted) > 0 || l.o.Keyring == nil && l.o.Run == nil
	if ok = len(r.faults) == 0 && !strings.Contains(text, "${"); !ok && !later && len(r.faults) == 0 {
		l.fault(path, n.offset, "has a ${...} without a value")
	}
	return text, ok
}

// path reads the name of a file, which may have variables; ~/ is the home folder, and a
// relative name lies beside the config.
func (l *loader) path(into *string) reader {
	return func(path string, n *node) {
		name, ok := l.expanded(path, n)
		if !ok || name == "" {
			return
		}
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join((&serverReader{l: l}).home(), rest)
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(l.cfg.Path), name)
		}
		*into = name
	}
}
