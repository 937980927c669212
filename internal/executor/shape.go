package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"mcpx/internal/compress"
	"mcpx/internal/pages"
	"mcpx/internal/plain"
	"mcpx/internal/wire"
)

// received is an upstream's result, taken apart but not decoded.
type received struct {
	blocks     []wire.Block
	structured json.RawMessage
	meta       json.RawMessage
	isError    bool
	resultType string
	// others are the members that have no place in a tool result as mcp-go emits
	// it, as they were written: "key":value,"key":value.
	others []byte
}

// keep adds a member to the others.
func (r *received) keep(written, value []byte) {
	if len(r.others) > 0 {
		r.others = append(r.others, ',')
	}
	r.others = append(append(append(r.others, written...), ':'), value...)
}

// take reads a raw result. A member of the wrong kind is kept among the others.
func take(raw json.RawMessage) (received, error) {
	var r received
	var content []byte
	err := wire.Members(raw, func(key string, written, value []byte) bool {
		null := string(value) == "null"
		switch {
		case key == "content" && (value[0] == '[' || value[0] == '"' || isBlock(value)):
			content = value
		case key == "structuredContent":
			r.structured = value
		case key == "_meta" && value[0] == '{':
			r.meta = value
		case key == "isError" && (value[0] == 't' || value[0] == 'f'):
			r.isError = value[0] == 't'
		case key == "resultType" && value[0] == '"':
			r.resultType, _ = wire.Text(value)
			if !knownResultTypes[r.resultType] {
				r.keep(written, value)
			}
		case null && (key == "content" || key == "_meta" || key == "isError"):
			// As good as absent.
		default:
			r.keep(written, value)
		}
		return true
	})
	ok := err == nil
	switch {
	case !ok || content == nil:
	case content[0] == '"':
		// Servers leave out the list, and the block around a text.
		block := append(append([]byte(`{"type":"text","text":`), content...), '}')
		r.blocks = []wire.Block{wire.ReadBlock(block)}
	case content[0] == '{':
		r.blocks = []wire.Block{wire.ReadBlock(content)}
	default:
		r.blocks, ok = wire.ReadBlocks(content)
	}
	if !ok {
		return r, fmt.Errorf("%w: %s", errNoResult, glimpse(raw))
	}
	return r, nil
}

// isBlock reports whether a value is a content block by itself.
func isBlock(value []byte) bool {
	kind := false
	if value[0] == '{' {
		_ = wire.Fields(value, func(key string, member []byte) bool {
			kind = key == "type" && member[0] == '"'
			return !kind
		})
	}
	return kind
}

// glimpse is the beginning of an answer that is of no use, on one line.
func glimpse(raw []byte) string {
	return plain.Line(string(raw[:min(len(raw), 8*glimpseRunes)]), glimpseRunes)
}

const glimpseRunes = 100

// knownResultTypes say nothing to a client that the answer does not say itself.
var knownResultTypes = map[string]bool{"complete": true, "input_required": true, "task": true}

// resultMeta is the _meta of the answer: the upstream's, and under mcpx/result
// what else the upstream's result has.
func (r *received) resultMeta() json.RawMessage {
	if len(r.others) == 0 {
		return r.meta
	}
	return withMember(r.meta, "mcpx/result", append(append([]byte{'{'}, r.others...), '}'))
}

// withMember is a _meta object, which may be nil, with one more member.
func withMember(meta json.RawMessage, key string, value []byte) json.RawMessage {
	out := make([]byte, 0, len(meta)+len(key)+len(value)+5)
	if before := bytes.TrimSpace(bytes.TrimSuffix(meta, []byte{'}'})); len(before) > 1 {
		out = append(append(out, before...), ',')
	} else {
		out = append(out, '{')
	}
	out = append(append(append(out, '"'), key...), '"', ':')
	return append(append(out, value...), '}')
}

// shape makes the answer out of the upstream's result (design 7).
func (e run) shape(ctx context.Context, raw json.RawMessage, r Request, t target) (*Result, error) {
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
	blocks := got.blocks
	if r.Select != "" && !got.isError {
		return e.selected(ctx, got, blocks, r)
	}
	out := &Result{Content: make([]json.RawMessage, len(blocks)), IsError: got.isError, Meta: got.resultMeta()}
	for i := range blocks {
		out.Content[i] = blocks[i].Raw
	}
	shown := pages.Shown{Received: blocks, Content: out.Content, Texts: textsOf(blocks), Verbatim: got.isError || t.settings.verbatim || namesEditedFile(t.arguments)}
	out.received = roughly(shown.Texts...)
	out.sent = out.received
	compact := ""
	if !shown.Verbatim {
		compact = e.compressBlocks(out, &shown)
	}
	e.complete(out, got, shown, compact, r)
	return out, nil
}

// textsOf are the texts of blocks, each empty where a block has none.
func textsOf(blocks []wire.Block) []string {
	texts := make([]string, len(blocks))
	for i := range blocks {
		if blocks[i].HasText {
			texts[i] = blocks[i].Text
		}
	}
	return texts
}

// complete gives the answer its structuredContent, or what stands for it, and
// cuts what is over the limit. compact is the compact JSON of its only text.
func (e run) complete(out *Result, got received, shown pages.Shown, compact string, r Request) {
	p := e.pages(&r)
	fits := p.Fits(shown.Texts...)
	if r.Structured && fits {
		out.Structured = got.structured
		if out.Structured == nil && !got.isError {
			out.Structured = derived(shown.Received, compact)
		}
		return
	}
	if got.structured == nil || saidIn(shown.Received, got.structured) {
		if !fits {
			out.Content, out.sent = p.CutBlocks(shown)
		}
		return
	}
	// No text block says the same as structuredContent: it becomes the last one.
	text := compress.Text(string(got.structured), e.textOptions()).Text
	content, cut := p.Append(shown, string(got.structured), text)
	if out.Content = content; cut > 0 {
		out.sent = cut
	} else {
		out.sent += roughly(text)
	}
}

// compressBlocks shrinks the text blocks in their places. Of one that is a JSON array or object it
// returns the compact JSON; of several, that of the last.
func (e run) compressBlocks(out *Result, shown *pages.Shown) (compact string) {
	for i, b := range shown.Received {
		if !b.IsText {
			continue
		}
		c := compress.Text(b.Text, e.textOptions())
		compact = c.JSON
		if c.Text != b.Text {
			shown.Content[i], shown.Texts[i] = b.WithText(c.Text), c.Text
			out.sent += roughly(c.Text) - roughly(b.Text)
		}
	}
	return compact
}

// derived is the structuredContent of a result that has none of its own: the
// JSON of a single text block, an object as it is, an array as {"result": …}.
func derived(blocks []wire.Block, value string) json.RawMessage {
	if len(blocks) != 1 || !blocks[0].IsText {
		return nil
	}
	if value == "" { // not compressed, or no JSON
		compact, ok := wire.Compact(blocks[0].Text)
		if !ok || compact[0] != '{' && compact[0] != '[' {
			return nil
		}
		value = compact
	}
	if value[0] == '{' {
		return json.RawMessage(value)
	}
	return json.RawMessage(`{"result":` + value + "}")
}

// saidIn reports whether a text block says the same as structured: as JSON, or
// as the one string in it.
func saidIn(blocks []wire.Block, structured json.RawMessage) bool {
	only, single := onlyString(structured)
	for _, b := range blocks {
		if !b.IsText {
			continue
		}
		if single && b.Text == only {
			return true
		}
		text := bytes.TrimSpace([]byte(b.Text))
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
	if len(inner) == 0 || inner[0] != '"' {
		return "", false
	}
	return wire.WholeText(inner)
}
