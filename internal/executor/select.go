package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/jq"
	"mcpx/internal/pages"
	"mcpx/internal/wire"
)

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
	shape := pages.Shape(failed.Value)
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

// noJSONFault says that there is nothing to select from, and what works instead. The
// texts are kept, of several each as an item.
func (e run) noJSONFault(blocks []wire.Block, r Request) *Fault {
	f := &Fault{Code: CodeValidation, Message: "/select: the result has no JSON"}
	f.With("violations", []string{f.Message})
	f.Text = f.Code + ": " + f.Message
	texts := textBlocks(blocks)
	if len(texts) == 0 {
		f.Text += "\nThe call was made"
		return f
	}
	next, parts := pages.ReadArguments{Grep: "..."}, "lines"
	if len(texts) == 1 {
		next.Handle = e.pages(&r).Keep(wire.ReadBlock(texts[0]).Text, true)
	} else {
		next.Handle, parts = e.pages(&r).KeepBlocks(texts), "text blocks"
	}
	f.Text += f.kept(next)
	if next.Handle != "" {
		f.Text += "\ngrep is a regular expression; offset and limit count " + parts
	}
	return f
}

// selectable is the JSON that a filter sees, nil where there is none: the JSON that
// the model sees.
//
// It is structuredContent; but where that is only a string that holds an array or an
// object, by itself or as the one member of an object around a text block, it is that
// array or object. So {"content":"[1]"} beside the text [1] is filtered as [1]. A
// wrapper around prose stays: .content is how to get at its text.
//
// Without structuredContent it is the JSON of a single text block. Strings and text
// blocks may have their JSON as Python prints it.
func selectable(structured json.RawMessage, blocks []wire.Block) json.RawMessage {
	if structured == nil || string(structured) == "null" && len(textBlocks(blocks)) > 0 {
		return onlyJSON(blocks)
	}
	only, single := onlyString(structured)
	if single && (structured[0] == '"' || slices.ContainsFunc(blocks, func(b wire.Block) bool { return b.IsText && b.Text == only })) {
		if value, ok := compress.Value(only); ok && (value[0] == '{' || value[0] == '[') {
			return value
		}
	}
	return structured
}

// unsaid are the blocks that go with a selection: those that a filter does not
// concern. A text that is JSON, or a string in structuredContent, is not one.
func unsaid(structured json.RawMessage, blocks []wire.Block) (others []json.RawMessage) {
	var said map[string]bool // made at the first text that is no JSON
	for _, b := range blocks {
		if !b.IsText {
			others = append(others, b.Raw)
			continue
		}
		if _, ok := compress.Value(b.Text); ok {
			continue
		}
		if said == nil {
			said = stringsIn(structured)
		}
		if !said[strings.TrimSpace(b.Text)] {
			others = append(others, b.Raw)
		}
	}
	return others
}

// stringsIn are the strings in a value, without the spaces around them.
func stringsIn(value json.RawMessage) map[string]bool {
	found := map[string]bool{}
	if doc, ok := wire.Read(string(value)); ok {
		for _, n := range doc.Nodes {
			if n.Kind == wire.String {
				found[strings.TrimSpace(doc.Str(n.Text))] = true
			}
		}
	}
	return found
}

// selected applies the filter of a request to the upstream's result.
func (e run) selected(ctx context.Context, got received, blocks []wire.Block, r Request) (*Result, error) {
	value := selectable(got.structured, blocks)
	if value == nil {
		out := e.noJSONFault(blocks, r).Result(r.Structured)
		for _, b := range blocks {
			if !b.IsText {
				out.Content = append(out.Content, b.Raw)
			}
		}
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
	e.beside(out, unsaid(got.structured, blocks), r)
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
	var text string
	texts := 0
	for _, b := range blocks {
		if b.IsText {
			text = b.Text
			texts++
		}
	}
	if texts != 1 {
		return nil
	}
	value, _ := compress.Value(text)
	return value
}
