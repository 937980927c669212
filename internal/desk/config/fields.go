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

// JSON Schema of values that many keys have.
const (
	text         = `{"type": "string"}`
	texts        = `{"type": "array", "items": {"type": "string"}}`
	someTexts    = `{"type": "array", "items": {"type": "string"}, "minItems": 1}`
	duration     = `{"$ref": "#/$defs/duration"}`
	moreThanZero = `{"$ref": "#/$defs/timeout"}`
)

// fault notes a fault of structure.
func (l *loader) fault(path string, offset int, format string, args ...any) {
	l.faults = append(l.faults, Fault{Path: path, Text: fmt.Sprintf(format, args...), offset: offset})
}

// is notes a fault unless n is of this kind.
func (l *loader) is(want kind, path string, n *node) bool {
	if n.kind != want {
		l.fault(path, n.offset, "must be %s, not %s", want, n.kind)
	}
	return n.kind == want
}

func (l *loader) boolean(into *bool) value {
	return value{into: into, schema: `{"type": "boolean"}`, read: func(path string, n *node) {
		if n.kind != boolKind {
			l.fault(path, n.offset, "must be true or false, not %s", n.kind)
			return
		}
		*into = n.text == "true"
	}}
}

func (l *loader) str(into *string) value {
	return value{into: into, schema: text, read: func(path string, n *node) {
		if l.is(stringKind, path, n) {
			*into = n.text
		}
	}}
}

// oneOf reads a word out of a fixed list.
func oneOf[T ~string](l *loader, into *T, words ...string) value {
	return value{into: into, words: words, read: func(path string, n *node) {
		if n.kind == stringKind && slices.Contains(words, n.text) {
			*into = T(n.text)
			return
		}
		l.notOneOf(path, n, words)
	}}
}

func (l *loader) notOneOf(path string, n *node, words []string) {
	last := len(words) - 1
	l.fault(path, n.offset, "must be %s or %s", strings.Join(words[:last], ", "), words[last])
}

// switched reads one of the words, as its number from 1, or off or what else turns a key off, as 0.
func switched[T ~uint8](l *loader, into *T, words ...string) value {
	words = append(words, "off")
	return value{into: into, words: words, off: "off", read: func(path string, n *node) {
		at := slices.Index(words, n.text)
		switch {
		case n.off():
			*into = 0
		case n.kind == stringKind && at >= 0:
			*into = T(at + 1)
		default:
			l.notOneOf(path, n, words)
		}
	}}
}

// whole reads a whole number from least to most.
func whole[T int | int64](l *loader, into *T, least, most int64) value {
	return value{into: into, schema: `{"type": "integer"}`, least: least, most: most, read: func(path string, n *node) {
		if n.kind != numberKind {
			l.fault(path, n.offset, "must be a whole number, not %s", n.kind)
			return
		}
		v, err := strconv.ParseFloat(n.text, 64)
		switch {
		case err != nil || math.Abs(v) > 1<<53:
			l.fault(path, n.offset, "is too large")
		case v != math.Trunc(v):
			l.fault(path, n.offset, "must be a whole number")
		case v < 0:
			l.fault(path, n.offset, "must not be negative")
		case int64(v) < least:
			l.fault(path, n.offset, "must be at least %d", least)
		case int64(v) > most:
			l.fault(path, n.offset, "is too large")
		default:
			*into = T(v)
		}
	}}
}

// count reads what is counted in an int, also one of 32 bits.
func (l *loader) count(into *int, least int64) value { return whole(l, into, least, math.MaxInt32) }

// timeout reads a time of more than 0, in seconds.
func (l *loader) timeout(into *time.Duration) value {
	return value{into: into, schema: moreThanZero, read: func(path string, n *node) { l.duration(path, n, time.Second, false, into) }}
}

// wait reads a time in seconds; 0 is no wait, or no limit.
func (l *loader) wait(into *time.Duration) value {
	return value{into: into, schema: duration, read: func(path string, n *node) { l.duration(path, n, time.Second, true, into) }}
}

// orOff is wait for a time that the word off turns off too.
func (l *loader) orOff(into *time.Duration) value {
	return value{into: into, schema: `{"anyOf": [` + duration + `, {"const": "off"}]}`, read: func(path string, n *node) {
		if n.kind == stringKind && n.text == "off" {
			*into = 0
			return
		}
		l.duration(path, n, time.Second, true, into)
	}}
}

// duration reads a number of units or a string such as "1m30s".
func (l *loader) duration(path string, n *node, unit time.Duration, zero bool, into *time.Duration) {
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
		l.fault(path, n.offset, `must be a number of seconds or a string such as "1m30s"`)
		return
	}
	switch {
	case d < 0:
		l.fault(path, n.offset, "must not be negative")
	case d == 0 && !zero:
		l.fault(path, n.offset, "must be more than 0")
	case d > maxDuration:
		l.fault(path, n.offset, "must not be more than a year")
	default:
		*into = d
	}
}

// strings reads an array of strings; an empty one is empty and not nil.
func (l *loader) strings(path string, n *node) ([]string, bool) {
	if n.kind != arrayKind {
		l.fault(path, n.offset, "must be an array of strings, not %s", n.kind)
		return nil, false
	}
	list, ok := []string{}, true
	for i, item := range n.items {
		if !l.is(stringKind, index(path, i), item) {
			ok = false
			continue
		}
		list = append(list, item.text)
	}
	return list, ok
}

// names reads strings that are not empty.
func (l *loader) names(into *[]string) value {
	return value{into: into, schema: texts, read: func(path string, n *node) {
		list, ok := l.strings(path, n)
		if i := slices.Index(list, ""); ok && i >= 0 {
			l.fault(index(path, i), n.items[i].offset, "must not be empty")
		}
		*into = list
	}}
}

// globs reads an array of patterns with *, ? and [...].
func (l *loader) globs(into *[]string) value {
	return value{into: into, schema: texts, read: func(path string, n *node) {
		list, ok := l.strings(path, n)
		for i, item := range n.items {
			if item.kind == stringKind && !l.glob(index(path, i), item.offset, item.text) {
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
	return l.globs(into).then(func(path string, n *node) {
		for i, item := range n.items {
			if item.kind == stringKind && item.text != "" && !strings.ContainsAny(item.text, ".*") {
				l.fault(index(path, i), item.offset, `must be "SERVER.TOOL", not %s`, quote(item.text))
			}
		}
	})
}

// allowed is globs of the tools that exist. An empty list could mean all tools or no tool, so it
// is a fault.
func (l *loader) allowed(globs value) value { return l.notEmpty(globs, "all tools are allowed") }

// notEmpty is a list that must have items. without says what its key means where it is not there.
func (l *loader) notEmpty(list value, without string) value {
	return value{into: list.into, schema: someTexts, read: func(path string, n *node) {
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(path, n.offset, "must not be empty; without it %s", without)
			return
		}
		list.read(path, n)
	}}
}

func (l *loader) glob(at string, offset int, glob string) bool {
	if glob == "" {
		l.fault(at, offset, "must not be empty")
		return false
	}
	if _, err := path.Match(glob, ""); err != nil {
		l.fault(at, offset, "is not a valid pattern: %s", quote(glob))
		return false
	}
	return true
}

// duplicates notes every key that an object has twice, at any depth.
func (l *loader) duplicates(path string, n *node) {
	for i, item := range n.items {
		l.duplicates(index(path, i), item)
	}
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		at := join(path, m.key)
		if seen[m.key] {
			l.fault(at, m.offset, "is there twice")
		}
		seen[m.key] = true
		l.duplicates(at, m.value)
	}
}

var plainKey = pattern.New(`^[\pL\pN_$-]+$`)

// label is a key as a message shows it.
func label(key string) string {
	if plainKey.MatchString(key) && len(key) <= 60 {
		return key
	}
	return quote(key)
}

// join is the path of a key; a key that would blur the path is quoted.
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

// quote makes text that is not ours fit for a message: quoted, without control
// characters, and short.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..." // without half a character
	}
	return strconv.Quote(s)
}
