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

// filter runs a jq filter. Its error is ctx's where that has ended, else one for
// filterFault.
func (e run) filter(ctx context.Context, filter string, value json.RawMessage) (*selection, error) {
	outputs, err := e.options.Filter.Run(ctx, filter, value)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
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
	return s, nil
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

// filterFault says why a filter failed, with the shape of the value and the handle
// to try again on; an empty one says that the value is not kept.
func filterFault(err error, value json.RawMessage, handle string) *Fault {
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
	kept := "its result is too long to be kept"
	f.With("violations", []string{violation})
	if handle != "" {
		kept = fmt.Sprintf("its result is kept: exec %s %s %s", Builtin, readResult, encode(readArguments{Handle: handle, Select: "..."}))
		f.With("handle", handle)
	}
	f.Text = fmt.Sprintf("%s: %s\nThe call was made; %s\nShape of the result: %s", f.Code, violation, kept, shape)
	return f.With("shape", shape)
}

// selected applies the filter of a request to the upstream's result.
func (e run) selected(ctx context.Context, got received, blocks []block, r Request) (*Result, error) {
	value := got.structured
	if value == nil {
		value = onlyJSON(blocks)
	}
	if value == nil {
		f := &Fault{Code: CodeValidation, Message: "/select: the result has no JSON; call without select"}
		for _, b := range blocks {
			if !b.isText {
				continue
			}
			if handle := e.store.put(e.hold(b.text, b.text, true, r.Principal)); handle != "" {
				f.With("handle", handle)
			}
			break
		}
		return f.With("violations", []string{f.Message}).Result(r.Structured), nil
	}
	s, err := e.filter(ctx, r.Select, value)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		handle := e.store.put(e.hold(string(value), string(value), false, r.Principal))
		return filterFault(err, value, handle).Result(r.Structured), nil
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
func (e run) selection(s *selection, others []json.RawMessage, r Request) *Result {
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
func (e run) holdSelection(s *selection, principal string) *held {
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
