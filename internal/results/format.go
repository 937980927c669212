package results

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// Format is how a client receives results (design 7). The zero value is for texts only.
type Format struct {
	Structured Structured
	// JSON means that a program reads the texts: none of them becomes TOON or JavaScript.
	JSON bool
	// Forms are the forms that texts may have; 0 = those of the executor's options.
	Forms conf.ResultForms
	// Bytes bounds the texts of a result, in addition to the limit of tokens; at least 1000, 0 = no bound.
	Bytes int
	// LineFirst puts the line about the rest of a cut text before the text.
	LineFirst bool
	// ShortNames means that exec's arguments are named server, tool, args in that line.
	ShortNames bool
	// Wait is how long the client waits for an answer; 0 = without a bound. A call that takes longer goes on, and the client
	// gets a handle.
	Wait time.Duration
}

// Structured says which structuredContent a client gets.
type Structured uint8

const (
	// StructuredNone: none. What only structuredContent contains becomes a text block.
	StructuredNone Structured = iota
	// StructuredOnce: the upstream's, unless a text contains the same, or another form makes a shorter text of it.
	StructuredOnce
	// StructuredOwn: the upstream's.
	StructuredOwn
	// StructuredAlways: the upstream's, or else made by mcpx from a single JSON text block, a selection or a failure.
	StructuredAlways
)

// Texts returns the options for texts; unless are those for a format without forms.
func (f Format) Texts(unless compress.Options) compress.Options {
	switch {
	case f.JSON:
		return compress.Options{}
	case f.Forms != 0:
		return compress.Options{TOON: f.Forms&conf.FormTOON != 0, JS: f.Forms&conf.FormJS != 0}
	}
	return unless
}

// Always reports whether the client also gets structuredContent that mcpx makes.
func (f Format) Always() bool { return f.Structured == StructuredAlways }

// Native returns the format for a client that sees the tool itself: structuredContent is the upstream's or none, nothing is cut,
// and every call is waited for, as such a client has no exec to read on or to wait with.
func (f Format) Native() Format {
	f.Structured, f.Bytes, f.LineFirst, f.Wait = min(f.Structured, StructuredOwn), 0, false, 0
	return f
}

// complete adds structuredContent, or a text block in its place, and cuts the texts to the limit. compact is the compact JSON of
// the only text.
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
	// No text block contains what structuredContent contains: append it as a text block.
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

// derived makes structuredContent for a result without it from the JSON of a single text block. An array becomes {"result": …}.
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

// saidIn reports whether the texts contain what structured contains: a text is the same JSON, or the same as the only member of
// structured (SDKs wrap what is not an object), or the texts are the elements of that member (the Python SDK writes each element
// of a list as a block).
func saidIn(blocks []wire.Block, structured json.RawMessage) bool {
	inner := onlyMember(structured)
	said := func(b wire.Block) bool {
		return b.IsText && (says(b.Text, structured) || inner != nil && says(b.Text, inner))
	}
	return slices.ContainsFunc(blocks, said) || itemsIn(blocks, inner)
}

// says reports whether a text is equal to a value, as JSON or as the string.
func says(text string, value json.RawMessage) bool {
	if only, ok := wire.WholeText(value); ok && only == text {
		return true
	}
	trimmed := bytes.TrimSpace([]byte(text))
	return len(trimmed) > 0 && trimmed[0] == value[0] && compress.Equal(trimmed, value)
}

// onlyMember returns the value of an object's only member, or nil.
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

// itemsIn reports whether the blocks are texts equal to the elements of a list. There must be at least two, as a single one would
// not show that it is from a list.
func itemsIn(blocks []wire.Block, list json.RawMessage) bool {
	if len(list) == 0 || list[0] != '[' || len(blocks) < 2 {
		return false
	}
	said := 0
	_ = wire.Elements(list, func(item []byte) bool { // valid: it was read before
		if said == len(blocks) || !blocks[said].IsText || !says(blocks[said].Text, item) {
			said = -1
			return false
		}
		said++
		return true
	})
	return said == len(blocks)
}
