// Package compress rewrites the text of a tool's result with fewer tokens, without loss of content.
//
// JSON is minified. It becomes TOON (Token-Oriented Object Notation, version 4) if that saves another 5 %, as it does for
// tables, or JavaScript if that saves 10 % and is shorter than TOON. The digits of numbers and the order of members are kept. A
// document that a form cannot represent exactly is not written in that form. JSON and Python literals within another text are
// rewritten too; all else in a text is not changed. The package does no I/O and has no state.
package compress

import (
	"iter"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// Options are the options of [Text].
type Options struct {
	// TOON and JS say whether a text may become TOON or JavaScript. If both are false, JSON is only minified, and JSON within
	// another text is not changed.
	TOON, JS bool
}

// Form is the language in which a text is written. If only pieces of JSON within the text were rewritten, it is the language of the
// last of these pieces.
type Form string

// These are the forms that an [Output] may have.
const (
	FormText Form = "text" // unchanged, or the contents of a JSON string
	FormJSON Form = "json" // compact JSON, or compact JSON Lines
	FormTOON Form = "toon"
	FormJS   Form = "js" // JavaScript that evaluates to the JSON
)

// Output is a text for the model, and its form.
type Output struct {
	Text string
	Form Form
	// JSON is the compact JSON if the text is exactly one object or array, otherwise empty.
	JSON string
	// Value, if not empty, is the content of the whole text as compact JSON, even if the input was a Python literal or a JSON
	// string. It is empty if the text has other content, is JSON Lines, or is an unchanged Python literal or JSON string.
	Value string
	// Tokens is the number of tokens of Text, as estimated by [Weigh]; 0 if it is not known.
	Tokens int
}

// A text becomes TOON only if TOON has at most shareTOON percent of the tokens of compact JSON, and JavaScript only if it has
// at most shareJS percent. The margin makes the choice right for models with another tokenizer than o200k_base, too.
const (
	shareTOON = 95
	shareJS   = 90
	// JavaScript is considered, and its tokens are counted, only if it has at most maxScriptShare percent of the bytes of
	// compact JSON.
	maxScriptShare = 95
	// If JavaScript has at most trustScript percent of the bytes of compact JSON, it is chosen without counting tokens. Tokens
	// are still counted if the text was tried as TOON too, because the two forms must be compared. Of a thousand real texts with
	// so few bytes, none had more than 65 % of the tokens.
	trustScript = 50
)

// TOON is tried only if at least minInTables percent of the leaves of a document are in tables of at least two rows or in
// arrays of scalars. A leaf is a scalar or an empty container.
const minInTables = 30

// If a text has at least trustBytes bytes, and at least a fifth of it (1/trustPart) is white space that compact JSON leaves out,
// compact JSON certainly has fewer tokens. Then the tokens of the text are not counted.
const (
	trustBytes = 64 << 10
	trustPart  = 5
)

// Text shortens one text block. One JSON object or array becomes compact JSON, TOON or JavaScript, without needless escapes. JSON
// Lines (at least two lines, all of them objects) become compact lines, or an array in TOON. If o permits TOON or JavaScript, Text
// also shortens a list or dict as Python prints it (see ofLiteral), and the JSON within any other text (see [Pieces]). A text whose
// new form would have more tokens is returned unchanged.
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
		out.JSON, out.Value = compact, compact
	} else {
		lines, ok := compactLines(in[start:])
		if !ok {
			return within(in, o)
		}
		compact = strings.Join(lines, "\n")
		doc, _, _ = read("["+strings.Join(lines, ",")+"]", o.TOON)
	}
	text, form, weight := shortest(doc, compact, out.JSON != "", o)
	if form != FormJSON && (spacious(in, compact) || Weigh(text) <= Weigh(in)) {
		out.Text, out.Form, out.Tokens = text, form, weight
		return out
	}
	if form == FormJSON && in == compact {
		out.Tokens = weight
	}
	// Compact JSON nearly always has fewer tokens, but ", null" can have fewer than ",null".
	if spacious(in, compact) || Weigh(compact) < Weigh(in) {
		out.Text, out.Form = compact, FormJSON
	}
	return out
}

// shortest returns the compact JSON in the form that has the fewest tokens, if that form saves enough (see shareTOON). The
// parameter doc is nil if TOON is not possible, and whole means that the input was exactly one value. The result textTokens is the
// number of tokens of text, or 0 if they were not counted.
func shortest(doc *document, compact string, whole bool, o Options) (text string, form Form, textTokens int) {
	text, form = compact, FormJSON
	weight := -1 // tokens of compact; -1 if not yet known
	try := func(other string, as Form, share int) {
		if weight < 0 {
			weight = Weigh(compact)
			textTokens = weight
		}
		if n := Weigh(other); n*100 <= weight*share && n < textTokens {
			text, form, textTokens = other, as, n
		}
	}
	if doc != nil {
		if table, ok := doc.table(len(compact)); ok {
			try(table, FormTOON, shareTOON)
		}
	}
	if o.JS && whole && promising(compact) {
		script, ok := asScript(compact)
		switch {
		case !ok || len(script)*100 > len(compact)*maxScriptShare:
		case weight < 0 && len(script)*100 <= len(compact)*trustScript:
			return script, FormJS, 0
		default:
			try(script, FormJS, shareJS)
		}
	}
	return text, form, textTokens
}

// ofLiteral shortens a Python literal. The parameter source is the text of the literal, and the parameter literal is the same value
// as JSON. The output is TOON, JavaScript or, if the text has a parenthesis, as in Decimal('1.5'), JSON. If the output does not
// save enough tokens to be worth the change of format, the text is returned unchanged.
func ofLiteral(source, literal string, o Options) Output {
	doc, compact, ok := read(literal, o.TOON)
	if !ok {
		return Output{Text: source, Form: FormText}
	}
	compact = unescapeJSON(compact)
	text, form, _ := shortest(doc, compact, true, o)
	share := shareJS
	if form == FormTOON {
		share = shareTOON
	}
	if form == FormJSON && !strings.Contains(source, "(") || Weigh(text)*100 > Weigh(source)*share {
		return Output{Text: source, Form: FormText}
	}
	return Output{Text: text, Form: form, Value: compact}
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// If a text is longer than sampleOver bytes, Weigh counts only samples of it. For a megabyte the error is less than 1 %, and
// [Text] needs only half of the time.
const (
	sampleOver  = 128 << 10
	samples     = 24
	sampleBytes = 2 << 10
)

// Weigh estimates the tokens of a text; if the text is long, it takes samples.
func Weigh(text string) int {
	if len(text) <= sampleOver {
		return tokens.Estimate(text)
	}
	return tokens.Sample(text, samples, sampleBytes)
}

// spacious reports whether compact JSON certainly has no more tokens than the text that it was made from. Then the tokens need not
// be counted.
func spacious(in, compact string) bool {
	return compact == in || len(in) >= trustBytes && len(in)-len(compact) >= len(in)/trustPart
}

// table returns the document as TOON. It returns false if TOON cannot represent the document, if too few of its leaves are in
// tables (see minInTables), or if the TOON has over an eighth more bytes than the compact JSON. The parameter compact is the
// size of the compact JSON.
func (d *document) table(compact int) (string, bool) {
	inTables, ok := d.plan()
	if !ok || inTables*100 < d.leaves()*minInTables || inTables == 0 {
		return "", false
	}
	return d.encode(compact, compact+compact/8)
}

// compactLines reads JSON Lines: at least two lines, each an object. It ignores blank lines. It returns false if the text is
// anything else.
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

// objectLines returns the lines of a text that are not blank, without white space at both ends.
func objectLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.Trim(line, " \t\r"); line != "" && !yield(line) {
				return
			}
		}
	}
}
