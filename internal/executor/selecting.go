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
	"mcpx/internal/wire"
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
	if e.options.Filter == nil {
		return nil, errNoFilter
	}
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
	if s.empty() {
		s.text = nothing
	}
	return s, nil
}

// nothing is the text of a filter without output: an empty one says less.
const nothing = "[select gave nothing]"

// empty reports whether the filter had no output.
func (s *selection) empty() bool { return s.several && len(s.value) == len("[]") }

var errNoFilter = errors.New("filters are not available here")

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
	f.With("violations", []string{violation})
	f.Text = f.Code + ": " + violation + f.kept(readArguments{Handle: handle, Select: "..."}) + "\nShape of the result: " + shape
	return f.With("shape", shape)
}

// kept says, of a call that was made, how to read its result: it must not be made
// again for that. Without a handle the result is gone.
func (f *Fault) kept(next readArguments) string {
	if next.Handle == "" {
		return "\nThe call was made; its result is too long to be kept"
	}
	f.With("handle", next.Handle)
	return fmt.Sprintf("\nThe call was made; its result is kept: exec %s %s %s", Builtin, readResult, wire.Encode(next))
}

// noJSONFault says that there is nothing to select from. The texts are kept, of
// several each as an item.
func (e run) noJSONFault(blocks []block, r Request) *Fault {
	f := &Fault{Code: CodeValidation, Message: "/select: the result has no JSON"}
	f.With("violations", []string{f.Message})
	f.Text = f.Code + ": " + f.Message
	texts := textBlocks(blocks)
	switch len(texts) {
	case 0:
		f.Text += "\nThe call was made"
	case 1:
		text := readBlock(texts[0]).text
		f.Text += f.kept(readArguments{Handle: e.store.put(e.hold(text, text, true, r.principal()))})
	default:
		f.Text += f.kept(readArguments{Handle: e.store.put(holdBlocks(texts, true, r.principal()))})
	}
	return f
}

// selected applies the filter of a request to the upstream's result.
func (e run) selected(ctx context.Context, got received, blocks []block, r Request) (*Result, error) {
	value := got.structured
	if value == nil || string(value) == "null" && len(textBlocks(blocks)) > 0 {
		value = onlyJSON(blocks)
	}
	var others []json.RawMessage // that the filter does not concern
	for _, b := range blocks {
		if !b.isText || value != nil && !json.Valid([]byte(b.text)) {
			others = append(others, b.raw)
		}
	}
	if value == nil {
		out := e.noJSONFault(blocks, r).Result(r.Structured)
		out.Content = append(out.Content, others...)
		return out, nil
	}
	s, err := e.filter(ctx, r.Select, value)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		handle := e.store.put(e.hold(string(value), string(value), false, r.principal()))
		out := filterFault(err, value, handle).Result(r.Structured)
		out.Content = e.beside(out.Content[0], others, r)
		return out, nil
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
		h := e.holdSelection(s, r.principal())
		text = e.cut(h, h.all(), e.limit(), readArguments{})
	}
	out := &Result{Content: e.beside(wire.TextBlock(text), others, r)}
	if r.Structured && !long {
		out.Structured = append(append([]byte(`{"result":`), s.value...), '}')
	}
	return out
}

// beside puts the blocks that a filter did not concern behind what it made, or
// why it failed; the texts within the limit together.
func (e run) beside(first json.RawMessage, others []json.RawMessage, r Request) []json.RawMessage {
	content := append([]json.RawMessage{first}, others...)
	if len(others) == 0 {
		return content
	}
	blocks, texts := make([]block, len(content)), []string(nil)
	for i, raw := range content {
		blocks[i] = readBlock(raw)
		texts = append(texts, blocks[i].text)
	}
	if e.fits(texts) {
		return content
	}
	return e.cutBlocks(blocks, content, true, r.principal(), e.limit())
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
