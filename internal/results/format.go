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

// Format is how a client receives results. With the zero value, the client gets no structuredContent.
type Format struct {
	Structured Structured
	// JSON means that a program, not a model, reads the texts, so they are never converted to TOON or JavaScript.
	JSON bool
	// Forms are the forms (TOON, JavaScript) in which texts may be written; 0 means the forms in the executor's options.
	Forms conf.ResultForms
	// Bytes is how many bytes the texts of a result may have, in addition to the limit of tokens. It is 0 if there is no such
	// limit, and otherwise at least 1000.
	Bytes int
	// Uncut means that the limit of tokens does not apply. The limit of bytes, if Bytes is set, still applies.
	Uncut bool
	// LineFirst puts the line that says how to read the rest of a cut text before the text, for clients that keep only the
	// beginning of a result.
	LineFirst bool
	// ShortNames means that the line that says how to read the rest uses short argument names; see [Pages.ShortNames].
	ShortNames bool
	// Wait is how long the client waits for an answer; 0 means without a limit. A call that takes longer goes on, and the
	// client gets a handle to wait for its result.
	Wait time.Duration
}

// Structured says which structuredContent a client gets.
type Structured uint8

const (
	// StructuredNone: the client gets none. Content that the upstream sent only as structuredContent becomes a text block.
	StructuredNone Structured = iota
	// StructuredOnce: the client gets content only once. It gets the upstream's structuredContent if no text block has the same
	// content. But if this content is too long, or shorter as a text in TOON or JavaScript, the client gets a text instead.
	StructuredOnce
	// StructuredOwn: the client gets structuredContent if the upstream sent one. If the texts of the result are over the limit,
	// if a filter was applied, or if a grep left something out, the client gets only texts.
	StructuredOwn
	// StructuredAlways is like StructuredOwn. But if the upstream sent no structuredContent, mcpx makes it from a result that is no
	// error and whose only block is a text with a JSON object or array. mcpx also makes structuredContent from the output of a
	// filter or grep, for the results of several calls in one answer, and for its own answers: a failure, or a call that is still
	// running.
	StructuredAlways
)

// Texts returns the options for compressing texts. If a program reads the texts, they permit neither TOON nor JavaScript. Otherwise
// they permit the forms in f or, if f names none, those in defaults.
func (f Format) Texts(defaults compress.Options) compress.Options {
	switch {
	case f.JSON:
		return compress.Options{}
	case f.Forms != 0:
		return compress.Options{TOON: f.Forms&conf.FormTOON != 0, JS: f.Forms&conf.FormJS != 0}
	}
	return defaults
}

// Always reports whether the client also gets structuredContent that mcpx makes.
func (f Format) Always() bool { return f.Structured == StructuredAlways }

// Native returns the format for a client that calls the tool directly, not with exec. The client gets the upstream's
// structuredContent or none. Such a client cannot read the rest of a cut result, or wait for the result of a call, because both
// need exec. So Native sets no limit of bytes, and every call ends before the client gets an answer.
func (f Format) Native() Format {
	f.Structured, f.Bytes, f.LineFirst, f.Wait = min(f.Structured, StructuredOwn), 0, false, 0
	return f
}

// complete adds the server's structuredContent to out, or a text block with the same content, as the format says. It cuts the texts
// to the limit. The parameter compact is the compact JSON of the last text, or empty if that text was not compressed or is not
// JSON.
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
			whole := out.Sent
			out.Content, out.Sent = p.CutBlocks(shown)
			out.Cut = max(0, whole-out.Sent)
		}
		return
	}
	// No text block has the content of structuredContent, so append it as one.
	written := compress.Text(string(got.structured), a.Texts)
	text := written.Text
	if a.Format.Structured == StructuredOnce && text == written.JSON && p.Fits(append(shown.Texts, text)...) {
		out.Structured = got.structured
		return
	}
	out.Received += Roughly(string(got.structured))
	whole := out.Sent + Roughly(text)
	content, cut := p.Append(shown, string(got.structured), text)
	if out.Content, out.Sent = content, whole; cut > 0 {
		out.Sent, out.Cut = cut, max(0, whole-cut)
	}
}

// derived makes structuredContent for a result that has none. It takes the object or array in the text block, if that is the only
// block. An array becomes {"result": …}. In all other cases derived returns nil. The parameter value is the compact JSON of the
// block. If it is empty, derived reads the block itself.
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

// saidIn reports whether the texts have the same content as structured. There are three such cases:
//
//   - The JSON in a text (see ofText) is the same as structured. The text may contain more than this JSON.
//   - A text is the same as the only member of structured. SDKs wrap a value that is not an object in this way.
//   - The texts are the elements of the only member. The Python SDK writes each element of a list as a text block.
func saidIn(blocks []wire.Block, structured json.RawMessage) bool {
	inner := onlyMember(structured)
	said := func(b wire.Block) bool {
		if !b.IsText {
			return false
		}
		if says(b.Text, structured) || inner != nil && says(b.Text, inner) {
			return true
		}
		value, part := ofText(b.Text)
		return compress.Equal(value, structured) || inner != nil && !part && compress.Equal(value, inner)
	}
	return slices.ContainsFunc(blocks, said) || itemsIn(blocks, inner)
}

// says reports whether a text is the same JSON as value, or the same text as the JSON string in value.
func says(text string, value json.RawMessage) bool {
	if only, ok := wire.WholeText(value); ok && only == text {
		return true
	}
	trimmed := bytes.TrimSpace([]byte(text))
	return len(trimmed) > 0 && trimmed[0] == value[0] && compress.Equal(trimmed, value)
}

// onlyMember returns the value of an object's only member. It returns nil if value is not an object, or has no or several members.
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

// itemsIn reports whether the blocks are texts that are equal to the elements of a list. There must be at least two blocks, as
// a single text does not show that it comes from a list.
func itemsIn(blocks []wire.Block, list json.RawMessage) bool {
	if len(list) == 0 || list[0] != '[' || len(blocks) < 2 {
		return false
	}
	said := 0
	_ = wire.Elements(list, func(item []byte) bool { // cannot fail, since the list was read before
		if said == len(blocks) || !blocks[said].IsText || !says(blocks[said].Text, item) {
			said = -1
			return false
		}
		said++
		return true
	})
	return said == len(blocks)
}
