package results

import (
	"encoding/json"
	"errors"

	"mcpx/internal/base/wire"
)

// These are the error codes that a [Failure] may have.
const (
	CodeServerNotFound    = "SERVER_NOT_FOUND"
	CodeToolNotFound      = "TOOL_NOT_FOUND"
	CodeValidation        = "VALIDATION_ERROR"
	CodeServerUnavailable = "SERVER_UNAVAILABLE"
	CodeTimeout           = "TIMEOUT"
	CodeConnectionLost    = "CONNECTION_LOST"
	CodeUpstream          = "UPSTREAM_ERROR"
	CodeRateLimited       = "RATE_LIMITED"
	CodeSelect            = "SELECT_ERROR"
	CodeExecution         = "EXECUTION_ERROR"
)

// Failure is a failed call: a short text that tells the model what to change, and the same information as JSON.
type Failure struct {
	Code, Message string
	// Text is what the model gets; if it is empty, the model gets Code and Message.
	Text   string
	fields []Field
}

// Field is one member of an [Object].
type Field struct {
	Name  string
	Value any
}

// Invalid returns the failure of a call whose arguments violate one rule. The violation has the form "/path: reason".
func Invalid(violation string) *Failure {
	return (&Failure{Code: CodeValidation, Message: violation}).With("violations", []string{violation})
}

// ErrBusy means that a filter or a grep was not started because too many filters and greps of other requests are running.
var ErrBusy = errors.New("too many filters and greps are under way")

// Busy is the failure for [ErrBusy].
func Busy() *Failure {
	f := &Failure{Code: CodeRateLimited, Message: ErrBusy.Error() + "; retry_after: 1 s"}
	return f.With("retry_after", 1)
}

// With adds a member to the JSON of the failure (see [Failure.Data]), and returns the failure.
func (f *Failure) With(name string, value any) *Failure {
	f.fields = append(f.fields, Field{name, value})
	return f
}

// Said returns the text that the model gets.
func (f *Failure) Said() string {
	if f.Text != "" {
		return f.Text
	}
	return f.Code + ": " + f.Message
}

// Result returns the failure as a tool result. If structured is true, the JSON of the failure is also sent as
// structuredContent.
func (f *Failure) Result(structured bool) *Result {
	text := f.Said()
	result := &Result{IsError: true, Code: f.Code, Content: []json.RawMessage{wire.TextBlock(text)}, Sent: Roughly(text)}
	if structured {
		result.Structured = wire.Encode(Object{{"error", f.members()}})
	}
	return result
}

func (f *Failure) members() Object {
	return append(Object{{"code", f.Code}, {"message", f.Message}}, f.fields...)
}

// Data returns the failure as a JSON object: its code, message, and added members.
func (f *Failure) Data() json.RawMessage {
	data, _ := f.members().MarshalJSON()
	return data
}

// Object is a list of members. It is encoded as one JSON object, with the members in this order.
type Object []Field

// MarshalJSON encodes the members in their order, which a map would not keep.
func (o Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, f := range o {
		out = wire.AppendMember(out, wire.Encode(f.Name), wire.Encode(f.Value))
	}
	return append(out, '}'), nil
}
