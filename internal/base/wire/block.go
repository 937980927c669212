package wire

import (
	"bytes"
	"encoding/json"
)

// Block is a content block of a tool result, with its text.
type Block struct {
	// Raw is the block as the MCP server sent it.
	Raw  json.RawMessage
	Text string
	// IsText is true for a text block. HasText is true also for an embedded resource that has a text. Both are false if the
	// text is not valid Unicode.
	IsText, HasText bool

	start, end int // position in Raw of the text with its quotes
}

// ReadBlock reads a content block. If the block is malformed, the result has Raw but no text.
func ReadBlock(raw json.RawMessage) Block {
	s := scanner{src: view(raw)}
	b, ok := s.block(raw)
	if !ok || !s.end() {
		return Block{Raw: raw}
	}
	return b
}

// ReadResult reads a tool result in one pass. It returns the blocks of the member content, and calls yield with each other member,
// as [Members] does. If content is not an array, yield gets it too. ok is false if result is not a valid object; then yield may
// have got the first members.
func ReadResult(result json.RawMessage, yield func(key string, written, value []byte)) (blocks []Block, ok bool) {
	s := scanner{src: view(result)}
	if s.peek() != '{' {
		return nil, false
	}
	ok = s.object(func(key string) bool {
		if key == "content" && s.peek() == '[' {
			var ok bool
			blocks, ok = s.blocks(result)
			return ok
		}
		written := result[s.start:s.after:s.after]
		var at place
		if !s.placed(&at) {
			return false
		}
		yield(key, written, result[at.start:at.end:at.end])
		return true
	})
	return blocks, ok && s.end()
}

// blocks reads the value at pos as an array of content blocks. data must have the same bytes as s.src.
func (s *scanner) blocks(data []byte) (blocks []Block, ok bool) {
	if s.begin() != tokenArray {
		return nil, false
	}
	for {
		switch s.advance() {
		case tokenClose:
			return blocks, true
		case tokenValue:
		default:
			return nil, false
		}
		b, ok := s.block(data)
		if !ok {
			return nil, false
		}
		blocks = append(blocks, b)
	}
}

// block reads the value at pos as a content block. data must have the same bytes as s.src.
func (s *scanner) block(data []byte) (b Block, ok bool) {
	var kind, text, embedded place
	s.peek()
	start := s.pos
	ok = s.object(func(key string) bool {
		switch key {
		case "type":
			return s.placed(&kind)
		case "text":
			return s.placed(&text)
		case "resource":
			embedded = place{}
			return s.object(func(key string) bool {
				if key == "text" {
					return s.placed(&embedded)
				}
				return s.value()
			})
		}
		return s.value()
	})
	if !ok {
		return b, false
	}
	b.Raw = data[start:s.pos:s.pos]
	switch {
	case isString(data[kind.start:kind.end], "text"):
		b.Text, b.IsText = WholeText(data[text.start:text.end])
		b.HasText = b.IsText
	case isString(data[kind.start:kind.end], "resource"):
		text = embedded
		b.Text, b.HasText = WholeText(data[text.start:text.end])
	}
	b.start, b.end = text.start-start, text.end-start
	return b, true
}

// place is the position of a value.
type place struct{ start, end int }

// placed reads a value and sets p to its position.
func (s *scanner) placed(p *place) bool {
	s.peek()
	p.start = s.pos
	ok := s.value()
	p.end = s.pos
	return ok
}

// WithText returns the block with its text replaced; b.HasText must be true. All other bytes are kept.
func (b Block) WithText(text string) json.RawMessage {
	out := make([]byte, 0, len(b.Raw)-(b.end-b.start)+len(text)+len(text)/8+16)
	out = append(out, b.Raw[:b.start]...)
	out = AppendQuoted(out, text)
	return append(out, b.Raw[b.end:]...)
}

// isString reports whether a JSON value is the string text.
func isString(value []byte, text string) bool {
	if bytes.IndexByte(value, '\\') < 0 {
		return len(value) == len(text)+2 && value[0] == '"' && string(value[1:len(value)-1]) == text
	}
	decoded, ok := Text(value)
	return ok && decoded == text
}
