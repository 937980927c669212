package results

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// upstreamResult is the result of an upstream, split into its members, whose values are still JSON.
type upstreamResult struct {
	blocks     []wire.Block
	structured json.RawMessage
	meta       json.RawMessage
	isError    bool
	resultType string
	// others is an unfinished JSON object with the unknown and malformed members, as the upstream wrote them; nil if there are none.
	others []byte
}

// readUpstream splits the JSON of a result. Unknown members, and those whose value has the wrong type, are added to others. The
// error is [ErrNoResult].
func readUpstream(raw json.RawMessage) (upstreamResult, error) {
	var r upstreamResult
	var content []byte // set if the member content is a single string or block
	blocks, ok := wire.ReadResult(raw, func(key string, written, value []byte) {
		null := string(value) == "null"
		switch {
		case key == "content" && (value[0] == '"' || isBlock(value)):
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
				r.others = wire.AppendMember(r.others, written, value)
			}
		case null && (key == "content" || key == "_meta" || key == "isError"):
			// null is the same as an absent member.
		default:
			r.others = wire.AppendMember(r.others, written, value)
		}
	})
	if !ok {
		return r, fmt.Errorf("%w: %s", ErrNoResult, glimpse(raw))
	}
	r.blocks = blocks
	switch { // some servers send a single string or block instead of a list of blocks
	case content == nil:
	case content[0] == '"':
		block := append(append([]byte(`{"type":"text","text":`), content...), '}')
		r.blocks = []wire.Block{wire.ReadBlock(block)}
	default:
		r.blocks = []wire.Block{wire.ReadBlock(content)}
	}
	return r, nil
}

// isBlock reports whether a value is a content block.
func isBlock(value []byte) bool {
	kind := wire.Member(value, "type")
	return len(kind) > 0 && kind[0] == '"'
}

// glimpse returns the beginning of an answer that is no valid result, on one line.
func glimpse(raw []byte) string {
	return sanitize.Line(string(raw[:min(len(raw), 8*glimpseRunes)]), glimpseRunes)
}

const glimpseRunes = 100

// knownResultTypes are the values of resultType that Answer.Of handles. The client gets any other value in _meta.
var knownResultTypes = map[string]bool{"complete": true, "input_required": true, "task": true}

// resultMeta returns the _meta for the client: the upstream's _meta and, if r.others is not empty, a member mcpx/result with these
// others.
func (r *upstreamResult) resultMeta() json.RawMessage {
	if len(r.others) == 0 {
		return r.meta
	}
	return wire.WithMember(r.meta, "mcpx/result", append(r.others, '}'))
}

// Of converts the server's result into the answer. The error is [ErrNoResult], [ErrTask] or the error of ctx.
func (a *Answer) Of(ctx context.Context, raw json.RawMessage) (*Result, error) {
	if a.Created != nil && wire.MemberText(wire.Member(raw, "task"), "taskId") != "" {
		return &Result{Whole: wire.Edit(raw, "task", a.Created)}, nil
	}
	got, err := readUpstream(raw)
	if err != nil {
		return nil, err
	}
	switch got.resultType {
	case "input_required": // only clients with a modern protocol version get this; they repeat the request with the input
		return &Result{Whole: raw}, nil
	case "task":
		if a.Task == nil {
			return nil, ErrTask
		}
		return &Result{Whole: a.Task(raw)}, nil
	}
	blocks := got.blocks
	if a.Learn != nil && !got.isError {
		if sample, ok := sampleOf(got.structured, blocks); ok {
			a.Learn(sample)
		}
	}
	if a.Links != nil {
		a.Links(ctx, blocks)
	}
	if a.Select != "" && !got.isError {
		return a.selected(ctx, got, blocks)
	}
	out := &Result{Content: make([]json.RawMessage, len(blocks)), IsError: got.isError, Meta: got.resultMeta()}
	for i := range blocks {
		out.Content[i] = blocks[i].Raw
	}
	if a.Untouched {
		out.Structured = got.structured
		out.Received = Roughly(textsOf(blocks)...)
		out.Sent = out.Received
		return out, nil
	}
	shown := Shown{Received: blocks, Content: out.Content, Texts: textsOf(blocks), Verbatim: got.isError || a.Verbatim}
	out.Received = Roughly(shown.Texts...)
	out.Sent = out.Received
	var last compress.Output
	if !shown.Verbatim {
		last = a.compressBlocks(out, &shown)
	}
	if a.Grep != "" && !got.isError {
		if found, err := a.grepped(ctx, out, got, shown); found != nil || err != nil {
			return found, err
		}
	}
	a.complete(out, got, shown, last.JSON)
	if a.Texts.JS && len(blocks) == 1 && blocks[0].IsText && bytes.Equal(out.Content[0], shown.Content[0]) {
		out.Value = last.Value
	}
	return out, nil
}

// textsOf returns the texts of blocks, empty for a block without text.
func textsOf(blocks []wire.Block) []string {
	texts := make([]string, len(blocks))
	for i := range blocks {
		if blocks[i].HasText {
			texts[i] = blocks[i].Text
		}
	}
	return texts
}

// compressBlocks compresses the text blocks in shown, and corrects the tokens in out.Sent. It returns the output of the compression
// of the last text block. If there are several texts, an object does not become TOON. TOON does not show where the object ends, and
// many clients join the texts of a result, so the next text would look like further members of the object.
func (a *Answer) compressBlocks(out *Result, shown *Shown) (last compress.Output) {
	texts := 0
	for _, text := range shown.Texts {
		if text != "" {
			texts++
		}
	}
	for i, b := range shown.Received {
		if !b.IsText {
			continue
		}
		c := compress.Text(b.Text, a.Texts)
		if texts > 1 && c.Form == compress.FormTOON && strings.HasPrefix(c.Value, "{") {
			c = compress.Text(b.Text, compress.Options{JS: a.Texts.JS})
		}
		last = c
		if c.Text != b.Text {
			shown.Content[i], shown.Texts[i] = b.WithText(c.Text), c.Text
			out.Sent += Roughly(c.Text) - Roughly(b.Text)
		}
	}
	return last
}
