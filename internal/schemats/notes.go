package schemats

import (
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// description returns the description of a schema, or its title if the title is a phrase and not just a name.
func description(v *value) string {
	if d := prose(v.str("description")); d != "" {
		return d
	}
	if t := sanitize.Line(v.str("title"), 0); strings.Contains(t, " ") && len(t) > 24 {
		return t
	}
	return ""
}

// noteText joins notes to one text for a comment.
func noteText(notes []note) string {
	texts := make([]string, len(notes))
	for i, n := range notes {
		texts[i] = n.text
	}
	return strings.Join(texts, "; ")
}

// bound returns text, which is the minimum or maximum of a number. It returns "" if text is only the limit of the safe integers
// (which zod writes), of int64 or of float64.
func bound(text string) string {
	switch strings.TrimPrefix(text, "-") {
	case "9007199254740991", "9007199254740992", "9223372036854775807", "9223372036854775808",
		"1.7976931348623157e+308", "1.7976931348623157e308":
		return ""
	}
	return text
}

// span writes a range: "1..5", ">=1", "<=5", or "5" if both limits are equal.
func span(least, most string) string {
	switch {
	case least == "" && most == "":
		return ""
	case least == most:
		return least
	case most == "":
		return ">=" + least
	case least == "":
		return "<=" + most
	}
	return least + ".." + most
}

func numberNotes(v *value, integer bool) []note {
	var out []note
	if integer {
		out = append(out, note{text: "int"})
	}
	least, most := bound(v.number("minimum")), bound(v.number("maximum"))
	above, below := bound(v.number("exclusiveMinimum")), bound(v.number("exclusiveMaximum"))
	// In draft 4, exclusiveMinimum is a boolean that says that minimum is exclusive.
	if v.get("exclusiveMinimum").isTrue() {
		least, above = "", least
	}
	if v.get("exclusiveMaximum").isTrue() {
		most, below = "", most
	}
	if s := span(least, most); s != "" {
		if least == most {
			s = "=" + s
		}
		if integer {
			out[0].text = "int " + s
		} else {
			out = append(out, note{text: s})
		}
	}
	switch {
	case above == "":
	case integer && out[0].text == "int":
		out[0].text = "int >" + above
	default:
		out = append(out, note{text: ">" + above})
	}
	if below != "" {
		out = append(out, note{text: "<" + below})
	}
	if m := v.number("multipleOf"); m != "" && !(integer && m == "1") {
		out = append(out, note{text: "multiple of " + m})
	}
	if f := sanitize.Line(v.str("format"), 0); f != "" && f != "double" && f != "float" && f != "int64" {
		out = append(out, note{text: f})
	}
	return out
}

func stringNotes(v *value) []note {
	var out []note
	if f := sanitize.Line(v.str("format"), 0); f != "" {
		out = append(out, note{text: f})
	}
	least, most := minimum(v, "minLength"), v.number("maxLength")
	switch {
	case least == "1" && most == "":
		out = append(out, note{text: "non-empty"})
	case least != "" || most != "":
		out = append(out, note{text: "length " + span(least, most)})
	}
	if p := v.get("pattern"); p.is(wire.String) && !redundantPattern(v.str("format"), p.text) {
		out = append(out, note{text: "/" + sanitize.Line(p.text, 400) + "/"})
	}
	for _, key := range [...]string{"contentMediaType", "contentEncoding"} {
		if text := sanitize.Line(v.str(key), 0); text != "" {
			out = append(out, note{text: text})
		}
	}
	return out
}

// minimum returns the number in the member key, such as minLength. It returns "" if the member is missing or 0, which is no
// constraint.
func minimum(v *value, key string) string {
	if n := v.number(key); n != "0" {
		return n
	}
	return ""
}

// redundantPattern reports whether a pattern is one that zod writes in addition to this format. Such a pattern says no more than
// the format. The shortest of these patterns has 50 characters, so a pattern of fewer than 40 is the author's own, and says more.
func redundantPattern(format, pattern string) bool {
	if len(pattern) < 40 {
		return false
	}
	switch format {
	case "email", "uuid", "date", "date-time", "time", "ipv4", "ipv6", "duration":
		return true
	}
	return false
}

func objectNotes(v *value) []note {
	if s := span(minimum(v, "minProperties"), v.number("maxProperties")); s != "" {
		return []note{{text: s + " keys"}}
	}
	return nil
}

// arrayNotes returns the limits on the number of items, without those that follow from the fixed elements of a tuple.
func arrayNotes(v *value, fixed int) []note {
	var out []note
	least, most := v.number("minItems"), v.number("maxItems")
	if n := v.count("minItems"); n >= 0 && n <= fixed {
		least = ""
	}
	if n := v.count("maxItems"); n >= 0 && n <= fixed && fixed > 0 {
		most = ""
	}
	switch s := span(least, most); {
	case least == "1" && most == "":
		out = append(out, note{text: "non-empty"})
	case s == "1":
		out = append(out, note{text: "1 item"})
	case s != "":
		out = append(out, note{text: s + " items"})
	}
	if v.get("uniqueItems").isTrue() {
		out = append(out, note{text: "unique"})
	}
	return out
}

// quote returns a note with a keyword and its JSON. If the JSON is too long it is cut, and c.lossy is set.
func (c *converter) quote(label string, v *value) note {
	text := string(appendJSON(nil, v, maxQuoted))
	long := len(text) > maxQuoted
	c.lossy = c.lossy || long || strings.Contains(text, `"$ref":`) // the quoted JSON does not show the target
	return note{label + ": " + sanitize.Cut(sanitize.Line(text, 0), maxQuoted, long), true}
}

// quotedKeywords are keywords that TypeScript cannot express, or could only express in a longer form. They are quoted in comments.
var quotedKeywords = [...]string{
	"$dynamicRef", "$recursiveRef", "patternProperties",
	"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
	"contains", "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties", "contentSchema",
}

// otherNotes returns the notes that any schema may have: quoted keywords, then the default, an example and flags.
func (c *converter) otherNotes(v *value, t *typ) []note {
	var out []note
	for _, k := range quotedKeywords {
		m := v.get(k)
		if m == nil {
			continue
		}
		out = append(out, c.quote(k, m))
		switch k {
		case "$dynamicRef", "$recursiveRef":
			c.lossy = true // the quoted JSON does not show the target
		case "patternProperties":
			if add := v.get("additionalProperties"); add != nil && !add.isTrue() {
				out = append(out, c.quote("additionalProperties", add))
			}
		}
	}
	// If null is allowed, a default of null tells the model nothing.
	if d := v.get("default"); d != nil && !(d.kind == wire.Null && t.nullable()) {
		out = append(out, note{text: "default " + sanitize.Line(string(appendJSON(nil, d, maxQuoted)), maxQuoted)})
	}
	if e := v.get("examples"); e.isArray() && len(e.items) > 0 {
		out = append(out, note{text: "e.g. " + sanitize.Line(string(appendJSON(nil, e.items[0], 120)), 120)})
	}
	for _, k := range [...]string{"deprecated", "readOnly", "writeOnly"} {
		if v.get(k).isTrue() {
			out = append(out, note{text: k})
		}
	}
	return out
}

// notRepeated saves tokens: it returns notes without the constraints that the description desc already mentions, such as a default
// or a bound.
func notRepeated(notes []note, desc string) []note {
	if desc == "" || len(notes) == 0 {
		return notes
	}
	lower := strings.ToLower(desc)
	var out []note
	for _, n := range notes {
		if !n.must {
			if repeats(n.text, lower) {
				continue
			}
			if bounds, ok := strings.CutPrefix(n.text, "int "); ok && repeats(bounds, lower) {
				n.text = "int"
			}
		}
		out = append(out, n)
	}
	return out
}

// repeats reports whether desc, which is in lower case, mentions the constraint in a note: the default, both numbers of a
// range, or a bound after a word such as "max".
func repeats(note, desc string) bool {
	if v, ok := strings.CutPrefix(note, "default "); ok {
		v = strings.ToLower(strings.Trim(v, `"`))
		_, after, found := strings.Cut(desc, "default")
		return found && v != "" && len(after) > 0 && hasWord(sanitize.Cut(after, 24+len(v), false), v)
	}
	if least, most, ok := strings.Cut(note, ".."); ok {
		least = strings.TrimPrefix(least, "length ")
		most = strings.TrimSuffix(most, " items")
		for _, to := range [...]string{"-", "–", " to ", " and "} {
			if hasWord(desc, least+to+most) {
				return true
			}
		}
		return (least == "0" || least == "1" || near(desc, "min", least)) && near(desc, "max", most)
	}
	if most, ok := strings.CutPrefix(strings.TrimPrefix(note, "length "), "<="); ok {
		return near(desc, "max", strings.TrimSuffix(most, " items"))
	}
	if least, ok := strings.CutPrefix(note, ">="); ok {
		return near(desc, "min", least)
	}
	return false
}

// near reports whether number follows word closely in desc, as in "max 100" or "maximum: 100".
func near(desc, word, number string) bool {
	_, after, found := strings.Cut(desc, word)
	return found && hasWord(after[:min(len(after), 24)], number)
}

// hasWord reports whether s contains w without a letter or digit directly before or after it.
func hasWord(s, w string) bool {
	for i := range s {
		before, after := i-1, i+len(w)
		if strings.HasPrefix(s[i:], w) && (i == 0 || !wordByte(s[before])) && (after == len(s) || !wordByte(s[after])) {
			return true
		}
	}
	return false
}

func wordByte(c byte) bool { return asciiWord(c) || c >= utf8.RuneSelf }

// asciiWord reports whether c is an ASCII letter, a digit or an underscore.
func asciiWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
