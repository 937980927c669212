package results

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// Format is how a client takes results (design 7). The zero value takes texts alone.
type Format struct {
	Structured Structured
	// JSON means that a program reads the texts: none becomes TOON.
	JSON bool
	// Bytes bounds the texts of a result, beside the limit of tokens; 0 = no bound. It is
	// at least 1000.
	Bytes int
	// LineFirst puts the line about the rest of a cut text before the text.
	LineFirst bool
	// ShortNames are the names of exec's arguments in that line: server, tool, args.
	ShortNames bool
	// Wait is how long the client waits for an answer; 0 = as long as it takes. A call
	// that takes longer goes on, and the client gets a handle.
	Wait time.Duration
}

// Structured says which structuredContent a client gets.
type Structured uint8

const (
	// StructuredNone: none. What only structuredContent says becomes a text block.
	StructuredNone Structured = iota
	// StructuredOnce: that of the upstream, but none where a text says the same, or where
	// TOON makes a shorter text of it.
	StructuredOnce
	// StructuredOwn: that of the upstream.
	StructuredOwn
	// StructuredAlways: also that which mcpx makes of JSON in the only text block, of
	// selections and of failures.
	StructuredAlways
)

// Always reports whether the client also gets structuredContent that mcpx makes.
func (f Format) Always() bool { return f.Structured == StructuredAlways }

// Native is the form for a client that knows the tool itself: structuredContent is the
// upstream's own or none, nothing is cut, and every call is waited for, as such a client
// has no exec to read on or wait with.
func (f Format) Native() Format {
	f.Structured, f.Bytes, f.LineFirst, f.Wait = min(f.Structured, StructuredOwn), 0, false, 0
	return f
}

// complete adds structuredContent to the answer, or a text block instead of it, and
// cuts the texts to the limit. compact is the compact JSON of the only text.
func (a *Answer) complete(out *Result, got upstreamResult, shown Shown, compact string) {
	p := a.Pages
	fits := p.Fits(shown.Texts...)
	if a.Format.Structured >= StructuredOwn && fits {
		out.Structured = got.structured
		if out.Structured == nil && a.Format.Always() && !got.isError {
			out.Structured = derived(shown.Received, compact)
		}
		return
	}
	if got.structured == nil || saidIn(shown.Received, got.structured) {
		if !fits {
			out.Content, out.Sent = p.CutBlocks(shown)
		}
		return
	}
	// No text block says the same as structuredContent: append it as a text block.
	written := compress.Text(string(got.structured), a.Texts)
	text := written.Text
	if a.Format.Structured == StructuredOnce && text == written.JSON && p.Fits(append(shown.Texts, text)...) {
		out.Structured = got.structured
		return
	}
	content, cut := p.Append(shown, string(got.structured), text)
	if out.Content = content; cut > 0 {
		out.Sent = cut
	} else {
		out.Sent += Roughly(text)
	}
}

// derived is the structuredContent for a result without it: the JSON of a single
// text block. An array becomes {"result": …}.
func derived(blocks []wire.Block, value string) json.RawMessage {
	if len(blocks) != 1 || !blocks[0].IsText {
		return nil
	}
	if value == "" { // not compressed, or not JSON
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

// saidIn reports whether the texts say what structured says. One of them is the same
// JSON, or the same as the only member of structured, as SDKs wrap what is no object. Or
// the texts are the items of that member: the Python SDK writes each item of a list as a
// block of its own.
func saidIn(blocks []wire.Block, structured json.RawMessage) bool {
	inner := onlyMember(structured)
	said := func(b wire.Block) bool {
		return b.IsText && (says(b.Text, structured) || inner != nil && says(b.Text, inner))
	}
	return slices.ContainsFunc(blocks, said) || itemsIn(blocks, inner)
}

// says reports whether a text is a value: the same JSON, or the string.
func says(text string, value json.RawMessage) bool {
	if only, ok := wire.WholeText(value); ok && only == text {
		return true
	}
	trimmed := bytes.TrimSpace([]byte(text))
	return len(trimmed) > 0 && trimmed[0] == value[0] && compress.Equal(trimmed, value)
}

// onlyMember is the value of the only member of an object, or nil.
func onlyMember(value json.RawMessage) (only json.RawMessage) {
	members := 0
	if value[0] == '{' {
		_ = wire.Fields(value, func(_ string, member []byte) bool {
			members++
			only = member
			return members < 2
		})
	}
	if members != 1 {
		return nil
	}
	return only
}

// itemsIn reports whether the blocks are texts, each of them an item of a list of two or
// more. One item alone would not show that it is one of a list.
func itemsIn(blocks []wire.Block, list json.RawMessage) bool {
	if len(list) == 0 || list[0] != '[' || len(blocks) < 2 {
		return false
	}
	said := 0
	_ = wire.Elements(list, func(item []byte) bool { // it was read before
		if said == len(blocks) || !blocks[said].IsText || !says(blocks[said].Text, item) {
			said = -1
			return false
		}
		said++
		return true
	})
	return said == len(blocks)
}

// onlyString returns the string of a value that is a string, or an object whose only
// member is one.
func onlyString(value json.RawMessage) (string, bool) {
	inner := value
	if value[0] == '{' {
		inner = onlyMember(value)
	}
	if len(inner) == 0 || inner[0] != '"' {
		return "", false
	}
	return wire.WholeText(inner)
}
