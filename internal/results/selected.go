package results

import (
	"bytes"
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
	case errors.Is(failed, ErrBusy):
		f := Busy()
		f.Text = f.Said() + f.kept(p, ReadArguments{Handle: failed.Handle, Select: "..."})
		return f
	case errors.As(failed, &limit):
		reason = "the filter went over its limit of " + limit.What
	case errors.As(failed, &broken):
		reason = broken.Message
	}
	shape := p.Shape(failed.Value)
	f := &Failure{Code: CodeSelect, Message: "/select: " + reason}
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

// noTextFailure is a filter on a result without JSON and without text.
func noTextFailure() *Failure {
	f := &Failure{Code: CodeSelect, Message: "/select: the result has no JSON and no text"}
	f.Text = f.Said() + "\nThe call was made"
	return f
}

// selectable returns the JSON for a filter, which is what the model saw: JSON as it is, a plain text as a string. other is tried if the
// filter does not fit it; nil if there is none. Both are nil if there is neither JSON nor text.
//
// What the model saw are the texts, where structuredContent merely wraps what they say: for {"content":"…"} with the text itself that
// is the text, or the JSON in it. A filter that names the wrapper, such as .content, is meant for the whole and gets that first.
func selectable(filter string, structured json.RawMessage, blocks []wire.Block) (value, other json.RawMessage) {
	texts := slices.ContainsFunc(blocks, isText)
	if structured == nil || string(structured) == "null" && texts {
		return ofTexts(blocks), nil
	}
	inner := wrapped(structured, blocks)
	switch {
	case inner == nil:
		return structured, nil
	case structured[0] == '{' && namesWrapper(filter, structured, inner):
		return structured, inner
	}
	return inner, structured
}

// ofTexts returns what text blocks say: the JSON of the only one that is an array or object, or of several an array; where none is,
// the only text, or an array of all; nil without texts.
func ofTexts(blocks []wire.Block) json.RawMessage {
	var all, containers []json.RawMessage
	for _, b := range blocks {
		if !b.IsText {
			continue
		}
		value := ofText(b.Text)
		all = append(all, value)
		if value[0] == '{' || value[0] == '[' {
			containers = append(containers, value)
		}
	}
	if len(containers) > 0 {
		all = containers
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return slices.Concat([]byte{'['}, bytes.Join(raws(all), []byte{','}), []byte{']'})
}

func raws(values []json.RawMessage) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// ofText returns a text as JSON: the JSON, or JSON in a JSON string, or a Python literal that it is, else a string.
func ofText(text string) json.RawMessage {
	value, _, ok := compress.Value(text)
	if !ok {
		return wire.Encode(text)
	}
	return unquoted(value)
}

// unquoted returns the array or object in a JSON string, or any other value itself.
func unquoted(value json.RawMessage) json.RawMessage {
	text, ok := wire.WholeText(value)
	if !ok {
		return value
	}
	if inner, _, ok := compress.Value(text); ok && (inner[0] == '{' || inner[0] == '[') {
		return inner
	}
	return value
}

// wrapped returns what structuredContent wraps, if the texts say it: the value of its only member, or JSON in a string; else nil.
func wrapped(structured json.RawMessage, blocks []wire.Block) json.RawMessage {
	if structured[0] == '"' {
		return unquoted(structured)
	}
	inner := onlyMember(structured)
	said := func(b wire.Block) bool { return b.IsText && says(b.Text, inner) }
	if inner == nil || !slices.ContainsFunc(blocks, said) && !itemsIn(blocks, inner) {
		return nil
	}
	return unquoted(inner)
}

// namesWrapper reports whether a filter names the only member of a value, and that is no key inside.
func namesWrapper(filter string, value, inner json.RawMessage) bool {
	key := ""
	_ = wire.Fields(value, func(name string, _ []byte) bool { key = strings.Clone(name); return false }) // valid: it was read before
	names := func(m []string) bool { return m[1] == key }
	return slices.ContainsFunc(namedKey.FindAllStringSubmatch(filter, -1), names) && !slices.Contains(compress.Keys(inner), key)
}

// unfiltered returns the blocks that are added to a selection: all but texts that are JSON, or strings in one of the values.
func unfiltered(blocks []wire.Block, values ...json.RawMessage) (others []json.RawMessage) {
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
			said = stringsIn(values)
		}
		if !said[strings.TrimSpace(b.Text)] {
			others = append(others, b.Raw)
		}
	}
	return others
}

// stringsIn returns the strings in values, trimmed.
func stringsIn(values []json.RawMessage) map[string]bool {
	found := map[string]bool{}
	for _, value := range values {
		if doc, ok := wire.Read(string(value)); ok {
			for _, n := range doc.Nodes {
				if n.Kind == wire.String {
					found[strings.TrimSpace(doc.Str(n.Text))] = true
				}
			}
		}
	}
	return found
}

// selected applies the request's filter to the upstream's result.
func (a *Answer) selected(ctx context.Context, got upstreamResult, blocks []wire.Block) (*Result, error) {
	value, other := selectable(a.Select, got.structured, blocks)
	if value == nil {
		out := noTextFailure().Result(a.Format.Always())
		out.Content = append(out.Content, rawBlocks(blocks, func(b wire.Block) bool { return !b.IsText })...)
		out.Received = Roughly(textsOf(blocks)...)
		return out, nil
	}
	page, err := a.Pages.Select(ctx, a.Select, a.Grep, value, other)
	var failed *FilterError
	var refused *RefusedError
	var out *Result
	switch {
	case errors.As(err, &refused), err == ErrBusy:
		out = a.grepFailure(refused, a.Pages.keepValue(value)).Result(a.Format.Always())
	case errors.As(err, &failed):
		out = FilterFailure(failed, a.Pages).Result(a.Format.Always())
	case err != nil:
		return nil, err
	default:
		out = OnPage(page, a.Format.Always())
		out.Meta = got.resultMeta()
	}
	out.Received = Roughly(textsOf(blocks)...)
	if others := unfiltered(blocks, got.structured, value); len(others) > 0 {
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
