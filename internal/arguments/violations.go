package arguments

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

const (
	maxViolations = 5
	maxLeaves     = 1000
	// maxPlace and maxWhat bound the two parts of a violation ("/path: what") in tokens, since both can contain long text from the
	// schema or the arguments. maxTexts bounds all violations together.
	maxPlace, maxWhat, maxTexts = 40, 60, 260
	maxAllowed                  = 100 // bytes of the shown values of an enum
)

// violations describes the leaves of a validation error, which are the errors without causes of their own. They are sorted, because
// the library reports them in no fixed order. violations adds the unknown arguments, since one of them may be the misspelled name
// of a missing argument.
func violations(e *jsonschema.ValidationError, schema *jsonschema.Schema, value any, unknown []Unknown) *ValidationError {
	l := leaves{schema: schema, value: value, types: make(map[string]typed), texts: make(map[string][]string)}
	l.walk(e, nil)
	for _, u := range unknown {
		at := []string{u.Name}
		prefix := place(at) + ": "
		under := func(text string) bool { return strings.HasPrefix(text, prefix) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(l.texts)), under) {
			l.unknown(at, u.Near)
		}
	}
	l.putTypes()
	failure := &ValidationError{More: len(l.texts)}
	left := maxTexts
	for _, text := range slices.Sorted(maps.Keys(l.texts)) {
		if left -= tokens.Estimate(text); left < 0 || len(failure.Violations) == maxViolations {
			break
		}
		failure.Violations = append(failure.Violations, text)
		failure.Places = append(failure.Places, l.texts[text])
		failure.More--
	}
	return failure
}

// leaves collects violations.
type leaves struct {
	schema *jsonschema.Schema // the schema of all arguments
	value  any                // the arguments
	// texts maps each violation to its entry in ValidationError.Places.
	texts map[string][]string
	// types has the type errors by place, because several errors at one place become one violation.
	types map[string]typed
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
	for at, t := range l.types {
		slices.Sort(t.want)
		want := strings.Join(slices.Compact(t.want), " or ")
		if !meant[at] && (want != "null" || !wrong[at]) {
			l.put(t.at, "must be "+want+", not "+t.got)
		}
	}
}

// walk adds the leaves of e. If e is below propertyNames, name is the place of the property whose name is wrong, since the library
// does not report this place. Otherwise name is nil.
func (l *leaves) walk(e *jsonschema.ValidationError, name []string) {
	if len(l.texts) >= maxLeaves {
		return
	}
	if k, ok := e.ErrorKind.(*kind.PropertyNames); ok {
		name = member(e.InstanceLocation, k.Property)
	}
	for _, cause := range e.Causes {
		l.walk(cause, name)
	}
	if len(e.Causes) > 0 {
		return
	}
	if name != nil {
		l.put(name, "the name "+what(e.ErrorKind))
		return
	}
	if k, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		known := namesAt(l.schema, e.SchemaURL)
		value, _ := at(l.value, e.InstanceLocation)
		given, _ := value.(map[string]any) // cannot fail, as the value is an object
		known = slices.DeleteFunc(known, func(name string) bool { _, ok := given[name]; return ok })
		for _, name := range k.Properties {
			l.unknown(member(e.InstanceLocation, sanitize.Line(name, maxUnknownName)), nearest(name, known))
		}
		return
	}
	l.leaf(e.InstanceLocation, e.ErrorKind)
}

// leaf adds the violation for one leaf. The place of a missing property is where it should be.
func (l *leaves) leaf(at []string, k jsonschema.ErrorKind) {
	switch k := k.(type) {
	case *kind.Required:
		l.each(at, k.Missing, "is missing")
	case *kind.Dependency:
		l.each(at, k.Missing, "is missing ("+k.Prop+" needs it)")
	case *kind.DependentRequired:
		l.each(at, k.Missing, "is missing ("+k.Prop+" needs it)")
	case *kind.Type:
		t := l.types[pointer(at)]
		l.types[pointer(at)] = typed{at, k.Got, append(t.want, k.Want...)}
	default:
		l.put(at, what(k))
	}
}

func (l *leaves) each(at, names []string, what string) {
	for _, name := range names {
		l.put(member(at, name), what)
	}
}

// unknown adds an unknown name. Its entry in Places is the place of the similar name, if there is one.
func (l *leaves) unknown(at []string, near string) {
	if near == "" {
		l.put(at, "is unknown")
		return
	}
	text := l.put(at, "is unknown; did you mean "+near+"?")
	l.texts[text] = member(at[:len(at)-1], near)
}

func (l *leaves) put(at []string, what string) (text string) {
	text = place(at) + ": " + short(what, maxWhat)
	if _, ok := l.texts[text]; !ok {
		l.texts[text] = slices.Clone(at)
	}
	return text
}

// place returns the JSON pointer of a violation, or only its end if it is long.
func place(at []string) string {
	text := pointer(at)
	for len(at) > 1 && tokens.Estimate(text) > maxPlace {
		at = at[1:]
		text = "/..." + pointer(at)
	}
	return short(text, maxPlace)
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

// what describes a violation in a few words, without the place and the given value. The library has such texts too, but they round
// the numbers of limits.
func what(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.Type:
		return "must be " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "must be " + alternatives(k.Want)
	case *kind.Const:
		return "must be " + alternatives([]any{k.Want})
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.Format:
		return "is no valid " + k.Want
	case *kind.ContentEncoding:
		return "must be " + k.Want
	case *kind.ContentMediaType:
		return "must be " + k.Want
	case *kind.Minimum:
		return "must be >=" + decimal(k.Want)
	case *kind.Maximum:
		return "must be <=" + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be >" + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be <" + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *kind.Not:
		return "is what not excludes"
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			return "fits more than one of oneOf"
		}
		return "fits none of oneOf"
	case *kind.AnyOf:
		return "fits none of anyOf"
	}
	return counted(k)
}

// counted describes a violation of a length or a count. For a violation of another kind it returns the library's text.
func counted(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return atLeast(k.Want, "characters")
	case *kind.MaxLength:
		return fmt.Sprintf("must have <=%d characters", k.Want)
	case *kind.MinItems:
		return atLeast(k.Want, "items")
	case *kind.MaxItems:
		return fmt.Sprintf("must have <=%d items", k.Want)
	case *kind.MinProperties:
		return atLeast(k.Want, "keys")
	case *kind.MaxProperties:
		return fmt.Sprintf("must have <=%d keys", k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "no item fits contains"
	case *kind.MinContains:
		return fmt.Sprintf("must have >=%d items that fit contains", k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("must have <=%d items that fit contains", k.Want)
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func atLeast(n int, things string) string {
	if n == 1 {
		return "must not be empty"
	}
	return fmt.Sprintf("must have >=%d %s", n, things)
}

// alternatives returns values as JSON, or only the first ones if the text would be long. To leave some out does no harm, since the
// error also shows the type of the argument, which has all values.
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

// pointer returns a JSON pointer (RFC 6901), but "/" for the root, which models understand better.
func pointer(location []string) string {
	var out strings.Builder
	for _, step := range location {
		out.WriteByte('/')
		out.WriteString(pointerEscapes.Replace(step))
	}
	if out.Len() == 0 {
		return "/"
	}
	return out.String()
}
