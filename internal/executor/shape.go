package executor

import (
	"bytes"
	"encoding/json"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/wire"
)

// received is an upstream's result, taken apart but not decoded.
type received struct {
	content    []json.RawMessage
	structured json.RawMessage
	meta       json.RawMessage
	isError    bool
	resultType string
	// others are members that have no place in a tool result as mcp-go emits it.
	others []field
}

// take reads a raw result.
func take(raw json.RawMessage) (received, error) {
	var r received
	var content json.RawMessage
	err := wire.Fields(raw, func(key string, value []byte) bool {
		switch key {
		case "content":
			content = value
		case "structuredContent":
			r.structured = value
		case "_meta":
			r.meta = value
		case "isError":
			r.isError = string(value) == "true"
		case "resultType":
			_ = json.Unmarshal(value, &r.resultType)
		default:
			r.others = append(r.others, field{key, json.RawMessage(value)})
		}
		return true
	})
	if err != nil {
		return r, errNoResult
	}
	if len(content) > 0 && content[0] == '[' {
		err = wire.Elements(content, func(value []byte) bool {
			r.content = append(r.content, value)
			return true
		})
	} else if content != nil && string(content) != "null" {
		r.others = append(r.others, field{"content", content})
	}
	return r, err
}

// resultMeta is the _meta of the answer: the upstream's, and under mcpx/result
// what else the upstream's result has.
func (r *received) resultMeta() json.RawMessage {
	if len(r.others) == 0 {
		return r.meta
	}
	members := []field{{"mcpx/result", object(r.others)}}
	if len(r.meta) > 0 && r.meta[0] == '{' {
		before := []field{}
		_ = wire.Fields(r.meta, func(key string, value []byte) bool {
			before = append(before, field{key, json.RawMessage(value)})
			return true
		})
		members = append(before, members...)
	}
	return encode(object(members))
}

// block is one content block with its text, if it is a text block.
type block struct {
	raw        json.RawMessage
	start, end int // where the text stands in raw, with its quotes
	text       string
	isText     bool
}

func readBlock(raw json.RawMessage) block {
	b := block{raw: raw}
	isText := false
	_ = wire.FieldsAt(raw, func(key string, start, end int) bool {
		switch key {
		case "type":
			isText = string(raw[start:end]) == `"text"`
		case "text":
			b.start, b.end = start, end
		}
		return true
	})
	if !isText {
		return b
	}
	quoted := raw[b.start:b.end]
	if b.text, b.isText = wire.Text(quoted); b.isText {
		// Half a surrogate pair has no place in a string: such a text is only
		// faithful as it was written.
		if bytes.Contains(quoted, []byte(`\ud`)) && strings.ContainsRune(b.text, '\ufffd') {
			b.isText = false
		}
	}
	return b
}

// withText is the block with another text; everything else in it stays.
func (b block) withText(text string) json.RawMessage {
	out := make([]byte, 0, len(b.raw)-(b.end-b.start)+len(text)+len(text)/8+16)
	out = append(out, b.raw[:b.start]...)
	out = wire.AppendQuoted(out, text)
	return append(out, b.raw[b.end:]...)
}

// shape makes the answer out of the upstream's result (design 7).
func (e *Executor) shape(raw json.RawMessage, r Request, t target) (*Result, error) {
	got, err := take(raw)
	if err != nil {
		return nil, err
	}
	switch got.resultType {
	case "input_required":
		return nil, errInputRequired
	case "task":
		return nil, errTask
	}
	out := &Result{Content: got.content, IsError: got.isError, Meta: got.resultMeta()}
	if out.Content == nil {
		out.Content = []json.RawMessage{}
	}
	blocks := make([]block, len(got.content))
	for i, one := range got.content {
		blocks[i] = readBlock(one)
	}
	structured := got.structured
	if structured == nil && !got.isError {
		structured = derived(blocks)
	}
	if !got.isError && !e.verbatim(r, t) {
		out.Content = e.compressBlocks(blocks)
	}
	switch {
	case r.Structured:
		out.Structured = structured
	case got.structured != nil && !saidIn(blocks, got.structured):
		text := compress.Text(string(got.structured), e.textOptions()).Text
		out.Content = append(out.Content[:len(out.Content):len(out.Content)], TextBlock(text))
	}
	return out, nil
}

func (e *Executor) compressBlocks(blocks []block) []json.RawMessage {
	out := make([]json.RawMessage, len(blocks))
	for i, b := range blocks {
		out[i] = b.raw
		if !b.isText {
			continue
		}
		if c := compress.Text(b.text, e.textOptions()); c.Text != b.text {
			out[i] = b.withText(c.Text)
		}
	}
	return out
}

// derived is the structuredContent of a result that has none of its own: the
// JSON of a single text block, an object as it is, an array as {"result": …}.
func derived(blocks []block) json.RawMessage {
	if len(blocks) != 1 || !blocks[0].isText {
		return nil
	}
	text := bytes.TrimSpace([]byte(blocks[0].text))
	if len(text) == 0 || (text[0] != '{' && text[0] != '[') {
		return nil
	}
	value, ok := compress.Minify(text)
	if !ok {
		return nil
	}
	if value[0] == '{' {
		return value
	}
	return append(append([]byte(`{"result":`), value...), '}')
}

// saidIn reports whether a text block says the same as structured: as JSON, or
// as the one string in it.
func saidIn(blocks []block, structured json.RawMessage) bool {
	only, single := onlyString(structured)
	for _, b := range blocks {
		if !b.isText {
			continue
		}
		if single && b.text == only {
			return true
		}
		text := bytes.TrimSpace([]byte(b.text))
		if len(text) > 0 && (text[0] == structured[0]) && compress.Equal(text, structured) {
			return true
		}
	}
	return false
}

// onlyString returns the string in a value that is a string, or an object with
// a string as its only member.
func onlyString(value json.RawMessage) (string, bool) {
	members := 0
	inner := value
	if value[0] == '{' {
		_ = wire.Fields(value, func(_ string, member []byte) bool {
			members++
			inner = member
			return true
		})
		if members != 1 {
			return "", false
		}
	}
	var text string
	if len(inner) == 0 || inner[0] != '"' || json.Unmarshal(inner, &text) != nil {
		return "", false
	}
	return text, true
}
