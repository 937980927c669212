// Package compress writes the fewest-token text that says the same as a tool's result.
//
// JSON is minified, and becomes TOON (Token-Oriented Object Notation, version 4) where that saves
// another 5 %, which tables do and most else does not. Nothing is ever lost: numbers keep the digits
// they were written with, members keep their order, strings are decoded once. What cannot be said
// faithfully stays JSON, what is no JSON stays as it is. Everything here is pure.
package compress

import (
	"strings"

	"mcpx/internal/tokens"
)

// Options of [Text].
type Options struct {
	// TOON allows TOON; without it JSON is minified only.
	TOON bool
}

// Form is the language of a text.
type Form string

// The forms of [Output].
const (
	FormText Form = "text" // as it was received
	FormJSON Form = "json" // compact JSON, or compact JSON Lines
	FormTOON Form = "toon"
)

// Output is a text for the model, and its form.
type Output struct {
	Text string
	Form Form
}

// TOON is taken where it has at most this share of the tokens of compact JSON. Tokenizers differ:
// with 5 % to spare the choice holds for others than o200k_base.
const (
	shareNum = 95
	shareDen = 100
)

// minTabled is the share, in percent, of leaves in tables under which TOON is not tried.
const minTabled = 30

// From this size on, JSON that loses at least this part of its bytes as white space is taken to have
// fewer tokens without counting the received text, which would cost more than all the rest.
const (
	trustBytes = 64 << 10
	trustPart  = 5
)

// Text makes the fewest-token faithful text of one text block. One complete JSON object or array
// becomes compact JSON or TOON; JSON Lines (two lines or more, all of them objects) become TOON as an
// array, or compact lines; everything else is returned byte for byte. Escapes that JSON does not
// need are written as the characters they stand for. The text never has more tokens than in, by the
// estimate.
func Text(in string, o Options) Output {
	asReceived := Output{in, FormText}
	start := 0
	for start < len(in) && isBlank(in[start]) {
		start++
	}
	if start == len(in) || in[start] != '{' && in[start] != '[' {
		return asReceived
	}
	compact, ok := minify(in[start:])
	array := func() string { return compact } // what TOON is made of
	if ok {
		compact = unescapeJSON(compact)
	} else {
		lines, ok := minifyLines(in[start:])
		if !ok {
			return asReceived
		}
		compact = strings.Join(lines, "\n")
		array = func() string { return "[" + strings.Join(lines, ",") + "]" }
	}
	if o.TOON {
		if text, ok := table(array()); ok {
			n := Weigh(text)
			if n*shareDen <= Weigh(compact)*shareNum && (spacious(in, compact) || n <= Weigh(in)) {
				return Output{text, FormTOON}
			}
		}
	}
	// Compact JSON nearly always has fewer tokens, but ", null" can have fewer than ",null".
	if spacious(in, compact) || Weigh(compact) < Weigh(in) {
		return Output{compact, FormJSON}
	}
	return asReceived
}

// A text over sampleOver bytes is weighed by samples: what a megabyte costs differs from that by less
// than 1 %, and the estimate of all of it would be half of the work.
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
	stride := len(text) / samples
	n := 0
	for i := range samples {
		n += tokens.Estimate(text[i*stride : i*stride+sampleBytes])
	}
	return n * len(text) / (samples * sampleBytes)
}

// spacious says that a received text has, without counting, no fewer tokens than its compact JSON.
func spacious(in, compact string) bool {
	return compact == in || len(in) >= trustBytes && len(in)-len(compact) >= len(in)/trustPart
}

// table is the TOON text of compact JSON that is mostly tables.
func table(compact string) (string, bool) {
	doc, ok := read(compact)
	if !ok {
		return "", false
	}
	tabled, ok := doc.plan()
	if !ok || tabled*100 < doc.leaves*minTabled || tabled == 0 {
		return "", false
	}
	return doc.encode(len(compact) + len(compact)/8)
}

// minifyLines reads JSON Lines: at least two lines, each an object. Blank lines count for nothing.
func minifyLines(in string) ([]string, bool) {
	if in[0] != '{' {
		return nil, false
	}
	var out []string
	for line := range strings.SplitSeq(in, "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" {
			continue
		}
		compact, ok := "", false
		if line[0] == '{' {
			compact, ok = minify(line)
		}
		if !ok {
			return nil, false
		}
		out = append(out, unescapeJSON(compact))
	}
	return out, len(out) >= 2
}
