package arguments

import (
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

const (
	// regexpTimeLimit is for one text.
	regexpTimeLimit = 50 * time.Millisecond
	maxPattern      = 4096 // bytes
	// maxPatterns bounds the sizes of all patterns of a document together, because {1000} makes 1000 instructions of one.
	maxPatterns = 200_000
	// slowSize, and one for each byte, is the size of a pattern for the ECMAScript engine. It counts for maxPatterns only: the
	// evaluation counts the time.
	slowSize = 200
)

// By default, regexp2 looks at the clock every 100 ms, and stops a match up to 200 ms after its beginning.
func init() { regexp2.SetTimeoutCheckPeriod(regexpTimeLimit / 10) }

// pattern is a regular expression. Go's engine, which needs linear time, has it if it takes the text; else an ECMAScript engine
// with a time limit.
type pattern struct {
	text     string
	size     int             // about the number of instructions, which each byte of a text may have to pass
	disputed func(rune) bool // nil if engines do not disagree about any character
	linear   *regexp.Regexp
	slow     *regexp2.Regexp
}

// pattern compiles a pattern. It returns nil if its meaning is not clear, or if it would need too much memory.
func (c *compiler) pattern(text string) *pattern {
	// {,5} is no count in ECMAScript, but means "at most 5" in Python and Rust.
	if _, after, _ := strings.Cut(text, "{,"); len(text) > maxPattern || after != "" && '0' <= after[0] && after[0] <= '9' {
		return nil
	}
	size := slowSize + len(text)
	if parsed, err := syntax.Parse(text, syntax.Perl); err == nil {
		size = c.instructions(parsed)
	}
	if c.patterns += size; c.patterns > maxPatterns {
		return nil
	}
	disputed := disputed(text)
	if re, err := regexp.Compile(text); err == nil {
		return &pattern{text: text, size: size, disputed: disputed, linear: re}
	}
	re, err := regexp2.Compile(text, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		return nil
	}
	re.MatchTimeout = regexpTimeLimit
	return &pattern{text: text, size: size, disputed: disputed, slow: re}
}

// instructions returns about how many instructions a pattern has, without making them: a pattern of 4 KB may have 3 million. The
// repetitions of a class share its ranges (two runes each), 10 of which take the memory of an instruction.
func (c *compiler) instructions(re *syntax.Regexp) int {
	size := 1
	switch re.Op {
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCharClass:
		c.patterns += len(re.Rune) / 20
	}
	for _, sub := range re.Sub {
		size += c.instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min+1, re.Max)
	}
	return size
}

// disputed returns a func that reports whether the engines of servers disagree about a character: ü is a \w in Python, Rust and .NET, a
// no-break space is a \s there and in JavaScript, and half of a surrogate pair is a character in JavaScript. If the pattern has no such
// escape, the func is nil.
func disputed(text string) func(rune) bool {
	has := func(escapes string) bool {
		return strings.ContainsFunc(escapes, func(c rune) bool { return strings.Contains(text, `\`+string(c)) })
	}
	words, digits, spaces, halves := has("wWbB"), has("dD"), has("sS"), strings.Contains(strings.ToLower(text), `\ud`)
	if !words && !digits && !spaces && !halves {
		return nil
	}
	return func(c rune) bool {
		switch {
		case c < utf8.RuneSelf:
			return spaces && c == '\v'
		case unicode.IsNumber(c):
			return digits || words || halves && c > math.MaxUint16
		case unicode.In(c, unicode.L, unicode.M, unicode.Pc):
			return words || halves && c > math.MaxUint16
		case unicode.IsSpace(c) || c == '\ufeff':
			return spaces
		}
		return halves && c > math.MaxUint16
	}
}
