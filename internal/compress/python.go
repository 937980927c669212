package compress

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"mcpx/internal/base/wire"
)

// maxNesting is how deeply containers in a Python literal may be nested, since the reader is recursive.
const maxNesting = 100

// fromPython converts a list or dict, as Python's repr and pprint print it, to compact JSON of the same value: many Python
// servers send str(rows). Numbers keep their digits and strings their escapes. A tuple becomes an array, as in Python's json.
// For Decimal, datetime and UUID see [python.call]. fromPython refuses values without exact JSON: sets, bytes, inf and nan,
// other calls, keys that are not strings, equal keys, lone surrogates. It also refuses syntax that repr never prints: comments,
// trailing commas, other prefixes and escapes, adjacent strings.
func fromPython(text string) (compact string, ok bool) {
	if text == "" || text[0] != '[' && text[0] != '{' {
		return "", false
	}
	compact, size, ok := pythonAt(text)
	if !ok || strings.Trim(text[size:], " \n\r\t") != "" {
		return "", false
	}
	return compact, true
}

// pythonAt converts the literal at the beginning of a text. size is the size of the literal in bytes; if ok is false, it is how
// many bytes were read.
func pythonAt(text string) (compact string, size int, ok bool) {
	p := python{src: text} // out is not allocated in advance, since most texts fail early
	if !p.value(maxNesting) || !utf8.Valid(p.out) {
		return "", p.pos, false
	}
	return string(p.out), p.pos, true
}

// python reads a literal and writes JSON. Methods that convert a value return false if they find anything that fromPython refuses.
type python struct {
	src string
	pos int
	out []byte
}

// peek skips white space and returns the byte after it, 0 at the end.
func (p *python) peek() byte {
	for p.pos < len(p.src) && isBlank(p.src[p.pos]) {
		p.pos++
	}
	if p.pos == len(p.src) {
		return 0
	}
	return p.src[p.pos]
}

// accept skips white space. If the byte after it is c, accept skips this byte too, and returns true.
func (p *python) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

// value converts the next value. levels is how many containers may be nested in each other from here on.
func (p *python) value(levels int) bool {
	switch c := p.peek(); {
	case levels == 0:
		return false
	case c == '[' || c == '(':
		return p.list(c, levels-1)
	case c == '{':
		return p.dict(levels - 1)
	case c == '\'' || c == '"':
		return p.str(c)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, word := range [...]struct{ python, json string }{{"None", "null"}, {"True", "true"}, {"False", "false"}} {
		if strings.HasPrefix(p.src[p.pos:], word.python) {
			p.pos += len(word.python)
			p.out = append(p.out, word.json...)
			return true
		}
	}
	return p.call()
}

// list converts a list or a tuple. Only a tuple of one item may have a comma after its last item, and it must have one.
func (p *python) list(open byte, levels int) bool {
	end := byte(']')
	if open == '(' {
		end = ')'
	}
	p.pos++
	p.out = append(p.out, '[')
	for n := 0; !p.accept(end); n++ {
		if n > 0 {
			if !p.accept(',') {
				return false
			}
			if n == 1 && open == '(' && p.accept(end) {
				break
			}
			p.out = append(p.out, ',')
		}
		if !p.value(levels) || n == 0 && open == '(' && p.peek() != ',' {
			return false
		}
	}
	p.out = append(p.out, ']')
	return true
}

func (p *python) dict(levels int) bool {
	seen := map[string]bool{}
	p.pos++
	p.out = append(p.out, '{')
	for !p.accept('}') {
		if len(seen) > 0 {
			if !p.accept(',') {
				return false
			}
			p.out = append(p.out, ',')
		}
		quote, at := p.peek(), len(p.out)
		if quote != '\'' && quote != '"' || !p.str(quote) {
			return false
		}
		key, ok := wire.Text(p.out[at:])
		if !ok || seen[key] || !p.accept(':') {
			return false
		}
		seen[key] = true
		p.out = append(p.out, ':')
		if !p.value(levels) {
			return false
		}
	}
	p.out = append(p.out, '}')
	return true
}

// number copies a number, since Python's repr and JSON write numbers in the same way.
func (p *python) number() bool {
	rest := p.src[p.pos:]
	end := len(rest) - len(strings.TrimLeft(rest, "+-.eE0123456789"))
	if !wire.Valid([]byte(rest[:end])) {
		return false
	}
	p.pos += end
	p.out = append(p.out, rest[:end]...)
	return true
}

// str converts the string that begins with the character quote to a JSON string.
func (p *python) str(quote byte) bool {
	p.out = append(p.out, '"')
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case c == quote:
			p.pos++
			p.out = append(p.out, '"')
			return true
		case c < ' ':
			return false
		case c == '"':
			p.out = append(p.out, `\"`...)
		case c == '\\':
			if !p.escape() {
				return false
			}
		default:
			p.out = append(p.out, c)
		}
	}
	return false
}

// escape converts the escape sequence at pos. Afterwards pos is the index of its last byte.
func (p *python) escape() bool {
	p.pos++
	if p.pos == len(p.src) {
		return false
	}
	digits := 0
	switch c := p.src[p.pos]; c {
	case '\'':
		p.out = append(p.out, c)
	case '"', '\\', 'n', 'r', 't':
		p.out = append(p.out, '\\', c)
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return false
	}
	if digits == 0 {
		return true
	}
	if len(p.src)-p.pos <= digits {
		return false
	}
	code, err := strconv.ParseUint(p.src[p.pos+1:p.pos+1+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(code)) {
		return false
	}
	p.pos += digits
	if high, low := utf16.EncodeRune(rune(code)); high != utf8.RuneError {
		p.out = fmt.Appendf(p.out, `\u%04x\u%04x`, high, low)
	} else {
		p.out = fmt.Appendf(p.out, `\u%04x`, code)
	}
	return true
}
