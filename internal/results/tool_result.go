package results

import (
	"encoding/json"
	"errors"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// Result is a tool result whose parts are raw JSON.
type Result struct {
	// Content are the blocks in order.
	Content []json.RawMessage
	// Structured is nil if there is no structuredContent.
	Structured json.RawMessage
	// Whole replaces all other parts if the result is not a tool result. It is then a task, or an input_required result, after
	// which the client repeats the call with the requested input.
	Whole json.RawMessage
	// Meta is the _meta object, nil if absent.
	Meta    json.RawMessage
	IsError bool
	// Value is the compact JSON of the first block, if that is a text that says exactly one JSON value. It is empty if the block
	// says anything else, or if mcpx may not write the value as JavaScript.
	Value string

	Code           string // error code if mcpx itself failed the call; empty for every result of a tool
	Received, Sent int    // tokens of the upstream's texts, and of the texts in Content
	// Cut and LeftOut count the tokens of the upstream's texts that are missing in Content. Cut is for a text that was too long.
	// LeftOut is for what the client's filter or grep left out. See [request.Sizes].
	Cut, LeftOut int
}

// Raw encodes a tool result as a server would send it. It does not encode Whole.
func (r *Result) Raw() json.RawMessage {
	out := append([]byte(`{"content":`), wire.Encode(r.Content)...)
	if r.Structured != nil {
		out = append(append(out, `,"structuredContent":`...), r.Structured...)
	}
	if r.Meta != nil {
		out = append(append(out, `,"_meta":`...), r.Meta...)
	}
	if r.IsError {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}')
}

// Size returns the size of the result in bytes: its content blocks, Structured, Whole and Meta together.
func (r *Result) Size() int {
	n := len(r.Structured) + len(r.Whole) + len(r.Meta)
	for _, block := range r.Content {
		n += len(block)
	}
	return n
}

// Roughly estimates the tokens of texts for statistics. It samples long texts, since no decision depends on the number.
func Roughly(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += tokens.Sample(text, 8, 512)
	}
	return n
}

// These errors mean that an upstream answered a call with something that is not a tool result.
var (
	ErrNoResult = errors.New("the upstream's answer is no tool result")
	ErrTask     = errors.New("the upstream answered with a task, which was not asked for")
)

// Text joins the texts of a result, for people. For an image or audio, it shows the type; all other blocks and Whole are shown
// as JSON.
func (r *Result) Text() string {
	var texts []string
	for _, block := range r.Content {
		switch kind := wire.MemberText(block, "type"); kind {
		case "text":
			texts = append(texts, wire.MemberText(block, "text"))
		case "image", "audio":
			texts = append(texts, "["+kind+", "+wire.MemberText(block, "mimeType")+"]")
		default:
			texts = append(texts, string(block))
		}
	}
	if r.Whole != nil {
		texts = append(texts, string(r.Whole))
	}
	return strings.Join(texts, "\n")
}
