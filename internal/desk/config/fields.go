package config

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/base/pattern"
)

// maxDuration keeps arithmetic on deadlines far from overflow.
const maxDuration = 366 * 24 * time.Hour

// JSON Schema of common values.
const (
	text         = `{"type": "string"}`
	texts        = `{"type": "array", "items": {"type": "string"}}`
	someTexts    = `{"type": "array", "items": {"type": "string"}, "minItems": 1}`
	duration     = `{"$ref": "#/$defs/duration"}`
	moreThanZero = `{"$ref": "#/$defs/timeout"}`
)

// fault notes a fault of structure.
func (l *loader) fault(n *node, format string, args ...any) {
	l.faults = append(l.faults, faultAt(n, format, args...))
}

func faultAt(n *node, format string, args ...any) Fault {
	return Fault{Path: n.path(), Text: fmt.Sprintf(format, args...), offset: n.offset}
}

// is notes a fault unless n is of this kind.
func (l *loader) is(want kind, n *node) bool {
	if n.kind != want {
		l.fault(n, "must be %s, not %s", want, n.kind)
	}
	return n.kind == want
}

func (l *loader) boolean(into *bool) value {
	return value{into: into, schema: `{"type": "boolean"}`, read: func(n *node) {
		if n.kind != boolKind {
			l.fault(n, "must be true or false, not %s", n.kind)
			return
		}
		*into = n.text == "true"
	}}
}

func (l *loader) str(into *string) value {
	return value{into: into, schema: text, read: func(n *node) {
		if l.is(stringKind, n) {
			*into = n.text
		}
	}}
}

// oneOf reads a word out of a fixed list.
func oneOf[T ~string](l *loader, into *T, words ...string) value {
	return value{into: into, words: words, read: func(n *node) {
		if n.kind == stringKind && slices.Contains(words, n.text) {
			*into = T(n.text)
			return
		}
		l.notOneOf(n, words)
	}}
}

func (l *loader) notOneOf(n *node, words []string) {
	last := len(words) - 1
	l.fault(n, "must be %s or %s", strings.Join(words[:last], ", "), words[last])
}

// switched reads one of the words as its number, from 1. The word off, and whatever else turns a key off
// ([node.off]), is 0.
func switched[T ~uint8](l *loader, into *T, words ...string) value {
	words = append(words, "off")
	return value{into: into, words: words, off: "off", read: func(n *node) {
		at := slices.Index(words, n.text)
		switch {
		case n.off():
			*into = 0
		case n.kind == stringKind && at >= 0:
			*into = T(at + 1)
		default:
			l.notOneOf(n, words)
		}
	}}
}

// whole reads a whole number from least to most.
func whole[T int | int64](l *loader, into *T, least, most int64) value {
	return value{into: into, schema: `{"type": "integer"}`, least: least, most: most, read: func(n *node) {
		if n.kind != numberKind {
			l.fault(n, "must be a whole number, not %s", n.kind)
			return
		}
		v, err := strconv.ParseFloat(n.text, 64)
		switch {
		case err != nil || math.Abs(v) > 1<<53:
			l.fault(n, "is too large")
		case v != math.Trunc(v):
			l.fault(n, "must be a whole number")
		case v < 0:
			l.fault(n, "must not be negative")
		case int64(v) < least:
			l.fault(n, "must be at least %d", least)
		case int64(v) > most:
			l.fault(n, "is too large")
		default:
			*into = T(v)
		}
	}}
}

// count reads a whole number that fits an int of 32 bits.
func (l *loader) count(into *int, least int64) value { return whole(l, into, least, math.MaxInt32) }

// timeout reads a time of more than 0, in seconds.
func (l *loader) timeout(into *time.Duration) value {
	return value{into: into, schema: moreThanZero, read: func(n *node) { l.duration(n, time.Second, false, into) }}
}

// wait reads a time in seconds, which may be 0.
func (l *loader) wait(into *time.Duration) value {
	return value{into: into, schema: duration, read: func(n *node) { l.duration(n, time.Second, true, into) }}
}

// orOff is like wait, and reads the word off as 0.
func (l *loader) orOff(into *time.Duration) value {
	return value{into: into, schema: `{"anyOf": [` + duration + `, {"const": "off"}]}`, read: func(n *node) {
		if n.kind == stringKind && n.text == "off" {
			*into = 0
			return
		}
		l.duration(n, time.Second, true, into)
	}}
}

// duration reads a number of units or a string such as "1m30s".
func (l *loader) duration(n *node, unit time.Duration, zero bool, into *time.Duration) {
	var d time.Duration
	switch n.kind {
	case numberKind:
		v, err := strconv.ParseFloat(n.text, 64)
		if err != nil || math.Abs(v)*float64(unit) > float64(maxDuration) {
			v = math.Copysign(float64(maxDuration/unit)+1, v)
		}
		d = time.Duration(math.Round(v * float64(unit)))
	case stringKind:
		var err error
		if d, err = time.ParseDuration(n.text); err == nil {
			break
		}
		fallthrough
	default:
		l.fault(n, `must be a number of seconds or a string such as "1m30s"`)
		return
	}
	switch {
	case d < 0:
		l.fault(n, "must not be negative")
	case d == 0 && !zero:
		l.fault(n, "must be more than 0")
	case d > maxDuration:
		l.fault(n, "must not be more than a year")
	default:
		*into = d
	}
}

// strings reads an array of strings; an empty one is empty and not nil.
func (l *loader) strings(n *node) ([]string, bool) {
	if n.kind != arrayKind {
		l.fault(n, "must be an array of strings, not %s", n.kind)
		return nil, false
	}
	list, ok := []string{}, true
	for _, item := range n.items {
		if !l.is(stringKind, item) {
			ok = false
			continue
		}
		list = append(list, item.text)
	}
	return list, ok
}

// names reads strings that are not empty.
func (l *loader) names(into *[]string) value {
	return value{into: into, schema: texts, read: func(n *node) {
		list, ok := l.strings(n)
		if i := slices.Index(list, ""); ok && i >= 0 {
			l.fault(n.items[i], "must not be empty")
		}
		*into = list
	}}
}

// globs reads an array of patterns with *, ? and [...].
func (l *loader) globs(into *[]string) value {
	return value{into: into, schema: texts, read: func(n *node) {
		list, ok := l.strings(n)
		for _, item := range n.items {
			if item.kind == stringKind && !l.glob(item, item.text) {
				ok = false
			}
		}
		if ok {
			*into = list
		}
	}}
}

// toolGlobs reads globs of SERVER.TOOL.
func (l *loader) toolGlobs(into *[]string) value {
	return l.globs(into).then(func(n *node) {
		for _, item := range n.items {
			if item.kind == stringKind && item.text != "" && !strings.ContainsAny(item.text, ".*") {
				l.fault(item, `must be "SERVER.TOOL", not %s`, quote(item.text))
			}
		}
	})
}

// allowed reads globs of the only tools that exist. An empty list is a fault: it could mean all tools or none.
func (l *loader) allowed(globs value) value { return l.notEmpty(globs, "all tools are allowed") }

// notEmpty reads a list that must have items. without, for the fault, says what leaving the key out means.
func (l *loader) notEmpty(list value, without string) value {
	return value{into: list.into, schema: someTexts, read: func(n *node) {
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(n, "must not be empty; without it %s", without)
			return
		}
		list.read(n)
	}}
}

func (l *loader) glob(n *node, glob string) bool {
	if glob == "" {
		l.fault(n, "must not be empty")
		return false
	}
	if _, err := path.Match(glob, ""); err != nil {
		l.fault(n, "is not a valid pattern: %s", quote(glob))
		return false
	}
	return true
}

// duplicates notes every key that an object has twice, at any depth.
func (l *loader) duplicates(n *node) {
	for _, item := range n.items {
		l.duplicates(item)
	}
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.key] {
			l.fault(m, "is there twice")
		}
		seen[m.key] = true
		l.duplicates(m)
	}
}

var plainKey = pattern.New(`^[\pL\pN_$-]+$`)

// label is how a message shows a key.
func label(key string) string {
	if plainKey.MatchString(key) && len(key) <= 60 {
		return key
	}
	return quote(key)
}

// join is the path of a key. A key with other characters than names have is quoted.
func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// quote makes text from outside safe for a message: quoted, short, control characters escaped.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..." // without half a character
	}
	return strconv.Quote(s)
}
