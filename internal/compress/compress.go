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
	// TOON allows TOON; without it JSON is only minified.
	TOON bool
}

// Form is the language of a text.
type Form string

// The forms of [Output].
const (
	FormText Form = "text" // unchanged
	FormJSON Form = "json" // compact JSON, or compact JSON Lines
	FormTOON Form = "toon"
)

// Output is a text for the model, and its form.
type Output struct {
	Text string
	Form Form
	// JSON is the compact JSON of a text that is exactly one object or array, else empty.
	JSON string
}

// A text becomes TOON if that has at most this share of the tokens of compact JSON. The margin of 5 %
// keeps the choice right for other tokenizers than o200k_base.
const (
	shareNum = 95
	shareDen = 100
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
		return out
	}
	doc, compact, ok := read(in[start:], o.TOON)
	if !ok && o.TOON {
		if literal, isLiteral := fromPython(in[start:]); isLiteral {
			return literalTable(in, literal)
		}
	}
	if ok {
		compact = unescapeJSON(compact)
		out.JSON = compact
	} else {
		lines, ok := compactLines(in[start:])
		if !ok {
			return out
		}
		compact = strings.Join(lines, "\n")
		doc, _, _ = read("["+strings.Join(lines, ",")+"]", o.TOON)
	}
	if doc != nil {
		if text, ok := doc.table(len(compact)); ok {
			n := Weigh(text)
			if n*shareDen <= Weigh(compact)*shareNum && (spacious(in, compact) || n <= Weigh(in)) {
				out.Text, out.Form = text, FormTOON
				return out
			}
		}
	}
	// Compact JSON nearly always has fewer tokens, but ", null" can have fewer than ",null".
	if spacious(in, compact) || Weigh(compact) < Weigh(in) {
		out.Text, out.Form = compact, FormJSON
	}
	return out
}

// literalTable writes the Python literal in, whose JSON is literal, as TOON if that saves
// enough. Otherwise it stays unchanged, as JSON would save too little to change the format.
func literalTable(in, literal string) Output {
	if doc, compact, _ := read(literal, true); doc != nil {
		if text, ok := doc.table(len(compact)); ok && Weigh(text)*shareDen <= min(Weigh(compact), Weigh(in))*shareNum {
			return Output{Text: text, Form: FormTOON}
		}
	}
	return Output{Text: in, Form: FormText}
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
