// Package wire has JSON-RPC messages as raw bytes: their envelopes, and how
// they are framed on a stream. It decodes no payload: params, results and ids
// stay as they were written, so that nothing is lost on the way (design 2.1).
// It imports nothing of mcpx; upstream and front speak through it.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Message is the envelope of one JSON-RPC message. Its slices alias the bytes
// given to [Parse].
type Message struct {
	// ID is the id as written; nil for a notification. A null id counts as nil.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	Params json.RawMessage
	// Result and Error are nil where absent.
	Result json.RawMessage
	Error  json.RawMessage
}

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool {
	return m.Method == "" && (m.Result != nil || m.Error != nil)
}

// ErrNotObject says that the bytes are no JSON object, and so no message.
var ErrNotObject = errors.New("not a JSON object")

// Parse reads the envelope of one message. It checks the structure (strings,
// brackets), not every literal: [json.Valid] has the last word on payloads that
// are passed on.
func Parse(data []byte) (Message, error) {
	var m Message
	err := Fields(data, func(key string, value []byte) bool {
		switch key {
		case "id":
			if string(value) != "null" {
				m.ID = value
			}
		case "method":
			var name string
			if json.Unmarshal(value, &name) == nil {
				m.Method = name
			}
		case "params":
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			if string(value) != "null" {
				m.Error = value
			}
		}
		return true
	})
	return m, err
}

// maxBatch bounds the messages of a batch: a batch of nothing else would take
// twenty times its size.
const maxBatch = 10_000

// Batch splits a JSON-RPC batch (protocol 2025-03-26 only) into its messages, of
// which it reads the first 10,000; ok is false if data is no array. What in it is
// no object is no message.
func Batch(data []byte) (messages []json.RawMessage, ok bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return nil, false
	}
	err := Elements(data, func(value []byte) bool {
		if value[0] == '{' {
			messages = append(messages, value)
		}
		return len(messages) < maxBatch
	})
	return messages, err == nil
}

// Fields calls yield for each member of the JSON object in data, in order, with
// the raw value, until yield returns false. Of white space, only that around
// the object is tolerated after its end.
func Fields(data []byte, yield func(key string, value []byte) bool) error {
	return FieldsAt(data, func(key string, start, end int) bool {
		return yield(key, data[start:end:end])
	})
}

// FieldsAt is [Fields] with the place of each value in data.
func FieldsAt(data []byte, yield func(key string, start, end int) bool) error {
	return members(data, func(key string, _, _, start, end int) bool { return yield(key, start, end) })
}

// Members is [Fields] with each key also as it was written, quotes included: a
// key may have half a surrogate pair, which a Go string cannot keep.
func Members(data []byte, yield func(key string, written, value []byte) bool) error {
	return members(data, func(key string, at, after, start, end int) bool {
		return yield(key, data[at:after:after], data[start:end:end])
	})
}

func members(data []byte, yield func(key string, at, after, start, end int) bool) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return ErrNotObject
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return trailing(data, i+1)
	}
	for {
		if i >= len(data) || data[i] != '"' {
			return syntaxError(i)
		}
		at := i
		keyEnd, err := skipString(data, i)
		if err != nil {
			return err
		}
		key, err := keyText(data[i:keyEnd])
		if err != nil {
			return err
		}
		i = skipSpace(data, keyEnd)
		if i >= len(data) || data[i] != ':' {
			return syntaxError(i)
		}
		i = skipSpace(data, i+1)
		end, err := skipValue(data, i)
		if err != nil {
			return err
		}
		if !yield(key, at, keyEnd, i, end) {
			return nil
		}
		i = skipSpace(data, end)
		if i >= len(data) {
			return syntaxError(i)
		}
		switch data[i] {
		case ',':
			i = skipSpace(data, i+1)
		case '}':
			return trailing(data, i+1)
		default:
			return syntaxError(i)
		}
	}
}

func trailing(data []byte, i int) error {
	if i = skipSpace(data, i); i != len(data) {
		return syntaxError(i)
	}
	return nil
}

func syntaxError(at int) error {
	return fmt.Errorf("invalid JSON at byte %d", at)
}

func keyText(quoted []byte) (string, error) {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", err
	}
	return s, nil
}

func skipSpace(data []byte, i int) int {
	for i < len(data) {
		switch data[i] {
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}

// skipString returns the index after the string that starts at i.
func skipString(data []byte, i int) (int, error) {
	start := i
	i++
	for {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return 0, syntaxError(start)
		}
		slashes := 0
		for j := i + n - 1; j >= i && data[j] == '\\'; j-- {
			slashes++
		}
		i += n + 1
		if slashes%2 == 0 {
			return i, nil
		}
	}
}

// skipValue returns the index after the value that starts at i. Nesting needs
// no stack of calls, so no input is too deep for it.
func skipValue(data []byte, i int) (int, error) {
	if i >= len(data) {
		return 0, syntaxError(i)
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		return skipNested(data, i)
	}
	start := i
	for i < len(data) && !delimiter[data[i]] {
		i++
	}
	if i == start {
		return 0, syntaxError(i)
	}
	return i, nil
}

func skipNested(data []byte, i int) (int, error) {
	start, depth := i, 0
	for i < len(data) {
		switch data[i] {
		case '"':
			end, err := skipString(data, i)
			if err != nil {
				return 0, err
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return 0, syntaxError(start)
}

// delimiter has the bytes that end a number or a keyword.
var delimiter = [256]bool{
	' ': true, '\t': true, '\r': true, '\n': true,
	',': true, ':': true, ']': true, '}': true, '[': true, '{': true, '"': true,
}

// Elements calls yield for each element of the JSON array in data, in order,
// with the raw value, until yield returns false.
func Elements(data []byte, yield func(value []byte) bool) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return errors.New("not a JSON array")
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return trailing(data, i+1)
	}
	for {
		end, err := skipValue(data, i)
		if err != nil {
			return err
		}
		if !yield(data[i:end:end]) {
			return nil
		}
		i = skipSpace(data, end)
		if i >= len(data) {
			return syntaxError(i)
		}
		switch data[i] {
		case ',':
			i = skipSpace(data, i+1)
		case ']':
			return trailing(data, i+1)
		default:
			return syntaxError(i)
		}
	}
}
