// Package compress shortens the text of a tool's result, in tokens, without losing content.
//
// JSON is minified, and becomes TOON (Token-Oriented Object Notation, version 4) if that
// saves another 5 %, as it does for tables. Numbers keep their digits and members their
// order. A document that TOON cannot hold faithfully stays JSON; a text that is neither JSON
// nor a Python literal stays unchanged. The package is pure.
package compress

import (
	"iter"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// Options of [Text].
type Options struct {
	// TOON and JS allow these forms; without them JSON is only minified.
	TOON, JS bool
}

// Form is the language of a text.
type Form string

// The forms of [Output].
const (
	FormText Form = "text" // unchanged
	FormJSON Form = "json" // compact JSON, or compact JSON Lines
	FormTOON Form = "toon"
	FormJS   Form = "js" // JavaScript that evaluates to the JSON
)

// Output is a text for the model, and its form.
type Output struct {
	Text string
	Form Form
	// JSON is the compact JSON of a text that is exactly one object or array, else empty.
	JSON string
}

// A text becomes TOON or JavaScript if that has at most this share of the tokens of compact JSON, in percent. The margin
// keeps the choice right for other tokenizers than o200k_base.
const (
	shareTOON = 95
	shareJS   = 90
	// mostScript is the most bytes of JavaScript whose tokens are counted, in percent of compact JSON.
	mostScript = 95
)

// minInTables is the least share of leaves in tables, in percent, for which TOON is tried.
const minInTables = 30

// If a text of at least trustBytes loses one trustPart-th of its bytes as white space, its
// compact JSON surely has fewer tokens, and the tokens of the text need not be counted.
const (
	trustBytes = 64 << 10
	trustPart  = 5
)

// Text shortens one text block. One JSON object or array becomes compact JSON or TOON, without
// needless escapes. JSON Lines (at least two lines, all of them objects) become compact lines,
// or an array in TOON. A list or dict as Python prints it becomes TOON. Any other text, and one
// whose new form would have more tokens, is returned unchanged.
func Text(in string, o Options) Output {
	out := Output{Text: in, Form: FormText}
	start := 0
	for start < len(in) && isBlank(in[start]) {
		start++
	}
	if start == len(in) || in[start] != '{' && in[start] != '[' {
		return within(in, o)
	}
	doc, compact, ok := read(in[start:], o.TOON)
	if !ok && (o.TOON || o.JS) {
		if literal, isLiteral := fromPython(in[start:]); isLiteral {
			return ofLiteral(in, literal, o)
		}
	}
	if ok {
		compact = unescapeJSON(compact)
		out.JSON = compact
	} else {
		lines, ok := compactLines(in[start:])
		if !ok {
			return within(in, o)
		}
		compact = strings.Join(lines, "\n")
		doc, _, _ = read("["+strings.Join(lines, ",")+"]", o.TOON)
	}
	if text, form := shortest(doc, compact, out.JSON != "", o); form != FormJSON && (spacious(in, compact) || Weigh(text) <= Weigh(in)) {
		out.Text, out.Form = text, form
		return out
	}
	// Compact JSON nearly always has fewer tokens, but ", null" can have fewer than ",null".
	if spacious(in, compact) || Weigh(compact) < Weigh(in) {
		out.Text, out.Form = compact, FormJSON
	}
	return out
}

// shortest is the form of compact JSON that has the fewest tokens. doc is nil if it cannot be TOON; whole means that it is one
// JSON value.
func shortest(doc *document, compact string, whole bool, o Options) (text string, form Form) {
	text, form = compact, FormJSON
	weight, least := -1, 0 // of compact and of text; -1 = not known
	try := func(other string, as Form, share int) {
		if weight < 0 {
			weight = Weigh(compact)
			least = weight
		}
		if n := Weigh(other); n*100 <= weight*share && n < least {
			text, form, least = other, as, n
		}
	}
	if doc != nil {
		if table, ok := doc.table(len(compact)); ok {
			try(table, FormTOON, shareTOON)
		}
	}
	if o.JS && whole {
		// Its tokens are counted only if it has fewer bytes.
		if script, ok := asScript(compact); ok && len(script)*100 <= len(compact)*mostScript {
			try(script, FormJS, shareJS)
		}
	}
	return text, form
}

// ofLiteral shortens the Python literal in, whose JSON is literal. It becomes JSON only if that saves as much as another form must,
// as the format changes, and only if the literal has calls such as Decimal('1.5').
func ofLiteral(in, literal string, o Options) Output {
	doc, compact, ok := read(literal, o.TOON)
	if !ok {
		return Output{Text: in, Form: FormText}
	}
	compact = unescapeJSON(compact)
	text, form := shortest(doc, compact, true, o)
	share := shareJS
	if form == FormTOON {
		share = shareTOON
	}
	if form == FormJSON && !strings.Contains(in, "(") || Weigh(text)*100 > Weigh(in)*share {
		return Output{Text: in, Form: FormText}
	}
	return Output{Text: text, Form: form}
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// Weigh uses samples for a text over sampleOver bytes. For a megabyte the result differs by
// less than 1 %, and saves half of the work of [Text].
const (
	sampleOver  = 128 << 10
	samples     = 24
	sampleBytes = 2 << 10
)

// Weigh estimates the tokens of a text, of a large one by samples.
func Weigh(text string) int {
	if len(text) <= sampleOver {
		return tokens.Estimate(text)
	}
	return tokens.Sample(text, samples, sampleBytes)
}

// spacious reports whether a text surely has no fewer tokens than its compact JSON.
func spacious(in, compact string) bool {
	return compact == in || len(in) >= trustBytes && len(in)-len(compact) >= len(in)/trustPart
}

// table is the TOON text of a document that is mostly tables. It is false for other documents,
// and if the text is longer by an eighth than the compact JSON, which has compact bytes.
func (d *document) table(compact int) (string, bool) {
	inTables, ok := d.plan()
	if !ok || inTables*100 < d.leaves()*minInTables || inTables == 0 {
		return "", false
	}
	return d.encode(compact, compact+compact/8)
}

// compactLines reads JSON Lines: at least two lines, each an object. It ignores blank lines.
func compactLines(in string) ([]string, bool) {
	if in[0] != '{' {
		return nil, false
	}
	var out []string
	for line := range objectLines(in) {
		if line[0] != '{' {
			return nil, false
		}
		compact, ok := wire.Compact(line)
		if !ok {
			return nil, false
		}
		out = append(out, unescapeJSON(compact))
	}
	return out, len(out) >= 2
}

// objectLines are the lines of a text that are not blank, trimmed.
func objectLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.Trim(line, " \t\r"); line != "" && !yield(line) {
				return
			}
		}
	}
}
