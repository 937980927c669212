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

// maxDuration is the longest duration that a config file may have. It prevents overflows in calculations of deadlines.
const maxDuration = 366 * 24 * time.Hour

// These are JSON Schemas of values that many keys have. text is for a string, texts for an array of strings, someTexts for an array
// with at least one string. duration is for a duration that may be 0, moreThanZero for a duration of more than 0.
const (
	text         = `{"type": "string"}`
	texts        = `{"type": "array", "items": {"type": "string"}}`
	someTexts    = `{"type": "array", "items": {"type": "string"}, "minItems": 1}`
	duration     = `{"$ref": "#/$defs/duration"}`
	moreThanZero = `{"$ref": "#/$defs/timeout"}`
)

// fault adds a fault of structure. It makes the whole file unusable.
func (l *loader) fault(n *node, format string, args ...any) {
	l.faults = append(l.faults, faultAt(n, format, args...))
}

func faultAt(n *node, format string, args ...any) Fault {
	return Fault{Path: n.path(), Text: fmt.Sprintf(format, args...), offset: n.offset}
}

// expectKind reports whether n is of the wanted kind. If not, it adds a fault.
func (l *loader) expectKind(want kind, n *node) bool {
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
		if l.expectKind(stringKind, n) {
			*into = n.text
		}
	}}
}

// oneOf reads a string that must be in the list words.
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

// switched reads a string of the list words, and stores the string's position in *into: 1 for the first word. For "off", and for
// any other value that turns a key off (see [node.off]), it stores 0.
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

// whole reads a whole number that is at least minimum and at most maximum, and not above 2^53.
func whole[T int | int64](l *loader, into *T, minimum, maximum int64) value {
	return value{into: into, schema: `{"type": "integer"}`, minimum: minimum, maximum: maximum, read: func(n *node) {
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
		case int64(v) < minimum:
			l.fault(n, "must be at least %d", minimum)
		case int64(v) > maximum:
			l.fault(n, "is too large")
		default:
			*into = T(v)
		}
	}}
}

// count reads a whole number that is at least minimum and fits into an int32.
func (l *loader) count(into *int, minimum int64) value { return whole(l, into, minimum, math.MaxInt32) }

// size reads a number of bytes, which may be written as a string such as "400MB" or "1GiB". It must be at least minimum.
func (l *loader) size(into *int64, minimum int64) value {
	schema := `{"anyOf": [{"type": "integer", "minimum": ` + strconv.FormatInt(minimum, 10) + `, "maximum": ` + strconv.FormatInt(maxSize, 10) + `}, {"type": "string", "pattern": "^[0-9]{1,9} *[KMG]i?B$"}]}`
	return value{into: into, schema: schema, read: func(n *node) {
		if n.kind == numberKind {
			whole(l, into, minimum, maxSize).read(n)
			return
		}
		parts := sizeText.FindStringSubmatch(n.text)
		if n.kind != stringKind || parts == nil {
			l.fault(n, `must be a number of bytes or a string such as "400MB"`)
			return
		}
		bytes, _ := strconv.ParseInt(parts[1], 10, 64) // cannot fail: there are at most nine digits
		unit := map[string]int64{"KB": 1e3, "KiB": 1 << 10, "MB": 1e6, "MiB": 1 << 20, "GB": 1e9, "GiB": 1 << 30}[parts[2]]
		if bytes*unit < minimum {
			l.fault(n, "must be at least %d MB", minimum/1e6)
			return
		}
		*into = bytes * unit
	}}
}

// maxSize is the largest size, in bytes, that the file may give as a number. No machine has so much memory.
const maxSize = 1 << 50

var sizeText = pattern.New(`^([0-9]{1,9}) *([KMG]i?B)$`)

// timeout reads a duration of more than 0. A number is in seconds.
func (l *loader) timeout(into *time.Duration) value {
	return value{into: into, schema: moreThanZero, read: func(n *node) { l.duration(n, time.Second, false, into) }}
}

// wait reads a duration, which may be 0. A number is in seconds.
func (l *loader) wait(into *time.Duration) value {
	return value{into: into, schema: duration, read: func(n *node) { l.duration(n, time.Second, true, into) }}
}

// orOff reads a duration, which may be 0, or the string "off", which means 0. A number is in seconds.
func (l *loader) orOff(into *time.Duration) value {
	return value{into: into, schema: `{"anyOf": [` + duration + `, {"const": "off"}]}`, read: func(n *node) {
		if n.kind == stringKind && n.text == "off" {
			*into = 0
			return
		}
		l.duration(n, time.Second, true, into)
	}}
}

// duration reads a duration: a number, or a string such as "1m30s". The parameter unit is the unit of a number, and allowZero says
// whether 0 is allowed.
func (l *loader) duration(n *node, unit time.Duration, allowZero bool, into *time.Duration) {
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
	case d == 0 && !allowZero:
		l.fault(n, "must be more than 0")
	case d > maxDuration:
		l.fault(n, "must not be more than a year")
	default:
		*into = d
	}
}

// strings reads an array of strings. For an empty array it returns a slice that is not nil. The second result is false after a
// fault.
func (l *loader) strings(n *node) ([]string, bool) {
	if n.kind != arrayKind {
		l.fault(n, "must be an array of strings, not %s", n.kind)
		return nil, false
	}
	list, ok := []string{}, true
	for _, item := range n.items {
		if !l.expectKind(stringKind, item) {
			ok = false
			continue
		}
		list = append(list, item.text)
	}
	return list, ok
}

// names reads an array of strings. None of the strings may be empty.
func (l *loader) names(into *[]string) value {
	return value{into: into, schema: texts, read: func(n *node) {
		list, ok := l.strings(n)
		if i := slices.Index(list, ""); ok && i >= 0 {
			l.fault(n.items[i], "must not be empty")
		}
		*into = list
	}}
}

// globs reads an array of globs, in which *, ? and [...] have the same meaning as in [path.Match].
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

// toolGlobs reads an array of globs that are compared with SERVER.TOOL.
func (l *loader) toolGlobs(into *[]string) value {
	return l.globs(into).andThen(func(n *node) {
		for _, item := range n.items {
			if item.kind == stringKind && item.text != "" && !strings.ContainsAny(item.text, ".*") {
				l.fault(item, `must be "SERVER.TOOL", not %s`, quote(item.text))
			}
		}
	})
}

// allowed reads globs of the tools that clients may use; all other tools are hidden. These globs are in the key allow, or in a key
// with the same meaning from another client's file. An empty list is a fault, because it could mean all tools or none.
func (l *loader) allowed(globs value) value { return l.notEmpty(globs, "all tools are allowed") }

// notEmpty reads a list that must not be empty. The fault for an empty list ends with consequence, which says what happens without
// the key.
func (l *loader) notEmpty(list value, consequence string) value {
	return value{into: list.into, schema: someTexts, read: func(n *node) {
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(n, "must not be empty; without it %s", consequence)
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

// duplicates adds a fault for every key that occurs twice in the same object, in n or at any depth inside.
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

// label returns a key in the form that messages show: quoted if it is long or has unusual characters.
func label(key string) string {
	if plainKey.MatchString(key) && len(key) <= 60 {
		return key
	}
	return quote(key)
}

// join returns the path of a key in the object at path. The key is quoted if it is empty or has other characters than letters,
// digits, '_', '$' and '-'.
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

// quote prepares a string from the file for a message: it quotes the string, escapes control characters, and cuts it
// after 60 bytes.
func quote(s string) string {
	const maximum = 60
	if len(s) > maximum {
		s = strings.ToValidUTF8(s[:maximum], "") + "..." // removes the rest of a character that the cut has split
	}
	return strconv.Quote(s)
}
