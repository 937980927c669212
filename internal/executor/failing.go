package executor

import (
	"bytes"
	"encoding/json"
	"mcpx/internal/base/wire"
)

// The codes of failures (design 7).
const (
	CodeServerNotFound    = "SERVER_NOT_FOUND"
	CodeToolNotFound      = "TOOL_NOT_FOUND"
	CodeValidation        = "VALIDATION_ERROR"
	CodeServerUnavailable = "SERVER_UNAVAILABLE"
	CodeTimeout           = "TIMEOUT"
	CodeConnectionLost    = "CONNECTION_LOST"
	CodeUpstream          = "UPSTREAM_ERROR"
	CodeRateLimited       = "RATE_LIMITED"
	CodeExecution         = "EXECUTION_ERROR"
)

// Failure is a failed call as the model gets it: a short text with what to change,
// and the same as data.
type Failure struct {
	Code, Message string
	// Text is the text for the model; empty = Code: Message.
	Text   string
	fields []field
}

type field struct {
	name  string
	value any
}

// Invalid is the failure of a call with one violation of the form "/path: reason".
func Invalid(violation string) *Failure {
	return (&Failure{Code: CodeValidation, Message: violation}).With("violations", []string{violation})
}

// With adds a member to the data.
func (f *Failure) With(name string, value any) *Failure {
	f.fields = append(f.fields, field{name, value})
	return f
}

// text is the text for the model.
func (f *Failure) text() string {
	if f.Text != "" {
		return f.Text
	}
	return f.Code + ": " + f.Message
}

// Result is the failure as a tool result.
func (f *Failure) Result(structured bool) *Result {
	text := f.text()
	result := &Result{IsError: true, code: f.Code, Content: []json.RawMessage{wire.TextBlock(text)}, sent: roughly(text)}
	if structured {
		result.Structured = f.data()
	}
	return result
}

func (f *Failure) data() json.RawMessage {
	members := append(object{{"code", f.Code}, {"message", f.Message}}, f.fields...)
	return wire.Encode(object{{"error", members}})
}

// Data is the failure as a JSON object: its code, message, and what else it carries.
func (f *Failure) Data() json.RawMessage {
	data, _ := append(object{{"code", f.Code}, {"message", f.Message}}, f.fields...).MarshalJSON()
	return data
}

// object is a JSON object with its members in order.
type object []field

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(wire.Encode(f.name))
		out.WriteByte(':')
		out.Write(wire.Encode(f.value))
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
