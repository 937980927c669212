package mcptest

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// message is JSON text to be sent: head, then fill times the letter x, then tail. The x are generated during writing,
// so that an answer of hundreds of megabytes takes no memory. If fill is negative, the message never ends.
type message struct {
	head []byte
	fill int64
	tail []byte
	// cut leaves out the line end after the message, as if the sender had crashed.
	cut bool
}

// text returns a message with exactly this text.
func text(s string) message { return message{head: []byte(s)} }

// size returns the length in bytes, or -1 for an endless message.
func (m message) size() int64 {
	if m.fill < 0 {
		return -1
	}
	return int64(len(m.head)) + m.fill + int64(len(m.tail))
}

// in returns the message with prefix in front of it and suffix behind it.
func (m message) in(prefix, suffix string) message {
	head := append([]byte(prefix), m.head...)
	if m.fill == 0 && len(m.tail) == 0 {
		return message{head: append(head, suffix...)}
	}
	return message{head: head, fill: m.fill, tail: append(bytes.Clone(m.tail), suffix...)}
}

// WriteTo writes the message. If the message is endless, it writes until the writer fails.
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

// envelope is the parsed part of an incoming message. Raw members have the bytes that the client sent.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (e envelope) isRequest() bool { return e.Method != "" && len(e.ID) > 0 }

// params has the parameters that the fakes read, of all methods.
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

// rpcError is a JSON-RPC error. data is raw JSON, or empty if there is none.
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

// answer is what a request leads to: a result or an error. If silent is true, nothing is sent.
type answer struct {
	result message
	err    *rpcError
	silent bool
}

// with returns the answer as a response to the request with this ID.
func (a answer) with(id string) message {
	if a.err != nil {
		return text(`{"jsonrpc":"2.0","id":` + id + `,"error":` + a.err.json() + `}`)
	}
	return a.result.in(`{"jsonrpc":"2.0","id":`+id+`,"result":`, `}`)
}

func fails(code int, msg string) answer { return answer{err: &rpcError{code: code, message: msg}} }

func result(s string) answer { return answer{result: text(s)} }

// textResult returns a tool result with one text block.
func textResult(s string) answer {
	return result(`{"content":[{"type":"text","text":` + quote(s) + `}]}`)
}

func toolError(s string) answer {
	return result(`{"content":[{"type":"text","text":` + quote(s) + `}],"isError":true}`)
}

func notification(method, params string) message {
	return text(`{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`)
}

// quote returns s as a JSON string. It does not escape <, > and &.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // impossible: every string can be encoded
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
