package results

import (
	"encoding/json"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
)

// Value is what a program gets from a result.
type Value struct {
	// JSON is structuredContent, without an object that only wraps the value, or all of it if inspect shows its type (see
	// ReadValue). In a result without structuredContent, it is the JSON in the texts, or else a text as a JSON string (several as
	// an array). It is nil for a result without structuredContent and text.
	JSON   json.RawMessage
	Blocks []wire.Block
	// IsError means that the tool reports an error; Text is what the error says.
	IsError bool
	Text    string
	Tokens  int    // estimated tokens of the texts
	Sample  Sample // what the function Learn of [Answer] would get
	sampled bool
}

// ReadValue reads the result of a server. as says how inspect shows the type of the results. If they are typed, the value is
// always structuredContent: a filter may be written for this or for the texts, but a program must know which it gets. The error
// is [ErrNoResult] or [ErrTask].
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

// errorText returns what a result that is an error says: its texts and, if they do not say the same, structuredContent.
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
