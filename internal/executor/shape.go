package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"mcpx/internal/compress"
	"mcpx/internal/plain"
	"mcpx/internal/wire"
)

// received is an upstream's result, taken apart but not decoded.
type received struct {
	content    []json.RawMessage
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
	switch {
	case content == nil:
	case content[0] == '"':
		// Servers leave out the list, and the block around a text.
		r.content = []json.RawMessage{append(append([]byte(`{"type":"text","text":`), content...), '}')}
	case content[0] == '{':
		r.content = []json.RawMessage{content}
	case err == nil:
		err = wire.Elements(content, func(value []byte) bool {
			r.content = append(r.content, value)
			return true
		})
	}
	if err != nil {
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
	out := make([]byte, 0, len(r.meta)+len(r.others)+24)
	if before := bytes.TrimSpace(bytes.TrimSuffix(r.meta, []byte{'}'})); len(before) > 1 {
		out = append(append(out, before...), ',')
	} else {
		out = append(out, '{')
	}
	out = append(append(out, `"mcpx/result":{`...), r.others...)
	return append(out, '}', '}')
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
	blocks := make([]wire.Block, len(got.content))
	for i, one := range got.content {
		blocks[i] = wire.ReadBlock(one)
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
	var shown shownTexts
	if !verbatim {
		out.Content, shown = e.compressBlocks(blocks)
	} else {
		for _, b := range blocks {
			shown.texts = append(shown.texts, b.Text)
		}
	}
	e.complete(out, got, blocks, shown, r, verbatim)
	out.count(blocks)
	return out, nil
}

// complete gives the answer its structuredContent, or what stands for it, and
// cuts what is over the limit.
func (e run) complete(out *Result, got received, blocks []wire.Block, shown shownTexts, r Request, verbatim bool) {
	p := e.pages(&r)
	fits := p.Fits(shown.texts...)
	if r.Structured && fits {
		out.Structured = got.structured
		if out.Structured == nil && !got.isError {
			out.Structured = derived(blocks, shown.json)
		}
		return
	}
	if got.structured == nil || saidIn(blocks, got.structured) {
		if !fits {
			out.Content = p.CutBlocks(blocks, out.Content, verbatim)
		}
		return
	}
	// What only structuredContent says becomes a last text block.
	text := compress.Text(string(got.structured), e.textOptions()).Text
	out.Content = p.Append(blocks, out.Content, shown.texts, verbatim, string(got.structured), text)
}

// shownTexts are the texts of a result as the model gets them.
type shownTexts struct {
	texts []string
	// json is the compact JSON of the last text block that was compressed; empty
	// where that is not one JSON array or object.
	json string
}

// compressBlocks shrinks the text blocks, and returns the texts beside them.
func (e run) compressBlocks(blocks []wire.Block) (out []json.RawMessage, shown shownTexts) {
	out = make([]json.RawMessage, len(blocks))
	for i, b := range blocks {
		out[i] = b.Raw
		if b.HasText && !b.IsText {
			shown.texts = append(shown.texts, b.Text)
		}
		if !b.IsText {
			continue
		}
		c := compress.Text(b.Text, e.textOptions())
		shown.json = c.JSON
		if c.Text != b.Text {
			out[i] = b.WithText(c.Text)
		}
		shown.texts = append(shown.texts, c.Text)
	}
	return out, shown
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
