package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/jq"
)

// shapeTokens bounds what a failed filter is told of the result.
const shapeTokens = 300

// selection is what a filter made of a result.
type selection struct {
	text string // one value, or JSON Lines
	// value is the selection as one JSON value: the only output, else an array.
	value   json.RawMessage
	several bool
}

// filter runs a jq filter. A filter that fails gives a fault with the shape of
// the value and the handle to try again on; without a handle the value is kept
// under a new one.
func (e *Executor) filter(ctx context.Context, filter string, value json.RawMessage, handle string) (*selection, *Fault, error) {
	outputs, err := e.options().Filter.Run(ctx, filter, value)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, e.filterFault(err, value, handle), nil
	}
	lines := make([][]byte, len(outputs))
	for i, output := range outputs {
		lines[i] = output
	}
	s := &selection{text: string(bytes.Join(lines, []byte{'\n'})), several: len(outputs) != 1}
	if len(outputs) == 1 {
		s.value = outputs[0]
		s.text = plainText(outputs[0])
	} else {
		s.value = append(append([]byte{'['}, bytes.Join(lines, []byte{','})...), ']')
	}
	return s, nil, nil
}

// plainText is a value as text: a string as it reads, unless it would read as
// another value then.
func plainText(value json.RawMessage) string {
	var text string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	if trimmed := strings.TrimSpace(text); trimmed == "" || json.Valid([]byte(trimmed)) {
		return string(value)
	}
	return text
}

func (e *Executor) filterFault(err error, value json.RawMessage, handle string) *Fault {
	var limit *jq.LimitError
	var broken *jq.FilterError
	what := err.Error()
	switch {
	case errors.As(err, &limit):
		what = "the filter went over its limit of " + limit.What
	case errors.As(err, &broken):
		what = broken.Message
	}
	violation := "/select: " + what
	shape := compress.Shape(value, shapeTokens)
	f := &Fault{Code: CodeValidation, Message: violation}
	f.Text = fmt.Sprintf("%s: %s\nThe call was made; its result is kept: exec %s %s %s\nShape of the result: %s",
		f.Code, violation, Builtin, readResult, encode(readArguments{Handle: handle, Select: "..."}), shape)
	return f.With("violations", []string{violation}).With("handle", handle).With("shape", shape)
}

// resultOrNil is the fault as a result; nil stays nil.
func (f *Fault) resultOrNil(structured bool) *Result {
	if f == nil {
		return nil
	}
	return f.Result(structured)
}

// selected applies the filter of a request to the upstream's result.
func (e *Executor) selected(ctx context.Context, got received, blocks []block, r Request) (*Result, error) {
	value := got.structured
	if value == nil {
		value = onlyJSON(blocks)
	}
	if value == nil {
		f := &Fault{Code: CodeValidation, Message: "/select: the result has no JSON; call without select"}
		for _, b := range blocks {
			if b.isText {
				f.With("handle", e.store.put(e.hold(b.text, b.text, true, r.Principal)))
				break
			}
		}
		return f.With("violations", []string{f.Message}).Result(r.Structured), nil
	}
	h := e.hold(string(value), string(value), false, r.Principal)
	handle := ""
	s, fault, err := e.filter(ctx, r.Select, value, "")
	if fault != nil {
		handle = e.store.put(h)
		fault = e.filterFault(errors.New(strings.TrimPrefix(fault.Message, "/select: ")), value, handle)
	}
	if err != nil || fault != nil {
		return fault.resultOrNil(r.Structured), err
	}
	var others []json.RawMessage
	for _, b := range blocks {
		if !b.isText || !json.Valid([]byte(b.text)) {
			others = append(others, b.raw)
		}
	}
	out := e.selection(s, others, r)
	out.Meta = got.resultMeta()
	return out, nil
}

// selection makes the answer out of what a filter made, and of the blocks that
// it did not concern.
func (e *Executor) selection(s *selection, others []json.RawMessage, r Request) *Result {
	text := compress.Text(s.text, e.textOptions()).Text
	long := !e.fits([]string{text})
	if long {
		h := e.holdSelection(s, r.Principal)
		text = e.cut(h, h.all(), e.limit(), readArguments{})
	}
	out := &Result{Content: append([]json.RawMessage{TextBlock(text)}, others...)}
	if r.Structured && !long {
		out.Structured = append(append([]byte(`{"result":`), s.value...), '}')
	}
	blocks, texts := make([]block, len(out.Content)), []string(nil)
	for i, raw := range out.Content {
		blocks[i] = readBlock(raw)
		texts = append(texts, blocks[i].text)
	}
	if len(others) > 0 && !e.fits(texts) {
		out.Content = e.cutBlocks(blocks, out.Content, true, r.Principal, e.limit())
	}
	return out
}

// holdSelection makes what is kept of a selection: of several outputs each is an
// item.
func (e *Executor) holdSelection(s *selection, principal string) *held {
	if s.several {
		return e.hold(string(s.value), s.text, false, principal)
	}
	return e.hold(s.text, compress.Text(s.text, e.textOptions()).Text, false, principal)
}

// onlyJSON is the JSON of a single text block, nil where there is none.
func onlyJSON(blocks []block) json.RawMessage {
	var found json.RawMessage
	texts := 0
	for _, b := range blocks {
		if !b.isText {
			continue
		}
		texts++
		if text := strings.TrimSpace(b.text); texts == 1 && json.Valid([]byte(text)) {
			found = json.RawMessage(text)
		}
	}
	if texts != 1 {
		return nil
	}
	return found
}
