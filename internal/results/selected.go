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

// FilterFailure is the failure for a filter that failed on the result of a call. It shows the handle with which another filter
// can be applied to the result, if the result is kept. It also shows the shape of the result, unless too many filters were
// running (ErrBusy).
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

// kept returns a text for a model whose filter or grep failed. The text says that the call was made, and how to read its result:
// args has the arguments of read_result for that. kept adds the handle of args to the JSON of f. If args has no handle, the text
// says that the result is lost.
func (f *Failure) kept(p Pages, args ReadArguments) string {
	if args.Handle == "" {
		return "\nThe call was made; its result is too long to be kept"
	}
	f.With("handle", args.Handle)
	return "\nThe call was made; its result is kept: " + p.Call(args)
}

// noTextFailure is the failure for a filter on a result that has neither JSON nor text.
func noTextFailure() *Failure {
	f := &Failure{Code: CodeSelect, Message: "/select: the result has no JSON and no text"}
	f.Text = f.Said() + "\nThe call was made"
	return f
}

// Type says how inspect shows the type of a tool's results.
type Type int

const (
	Untyped   Type = iota // the tool has no output schema
	Typed                 // inspect shows the type of structuredContent
	Unwrapped             // inspect shows the type of structuredContent's only member, since an SDK has put an object around the result
)

// selectable returns the JSON that a filter is applied to. It is what the model saw, namely the first of these that exists:
//
//   - what structuredContent wraps, if the texts say the same or inspect shows its type (see wrapped);
//   - the JSON in the texts (see ofTexts);
//   - structuredContent;
//   - the texts as strings.
//
// But if the filter names a key that only structuredContent has, it is applied to all of structuredContent. A filter that fails on
// value is applied to fallback, which may be nil. value and fallback are both nil if there is neither JSON nor text.
//
// Callers that have no filter give "", and need no fallback. If there is structuredContent, they get it, without an object that
// only wraps the value.
func selectable(filter string, as Type, structured json.RawMessage, blocks []wire.Block) (value, fallback json.RawMessage) {
	hasTexts := slices.ContainsFunc(blocks, isText)
	if structured == nil || string(structured) == "null" && hasTexts {
		value, fallback, _ = ofTexts(blocks)
		return value, fallback
	}
	value = wrapped(as, structured, blocks)
	if value == nil && filter != "" && hasTexts {
		plain := false
		if value, _, plain = ofTexts(blocks); plain {
			if len(keysIn(filter)) > 0 { // a plain text has no keys, but with a ? the filter would not fail
				value = nil
			}
			return structured, value
		}
	}
	if value == nil || namesOther(filter, structured, value) {
		return structured, nil
	}
	if as == Unwrapped && filter != "" && hasTexts { // a list with one item, which is not a list in the texts
		if text, _, plain := ofTexts(blocks); !plain {
			return value, text
		}
	}
	return value, structured
}

// ofTexts returns what text blocks contain, as JSON (see ofText). If some texts are or contain an array or object, the other texts
// are left out. plain means that no text is or contains an array or object. value is the JSON of the only text, an array if there
// are several texts, or nil if there is none. If the JSON is only a part of a text, fallback has the texts as strings: the only
// text, or an array of all texts. Otherwise fallback is nil.
func ofTexts(blocks []wire.Block) (value, fallback json.RawMessage, plain bool) {
	var all, containers, texts []json.RawMessage
	parts := false
	for _, b := range blocks {
		if !b.IsText {
			continue
		}
		value, part := ofText(b.Text)
		all, texts = append(all, value), append(texts, wire.Encode(b.Text))
		if value[0] == '{' || value[0] == '[' {
			containers = append(containers, value)
		}
		parts = parts || part
	}
	if plain = len(containers) == 0; !plain {
		all = containers
	}
	if parts {
		fallback = together(texts)
	}
	return together(all), fallback, plain
}

// together returns the only value, or an array of the values if there are several, or nil if there are none.
func together(all []json.RawMessage) json.RawMessage {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return json.RawMessage(joined("[", all, ",", "]"))
}

// ofText returns a text as JSON. If the complete text is JSON, JSON in a JSON string, or a Python literal, value is this JSON or
// the JSON of the literal. Otherwise value is the JSON within the text, or the text as a string. part means that only a part of the
// text is JSON.
func ofText(text string) (value json.RawMessage, part bool) {
	value, _, ok := compress.Value(text)
	if !ok {
		return piecesOf(text)
	}
	if inner, _, ok := quoted(value); ok {
		return inner, false
	}
	if value[0] == '"' {
		if inner, part := piecesOf(text); part {
			return inner, true
		}
	}
	return value, false
}

// piecesOf returns the JSON within a text. part is false if there is none; value is then the text as a string.
func piecesOf(text string) (value json.RawMessage, part bool) {
	if _, pieces := compress.Pieces(text); len(pieces) > 0 {
		return valueOf(pieces), true
	}
	return wire.Encode(text), false
}

// quoted returns the array or object that is written in a JSON string, and the text of the string. ok is false if value is anything
// else.
func quoted(value json.RawMessage) (inner json.RawMessage, text string, ok bool) {
	if text, ok = wire.WholeText(value); !ok {
		return nil, "", false
	}
	inner, _, ok = compress.Value(text)
	return inner, text, ok && (inner[0] == '{' || inner[0] == '[')
}

// unquoted returns the JSON in a JSON string. If value is no string, or its text has no JSON, unquoted returns value.
func unquoted(value json.RawMessage) json.RawMessage {
	inner, text, ok := quoted(value)
	if ok {
		return inner
	}
	if within, part := piecesOf(text); part {
		return within
	}
	return value
}

// wrapped returns what structuredContent wraps. This is the value of its only member, if inspect shows the type of this value, or
// if the texts have the same content. If the value is a string that contains JSON, wrapped returns this JSON. If
// structuredContent itself is a string, wrapped returns the JSON in it, or else the string. In all other cases it returns nil.
func wrapped(as Type, structured json.RawMessage, blocks []wire.Block) json.RawMessage {
	if structured[0] == '"' {
		return unquoted(structured)
	}
	inner := onlyMember(structured)
	said := func(b wire.Block) bool { return b.IsText && says(b.Text, inner) }
	// The wrapper may be dropped if the text blocks have the value of the only member: as one text, or as one text for each item of
	// a list. The texts cannot show this for a list with one item or none. So the wrapper is also dropped if inspect shows the type
	// of the value (as is then Unwrapped).
	if inner == nil || as != Unwrapped && !slices.ContainsFunc(blocks, said) && !itemsIn(blocks, inner) {
		return nil
	}
	return unquoted(inner)
}

// namesOther reports whether a filter names a key that value has and other does not.
func namesOther(filter string, value, other json.RawMessage) bool {
	named := append(keysIn(filter), shortKeysIn(filter)...)
	if len(named) == 0 {
		return false
	}
	keys, others := compress.Keys(value), compress.Keys(other)
	return slices.ContainsFunc(named, func(key string) bool { return slices.Contains(keys, key) && !slices.Contains(others, key) })
}

// unfiltered returns the blocks that are shown together with a selection. It leaves out texts that are or contain JSON, and texts
// that occur as a string in one of the values.
func unfiltered(blocks []wire.Block, values ...json.RawMessage) (others []json.RawMessage) {
	var said map[string]bool // strings in values; set when the first text that is not JSON is found
	for _, b := range blocks {
		if !b.IsText {
			others = append(others, b.Raw)
			continue
		}
		if _, _, ok := compress.Value(b.Text); ok {
			continue
		}
		if _, pieces := compress.Pieces(b.Text); len(pieces) > 0 {
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

// stringsIn returns the set of strings in values, without white space at both ends.
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

// selected applies the request's filter to the upstream's result, and then the request's grep, if there is one.
func (a *Answer) selected(ctx context.Context, got upstreamResult, blocks []wire.Block) (*Result, error) {
	value, other := selectable(a.Select, a.Type, got.structured, blocks)
	if value == nil {
		out := noTextFailure().Result(a.Format.Always())
		out.Content = append(out.Content, rawBlocks(blocks, func(b wire.Block) bool { return !b.IsText })...)
		out.Received = Roughly(textsOf(blocks)...)
		out.LeftOut = out.Received - out.Sent
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
		out.Meta, out.Cut = got.resultMeta(), page.cut
	}
	out.Received = Roughly(textsOf(blocks)...)
	if line := a.pagingLine(page); line != "" && out.Sent+Roughly(line) <= Roughly(string(value)) {
		out.Content, out.Value = wire.AppendText(out.Content, line), ""
		out.Sent += Roughly(line)
	}
	if others := unfiltered(blocks, got.structured, value); len(others) > 0 {
		out.Content, out.Value = append(out.Content, others...), ""
		a.bound(out)
	}
	out.LeftOut = out.Received - out.Sent - out.Cut
	return out, nil
}

// pagingLine returns the page's line about paging members that the filter or the grep left out. It is empty if there is no page, if
// a program reads the texts, or if the text of the page leaves no room for the line.
func (a *Answer) pagingLine(page *Page) string {
	if page == nil || a.Format.JSON || !a.Pages.Fits(page.Text, page.notSelected) {
		return ""
	}
	return page.notSelected
}

// OnPage returns a tool result whose only block is the text of the page. If the parameter structured is true, the JSON of the
// page becomes the structuredContent.
func OnPage(page *Page, structured bool) *Result {
	out := &Result{Content: []json.RawMessage{wire.TextBlock(page.Text)}, Sent: Roughly(page.Text), Value: page.Value}
	if structured {
		out.Structured = page.Structured
	}
	return out
}
