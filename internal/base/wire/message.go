// Package wire reads and writes JSON as raw bytes: a scanner, the envelopes of JSON-RPC messages, and their framing
// on a stream. Params, results and ids stay byte for byte. It imports no other package of mcpx.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Message is the envelope of a JSON-RPC message. Its slices refer to the bytes given to [Parse].
type Message struct {
	// ID is the raw id; nil for a notification or a null id.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	Params json.RawMessage
	// Result and Error are nil if absent.
	Result json.RawMessage
	Error  json.RawMessage
	// Valid means that the whole message is valid JSON, by the rules of [json.Valid]; UTF8 that it is valid UTF-8.
	// mcpx may forward its values only if both are true.
	Valid, UTF8 bool
	// Ambiguous means that the message has a duplicate member, or one in other letter case, so that readers may
	// interpret it differently.
	Ambiguous bool
}

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool {
	return m.Method == "" && (m.Result != nil || m.Error != nil)
}

// ErrNotObject means that the bytes are not a JSON object, and so not a message.
var ErrNotObject = errors.New("not a JSON object")

// envelope lists the members of a message.
var envelope = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// Parse reads the envelope of one message, and checks the whole message in the same pass. If the value of a member is
// invalid, Parse finds its end by brackets and quotes, so that an error response can name the id.
func Parse(data []byte) (Message, error) {
	var m Message
	var seen uint8 // bits of the members found so far
	valid, err := members(data, &m.UTF8, func(key string, _, _, start, end int) bool {
		value := data[start:end:end]
		bit := uint8(0) // of the member in seen
		switch key {
		case "jsonrpc":
			bit = 1
		case "id":
			bit = 2
			if string(value) != "null" {
				m.ID = value
			}
		case "method":
			bit = 4
			m.Method, _ = Text(value)
		case "params":
			bit = 8
			m.Params = value
		case "result":
			bit = 16
			m.Result = value
		case "error":
			bit = 32
			if string(value) != "null" {
				m.Error = value
			}
		default:
			m.Ambiguous = m.Ambiguous || slices.ContainsFunc(envelope, func(name string) bool { return strings.EqualFold(key, name) })
		}
		m.Ambiguous = m.Ambiguous || seen&bit != 0
		seen |= bit
		return true
	})
	m.Valid = valid
	return m, err
}

// maxBatch bounds the messages of a batch, since many small ones need twenty times the memory of the batch.
const maxBatch = 10_000

// Batch splits a JSON-RPC batch (protocol 2025-03-26 only) into its first 10,000 messages. It skips elements that are
// not objects. ok is false if data is not an array.
func Batch(data []byte) (messages []json.RawMessage, ok bool) {
	s := scanner{src: view(data)}
	if s.peek() != '[' {
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

// Fields calls yield with each member of the JSON object in data, in order and with its raw value, until yield
// returns false. Only white space may follow the object. A caller that keeps the key must clone it, as it may refer
// to data.
func Fields(data []byte, yield func(key string, value []byte) bool) error {
	return FieldsAt(data, func(key string, start, end int) bool {
		return yield(key, data[start:end:end])
	})
}

// FieldsAt is [Fields] with positions of values in data.
func FieldsAt(data []byte, yield func(key string, start, end int) bool) error {
	_, err := members(data, nil, func(key string, _, _, start, end int) bool { return yield(key, start, end) })
	return err
}

// Members is [Fields] with each key also in its raw form with quotes, as a Go string cannot hold half a surrogate
// pair.
func Members(data []byte, yield func(key string, written, value []byte) bool) error {
	_, err := members(data, nil, func(key string, at, after, start, end int) bool {
		return yield(key, data[at:after:after], data[start:end:end])
	})
	return err
}

// members reads the members of an object. A key may refer to data. valid reports whether all of data is valid JSON;
// *utf8, unless nil, whether it is valid UTF-8. Both have a meaning only without an error and if yield never returned
// false.
func members(data []byte, utf8 *bool, yield func(key string, at, after, start, end int) bool) (valid bool, err error) {
	s := scanner{src: view(data)}
	if s.begin() != tokenObject {
		return false, ErrNotObject
	}
	valid = true
	for {
		switch s.advance() {
		case tokenClose:
			if !s.end() {
				return false, syntaxError(s.pos)
			}
			if utf8 != nil {
				*utf8 = s.utf8()
			}
			return valid, nil
		case tokenKey:
		default:
			return false, syntaxError(s.pos)
		}
		at, after := s.start, s.after
		key := s.lastKey()
		s.peek()
		start := s.pos
		strict, ok := s.skip()
		if !ok {
			return false, syntaxError(start)
		}
		valid = valid && strict
		if !yield(key, at, after, start, s.pos) {
			return false, nil
		}
	}
}

// Elements calls yield with each raw element of the JSON array in data, in order, until yield returns false.
func Elements(data []byte, yield func(value []byte) bool) error {
	return ElementsAt(data, func(start, end int) bool { return yield(data[start:end:end]) })
}

// ElementsAt is [Elements] with positions in data.
func ElementsAt(data []byte, yield func(start, end int) bool) error {
	s := scanner{src: view(data)}
	if s.begin() != tokenArray {
		return errors.New("not a JSON array")
	}
	for {
		switch s.advance() {
		case tokenClose:
			if !s.end() {
				return syntaxError(s.pos)
			}
			return nil
		case tokenValue:
		default:
			return syntaxError(s.pos)
		}
		s.peek()
		start := s.pos
		if _, ok := s.skip(); !ok {
			return syntaxError(start)
		}
		if !yield(start, s.pos) {
			return nil
		}
	}
}

func syntaxError(at int) error {
	return fmt.Errorf("invalid JSON at byte %d", at)
}

// skip reads the value at pos. If it is invalid JSON, strict is false and skip finds the end by quotes and brackets;
// ok is false if it cannot.
func (s *scanner) skip() (strict, ok bool) {
	start, depth := s.pos, s.open.depth
	if s.value() {
		return true, true
	}
	s.open.depth, s.expected = depth, expectAfter
	s.seen = highBits // not all strings were read, so utf8 must check everything
	s.pos, ok = looseEnd(s.src, start)
	return false, ok
}

// looseEnd finds the end of the value at text[start] by quotes and brackets alone, at any nesting.
func looseEnd(text string, start int) (end int, ok bool) {
	depth := 0
	for i := start; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			if i > start && depth == 0 {
				return i, true
			}
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return 0, false
			}
		case '{', '[':
			if i > start && depth == 0 {
				return i, true
			}
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i, i > start
			}
			depth--
		case ' ', '\t', '\r', '\n', ',', ':':
			if depth == 0 {
				return i, i > start
			}
			continue
		default:
			continue
		}
		if depth == 0 { // after a string or a container
			return i + 1, true
		}
	}
	return len(text), depth == 0 && len(text) > start
}

// IntID reads an integer id. Some peers return it as a string, others with a fraction.
func IntID(raw json.RawMessage) (int64, bool) {
	text := strings.TrimSuffix(strings.Trim(string(raw), `"`), ".0")
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}
