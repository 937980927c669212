package compress

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

// Piece is an object or array within a text, in JSON or as Python prints it.
type Piece struct {
	Start, End int
	Value      json.RawMessage // its JSON
}

// Limits of [Pieces].
const (
	maxPieces = 1000
	// A wrapper around JSON is at most so long. In longer texts, and in those with code, JSON may be an example: there it must be
	// half of the text.
	maxWrapper = 2000
	// leastPiece is the size of an array of numbers that is not alone on its lines, in bytes. Short ones, such as [1], are mostly
	// references.
	leastPiece = 40
)

// Pieces finds JSON within a text that is not JSON itself. The text of a JSON string is its content, which may also be JSON as a
// whole. plain is the text in which the pieces are found; there is none if pieces is empty.
func Pieces(text string) (plain string, pieces []Piece) {
	if len(text) > maxBytes {
		return "", nil
	}
	if trimmed := strings.TrimSpace(text); trimmed != "" && trimmed[0] == '"' {
		if inner, ok := wire.WholeText([]byte(trimmed)); ok {
			text = inner
		}
	}
	start := strings.IndexAny(text, "{[")
	if start < 0 {
		return "", nil
	}
	size := 0
	for at := start; at < len(text) && len(pieces) < maxPieces; {
		value, read, ok := pieceAt(text[at:])
		switch {
		case ok && apart(text, at, at+read):
			pieces = append(pieces, Piece{at, at + read, value})
			size += read
		case !ok && strings.TrimSpace(text[:at]) == "":
			return "", nil // broken JSON
		}
		// What was read is not read again, also if it is broken.
		at += max(1, read)
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			break
		}
		at += next
	}
	if rest := len(text) - size; rest > size && (rest > maxWrapper || strings.Contains(text, "```")) {
		return "", nil
	}
	return text, pieces
}

// pieceAt reads the object or array at the beginning of a text. size is the size of what was read.
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

// apart reports whether a value is set apart from the text around it, and is no short list of numbers.
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
	return end-start >= leastPiece || strings.ContainsRune("{[\"'", rune(inside[0]))
}

// within shortens the pieces of a text in their places, and keeps every other byte. A JSON string that contains JSON is shown as its
// content.
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
		if p.End-p.Start >= leastPiece {
			piece = Text(piece.Text, o)
		}
		text.WriteString(piece.Text)
		if at = p.End; piece.Form != FormText {
			out.Form = piece.Form
		}
	}
	text.WriteString(plain[at:])
	if out.Text = text.String(); plain != in && (len(in) < leastPiece || Weigh(out.Text) > Weigh(in)) {
		return Output{Text: in, Form: FormText}
	}
	return out
}
