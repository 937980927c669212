package arguments

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

const (
	maxViolations = 5
	maxLeaves     = 1000
	maxPuts       = 4 * maxLeaves // leaves that are looked at, as many may have one text
	// maxPlace and maxWhat bound the two parts of a violation ("/path: what") in tokens, since both can contain long text from the
	// schema or the arguments. maxTexts bounds all violations together.
	maxPlace, maxWhat, maxTexts = 40, 60, 260
	maxAllowed                  = 100 // bytes of the shown values of an enum
)

// violations describes the leaves of a fault, which are the faults without causes of their own. They are sorted by their
// texts. violations adds the unknown arguments, since one of them may be the misspelled name of a missing argument. value is the
// decoded arguments.
func violations(f *fault, value any, unknown []Unknown) *ValidationError {
	l := leaves{
		value: value, types: make(map[string]typed), texts: make(map[string][]string), near: make(map[string][]func() string),
		keys: make(map[string]string),
	}
	l.walk(f, nil)
	for _, u := range unknown {
		at := []string{u.Name}
		prefix := place(at) + ": "
		under := func(text string) bool { return strings.HasPrefix(text, prefix) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(l.texts)), under) {
			l.unknown(at, func() string { return u.Near })
		}
	}
	l.putTypes()
	if len(l.texts) == 0 {
		l.put(nil, "does not fit the schema")
	}
	failure := &ValidationError{More: len(l.texts)}
	left := maxTexts
	for _, text := range slices.Sorted(maps.Keys(l.texts)) {
		at := l.texts[text]
		if len(failure.Violations) == maxViolations {
			break
		}
		for _, near := range l.near[text] {
			if name := near(); name != "" {
				text, at = text+"; did you mean "+name+"?", member(at[:len(at)-1], name)
				break
			}
		}
		if left -= tokens.Estimate(text); left < 0 {
			break
		}
		failure.Violations = append(failure.Violations, text)
		failure.Places = append(failure.Places, at)
		failure.More--
	}
	return failure
}

// leaves collects violations.
type leaves struct {
	value any // the arguments
	// texts maps each violation to its entry in ValidationError.Places.
	texts map[string][]string
	// near has what finds similar names for each violation that is an unknown name. It is called for those that are shown, since
	// there may be thousands of unknown names and of known ones.
	near map[string][]func() string
	// types has the type errors by place, because several errors at one place become one violation.
	types map[string]typed
	keys  map[string]string // the keys of members that tell variants apart, by place
	reads repairer          // reads the schemas of variants; it has a bound for all faults together
	puts  int               // leaves that were looked at
}

// typed is a place with a value of the wrong type, and the types that it may have.
type typed struct {
	at   []string
	got  string
	want []string
}

// putTypes adds the type errors, except errors of alternatives (anyOf, oneOf) that the model did not mean. If there is a
// violation inside a value, the model meant the alternative that has the type of this value, so the type error of the value
// itself is left out. If null is the only type that would fit, and the value has another violation, the model did not mean null.
func (l *leaves) putTypes() {
	meant := make(map[string]bool) // JSON pointers
	inside := func(place string) {
		for i := range len(place) {
			if place[i] == '/' && len(place) > 1 { // "/" is the root, which is inside nothing
				meant[cmp.Or(place[:i], "/")] = true
			}
		}
	}
	wrong := make(map[string]bool) // JSON pointers of the violations that are no type errors
	for _, at := range l.texts {
		inside(pointer(at))
		wrong[pointer(at)] = true
	}
	for at := range l.types {
		inside(at)
	}
	for _, at := range slices.Sorted(maps.Keys(l.types)) {
		t := l.types[at]
		if slices.Contains(t.want, "number") {
			t.want = slices.DeleteFunc(t.want, func(kind string) bool { return kind == "integer" })
		}
		slices.Sort(t.want)
		want := strings.Join(slices.Compact(t.want), " or ")
		if !meant[at] && (want != "null" || !wrong[at]) {
			l.put(t.at, "must be "+want+", not "+t.got)
		}
	}
}

// walk adds the leaves of f. If f is below propertyNames, name is the place of the property whose name is wrong; otherwise it
// is nil.
func (l *leaves) walk(f *fault, name []string) {
	if len(l.texts)+len(l.types) >= maxLeaves || l.puts > maxPuts || f == unnamed {
		return
	}
	if f.keyword == "propertyNames" {
		name = member(f.at, f.detail)
	}
	for _, cause := range l.meant(f) {
		l.walk(cause, name)
	}
	switch {
	case len(f.causes) > 0:
	case name != nil:
		l.put(name, "the name "+f.what())
	default:
		l.leaf(f)
	}
}

// leaf adds the violation for one leaf. The place of a missing property is where it should be.
func (l *leaves) leaf(f *fault) {
	switch f.keyword {
	case "required":
		l.each(f.at, f.names, "is missing")
	case "dependentRequired":
		l.each(f.at, f.names, "is missing ("+f.detail+" needs it)")
	case "additionalProperties":
		value, _ := at(l.value, f.at)
		given, _ := value.(map[string]any) // cannot fail, as the value is an object
		sent := func(name string) bool { _, ok := given[name]; return ok }
		for _, name := range f.names[:min(len(f.names), maxLeaves)] {
			l.unknown(member(f.at, sanitize.Line(name, maxUnknownName)), func() string {
				return nearest(name, slices.DeleteFunc(slices.Sorted(maps.Keys(f.schema.properties)), sent))
			})
		}
	case "type":
		l.puts++
		t := l.types[pointer(f.at)]
		l.types[pointer(f.at)] = typed{f.at, f.detail, append(t.want, f.schema.kinds.names()...)}
	default:
		l.put(f.at, f.what())
	}
}

func (l *leaves) each(at, names []string, what string) {
	for _, name := range names[:min(len(names), maxLeaves)] {
		l.put(member(at, name), what)
	}
}

// unknown adds an unknown name. near finds a similar name, whose place is then the entry in Places.
func (l *leaves) unknown(at []string, near func() string) {
	text := l.put(at, "is unknown")
	l.near[text] = append(l.near[text], near)
}

// put adds a violation, and returns its text, or nothing if there are some and too many were looked at.
func (l *leaves) put(at []string, what string) (text string) {
	if l.puts++; l.puts > maxPuts && len(l.texts) > 0 {
		return ""
	}
	text = place(at) + ": " + short(what, maxWhat)
	if _, ok := l.texts[text]; !ok {
		l.texts[text] = slices.Clone(at)
	}
	return text
}

// place returns the JSON pointer of a violation, or only its end if it is long.
func place(at []string) string {
	const most = 20 * maxPlace // bytes that may be shown at all
	end := slices.Clone(at[max(0, len(at)-maxPlace):])
	for i, name := range end {
		end[i] = name[:min(len(name), most)]
	}
	for {
		text := pointer(end)
		if len(end) < len(at) {
			text = "/..." + text
		}
		if len(end) <= 1 || len(text) <= most && tokens.Estimate(text) <= maxPlace {
			return short(text, maxPlace)
		}
		end = end[1:]
	}
}

// short returns untrusted text on one line, cut to at most limit tokens.
func short(text string, limit int) string {
	for runes := 5 * limit; ; runes = runes * 3 / 4 {
		if line := sanitize.Line(text, runes); tokens.Estimate(line) <= limit {
			return line
		}
	}
}

// member returns the place of a member of an object. object is the place of the object, and name is the name of the member.
func member(object []string, name string) []string { return append(slices.Clip(object), name) }

// what describes a fault in a few words, without the place and the given value.
func (f *fault) what() string {
	s := f.schema
	switch f.keyword {
	case "false":
		return "is not allowed"
	case "type":
		return "must be " + strings.Join(s.kinds.names(), " or ")
	case "enum", "const":
		return "must be " + alternatives(f.literals())
	case "pattern":
		return "must match " + s.pattern.text
	case "minimum":
		return "must be >=" + decimal(s.minimum)
	case "maximum":
		return "must be <=" + decimal(s.maximum)
	case "exclusiveMinimum":
		return "must be >" + decimal(s.above)
	case "exclusiveMaximum":
		return "must be <" + decimal(s.below)
	case "multipleOf":
		return "must be a multiple of " + decimal(s.multipleOf)
	case "not":
		return "is what not excludes"
	case "anyOf", "oneOf":
		if f.twice {
			return "fits more than one of oneOf"
		}
		return "fits none of " + f.keyword
	}
	return f.counted()
}

// counted describes a fault of a length or a count.
func (f *fault) counted() string {
	s := f.schema
	switch f.keyword {
	case "minLength":
		return atLeast(s.length.least, "characters")
	case "maxLength":
		return fmt.Sprintf("must have <=%d characters", s.length.most)
	case "minItems":
		return atLeast(s.itemCount.least, "items")
	case "maxItems":
		return fmt.Sprintf("must have <=%d items", s.itemCount.most)
	case "minProperties":
		return atLeast(s.propertyCount.least, "keys")
	case "maxProperties":
		return fmt.Sprintf("must have <=%d keys", s.propertyCount.most)
	case "items":
		return fmt.Sprintf("has %d items too many", f.excess)
	case "uniqueItems":
		return fmt.Sprintf("items %d and %d are equal", f.items[0], f.items[1])
	case "maxContains":
		return fmt.Sprintf("must have <=%d items that fit contains", s.containsCount.most)
	}
	if s.containsCount.least == 1 {
		return "no item fits contains"
	}
	return fmt.Sprintf("must have >=%d items that fit contains", s.containsCount.least)
}

func atLeast(n int, things string) string {
	if n == 1 {
		return "must not be empty"
	}
	return fmt.Sprintf("must have >=%d %s", n, things)
}

// alternatives returns values as JSON. If the text would be long, it returns only the first ones and the number of all, or only the
// beginning of the first one. That does little harm: where there is room, the error also shows the type of the argument with its values.
func alternatives(values []any) string {
	var out strings.Builder
	for i, v := range values {
		text := string(wire.Encode(v))
		switch {
		case out.Len()+len(text) > maxAllowed && i == 0:
			return sanitize.Line(text, maxAllowed)
		case out.Len()+len(text) > maxAllowed:
			return fmt.Sprintf("%s, ... (%d values)", out.String(), len(values))
		case i > 0 && i == len(values)-1:
			out.WriteString(" or ")
		case i > 0:
			out.WriteString(", ")
		}
		out.WriteString(text)
	}
	return out.String()
}

// decimal writes a number of a schema. It is exact unless the number has more than maxDigits.
func decimal(r *big.Rat) string {
	if r.IsInt() && len(r.Num().String()) <= maxDigits {
		return r.Num().String()
	}
	if digits, exact := r.FloatPrec(); exact && digits <= maxDigits {
		return r.FloatString(digits)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// pointerEscapes writes a name as a part of a JSON pointer.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// path returns a JSON pointer (RFC 6901).
func path(location []string) string {
	var out strings.Builder
	for _, step := range location {
		out.WriteByte('/')
		out.WriteString(pointerEscapes.Replace(step))
	}
	return out.String()
}

// pointer returns a JSON pointer, but "/" for the root, which models understand better.
func pointer(location []string) string { return cmp.Or(path(location), "/") }
