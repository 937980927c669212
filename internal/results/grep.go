package results

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"

	"mcpx/internal/compress"
)

const (
	// grepTime bounds one grep.
	grepTime = 2 * time.Second
	// The work of a match is at most the states of the expression times the bytes
	// of the text, about 10 ns each. After grepStep of work the matcher looks at the
	// clock. A text of more work than grepWhole goes character by character into the
	// match, with looks at the clock on the way.
	grepStep  = 10_000_000
	grepWhole = 100_000_000
	// grepRunes is the number of characters between two looks at the clock.
	grepRunes = 1000
)

var errGrepTime = errors.New("the grep took too long")

// CheckGrep refuses what [Pages.Grep] would refuse of any result, with a [RefusedError].
func CheckGrep(pattern string) error {
	_, err := compileGrep(pattern)
	return refusedGrep(err)
}

// compileGrep compiles the expression of a grep.
func compileGrep(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxGrep {
		return nil, errors.New("is longer than 1000 bytes")
	}
	return regexp.Compile(ofLines + pattern)
}

// ofLines makes ^ and $ those of a line.
const ofLines = "(?m)"

// maxGrep bounds an expression, in bytes.
const maxGrep = 1000

// newGrep is a matcher for the expression of a grep.
func newGrep(ctx context.Context, pattern string) (*matcher, error) {
	re, err := compileGrep(pattern)
	if err != nil {
		return nil, err
	}
	return newMatcher(ctx, re, time.Now().Add(grepTime)), nil
}

// refusedGrep is an error of a grep as a [RefusedError], but for that of ctx.
func refusedGrep(err error) error {
	var wrong *syntax.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errGrepTime):
		return &RefusedError{"/grep: took more than " + grepTime.String() + "; use a simpler expression, or select"}
	case errors.As(err, &wrong):
		return &RefusedError{"/grep: " + wrong.Code.String() + " `" + strings.TrimPrefix(wrong.Expr, ofLines) + "`"}
	}
	return &RefusedError{"/grep: " + err.Error()}
}

// Grep finds the matching items or lines of the texts of a result: a page for each block,
// nil for one that stays as it is, since it has no text or all of it matches. If there are
// several texts, the page of one without a match is empty. Errors are ctx's, and a
// [RefusedError].
func (p Pages) Grep(ctx context.Context, pattern string, s Shown) (found []*Page, err error) {
	m, err := newGrep(ctx, pattern)
	if err != nil {
		return nil, refusedGrep(err)
	}
	texts := 0
	for _, b := range s.Received {
		if b.HasText {
			texts++
		}
	}
	found = make([]*Page, len(s.Received))
	for i, b := range s.Received {
		if !b.HasText {
			continue
		}
		h := p.divide(b.Text, s.Texts[i], s.Verbatim || !b.IsText)
		which, err := h.grep(m, p.rows(h))
		switch {
		case err != nil:
			return nil, refusedGrep(err)
		case texts > 1 && which.len() == 0 && !which.whole:
			found[i] = &Page{}
		case which.len() < h.count():
			found[i] = p.page(h, which, ReadArguments{Grep: pattern})
		}
	}
	return found, nil
}

// matcher matches one expression, until the deadline or the end of ctx.
type matcher struct {
	re     *regexp.Regexp
	states int64
	over   func() error // the reason to stop; nil = go on
	work   int64        // since the last look at the clock
}

func newMatcher(ctx context.Context, re *regexp.Regexp, deadline time.Time) *matcher {
	m := &matcher{re: re, states: grepStep}
	m.over = func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return errGrepTime
		}
		return nil
	}
	if parsed, err := syntax.Parse(re.String(), syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			m.states = int64(len(program.Inst))
		}
	}
	return m
}

// spend counts the work of a text of that size before the match.
func (m *matcher) spend(size int) error {
	if m.work += m.states * int64(size+1); m.work < grepStep {
		return nil
	}
	m.work = 0
	return m.over()
}

func (m *matcher) match(text []byte) (bool, error) {
	if err := m.spend(len(text)); err != nil {
		return false, err
	}
	if m.states*int64(len(text)) <= grepWhole {
		return m.re.Match(text), nil
	}
	r := &boundedRunes{text: text, m: m}
	matched := m.re.MatchReader(r)
	return matched, r.err
}

// boundedRunes reads a text until the time is over.
type boundedRunes struct {
	text []byte
	m    *matcher
	n    int
	err  error
}

// ReadRune implements io.RuneReader.
func (r *boundedRunes) ReadRune() (rune, int, error) {
	if r.n++; r.n%grepRunes == 0 && r.err == nil {
		r.err = r.m.over()
	}
	if len(r.text) == 0 || r.err != nil {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

// rows are the items as rows of the table that the model sees, nil if they are none.
func (p Pages) rows(h *result) []string {
	if h.items == nil || h.verbatim {
		return nil
	}
	text := compress.Text(h.json(h.items, false), p.Texts)
	if text.Form != compress.FormTOON || strings.Count(text.Text, "\n") != len(h.items) {
		return nil
	}
	rows := strings.Split(text.Text, "\n")[1:]
	for i, row := range rows {
		rows[i] = strings.TrimLeft(row, " ")
	}
	return rows
}

// grep finds the items or lines that match. Items may be rows too. Its error is ctx's, or
// errGrepTime.
func (h *result) grep(m *matcher, rows []string) (span, error) {
	matching := []int{}
	for i := range h.count() {
		matches, err := h.matches(m, i)
		if err == nil && !matches && rows != nil {
			matches, err = m.match([]byte(rows[i]))
		}
		if err != nil {
			return span{}, err
		}
		if matches {
			matching = append(matching, i)
		}
	}
	found := span{to: len(matching), list: matching}
	if around := h.around(); around != "" {
		matches, err := m.match([]byte(around))
		if err != nil {
			return span{}, err
		}
		found.whole = matches
	}
	return found, nil
}

// matches reports whether a line or item matches. An item matches as the upstream sent
// it, or as the model sees it: without white space and needless escapes.
func (h *result) matches(m *matcher, i int) (bool, error) {
	if h.items == nil {
		if err := m.spend(len(h.units[i])); err != nil {
			return false, err
		}
		// Without the line end, so that $ is the end of the line.
		return m.re.MatchString(strings.TrimSuffix(strings.TrimSuffix(h.units[i], "\n"), "\r")), nil
	}
	matches, err := m.match(h.items[i])
	if matches || err != nil {
		return matches, err
	}
	if !bytes.ContainsAny(h.items[i], " \t\r\n\\") {
		return false, nil // shown as it was received
	}
	shown := compress.Text(h.json(h.items[i:i+1], false), compress.Options{}).Text
	return m.match([]byte(shown[1 : len(shown)-1]))
}
