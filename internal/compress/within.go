package compress

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// Piece is an object or array within a text, in JSON or as Python prints it. Start and End are its place in the text that was
// searched.
type Piece struct {
	Start, End int
	Value      json.RawMessage // the piece as JSON
}

// These are the limits of [Pieces].
const (
	maxPieces = 1000
	// Up to maxWrapper bytes of text around JSON are taken for an introduction to the JSON. If there is more text, or code, the
	// JSON may be only an example. Then it is used only if it is at least half of the text.
	maxWrapper = 2000
	// minPiece is a size in bytes. A piece of fewer bytes is not rewritten. If a shorter piece is an array of numbers or literals,
	// such as [1], and shares its lines with other text, it is not even taken as a piece, because it is mostly a reference.
	minPiece = 40
)

// Pieces finds JSON, and lists and dicts as Python prints them, within a text that is not itself JSON. If the text is a JSON
// string, Pieces searches the contents of the string, which may be JSON as a whole. plain is the text that was searched; it is
// empty if pieces is empty.
func Pieces(text string) (plain string, pieces []Piece) {
	if len(text) > maxBytes {
		return "", nil
	}
	if trimmed := strings.TrimSpace(text); trimmed != "" && trimmed[0] == '"' {
		if inner, ok := wire.WholeText([]byte(trimmed)); ok {
			text = inner
		}
	}
	open := brackets{text: text, curly: -1, square: -1}
	size := 0
	for at := open.next(0); at < len(text) && len(pieces) < maxPieces; {
		value, read, ok := pieceAt(text[at:])
		switch {
		case ok && apart(text, at, at+read):
			pieces = append(pieces, Piece{at, at + read, value})
			size += read
		case !ok && strings.TrimSpace(text[:at]) == "":
			return "", nil // the JSON is broken
		}
		// Do not read this part again, even if it is broken JSON.
		at = open.next(at + max(1, read))
	}
	if len(pieces) == 0 {
		return "", nil
	}
	if rest := len(text) - size; rest > size && (rest > maxWrapper || strings.Contains(text, "```")) {
		return "", nil
	}
	return text, pieces
}

// brackets finds the opening brackets in a text. The fields curly and square are the positions of the next { and [, or -1
// before the first search.
type brackets struct {
	text          string
	curly, square int
}

// next returns the position of the first opening bracket at or after pos, or the length of the text if there is none. In a series
// of calls, pos must not decrease.
func (b *brackets) next(pos int) int {
	find := func(known int, bracket byte) int {
		if known >= pos || pos >= len(b.text) {
			return max(known, pos)
		}
		if next := strings.IndexByte(b.text[pos:], bracket); next >= 0 {
			return pos + next
		}
		return len(b.text)
	}
	b.curly, b.square = find(b.curly, '{'), find(b.square, '[')
	return min(b.curly, b.square)
}

// pieceAt reads the object or array at the beginning of a text. size is its length in bytes. If ok is false, there is none, and
// size is how many bytes were read.
func pieceAt(text string) (value json.RawMessage, size int, ok bool) {
	if size, ok = wire.First(text); ok {
		return json.RawMessage(text[:size]), size, true
	}
	literal, read, ok := pythonAt(text)
	if ok {
		return json.RawMessage(literal), read, true
	}
	return nil, max(size, read), false
}

// apart reports whether a value is separated from the text around it, by white space, line ends or certain marks, such as a colon
// before or a comma after the value. It returns true if no other text is on the lines of the value. Otherwise it returns false for
// {}, and for a short array of numbers or literals.
func apart(text string, start, end int) bool {
	lineStart := strings.TrimRight(text[:start], " \t")
	first := lineStart == "" || strings.HasSuffix(lineStart, "\n")
	last := end == len(text) || text[end] == '\n' || text[end] == '\r'
	if first && last {
		return true
	}
	if !first && !strings.ContainsRune(" \t:>=`", rune(text[start-1])) {
		return false
	}
	if !last && !strings.ContainsRune(" \t<`.,;", rune(text[end])) || end+1 < len(text) && text[end] == '.' && letter(text[end+1]) {
		return false
	}
	inside := strings.TrimLeft(text[start+1:end], " \t\r\n")
	return end-start >= minPiece || strings.ContainsRune("{[\"'", rune(inside[0]))
}

// separate reports whether a reader can tell the TOON of a piece from the text around it. A table or list says how many rows or
// items it has, but text after it on the same line, or on an indented line, could be a part of its last row or item. An object does
// not show where it begins and ends: a line such as "status: ok" above or below it could be one of its members.
func separate(toon, text string, p Piece) bool {
	above, after := strings.TrimRight(text[:p.Start], "\r\n"), text[p.End:]
	below := strings.TrimLeft(after, "\r\n")
	ends := below == "" || len(below) < len(after) && !isBlank(below[0])
	if toon[0] == '[' {
		return ends
	}
	begins := p.Start == 0 || text[p.Start-1] == '\n'
	return begins && ends && !likeMember(above[strings.LastIndexByte(above, '\n')+1:]) && !likeMember(below)
}

// likeMember reports whether the first line of a text looks like a member of an object in TOON. A key with a space would have
// quotes, so "3 rows found:" is no member. A line that begins with a brace belongs to another object, which may become TOON too.
func likeMember(text string) bool {
	text = strings.TrimLeft(text, " \t")
	key, _, found := strings.Cut(text, ":")
	return found && (!strings.ContainsAny(key, " \n") || key[0] == '"') || text != "" && strings.Contains("{}", text[:1])
}

// within shortens those pieces of a text that [Pieces] finds and that have at least minPiece bytes. It keeps all bytes around the
// pieces. It writes a piece as TOON only if a reader can tell the TOON from the text around it (see separate). If the text is a
// JSON string with pieces, its contents are shown without the quotes, unless that needs more tokens or the text has less than
// minPiece bytes. If o permits neither TOON nor JavaScript, the text is not changed.
func within(in string, o Options) Output {
	out := Output{Text: in, Form: FormText}
	if !o.TOON && !o.JS {
		return out
	}
	plain, pieces := Pieces(in)
	if len(pieces) == 0 {
		return out
	}
	var text strings.Builder
	at := 0
	for _, p := range pieces {
		text.WriteString(plain[at:p.Start])
		piece := Output{Text: plain[p.Start:p.End], Form: FormText}
		if p.End-p.Start >= minPiece {
			if piece = Text(piece.Text, o); piece.Form == FormTOON && !separate(piece.Text, plain, p) {
				piece = Text(plain[p.Start:p.End], Options{JS: o.JS})
			}
		}
		text.WriteString(piece.Text)
		if at = p.End; piece.Form != FormText {
			out.Form = piece.Form
		}
		if p.End-p.Start == len(plain) {
			out.Value = piece.Value
		}
	}
	text.WriteString(plain[at:])
	if out.Text = text.String(); plain != in && (len(in) < minPiece || Weigh(out.Text) > Weigh(in)) {
		return Output{Text: in, Form: FormText}
	}
	return out
}
