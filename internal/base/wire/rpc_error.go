package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// RPCError is a JSON-RPC error response of an MCP server.
type RPCError struct {
	Code    int64
	Message string
	// Data is the raw data member, nil if absent.
	Data json.RawMessage
	// OddCode is the raw code if the code is not an integer. NoCode means that there is no code. In both cases Code is
	// 0.
	OddCode json.RawMessage
	NoCode  bool
}

func (e *RPCError) Error() string { return e.Message + e.CodeNote() }

// CodeNote returns the code in a form to append to the message; it is empty if there is no code.
func (e *RPCError) CodeNote() string {
	switch {
	case e.NoCode:
		return ""
	case e.OddCode != nil:
		text := string(e.OddCode)
		_ = json.Unmarshal(e.OddCode, &text) // if OddCode is not a string, text stays the raw JSON
		return " (code " + strings.ToValidUTF8(text[:min(len(text), 40)], "") + ")"
	}
	return fmt.Sprintf(" (code %d)", e.Code)
}

// readCode reads a raw code. Some servers send an integer with a fraction (-32000.0), or as a string.
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

const MethodNotFound = -32601

// RPCCode returns the code of a raw error, or 0 if there is none.
func RPCCode(raw json.RawMessage) int64 {
	if raw == nil {
		return 0
	}
	return ReadRPCError(raw).Code
}

// ReadRPCError reads an error from a peer. If raw is not a JSON-RPC error, the result has no code, and has raw as its
// Data if raw is valid JSON.
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

func moreThanCode(raw json.RawMessage) bool {
	more := false
	_ = Fields(raw, func(key string, value []byte) bool {
		more = more || key != "code" && (key != "message" || value[0] != '"' && string(value) != "null")
		return true
	})
	return more
}

// ReadObject returns the members of a JSON object. ok is false if raw is not an object.
func ReadObject(raw json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	err := json.Unmarshal(raw, &members)
	return members, err == nil && members != nil
}
