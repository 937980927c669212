package wire

import (
	"bytes"
	"encoding/json"
)

// Encode is the JSON of v, without escapes of <, > and &, which cost tokens. It is null
// if v has no JSON.
func Encode(v any) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// TextBlock is a content block of type text.
func TextBlock(text string) json.RawMessage {
	return append(AppendQuoted([]byte(`{"type":"text","text":`), text), '}')
}

// AppendText appends a text of mcpx to the content blocks of an upstream. Behind others it
// begins a new line, as some clients join texts without one (Copilot CLI).
func AppendText(content []json.RawMessage, text string) []json.RawMessage {
	if len(content) > 0 {
		text = "\n" + text
	}
	return append(content, TextBlock(text))
}
