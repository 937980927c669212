package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text decodes a JSON string with its quotes. Half a surrogate pair becomes U+FFFD, since a Go string cannot hold it.
// ok is false if quoted is not a string in valid UTF-8.
func Text(quoted []byte) (text string, ok bool) {
	text, _, ok = decode(view(quoted))
	return text, ok
}

// WholeText is like [Text], but ok is also false if the string contains half a surrogate pair, which Text would replace.
func WholeText(quoted []byte) (text string, ok bool) {
	text, lone, ok := decode(view(quoted))
	return text, ok && !lone
}

func decode(quoted string) (text string, lone, ok bool) {
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return "", false, false
	}
	inner := quoted[1 : len(quoted)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return strings.Clone(inner), false, utf8.ValidString(inner)
	}
	out, lone, ok := unescape(nil, inner)
	if !ok {
		return "", false, false
	}
	if lone {
		out = bytes.ToValidUTF8(out, []byte("\ufffd"))
	}
	return view(out), lone, utf8.Valid(out) && (!lone || utf8.ValidString(inner))
}

// unescape decodes inner, a JSON string without its quotes, and appends the result to buf. Half a surrogate pair is encoded as
// three bytes, as if UTF-8 allowed that, and lone is then true. ok is false if inner has an invalid escape or byte.
func unescape(buf []byte, inner string) (text []byte, lone, ok bool) {
	// An escape is never shorter than the character it encodes. The loop writes eight bytes at a time, so it may need
	// up to 8 more.
	buf = slices.Grow(buf, len(inner)+8)
	n := len(buf)
	buf = buf[:cap(buf)]
	for i := 0; i < len(inner); {
		if i+8 <= len(inner) {
			w := word8(inner, i)
			binary.LittleEndian.PutUint64(buf[n:], w)
			plain := bits.TrailingZeros64(special(w)) / 8 // number of bytes before the first special one; 8 if none is special
			i, n = i+plain, n+plain
			if plain == 8 {
				continue
			}
		}
		if inner[i] != '\\' {
			if inner[i] < ' ' || inner[i] == '"' {
				return nil, false, false
			}
			buf[n] = inner[i]
			i, n = i+1, n+1
			continue
		}
		if i+1 < len(inner) && unescaped[inner[i+1]] != 0 {
			buf[n] = unescaped[inner[i+1]]
			i, n = i+2, n+1
			continue
		}
		if _, ok := hex4(inner[i:]); !ok {
			return nil, false, false
		}
		r, size, whole := EscapedRune(inner[i:])
		if whole {
			n += utf8.EncodeRune(buf[n:], r)
		} else {
			n += copy(buf[n:], []byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
			lone = true
		}
		i += size
	}
	return buf[:n], lone, true
}

// EscapedRune decodes the valid \u escape at the start of text. n is the number of bytes read: 6, or 12 for a
// surrogate pair. For half a pair, r is that half and whole is false.
func EscapedRune(text string) (r rune, n int, whole bool) {
	r, _ = hex4(text)
	if !utf16.IsSurrogate(r) {
		return r, 6, true
	}
	if second, ok := hex4(text[6:]); ok {
		if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
			return pair, 12, true
		}
	}
	return r, 6, false
}

// hex4 reads the \u escape at the start of text, without joining surrogate pairs.
func hex4(text string) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(text[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescaped maps the byte after a backslash to the character that the escape stands for. 0 means that there is no such escape.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// AppendQuoted appends text as a JSON string. It keeps <, > and &, as each escape costs a model several tokens.
// Invalid UTF-8 becomes U+FFFD. U+2028 and U+2029 are escaped, since some programs read JSON as JavaScript.
func AppendQuoted(out []byte, text string) []byte {
	out = append(slices.Grow(out, len(text)+len(text)/8+16), '"')
	for i := 0; i < len(text); {
		if i+8 <= len(text) {
			w := word8(text, i)
			plain := bits.TrailingZeros64(special(w)|w&highBits) / 8
			out = binary.LittleEndian.AppendUint64(out, w)
			out = out[:len(out)-8+plain]
			i += plain
			if plain == 8 {
				continue
			}
		}
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			n := runes(text[i:])
			if n == 0 {
				out, n = appendRune(out, text[i:])
			} else {
				out = append(out, text[i:i+n]...)
			}
			i += n
		default:
			out = appendByte(out, c)
			i++
		}
	}
	return append(out, '"')
}

// runes returns the number of bytes at the start of text that belong to non-ASCII characters without need of an escape.
func runes(text string) int {
	n := 0
	for n < len(text) && text[n] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(text[n:])
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			break
		}
		n += size
	}
	return n
}

// appendRune appends the first character of text, which runes did not accept: it is invalid UTF-8, U+2028 or U+2029.
func appendRune(out []byte, text string) (_ []byte, size int) {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError {
		return append(out, "\ufffd"...), size
	}
	return append(append(out, `\u202`...), hexDigits[r&0xf]), size
}

const hexDigits = "0123456789abcdef"

// appendByte appends one ASCII character, escaped if needed.
func appendByte(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\n':
		return append(out, '\\', 'n')
	case '\r':
		return append(out, '\\', 'r')
	case '\t':
		return append(out, '\\', 't')
	}
	if c >= ' ' {
		return append(out, c)
	}
	return append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// Encode returns the JSON of v. It does not escape <, > and &, as escapes would cost tokens. If v cannot be encoded,
// it returns null.
func Encode(v any) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// TextBlock returns a content block of type text.
func TextBlock(text string) json.RawMessage {
	return append(AppendQuoted([]byte(`{"type":"text","text":`), text), '}')
}

// AppendText appends a text block written by mcpx to the content blocks of an MCP server. If there are blocks already,
// the text starts with a newline, as some clients (Copilot CLI) join text blocks without one.
func AppendText(content []json.RawMessage, text string) []json.RawMessage {
	if len(content) > 0 {
		text = "\n" + text
	}
	return append(content, TextBlock(text))
}
