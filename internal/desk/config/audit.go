package config

import "math"

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

const (
	// leastAuditKey is the length of the shortest audit.key: who guesses it can forge the trail.
	leastAuditKey = 16
	// leastAuditBytes holds some hundred lines.
	leastAuditBytes = 64 << 10
)

// audit reads where the trail is kept.
func (l *loader) audit(path string, n *node) {
	if n.off() || !l.is(objectKind, path, n) {
		return
	}
	a := &Audit{}
	l.members(path, n, l.auditObject(a), nil)
	if a.File == "" && len(l.faults) == 0 {
		l.fault(path, n.offset, `needs a "file"`)
	}
	l.cfg.Audit = a
}

func (l *loader) auditObject(a *Audit) object {
	return object{name: "audit", strict: true, keys: []key{
		enabled,
		{"file", l.path(&a.File), "the trail; a relative name begins at the config file"},
		{"required", l.boolean(&a.Required), "no call is made that cannot be recorded"},
		{"key", value{schema: text, read: func(path string, n *node) {
			text, ok := l.expanded(path, n)
			if ok && len(text) < leastAuditKey {
				l.fault(path, n.offset, "must be at least %d characters long, such as the output of: openssl rand -hex 32", leastAuditKey)
			}
			a.Key = text
		}}, "at least 16 characters: each line has its HMAC; may be `${…}`"},
		{"max_bytes", whole(l, &a.MaxBytes, leastAuditBytes, math.MaxInt64), "where the file is renamed; without it 100 MiB"},
		{"keep", l.count(&a.Keep, 0), "how many renamed files stay; 0 is all"},
	}}
}
