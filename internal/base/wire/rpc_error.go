package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// RPCError is a JSON-RPC error that the upstream answered with.
type RPCError struct {
	Code    int64
	Message string
	// Data is the raw data member, nil where absent.
	Data json.RawMessage
	// OddCode is a code that is no whole number, as the server wrote it. NoCode says
	// that the error has no code at all. Code is 0 in both cases.
	OddCode json.RawMessage
	NoCode  bool
}

func (e *RPCError) Error() string { return e.Message + e.CodeNote() }

// CodeNote is the code as it stands behind a text; empty for an error without a code.
func (e *RPCError) CodeNote() string {
	switch {
	case e.NoCode:
		return ""
	case e.OddCode != nil:
		text := string(e.OddCode)
		_ = json.Unmarshal(e.OddCode, &text) // what is no string stays as it is
		return " (code " + strings.ToValidUTF8(text[:min(len(text), 40)], "") + ")"
	}
	return fmt.Sprintf(" (code %d)", e.Code)
}

// readCode takes a code as it was written. Some write whole numbers with a
// fraction, or as a string.
func (e *RPCError) readCode(raw json.RawMessage) {
	text := strings.Trim(string(raw), `"`)
	if number, err := strconv.ParseFloat(text, 64); err == nil && math.Trunc(number) == number && math.Abs(number) < 1<<53 {
		e.Code = int64(number)
		return
	}
	if e.NoCode = text == "" || text == "null"; !e.NoCode {
		e.OddCode = raw
	}
}

// MethodNotFound is the JSON-RPC code of an unknown method (JSON-RPC 2.0, section 5.1).
const MethodNotFound = -32601

// RPCCode reads the code of an error, 0 where there is none.
func RPCCode(raw json.RawMessage) int64 {
	if raw == nil {
		return 0
	}
	return ReadRPCError(raw).Code
}

// ReadRPCError reads an error that a peer sent. What is no error of JSON-RPC becomes one without a
// code, whose Data is what came, if that is valid JSON.
func ReadRPCError(raw json.RawMessage) *RPCError {
	var e struct {
		Code, Message, Data json.RawMessage
	}
	valid := json.Valid(raw)
	if !valid || json.Unmarshal(raw, &e) != nil {
		e := &RPCError{Message: "an error that is not JSON-RPC's", NoCode: true}
		if valid {
			e.Data = raw
		}
		return e
	}
	out := &RPCError{Data: e.Data}
	out.readCode(e.Code)
	if json.Unmarshal(e.Message, &out.Message) != nil || strings.TrimSpace(out.Message) == "" {
		out.Message = "an error without a message"
		if out.Data == nil && moreThanCode(raw) {
			out.Data = raw
		}
	}
	return out
}

// moreThanCode reports whether an error has more than a code and an empty message.
func moreThanCode(raw json.RawMessage) bool {
	more := false
	_ = Fields(raw, func(key string, value []byte) bool {
		more = more || key != "code" && (key != "message" || value[0] != '"' && string(value) != "null")
		return true
	})
	return more
}

// ReadObject returns the members of a JSON object; ok is false if raw is none.
func ReadObject(raw json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	err := json.Unmarshal(raw, &members)
	return members, err == nil && members != nil
}
