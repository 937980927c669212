package arguments

import (
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
)

// regexpTimeLimit is for one text.
const regexpTimeLimit = 50 * time.Millisecond

// pattern is a regular expression. Go's engine, which needs linear time, has it if it takes the text; else an ECMAScript engine
// with a time limit.
type pattern struct {
	text   string
	linear *regexp.Regexp
	slow   *regexp2.Regexp
}

// newPattern returns nil if no engine takes the text.
func newPattern(text string) *pattern {
	if re, err := regexp.Compile(text); err == nil {
		return &pattern{text: text, linear: re}
	}
	re, err := regexp2.Compile(text, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		return nil
	}
	re.MatchTimeout = regexpTimeLimit
	return &pattern{text: text, slow: re}
}

// match reports whether the pattern matches. That is not sure if there is no engine (p is nil), or the time limit ends the search.
func (p *pattern) match(text string) (matches, sure bool) {
	switch {
	case p == nil:
		return true, false
	case p.linear != nil:
		return p.linear.MatchString(text), true
	}
	matches, err := p.slow.MatchString(text)
	return matches || err != nil, err == nil
}
