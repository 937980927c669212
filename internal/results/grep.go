package results

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

const (
	// grepTime is how long one grep may take, not counting the time for which it waits for other greps.
	grepTime = 2 * time.Second
	// The matcher counts its work in units of about 10 ns. One match takes at most as many units as the states of the
	// expression times the bytes of the text. After grepStep units the matcher checks the time and lets other greps run. During
	// a match it can check the time only if it reads the text character by character, which is slow. So it reads character by
	// character only if a match may take more than grepWhole units.
	grepStep  = 1_000_000
	grepWhole = 100_000_000
	// grepRunes is the number of characters after which the matcher checks the time if it reads a text character by
	// character.
	grepRunes = 1000
)

var errGrepTime = errors.New("the grep took too long")

// CheckGrep returns a [RefusedError] if [Pages.Grep] would refuse the expression whatever the result is.
func CheckGrep(pattern string) error {
	_, err := compileGrep(pattern)
	return refusedGrep(err)
}

func compileGrep(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxGrep {
		return nil, errors.New("is longer than 1000 bytes")
	}
	return regexp.Compile(multiline + pattern)
}

// multiline makes ^ and $ match at the beginning and the end of each line.
const multiline = "(?m)"

// maxGrep is the longest allowed expression, in bytes.
const maxGrep = 1000

// newGrep makes the matcher of a grep. If too many greps are running, it first waits until one of them has ended. If too many greps
// are waiting already, or the wait is too long, the error is [ErrBusy]. The other errors are the error of ctx, and why the
// expression is refused. After the grep, the caller must call end, which lets the next waiting grep run.
func (p Pages) newGrep(ctx context.Context, pattern string) (*matcher, error) {
	re, err := compileGrep(pattern)
	if err != nil {
		return nil, err
	}
	if p.Work == nil {
		return newMatcher(ctx, re, time.Now().Add(grepTime)), nil
	}
	if err := p.Work.Enter(ctx, p.Principal); err != nil {
		return nil, cmp.Or(ctx.Err(), ErrBusy)
	}
	m := newMatcher(ctx, re, time.Now().Add(grepTime))
	m.slots, m.owner = p.Work, p.Principal
	return m, nil
}

// refusedGrep converts an error of a grep into a [RefusedError], but returns nil, [ErrBusy] and the error of a context
// unchanged.
func refusedGrep(err error) error {
	var wrong *syntax.Error
	switch {
	case err == nil || err == ErrBusy || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errGrepTime):
		return &RefusedError{"/grep: took more than " + grepTime.String() + "; use a simpler expression, or select"}
	case errors.As(err, &wrong):
		return &RefusedError{"/grep: " + wrong.Code.String() + " `" + strings.TrimPrefix(wrong.Expr, multiline) + "`"}
	}
	return &RefusedError{"/grep: " + err.Error()}
}

// Grep finds the matching items or lines in the texts of a result. It returns one page for each block. The page is nil if its
// block has no text, or if all items or lines match. If nothing in the text matches, and the result has other texts, the page
// is empty. The error is the error of ctx, [ErrBusy] or a [RefusedError].
func (p Pages) Grep(ctx context.Context, pattern string, s Shown) (found []*Page, err error) {
	m, err := p.newGrep(ctx, pattern)
	if err != nil {
		return nil, refusedGrep(err)
	}
	defer m.end()
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
			found[i].notSelected = notSelected(h.value, "", found[i].Text)
		}
	}
	return found, nil
}

// matcher matches one expression, until the deadline has passed or ctx is done.
type matcher struct {
	re       *regexp.Regexp
	states   int64
	ctx      context.Context // ends with the request of this grep
	deadline time.Time
	work     int64 // units of work since the time was last checked

	// slots bounds the greps that run at the same time. It is nil if there is no bound, and after this grep has ended.
	slots *semaphore.Semaphore
	owner string // the principal whose request this grep is for
}

func newMatcher(ctx context.Context, re *regexp.Regexp, deadline time.Time) *matcher {
	m := &matcher{re: re, states: grepStep, ctx: ctx, deadline: deadline}
	if parsed, err := syntax.Parse(re.String(), syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			m.states = int64(len(program.Inst))
		}
	}
	return m
}

// over lets other goroutines and the greps of other principals run. It returns why the matcher must stop, or nil if it may go
// on.
func (m *matcher) over() error {
	runtime.Gosched()
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	if time.Now().After(m.deadline) {
		return errGrepTime
	}
	if m.slots == nil {
		return nil
	}
	waited, err := m.slots.Yield(m.ctx, m.owner)
	if m.deadline = m.deadline.Add(waited); err != nil {
		m.slots = nil
		return m.ctx.Err()
	}
	return nil
}

// end ends this grep, which lets the next waiting grep run.
func (m *matcher) end() {
	if m.slots != nil {
		m.slots.Leave(m.owner)
		m.slots = nil
	}
}

// spend counts the work of matching a text of size bytes. It is called before the match. The error is why the matcher must
// stop.
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

// boundedRunes reads a text character by character, and ends early if the matcher must stop.
type boundedRunes struct {
	text []byte
	m    *matcher
	n    int
	err  error
}

// ReadRune returns the next character. It returns io.EOF at the end of the text, and also if the matcher must stop; then r.err
// says why.
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

// rows returns the items as the rows of the TOON table that the model sees, since the model may search for what it sees in a row.
// It returns nil if the model does not see the items as a table.
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

// grep finds the items or lines that match. The span's field whole is true if the text around the list of items matches, too. The
// parameter rows has the items as rows of a table, or is nil. With rows, an item also matches if its row does. The error is the
// error of ctx or errGrepTime.
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

// matches reports whether an item or line matches. An item is matched as the upstream sent it and also in compact form, without
// white space and needless escapes, as the model sees it. An element that is a string is also matched without its quotes, since
// ^ and $ mean the ends of the string.
func (h *result) matches(m *matcher, i int) (bool, error) {
	if h.items == nil {
		if err := m.spend(len(h.units[i])); err != nil {
			return false, err
		}
		// Without the line break, so that $ matches at the end of the line.
		return m.re.MatchString(strings.TrimSuffix(strings.TrimSuffix(h.units[i], "\n"), "\r")), nil
	}
	matches, err := m.match(h.items[i])
	if matches || err != nil {
		return matches, err
	}
	if text, ok := wire.Text(h.items[i]); ok && h.open != "{" {
		if matches, err = m.match([]byte(text)); matches || err != nil {
			return matches, err
		}
	}
	if !bytes.ContainsAny(h.items[i], " \t\r\n\\") {
		return false, nil // the compact form is the same text, which did not match
	}
	shown := compress.Text(h.json(h.items[i:i+1], false), compress.Options{}).Text
	return m.match([]byte(shown[1 : len(shown)-1]))
}
