package results

import (
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
)

// Value is what a JavaScript program (see package programs) gets from the result of a call.
type Value struct {
	// If the result has structuredContent, JSON is all of it if inspect shows its type (see ReadValue), and otherwise
	// structuredContent without an object that only wraps the value. If the result has no structuredContent, JSON is the JSON in
	// the texts. If the texts have no JSON, it is the text as a JSON string, or an array of such strings. JSON is nil if the result
	// has neither structuredContent nor a text.
	JSON   json.RawMessage
	Blocks []wire.Block
	// IsError means that the tool reports an error; Text is what the error says.
	IsError bool
	Text    string
	Tokens  int    // estimated tokens of the texts
	Sample  Sample // what the function Learn of [Answer] would get
	sampled bool
}

// ReadValue reads the result of a server. as says how inspect shows the type of the results. If as is Typed, the value is always
// the whole structuredContent, because the program relies on the type that inspect shows. (A filter may be applied to the texts
// instead; see selectable.) The error is [ErrNoResult] or [ErrTask].
func ReadValue(raw json.RawMessage, as Type) (*Value, error) {
	got, err := readUpstream(raw)
	if err != nil {
		return nil, err
	}
	if got.resultType == "task" || got.resultType == "input_required" {
		return nil, ErrTask
	}
	v := &Value{Blocks: got.blocks, IsError: got.isError}
	if v.JSON, _ = selectable("", as, got.structured, got.blocks); as == Typed && got.structured != nil && string(got.structured) != "null" {
		v.JSON = got.structured
	}
	texts := textsOf(got.blocks)
	v.Tokens = Roughly(texts...)
	if got.isError {
		v.Text = errorText(texts, got)
		return v, nil
	}
	v.Sample, v.sampled = sampleOf(got.structured, got.blocks)
	return v, nil
}

// errorText returns the message of a result with isError: its texts and, if they do not say the same, structuredContent.
func errorText(texts []string, got upstreamResult) string {
	if s := got.structured; s != nil && string(s) != "null" && !saidIn(got.blocks, s) {
		texts = append(texts, string(s))
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return strings.TrimSpace(text) == "" })
	if len(texts) == 0 {
		return "the tool reports an error without a text"
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// Learn calls learn with the sample of the value, if it has one. learn may be nil.
func (v *Value) Learn(learn func(Sample)) {
	if learn != nil && v.sampled {
		learn(v.Sample)
	}
}
