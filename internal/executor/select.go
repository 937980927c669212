package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/jq"
	"mcpx/internal/pages"
	"mcpx/internal/wire"
)

// shapeTokens bounds how much of the result's shape the model sees after a filter
// failed.
const shapeTokens = 300

// filterFault says why a filter failed, with the shape of the value and the handle
// to try again on.
func filterFault(failed *pages.FilterError) *Fault {
	var limit *jq.LimitError
	var broken *jq.FilterError
	what := failed.Error()
	switch {
	case errors.As(failed, &limit):
		what = "the filter went over its limit of " + limit.What
	case errors.As(failed, &broken):
		what = broken.Message
	}
	violation := "/select: " + what
	shape := compress.Shape(failed.Value, shapeTokens)
	f := &Fault{Code: CodeValidation, Message: violation}
	f.With("violations", []string{violation})
	f.Text = f.Code + ": " + violation + f.kept(pages.ReadArguments{Handle: failed.Handle, Select: "..."}) + "\nShape of the result: " + shape
	return f.With("shape", shape)
}

// kept says, of a call that was made, how to read its result: it must not be made
// again for that. Without a handle the result is gone.
func (f *Fault) kept(next pages.ReadArguments) string {
	if next.Handle == "" {
		return "\nThe call was made; its result is too long to be kept"
	}
	f.With("handle", next.Handle)
	return fmt.Sprintf("\nThe call was made; its result is kept: exec %s %s %s", pages.Server, pages.Tool, wire.Encode(next))
}

// noJSONFault says that there is nothing to select from. The texts are kept, of
// several each as an item.
func (e run) noJSONFault(blocks []wire.Block, r Request) *Fault {
	f := &Fault{Code: CodeValidation, Message: "/select: the result has no JSON"}
	f.With("violations", []string{f.Message})
	f.Text = f.Code + ": " + f.Message
	texts := textBlocks(blocks)
	switch len(texts) {
	case 0:
		f.Text += "\nThe call was made"
	case 1:
		f.Text += f.kept(pages.ReadArguments{Handle: e.pages(&r).Keep(wire.ReadBlock(texts[0]).Text, true)})
	default:
		f.Text += f.kept(pages.ReadArguments{Handle: e.pages(&r).KeepBlocks(texts)})
	}
	return f
}

// selected applies the filter of a request to the upstream's result.
func (e run) selected(ctx context.Context, got received, blocks []wire.Block, r Request) (*Result, error) {
	value := got.structured
	if value == nil || string(value) == "null" && len(textBlocks(blocks)) > 0 {
		value = onlyJSON(blocks)
	}
	var others []json.RawMessage // that the filter does not concern
	for _, b := range blocks {
		if !b.IsText || value != nil && !json.Valid([]byte(b.Text)) {
			others = append(others, b.Raw)
		}
	}
	if value == nil {
		out := e.noJSONFault(blocks, r).Result(r.Structured)
		out.Content = append(out.Content, others...)
		out.received = roughly(textsOf(blocks)...)
		return out, nil
	}
	page, err := e.pages(&r).Select(ctx, r.Select, value)
	var failed *pages.FilterError
	var out *Result
	switch {
	case errors.As(err, &failed):
		out = filterFault(failed).Result(r.Structured)
	case err != nil:
		return nil, err
	default:
		out = onPage(page, r.Structured)
		out.Meta = got.resultMeta()
	}
	out.received = roughly(textsOf(blocks)...)
	e.beside(out, others, r)
	return out, nil
}

// onPage is the result that a page makes.
func onPage(page *pages.Page, structured bool) *Result {
	out := &Result{Content: []json.RawMessage{wire.TextBlock(page.Text)}, sent: roughly(page.Text)}
	if structured {
		out.Structured = page.Structured
	}
	return out
}

// textBlocks are the text blocks as they were received.
func textBlocks(blocks []wire.Block) (texts []json.RawMessage) {
	for _, b := range blocks {
		if b.IsText {
			texts = append(texts, b.Raw)
		}
	}
	return texts
}

// beside puts the blocks that a filter did not concern behind what it made, or
// why it failed; the texts within the limit together.
func (e run) beside(out *Result, others []json.RawMessage, r Request) {
	if len(others) == 0 {
		return
	}
	out.Content = append(out.Content, others...)
	blocks := make([]wire.Block, len(out.Content))
	for i, raw := range out.Content {
		blocks[i] = wire.ReadBlock(raw)
	}
	shown := pages.Shown{Received: blocks, Content: out.Content, Texts: textsOf(blocks), Verbatim: true}
	if e.pages(&r).Fits(shown.Texts...) {
		out.sent += roughly(shown.Texts[1:]...)
		return
	}
	out.Content, out.sent = e.pages(&r).CutBlocks(shown)
}

// onlyJSON is the JSON of a single text block, nil where there is none.
func onlyJSON(blocks []wire.Block) json.RawMessage {
	var found json.RawMessage
	texts := 0
	for _, b := range blocks {
		if !b.IsText {
			continue
		}
		texts++
		if text := strings.TrimSpace(b.Text); texts == 1 && json.Valid([]byte(text)) {
			found = json.RawMessage(text)
		}
	}
	if texts != 1 {
		return nil
	}
	return found
}
