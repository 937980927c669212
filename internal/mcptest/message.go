package mcptest

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// message is JSON text to be sent: head, then the letter x fill times, then tail. The x are made while writing, so that
// an answer of hundreds of megabytes takes no memory. With a fill below 0 the message never ends.
type message struct {
	head []byte
	fill int64
	tail []byte
	// cut leaves out the line end, as in the last output before a crash.
	cut bool
}

// text returns a message of exactly these bytes.
func text(s string) message { return message{head: []byte(s)} }

// size is the number of bytes, -1 for an endless message.
func (m message) size() int64 {
	if m.fill < 0 {
		return -1
	}
	return int64(len(m.head)) + m.fill + int64(len(m.tail))
}

// in puts the message between two texts.
func (m message) in(before, after string) message {
	head := append([]byte(before), m.head...)
	if m.fill == 0 && len(m.tail) == 0 {
		return message{head: append(head, after...)}
	}
	return message{head: head, fill: m.fill, tail: append(bytes.Clone(m.tail), after...)}
}

// WriteTo writes the message; an endless one until the writer fails.
func (m message) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.head)
	total := int64(n)
	if err != nil || m.fill == 0 && len(m.tail) == 0 {
		return total, err
	}
	chunk := bytes.Repeat([]byte{'x'}, 64<<10)
	for left := m.fill; left != 0; {
		part := chunk
		if left > 0 && left < int64(len(part)) {
			part = part[:left]
		}
		n, err := w.Write(part)
		total += int64(n)
		if err != nil {
			return total, err
		}
		if left > 0 {
			left -= int64(n)
		}
	}
	n, err = w.Write(m.tail)
	return total + int64(n), err
}

// envelope is the parsed part of an incoming message. Raw members keep the client's bytes.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (e envelope) isRequest() bool { return e.Method != "" && len(e.ID) > 0 }

// params are the parameters that the fakes read.
type params struct {
	Name           string                     `json:"name"`
	URI            string                     `json:"uri"`
	Ref            json.RawMessage            `json:"ref"`
	Argument       json.RawMessage            `json:"argument"`
	Arguments      json.RawMessage            `json:"arguments"`
	Cursor         string                     `json:"cursor"`
	RequestID      json.RawMessage            `json:"requestId"`
	Capabilities   map[string]json.RawMessage `json:"capabilities"`
	Notifications  map[string]json.RawMessage `json:"notifications"`
	RequestState   string                     `json:"requestState"`
	InputResponses json.RawMessage            `json:"inputResponses"`
	Meta           struct {
		ProgressToken json.RawMessage            `json:"progressToken"`
		Version       string                     `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities  map[string]json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
}

// rpcError is the error of an answer; data is raw JSON or empty.
type rpcError struct {
	code    int
	message string
	data    string
}

func (e *rpcError) json() string {
	s := `{"code":` + strconv.Itoa(e.code) + `,"message":` + quote(e.message)
	if e.data != "" {
		s += `,"data":` + e.data
	}
	return s + `}`
}

// answer is the outcome of a request: a result or an error. Silent means that nothing is sent.
type answer struct {
	result message
	err    *rpcError
	silent bool
}

// with makes the answer a response to the request with this id.
func (a answer) with(id string) message {
	if a.err != nil {
		return text(`{"jsonrpc":"2.0","id":` + id + `,"error":` + a.err.json() + `}`)
	}
	return a.result.in(`{"jsonrpc":"2.0","id":`+id+`,"result":`, `}`)
}

func fails(code int, msg string) answer { return answer{err: &rpcError{code: code, message: msg}} }

func result(s string) answer { return answer{result: text(s)} }

// textResult is a tool result of one text block.
func textResult(s string) answer {
	return result(`{"content":[{"type":"text","text":` + quote(s) + `}]}`)
}

func toolError(s string) answer {
	return result(`{"content":[{"type":"text","text":` + quote(s) + `}],"isError":true}`)
}

func notification(method, params string) message {
	return text(`{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`)
}

// quote returns s as a JSON string, without the escaping of <, > and &.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// parseEnvelope parses a message, with or without a byte order mark. It reports false if it is not a JSON-RPC message.
func parseEnvelope(raw []byte) (envelope, bool) {
	var env envelope
	if json.Unmarshal(bytes.TrimPrefix(raw, []byte(bom)), &env) != nil {
		return env, false
	}
	if string(env.ID) == "null" {
		env.ID = nil
	}
	return env, env.Method != "" || len(env.ID) > 0
}
