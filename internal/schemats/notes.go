package schemats

import (
	"strings"
	"unicode"

	"mcpx/internal/base/sanitize"
)

// description is the text that a schema gives of itself: its description, else a
// title that says more than a name does. Uncut.
func description(v *value) string {
	if d := prose(v.str("description")); d != "" {
		return d
	}
	if t := sanitize.Line(v.str("title"), 0); strings.Contains(t, " ") && len(t) > 24 {
		return t
	}
	return ""
}

// noteText joins notes for a comment; without constraints only what must be said.
func noteText(notes []note, constraints bool) string {
	var b strings.Builder
	for _, n := range notes {
		if !constraints && !n.must {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(n.text)
	}
	return b.String()
}

// sentinel reports the bounds that zod writes for "any safe integer", and those
// of int64 and float64.
func sentinel(text string) bool {
	switch strings.TrimPrefix(text, "-") {
	case "9007199254740991", "9007199254740992", "9223372036854775807", "9223372036854775808",
		"1.7976931348623157e+308", "1.7976931348623157e308":
		return true
	}
	return false
}

func number(v *value, key string) string {
	if m := v.get(key); m != nil && m.kind == jNumber {
		return m.text
	}
	return ""
}

// span writes a range: "1..5", ">=1", "<=5", or "5" where both are the same.
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
	least, most := number(v, "minimum"), number(v, "maximum")
	above, below := number(v, "exclusiveMinimum"), number(v, "exclusiveMaximum")
	// Draft 4: a boolean that makes minimum exclusive.
	if v.get("exclusiveMinimum").isTrue() {
		least, above = "", least
	}
	if v.get("exclusiveMaximum").isTrue() {
		most, below = "", most
	}
	if sentinel(least) {
		least = ""
	}
	if sentinel(most) {
		most = ""
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
	if above != "" && !sentinel(above) {
		if integer && len(out) == 1 && out[0].text == "int" {
			out[0].text = "int >" + above
		} else {
			out = append(out, note{text: ">" + above})
		}
	}
	if below != "" && !sentinel(below) {
		out = append(out, note{text: "<" + below})
	}
	if m := number(v, "multipleOf"); m != "" && !(integer && m == "1") {
		out = append(out, note{text: "multiple of " + m})
	}
	if f := v.str("format"); f != "" && f != "double" && f != "float" && f != "int64" {
		out = append(out, note{text: sanitize.Line(f, 0)})
	}
	return out
}

func stringNotes(v *value) []note {
	var out []note
	if f := sanitize.Line(v.str("format"), 0); f != "" {
		out = append(out, note{text: f})
	}
	least, most := number(v, "minLength"), number(v, "maxLength")
	if least == "0" {
		least = ""
	}
	switch {
	case least == "1" && most == "":
		out = append(out, note{text: "non-empty"})
	case least != "" || most != "":
		out = append(out, note{text: "length " + span(least, most)})
	}
	if p := v.get("pattern"); p != nil && p.kind == jString && !redundantPattern(v.str("format")) {
		out = append(out, note{text: "/" + sanitize.Line(p.text, 400) + "/"})
	}
	if m := sanitize.Line(v.str("contentMediaType"), 0); m != "" {
		out = append(out, note{text: m})
	}
	if e := sanitize.Line(v.str("contentEncoding"), 0); e != "" {
		out = append(out, note{text: e})
	}
	return out
}

// redundantPattern: zod writes the long pattern of a format beside its name.
func redundantPattern(format string) bool {
	switch format {
	case "email", "uuid", "date", "date-time", "time", "ipv4", "ipv6", "duration":
		return true
	}
	return false
}

// looseNotes are the constraints of a schema that names no type.
func (c *converter) looseNotes(v *value) []note {
	return addNotes(stringNotes(v), numberNotes(v, false))
}

func objectNotes(v *value) []note {
	least := number(v, "minProperties")
	if least == "0" {
		least = ""
	}
	if s := span(least, number(v, "maxProperties")); s != "" {
		return []note{{text: s + " keys"}}
	}
	return nil
}

// arrayNotes are the counts of an array; of a tuple only those that its fixed
// elements leave open.
func arrayNotes(v *value, fixed int) []note {
	var out []note
	least, most := number(v, "minItems"), number(v, "maxItems")
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

// quote is a note with a keyword and its JSON. If that is long, the note has its
// beginning, and the schema counts as lossy.
func (c *converter) quote(label string, v *value) note {
	text := string(appendJSON(nil, v, maxSaid))
	long := len(text) > maxSaid
	c.lossy = c.lossy || long || strings.Contains(text, `"$ref":`) // what it refers to stands elsewhere
	return note{label + ": " + sanitize.Cut(sanitize.Line(text, 0), maxSaid, long), true}
}

// unsaid are the keywords that have no TypeScript, or none that says it shorter.
var unsaid = [...]string{
	"$dynamicRef", "$recursiveRef", "patternProperties",
	"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
	"contains", "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties", "contentSchema",
}

// said collects the notes of a schema that belong to no single type: quoted
// keywords, then default, examples and marks.
func (c *converter) said(v *value, t *typ) []note {
	var out []note
	for _, k := range unsaid {
		m := v.get(k)
		if m == nil {
			continue
		}
		out = append(out, c.quote(k, m))
		switch k {
		case "$dynamicRef", "$recursiveRef":
			c.lossy = true // where it points to is not in the quotation
		case "patternProperties":
			if add := v.get("additionalProperties"); add != nil && !add.isTrue() {
				out = append(out, c.quote("additionalProperties", add))
			}
		}
	}
	// A default of null where null is allowed is the same as leaving it out.
	if d := v.get("default"); d != nil && !(d.kind == jNull && t.nullable()) {
		out = append(out, note{text: "default " + sanitize.Line(string(appendJSON(nil, d, maxSaid)), maxSaid)})
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

// nameFrom makes an identifier of a hint: what is no letter or digit is dropped,
// or joined by an underscore.
func nameFrom(hint string) string {
	var b strings.Builder
	gap := false
	for _, c := range hint {
		if c < unicode.MaxASCII && (c == '_' || c == '$' || unicode.IsLetter(c) || unicode.IsDigit(c)) {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(c)
		} else {
			gap = true
		}
		if b.Len() >= 60 {
			break
		}
	}
	s := b.String()
	if s == "" {
		return "T"
	}
	if s[0] >= '0' && s[0] <= '9' {
		return "T" + s
	}
	return s
}

// notRepeated drops the constraints that the description has already, such as a
// default or a bound: a repetition only costs tokens.
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

// repeats reports whether desc (in lower case) says what note says. A range must
// be given by its numbers and a word such as "max".
func repeats(note, desc string) bool {
	if v, ok := strings.CutPrefix(note, "default "); ok {
		v = strings.ToLower(strings.Trim(v, `"`))
		_, after, found := strings.Cut(desc, "default")
		return found && v != "" && len(after) > 0 && hasWord(sanitize.Cut(after, 24+len(v), false), v)
	}
	if least, most, ok := strings.Cut(note, ".."); ok {
		least = strings.TrimPrefix(least, "length ")
		most = strings.TrimSuffix(most, " items")
		switch {
		case hasWord(desc, least+"-"+most), hasWord(desc, least+" to "+most),
			hasWord(desc, least+" and "+most), hasWord(desc, least+"–"+most):
			return true
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

// near reports whether number follows word closely, as in "max 100", "maximum: 100".
func near(desc, word, number string) bool {
	_, after, found := strings.Cut(desc, word)
	return found && hasWord(after[:min(len(after), 24)], number)
}

// hasWord reports whether w stands in s without a letter or digit around it.
func hasWord(s, w string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], w)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(w)
		if (i == 0 || !wordByte(s[i-1])) && (end == len(s) || !wordByte(s[end])) {
			return true
		}
		from = i + 1
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
