package executor

import (
	"bytes"
	"context"
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
func (e *Executor) shape(ctx context.Context, raw json.RawMessage, r Request, t target) (*Result, error) {
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
	blocks := make([]block, len(got.content))
	for i, one := range got.content {
		blocks[i] = readBlock(one)
	}
	if r.Select != "" && !got.isError {
		out, err := e.selected(ctx, got, blocks, r)
		if err == nil {
			out.count(blocks)
		}
		return out, err
	}
	out := &Result{Content: got.content, IsError: got.isError, Meta: got.resultMeta()}
	if out.Content == nil {
		out.Content = []json.RawMessage{}
	}
	verbatim := got.isError || e.verbatim(r, t)
	texts := make([]string, 0, len(blocks))
	if !verbatim {
		out.Content, texts = e.compressBlocks(blocks)
	} else {
		for _, b := range blocks {
			texts = append(texts, b.text)
		}
	}
	structured := got.structured
	switch {
	case !e.fits(texts):
		out.Content = e.cutBlocks(blocks, out.Content, verbatim, r.Principal)
	case r.Structured:
		if structured == nil && !got.isError {
			structured = derived(blocks)
		}
		out.Structured = structured
	case structured != nil && !saidIn(blocks, structured):
		out.Content = e.appendStructured(out.Content, structured, r.Principal)
	}
	out.count(blocks)
	return out, nil
}

// appendStructured adds what only structuredContent says as a last text block.
func (e *Executor) appendStructured(content []json.RawMessage, structured json.RawMessage, principal string) []json.RawMessage {
	text := compress.Text(string(structured), e.textOptions()).Text
	if !e.fits([]string{text}) {
		h := hold(string(structured), false)
		h.principal = principal
		text = e.cut(h, sequence(0, h.count()), e.limit(), nil)
	}
	return append(content[:len(content):len(content)], TextBlock(text))
}

// compressBlocks shrinks the text blocks, and returns the texts beside them.
func (e *Executor) compressBlocks(blocks []block) (out []json.RawMessage, texts []string) {
	out = make([]json.RawMessage, len(blocks))
	for i, b := range blocks {
		out[i] = b.raw
		if !b.isText {
			continue
		}
		c := compress.Text(b.text, e.textOptions())
		if c.Text != b.text {
			out[i] = b.withText(c.Text)
		}
		texts = append(texts, c.Text)
	}
	return out, texts
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
