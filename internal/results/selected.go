package results

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/jq"
)

// FilterFailure is a filter that failed on the result. It shows the result's shape, and its handle for another filter.
func FilterFailure(failed *FilterError, p Pages) *Failure {
	var limit *jq.LimitError
	var broken *jq.FilterError
	reason := failed.Error()
	switch {
	case errors.As(failed, &limit):
		reason = "the filter went over its limit of " + limit.What
	case errors.As(failed, &broken):
		reason = broken.Message
	}
	shape := p.Shape(failed.Value)
	f := Invalid("/select: " + reason)
	f.Text = f.Said() + f.kept(p, ReadArguments{Handle: failed.Handle, Select: "..."}) + "\nShape of the result: " + shape
	return f.With("shape", shape)
}

// kept tells a model whose filter failed that the call was made and must not be repeated; next reads its result. Without a handle the
// result is lost.
func (f *Failure) kept(p Pages, next ReadArguments) string {
	if next.Handle == "" {
		return "\nThe call was made; its result is too long to be kept"
	}
	f.With("handle", next.Handle)
	return "\nThe call was made; its result is kept: " + p.Call(next)
}

// noJSONFailure is a filter on a result without JSON. It keeps the texts, several as items, and says how to read them with grep.
func (a *Answer) noJSONFailure(blocks []wire.Block) *Failure {
	f := Invalid("/select: the result has no JSON")
	f.Text = f.Said()
	texts := rawBlocks(blocks, isText)
	if len(texts) == 0 {
		f.Text += "\nThe call was made"
		return f
	}
	next, parts := ReadArguments{Grep: "..."}, "lines"
	if len(texts) == 1 {
		next.Handle = a.Pages.Keep(wire.ReadBlock(texts[0]).Text, true)
	} else {
		next.Handle, parts = a.Pages.KeepBlocks(texts), "text blocks"
	}
	f.Text += f.kept(a.Pages, next)
	if next.Handle != "" {
		f.Text += "\ngrep is a regular expression; offset and limit count " + parts
	}
	return f
}

// selectable returns the JSON for a filter, which is what the model sees; nil if there is none.
//
// It is structuredContent, unless that merely wraps a string that holds an array or object, which is used then. So {"content":"[1]"}
// with the text block [1] is filtered as [1]. A wrapper around prose stays: .content selects the text.
//
// Without structuredContent it is the JSON of a single text block. In place of JSON a string or text block may hold a Python literal.
func selectable(structured json.RawMessage, blocks []wire.Block) json.RawMessage {
	if structured == nil || string(structured) == "null" && len(rawBlocks(blocks, isText)) > 0 {
		return onlyJSON(blocks)
	}
	only, single := onlyString(structured)
	if single && (structured[0] == '"' || slices.ContainsFunc(blocks, func(b wire.Block) bool { return b.IsText && b.Text == only })) {
		if value, _, ok := compress.Value(only); ok && (value[0] == '{' || value[0] == '[') {
			return value
		}
	}
	return structured
}

// wrapped returns the array or object that is the only member of a value if the texts contain it too: a model that has only seen the
// texts writes its filter for that.
func wrapped(value json.RawMessage, blocks []wire.Block) json.RawMessage {
	inner := onlyMember(value)
	if inner == nil || inner[0] != '[' && inner[0] != '{' {
		return nil
	}
	if slices.ContainsFunc(blocks, func(b wire.Block) bool { return b.IsText && says(b.Text, inner) }) || itemsIn(blocks, inner) {
		return inner
	}
	return nil
}

// unfiltered returns the blocks that are added to a selection: all but texts that are JSON or are strings in structuredContent.
func unfiltered(structured json.RawMessage, blocks []wire.Block) (others []json.RawMessage) {
	var said map[string]bool // made at the first text that is not JSON
	for _, b := range blocks {
		if !b.IsText {
			others = append(others, b.Raw)
			continue
		}
		if _, _, ok := compress.Value(b.Text); ok {
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

// stringsIn returns the strings in a value, trimmed.
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

// selected applies the request's filter to the upstream's result.
func (a *Answer) selected(ctx context.Context, got upstreamResult, blocks []wire.Block) (*Result, error) {
	value := selectable(got.structured, blocks)
	if value == nil {
		out := a.noJSONFailure(blocks).Result(a.Format.Always())
		out.Content = append(out.Content, rawBlocks(blocks, func(b wire.Block) bool { return !b.IsText })...)
		out.Received = Roughly(textsOf(blocks)...)
		return out, nil
	}
	page, err := a.Pages.Select(ctx, a.Select, a.Grep, value, wrapped(value, blocks))
	var failed *FilterError
	var refused *RefusedError
	var out *Result
	switch {
	case errors.As(err, &refused):
		out = a.grepFailure(refused, a.Pages.Keep(string(value), false)).Result(a.Format.Always())
	case errors.As(err, &failed):
		out = FilterFailure(failed, a.Pages).Result(a.Format.Always())
	case err != nil:
		return nil, err
	default:
		out = OnPage(page, a.Format.Always())
		out.Meta = got.resultMeta()
	}
	out.Received = Roughly(textsOf(blocks)...)
	if others := unfiltered(got.structured, blocks); len(others) > 0 {
		out.Content = append(out.Content, others...)
		a.bound(out)
	}
	return out, nil
}

// OnPage returns a page as a tool result.
func OnPage(page *Page, structured bool) *Result {
	out := &Result{Content: []json.RawMessage{wire.TextBlock(page.Text)}, Sent: Roughly(page.Text)}
	if structured {
		out.Structured = page.Structured
	}
	return out
}

// onlyJSON returns the JSON of the only text block, or of blocks that are the elements of a list; nil if there is none.
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
		text, _ = Lines(blocks)
	}
	value, _, _ := compress.Value(text)
	return value
}
