package request

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// These are limits, in characters, for what a question shows of a request, so that the user can read what they confirm. To keep the
// text below wantedShown, mcpx cuts the values, but none of them below shortestValue. It never cuts names and structure. If the
// text is still longer than maxShown after that, the request cannot be confirmed.
const (
	wantedShown   = 4_000
	maxShown      = 12_000
	shortestValue = 100
)

// showing is a JSON value as mcpx shows it to the user who must confirm a request. Every member is shown, and invisible
// characters are escaped, so that nothing in the request is hidden from the user.
type showing struct {
	pieces []piece
	length int // number of characters of all leads
}

// piece is a part of the JSON: first structure (lead), then a value that may be cut. Either may be empty.
type piece struct {
	lead  string // names, brackets, line ends and indentation
	value []byte // the raw JSON of a scalar, or of an array of scalars
	sum   string // the SHA-256 of the value in hex; empty until it is needed
}

// show returns the JSON in the form in which a question shows it. If it cannot be shown, whyNot says why.
func show(raw []byte) (text, whyNot string) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return "", ""
	}
	if !wire.Valid(raw) {
		return "", "they are not valid JSON"
	}
	const tooMany = "each member is shown, and there are too many: over 12,000 characters even with all values cut. Make several calls with less in each"
	var s showing
	if !s.add(raw, "\n") {
		return "", tooMany
	}
	for limit := wantedShown; ; limit = max(shortestValue, limit*3/4) {
		var b strings.Builder
		for i := range s.pieces {
			b.WriteString(s.pieces[i].lead)
			s.pieces[i].show(&b, limit)
		}
		if n := utf8.RuneCountInString(b.String()); n <= wantedShown || limit == shortestValue {
			if n > maxShown {
				return "", tooMany
			}
			return b.String(), ""
		}
	}
}

// children is a func that calls yield for each value of an object or array. value is raw JSON. name is what the text shows before
// the value: the escaped key and ": " in an object, nothing in an array. If yield returns false, the func stops.
type children func(yield func(name string, value []byte) bool) error

// add appends the pieces of a value. It returns false if the text is too long to be shown. indent is a line end and the indentation
// of the line on which the value begins.
func (s *showing) add(raw []byte, indent string) bool {
	switch {
	case raw[0] == '{':
		return s.nested("{", "}", indent, func(yield func(name string, value []byte) bool) error {
			return wire.Members(raw, func(_ string, name, value []byte) bool {
				var b strings.Builder
				writeScalar(&b, name, maxShown)
				return yield(b.String()+": ", value)
			})
		})
	case raw[0] == '[' && !ofScalars(raw):
		return s.nested("[", "]", indent, func(yield func(name string, value []byte) bool) error {
			return wire.Elements(raw, func(value []byte) bool { return yield("", value) })
		})
	}
	return s.put(piece{value: raw})
}

// put appends a piece. It returns false if the text is now too long to be shown; the caller should then stop.
func (s *showing) put(p piece) bool {
	s.pieces = append(s.pieces, p)
	s.length += utf8.RuneCountInString(p.lead)
	return s.length <= maxShown
}

// nested appends an object or array, with each of its children on a line of its own. forEach yields the children. nested returns
// false if the text is too long to be shown.
func (s *showing) nested(open, end, indent string, forEach children) bool {
	ok, inner := s.put(piece{lead: open}), indent+"  "
	before := ""
	err := forEach(func(name string, value []byte) bool {
		ok = ok && s.put(piece{lead: before + inner + name}) && s.add(value, inner)
		before = ","
		return ok
	})
	if before != "" {
		end = indent + end
	}
	return err == nil && ok && s.put(piece{lead: end})
}

// ofScalars reports whether an array contains neither objects nor arrays.
func ofScalars(array []byte) bool {
	only := true
	_ = wire.Elements(array, func(value []byte) bool {
		only = value[0] != '{' && value[0] != '['
		return only
	})
	return only
}

// show writes the piece. If the value is longer than limit, it is cut, and a note says how much is missing.
func (p *piece) show(b *strings.Builder, limit int) {
	if len(p.value) == 0 {
		return
	}
	if p.value[0] != '[' {
		if _, left := writeScalar(b, p.value, limit); left > 0 {
			p.note(b, left, "characters")
		}
		return
	}
	b.WriteByte('[')
	written, left := 0, 0
	_ = wire.Elements(p.value, func(value []byte) bool {
		if written >= limit {
			left++
			return true
		}
		if written > 0 {
			b.WriteString(", ")
		}
		n, more := writeScalar(b, value, limit)
		if written += n + 2; more > 0 {
			(&piece{value: value}).note(b, more, "characters")
		}
		return true
	})
	b.WriteByte(']')
	if left > 0 {
		p.note(b, left, "elements")
	}
}

// note adds how much of a value is missing, in characters or elements (unit), and the SHA-256 of the whole value. A string is
// hashed without quotes and escapes. The note stands outside of the value's quotes, so that no value can imitate it.
func (p *piece) note(b *strings.Builder, missing int, unit string) {
	if p.sum == "" {
		whole, _ := decoded(p.value)
		p.sum = fmt.Sprintf("%x", sha256.Sum256([]byte(whole)))
	}
	fmt.Fprintf(b, " (cut: %d more %s; SHA-256 of all %s)", missing, unit, p.sum)
}

// decoded returns the content of a JSON string; quoted is then true. It returns any other JSON unchanged. A string with half a
// surrogate pair is returned as it is written.
func decoded(raw []byte) (text string, quoted bool) {
	if raw[0] != '"' {
		return string(raw), false
	}
	text, ok := wire.WholeText(raw)
	if !ok {
		text = string(raw[1 : len(raw)-1])
	}
	return text, true
}

// writeScalar writes a scalar until at least limit characters are written. It returns how many characters it wrote, and how many of
// the scalar are left. It escapes invisible characters, so that the user sees that they will be sent.
func writeScalar(b *strings.Builder, raw []byte, limit int) (written, left int) {
	text, quoted := decoded(raw)
	if quoted {
		b.WriteByte('"')
	}
	for len(text) > 0 && written < limit {
		r, size := utf8.DecodeRuneInString(text)
		shown := text[:size]
		switch {
		case r == utf8.RuneError && size == 1:
			shown = fmt.Sprintf(`\x%02x`, text[0])
		case !quoted: // a number, true, false or null
		case r == '"', r == '\\', !unicode.IsPrint(r), sanitize.Invisible(r):
			if shown = strings.Trim(strconv.QuoteRuneToASCII(r), "'"); r == '"' {
				shown = `\"`
			}
		}
		b.WriteString(shown)
		written += utf8.RuneCountInString(shown)
		text = text[size:]
	}
	if quoted {
		b.WriteByte('"')
	}
	return written, utf8.RuneCountInString(text)
}
