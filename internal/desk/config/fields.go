package config

import (
	"fmt"
	"iter"
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

// reader reads the value of one key, which stands at path.
type reader func(path string, n *node)

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

func (l *loader) boolean(into *bool) reader {
	return func(path string, n *node) {
		if n.kind != boolKind {
			l.fault(path, n.offset, "must be true or false, not %s", n.kind)
			return
		}
		*into = n.text == "true"
	}
}

func (l *loader) str(into *string) reader {
	return func(path string, n *node) {
		if l.is(stringKind, path, n) {
			*into = n.text
		}
	}
}

// oneOf reads a word out of a fixed list.
func (l *loader) oneOf(into *string, words ...string) reader {
	return func(path string, n *node) {
		if n.kind == stringKind && slices.Contains(words, n.text) {
			*into = n.text
			return
		}
		last := len(words) - 1
		l.fault(path, n.offset, "must be %s or %s", strings.Join(words[:last], ", "), words[last])
	}
}

// whole reads a whole number from least to most.
func whole[T int | int64](l *loader, into *T, least, most int64) reader {
	return func(path string, n *node) {
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
	}
}

// count reads what is counted in an int, also one of 32 bits.
func (l *loader) count(into *int, least int64) reader { return whole(l, into, least, math.MaxInt32) }

// timeout reads a time of more than 0, in seconds.
func (l *loader) timeout(into *time.Duration) reader {
	return func(path string, n *node) { l.duration(path, n, time.Second, false, into) }
}

// wait reads a time in seconds; 0 is no wait, or no limit.
func (l *loader) wait(into *time.Duration) reader {
	return func(path string, n *node) { l.duration(path, n, time.Second, true, into) }
}

// orOff is wait for a time that the word off turns off too.
func (l *loader) orOff(into *time.Duration) reader {
	return func(path string, n *node) {
		if n.kind == stringKind && n.text == "off" {
			*into = 0
			return
		}
		l.wait(into)(path, n)
	}
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

// globs reads an array of patterns with *, ? and [...].
func (l *loader) globs(into *[]string) reader {
	return func(path string, n *node) {
		list, ok := l.strings(path, n)
		for i, item := range n.items {
			if item.kind == stringKind && !l.glob(index(path, i), item.offset, item.text) {
				ok = false
			}
		}
		if ok {
			*into = list
		}
	}
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

// members reads an object. keys are ours; foreign, which may be nil, reports whether
// it knows another one. A null is like a key left out. Unknown keys are ignored with one
// warning.
func (l *loader) members(path string, n *node, keys map[string]reader, foreign func(at string, m member) bool) {
	l.each(path, n, keys, foreign, func(_ string, m member) { l.unknown.add(label(m.key), path) })
}

// only is members where an unknown key is a fault: it may be meant to keep somebody out, or
// something within bounds.
func (l *loader) only(path string, n *node, keys map[string]reader) {
	l.each(path, n, keys, nil, func(at string, m member) { l.fault(at, m.offset, "unknown key") })
}

// each reads an object. unknown gets the keys that are not near one of ours either.
func (l *loader) each(
	path string, n *node, keys map[string]reader,
	foreign func(at string, m member) bool, unknown func(at string, m member),
) {
	for _, m := range n.members {
		at := join(path, m.key)
		if m.value.kind == nullKind {
			continue
		}
		if read := keys[m.key]; read != nil {
			read(at, m.value)
			continue
		}
		if foreign != nil && foreign(at, m) || isComment(m.key) {
			continue
		}
		if near := nearest(m.key, sortedKeys(keys)); near != "" {
			l.fault(at, m.offset, "unknown key %s, did you mean %q?", quote(m.key), near)
			continue
		}
		unknown(at, m)
	}
}

// named goes through the members of an object whose keys are names that users give: their paths,
// and all of them but notes and nulls. Another value than an object is a fault.
func (l *loader) named(path string, n *node) iter.Seq2[string, member] {
	return func(yield func(at string, m member) bool) {
		if !l.is(objectKind, path, n) {
			return
		}
		for _, m := range n.members {
			if m.value.kind != nullKind && !isComment(m.key) && !yield(join(path, m.key), m) {
				return
			}
		}
	}
}

// isComment reports whether a key is one of those that people write notes under.
func isComment(key string) bool {
	return key == "$schema" || strings.HasPrefix(key, "//") || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "#")
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
