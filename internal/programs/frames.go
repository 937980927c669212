package programs

import (
	"encoding/binary"
	"encoding/json"
)

// This file defines what the main process and the helper send each other. A job is the size of its header (8 bytes, big endian),
// the header as JSON, and the code. A request of the helper is one byte for its kind, and a body. The reply depends on the kind.
// When the program has ended, the helper sends the answer, which is JSON.

// These are the kinds of requests.
const (
	askClock  = 't' // no body; the reply, which is empty, comes when the time of the program is over
	askCall   = 'c' // the body is a sentCall; the reply is written by encodeReply
	askResult = 'r' // the body is a handle; the reply is written by encodeReply
	askFile   = 'f' // the body is a path; the reply is written by encodeReply
)

const sizeBytes = 8

// header is what the helper knows of a program besides its code.
type header struct {
	Nanoseconds int64           `json:"ns"`     // how long the engine may run
	Memory      int64           `json:"memory"` // how many bytes the engine may use
	Calls       int             `json:"calls"`
	AtOnce      int             `json:"at_once"`
	Output      int             `json:"output"`          // how many bytes the value may have
	Check       bool            `json:"check,omitempty"` // only compile the program
	Parameters  string          `json:"params"`          // the pattern of the function's parameter; may be empty
	Arguments   json.RawMessage `json:"args,omitempty"`  // the value for Parameters
}

func (h header) encode() []byte {
	data, _ := json.Marshal(h) // cannot fail: Arguments is valid JSON
	return append(binary.BigEndian.AppendUint64(nil, uint64(len(data))), data...)
}

func decodeJob(body []byte) (h header, code string) {
	size := binary.BigEndian.Uint64(body)
	_ = json.Unmarshal(body[sizeBytes:sizeBytes+size], &h) // written by header.encode
	return h, string(body[sizeBytes+size:])
}

// sentCall is a call that a program makes. Made is how many calls the program has asked for so far, including those
// that are not sent yet.
type sentCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"args"`
	Made      int             `json:"made"`
}

// encodeReply writes a reply: a size (8 bytes, big endian), an error code of that size, and a body. If the code is
// empty, the body is a JSON value, otherwise the text of the error.
func encodeReply(value json.RawMessage, failure *Failure) []byte {
	if failure != nil {
		return append(append(binary.BigEndian.AppendUint64(nil, uint64(len(failure.Code))), failure.Code...), failure.Message...)
	}
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, sizeBytes+len(value)), 0), value...)
}

func decodeReply(data []byte) (code, text string) {
	if len(data) < sizeBytes {
		return CodeFailed, "the reply of mcpx is cut"
	}
	size := binary.BigEndian.Uint64(data)
	data = data[sizeBytes:]
	if size > uint64(len(data)) {
		return CodeFailed, "the reply of mcpx is cut"
	}
	return string(data[:size]), string(data[size:])
}

// These are the ways in which a program can end, as the helper reports them.
const (
	endValue  = "value"
	endError  = "error"  // the program does not compile, threw an error, or did not handle a rejected promise
	endTime   = "time"   // over the time limit
	endMemory = "memory" // over the memory limit
	endNull   = "null"   // the program threw null, or the engine did because it had no memory even for an error
	endStuck  = "stuck"  // the program awaits something that nothing will settle
	endOutput = "output" // the value is too long
)

// answer is what the helper sends when the program has ended: how it ended, and what it has returned and logged.
type answer struct {
	End     string          `json:"end"`
	Value   json.RawMessage `json:"value,omitempty"` // nil for undefined
	Logs    string          `json:"logs,omitempty"`
	Dropped int             `json:"dropped,omitempty"` // how many lines of console.log were left out, over the limit of logs
	Message string          `json:"message,omitempty"`
	Line    int             `json:"line,omitempty"` // 0 if it is unknown
	Column  int             `json:"column,omitempty"`
}
