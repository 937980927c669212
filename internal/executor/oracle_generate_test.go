package executor_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"
)

// generator makes random results, both usual and invalid ones.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 1))}
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// chance returns true with a probability of 1/n.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) number() string {
	if g.chance(3) {
		return pick(g, "0", "-0", "-0.0", "1.10", "1.0", "1E400", "1e-400", "-1.5e+3", "1E5", "0.1", "100.00",
			"9007199254740993", "-9223372036854775809", "18446744073709551615", "123456789012345678901234567890",
			"3.141592653589793238462643383279", "1e21", "0.30000000000000004")
	}
	return fmt.Sprint(g.IntN(5000) - 100)
}

// plain returns a string without special characters.
func (g *generator) plain() string {
	return pick(g, "alpha", "beta gamma", "open", "closed", "2025-01-12T15:00:58Z", "src/main.go", "https://example.com/a?b=1&c=2",
		"a@b.org", "x", "Lorem ipsum dolor sit amet", "user "+fmt.Sprint(g.IntN(100)))
}

// odd returns a string that is likely to reveal errors in parsers and encoders.
func (g *generator) odd() string {
	return pick(g, "", " ", "true", "null", "1.10", "-5", "- x", "#", "a,b", "a:b", `say "hi"`, `C:\temp`, "<b>&amp;</b>",
		"tab\there", "line\nline", "cr\r\nlf", "\x00\x01\x1f\x7f", "\u0085\u00a0", "\u2028\u2029", "\u202eabc\u202c", "\u200b\ufeff",
		"é中文עברית", "😀👩\u200d💻", "\ufffd", `{"a": 1}`, `[1, 2]`, "[3]:", "{x}", "  padded  ", strings.Repeat("QUJD", 40), "|", "~",
		"\U000e0041", "ﷺ", "e\u0301")
}

func (g *generator) text() string {
	if g.chance(2) {
		return g.odd()
	}
	return g.plain()
}

// literal returns text as a JSON string, with the escapes that various encoders use, sometimes with a lone surrogate.
func (g *generator) literal(text string) string {
	style := g.IntN(6)
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n' && style != 1:
			out.WriteString(`\n`)
		case r < ' ', style == 1 && r > '~', style == 2 && strings.ContainsRune("<>&", r), style == 3 && g.chance(4):
			format := pick(g, `\u%04x`, `\u%04X`)
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, format, unit)
			}
		case r == '/' && style == 4:
			out.WriteString(`\/`)
		default:
			out.WriteRune(r)
		}
	}
	if g.chance(40) {
		out.WriteString(pick(g, `\ud800`, `\uDFFF`, `\uD83D`, `\udc00x`, `\uD800\uD800`))
	}
	return out.String() + `"`
}

func (g *generator) key() string {
	if g.chance(5) {
		return g.literal(g.odd())
	}
	return g.literal(pick(g, "id", "name", "a", "b", "type", "text", "content", "value", "items", "état", "a b", "1", "x-y", "n"))
}

func (g *generator) scalar() string {
	switch g.IntN(8) {
	case 0:
		return pick(g, "null", "true", "false")
	case 1, 2, 3:
		return g.number()
	}
	return g.literal(g.text())
}

// value returns a random JSON value with the given white space.
func (g *generator) value(depth int, w white) string {
	if depth <= 0 || g.chance(3) {
		return g.scalar()
	}
	switch g.IntN(12) {
	case 0:
		n := pick(g, 3, 70, 300)
		return strings.Repeat("[", n) + g.scalar() + strings.Repeat("]", n)
	case 1:
		return pick(g, "{}", "[]", "[[]]", "[{}]", `{"a":{}}`, `{"a":1,"a":2}`, `{"":""}`)
	case 2, 3:
		return g.table(w)
	case 4, 5, 6:
		return g.array(depth, w)
	}
	return g.object(depth, w)
}

// white is the white space in a JSON text; its zero value means compact.
type white struct {
	colon, comma, indent, end string
}

func (g *generator) white(lines bool) white {
	if lines {
		return pick(g, white{}, white{colon: " ", comma: " "}, white{" ", "\n", "", ""}, white{" ", "\n  ", "\n  ", "\n"}, white{" ", "\r\n\t", "\r\n\t", "\r\n"})
	}
	return pick(g, white{}, white{}, white{colon: " ", comma: " "}, white{" ", " \t ", " ", " "})
}

func (w white) join(open string, parts []string, end string) string {
	if len(parts) == 0 {
		return open + end
	}
	return open + w.indent + strings.Join(parts, ","+w.comma) + w.end + end
}

func (g *generator) array(depth int, w white) string {
	parts := make([]string, g.IntN(6))
	for i := range parts {
		parts[i] = g.value(depth-1, w)
	}
	return w.join("[", parts, "]")
}

func (g *generator) object(depth int, w white) string {
	parts := make([]string, g.IntN(6))
	for i := range parts {
		parts[i] = g.key() + ":" + w.colon + g.value(depth-1, w)
	}
	return w.join("{", parts, "}")
}

// table returns an array of objects that have the same keys, or nearly.
func (g *generator) table(w white) string {
	keys := make([]string, 1+g.IntN(5))
	for i := range keys {
		keys[i] = g.literal(fmt.Sprintf("%s%d", g.plain()[:1], i))
	}
	nested, broken := g.chance(4), g.chance(5)
	rows := make([]string, 2+g.IntN(12))
	for i := range rows {
		var members []string
		for _, key := range keys {
			members = append(members, key+":"+w.colon+g.scalar())
		}
		if nested {
			members = append(members, `"in":`+w.colon+w.join("{", []string{`"u":` + g.scalar(), `"v":` + g.scalar()}, "}"))
		}
		if broken && g.chance(4) {
			g.Shuffle(len(members), func(a, b int) { members[a], members[b] = members[b], members[a] })
		}
		rows[i] = w.join("{", members, "}")
	}
	return w.join("[", rows, "]")
}

// document returns a text for a text block.
func (g *generator) document() string {
	switch g.IntN(16) {
	case 0:
		return g.scalar()
	case 1:
		return g.prose()
	case 2, 3:
		return g.lines()
	case 4:
		return pick(g, "", " ", "\n\n", "{", "[1,2", `{"a":1}}`, `{"a":1} {"b":2}`, "[1]\n[2]", "\ufeff{}", "{'a': 1}", "NaN", "[1,]", "```json\n{}\n```",
			strings.Repeat("[", 12_000)+strings.Repeat("]", 12_000))
	case 5:
		return g.text()
	case 6, 7, 8, 9:
		return pick(g, "", "", "\n", "  ") + g.table(g.white(true)) + pick(g, "", "\n")
	case 10, 11:
		return g.array(4, g.white(true))
	}
	return g.object(4, g.white(true)) + pick(g, "", "\n", " ")
}

func (g *generator) prose() string {
	words := make([]string, g.IntN(60))
	for i := range words {
		words[i] = g.text() + pick(g, "", "", ".", ",", "\n", "\r\n")
	}
	return strings.Join(words, " ")
}

// lines returns JSON Lines, sometimes with mistakes.
func (g *generator) lines() string {
	rows := make([]string, 1+g.IntN(8))
	alike := g.chance(2)
	for i := range rows {
		if alike {
			rows[i] = fmt.Sprintf(`{"level": %s, "n": %s}`, g.literal(g.plain()), g.number())
		} else {
			rows[i] = g.object(2, white{colon: " "})
		}
	}
	if g.chance(8) {
		rows = append(rows, "done")
	}
	return strings.Join(rows, pick(g, "\n", "\n", "\r\n", "\n\n")) + pick(g, "", "\n")
}

// block returns a content block.
func (g *generator) block(w white) string {
	var m []string
	add := func(key, value string) { m = append(m, `"`+key+`":`+w.colon+value) }
	switch g.IntN(14) {
	case 0:
		add("type", `"image"`)
		add("data", `"iVBORw0KGgo="`)
		add("mimeType", `"image/png"`)
	case 1:
		add("type", `"audio"`)
		add("data", `"UklGR\/=="`)
		add("mimeType", `"audio/wav"`)
	case 2:
		add("type", `"resource"`)
		add("resource", `{"uri":"file:///a","mimeType":"text/plain","text":`+g.literal(g.document())+`}`)
	case 3:
		add("type", `"resource_link"`)
		add("uri", `"https://example.com/doc"`)
		add("name", g.literal(g.text()))
		add("size", g.number())
	case 4:
		add("type", pick(g, `"future"`, `"Text"`, `null`, `7`, `"\u0074ext"`))
		add("text", g.literal(g.document()))
		add("payload", g.value(3, w))
	case 5:
		add("type", `"text"`)
		if g.chance(2) {
			add("text", pick(g, "5", "null", `{"a":1}`, "[]"))
		}
	default:
		add("type", `"text"`)
		if g.chance(20) {
			add("text", `"first"`)
		}
		add("text", g.literal(g.document()))
	}
	if g.chance(4) {
		add("annotations", `{"audience":["user"],"priority":0.90,"lastModified":"2025-01-12T15:00:58Z"}`)
	}
	if g.chance(5) {
		add("_meta", g.object(2, w))
	}
	if g.chance(5) {
		m = append(m, g.key()+":"+g.value(3, w))
	}
	if g.chance(3) {
		g.Shuffle(len(m), func(a, b int) { m[a], m[b] = m[b], m[a] })
	}
	return w.join("{", m, "}")
}

// result returns the result of a tools/call, on one line.
func (g *generator) result() string {
	w := g.white(false)
	var m []string
	add := func(key, value string) { m = append(m, `"`+key+`":`+w.colon+value) }
	count := pick(g, 0, 1, 1, 1, 1, 2, 3, 5)
	blocks := make([]string, count)
	for i := range blocks {
		blocks[i] = g.block(w)
		if g.chance(60) {
			blocks[i] = pick(g, "null", "1", `"text"`, "[]", "{}")
		}
	}
	switch {
	case g.chance(25):
		add("content", pick(g, "null", `{"type":"text","text":"no list"}`, `"text"`))
	case !g.chance(20):
		add("content", w.join("[", blocks, "]"))
	}
	if g.chance(2) {
		add("structuredContent", g.structured(w))
	}
	if g.chance(3) {
		add("isError", pick(g, "true", "false", "false", "null", `"true"`, "1"))
	}
	if g.chance(3) {
		add("_meta", pick(g, g.object(3, w), g.object(2, w), g.object(2, w), "null", "5", `"meta"`, "[]"))
	}
	for g.chance(4) {
		m = append(m, pick(g, g.literal("future"+fmt.Sprint(g.IntN(9))), g.literal("x/y"), `"nextCursor"`, `"é"`)+":"+g.value(3, w))
	}
	if g.chance(15) {
		add("resultType", pick(g, `"complete"`, `"partial"`, "5"))
	}
	if g.chance(3) {
		g.Shuffle(len(m), func(a, b int) { m[a], m[b] = m[b], m[a] })
	}
	return w.join("{", m, "}")
}

// structured returns a value for structuredContent. See [generator.echoing] for one with the same content as the text block.
func (g *generator) structured(w white) string {
	switch g.IntN(6) {
	case 0:
		return g.value(0, w)
	case 1:
		return `{"result":` + w.colon + g.literal(g.document()) + `}`
	}
	return g.object(4, w)
}

// echoing returns a result whose text and structuredContent have the same content, or nearly, in one of the forms that servers
// use.
func (g *generator) echoing() string {
	if g.chance(2) {
		text := g.document()
		structured := pick(g, `{"result":%s}`, `%s`, `{"result":[%s]}`, `{"result":%s,"more":1}`)
		return fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":`+structured+`}`, g.literal(text), g.literal(text))
	}
	value := g.object(4, white{})
	text := value
	switch g.IntN(8) {
	case 0, 1:
		text = strings.Replace(value, "1", "1.0", 1)
	case 2: // SDKs wrap a value that is not an object like this
		value = `{"result":` + pick(g, value, "["+value+"]", value+`,"more":1`) + `}`
	case 3: // as the Python SDK writes a list
		more := pick(g, "5", "null", g.literal(g.plain()), g.object(4, white{}))
		said := more
		if more[0] == '"' {
			_ = json.Unmarshal([]byte(more), &said) // without the quotes
		}
		value = `{"result":[` + value + `,` + more + pick(g, "", "", ",1") + `]}`
		return fmt.Sprintf(`{"content":[{"type":"text","text":%s},{"type":"text","text":%s}],"structuredContent":%s}`, g.literal(text), whole(g, said), value)
	}
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, g.literal(text), value)
}
