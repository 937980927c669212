// Package wire reads and writes JSON as raw bytes: a JSON scanner, the envelopes of JSON-RPC messages, and how
// messages are separated on a stream. It does not change a byte of params, results and ids. It imports no other
// package of mcpx.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Message is the envelope of a JSON-RPC message. Its slices share memory with the bytes given to [Parse].
type Message struct {
	// ID is the raw id. It is nil if there is no id (a notification), or if the id is null.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	Params json.RawMessage
	// Result is nil if absent. Error is nil if absent or null.
	Result json.RawMessage
	Error  json.RawMessage
	// Valid means that the whole message is valid JSON by the rules of [json.Valid]. UTF8 means that it is valid
	// UTF-8. mcpx may forward values of the message only if both are true.
	Valid, UTF8 bool
	// Ambiguous means that a member of the envelope occurs twice, or that its name is written in other letter case (ID, Params).
	// Another JSON reader may then see a different message.
	Ambiguous bool
}

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool {
	return m.Method == "" && (m.Result != nil || m.Error != nil)
}

// errNotObject means that the bytes are not a JSON object, so they are no message.
var errNotObject = errors.New("not a JSON object")

// envelope lists the members that a JSON-RPC message may have.
var envelope = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// Parse reads the envelope of one message, and checks the whole message in the same pass. If the value of a member is invalid JSON,
// Parse finds the end of the value by brackets and quotes. So it still finds the id, which the error response needs.
func Parse(data []byte) (Message, error) {
	var m Message
	var seen uint8 // one bit for each member found so far
	valid, err := members(data, &m.UTF8, func(key string, _, _, start, end int) bool {
		value := data[start:end:end]
		bit := uint8(0) // the bit of this member in seen
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

// maxBatch is how many messages a batch may have. Many small messages need twenty times the memory of the batch
// itself.
const maxBatch = 10_000

// These are the errors of [Batch].
var (
	errNotBatch   = errors.New("not a batch")
	ErrLargeBatch = fmt.Errorf("a batch of more than %d messages", maxBatch)
)

// Batch splits a JSON-RPC batch (protocol 2025-03-26 only) into its messages. It skips elements that are not objects.
// If it returns an error, it returns no messages.
func Batch(data []byte) (messages []json.RawMessage, err error) {
	s := scanner{src: view(data)}
	if s.peek() != '[' {
		return nil, errNotBatch
	}
	err = Elements(data, func(value []byte) bool {
		if value[0] == '{' {
			messages = append(messages, value)
		}
		return len(messages) <= maxBatch
	})
	switch {
	case len(messages) > maxBatch:
		return nil, ErrLargeBatch
	case err != nil:
		return nil, errNotBatch
	}
	return messages, nil
}

// Fields calls yield with each member of the JSON object in data, in order and with its raw value, until yield returns
// false. Only white space may follow the object. A caller that keeps the key must clone it, as the key may share
// memory with data.
func Fields(data []byte, yield func(key string, value []byte) bool) error {
	return FieldsAt(data, func(key string, start, end int) bool {
		return yield(key, data[start:end:end])
	})
}

// FieldsAt is like [Fields], but yield gets the positions of the values in data.
func FieldsAt(data []byte, yield func(key string, start, end int) bool) error {
	_, err := members(data, nil, func(key string, _, _, start, end int) bool { return yield(key, start, end) })
	return err
}

// Members is like [Fields], but yield also gets each key as it is written, with its quotes. The Go string key is not enough,
// because it cannot hold half a surrogate pair.
func Members(data []byte, yield func(key string, written, value []byte) bool) error {
	_, err := members(data, nil, func(key string, keyStart, keyEnd, start, end int) bool {
		return yield(key, data[keyStart:keyEnd:keyEnd], data[start:end:end])
	})
	return err
}

// members reads the members of an object. yield gets each key, the position of the key in data (keyStart, keyEnd), and the
// position of its value (start, end). A key may share memory with data. valid reports whether all of data is valid JSON, and
// *utf8, if utf8 is not nil, whether data is valid UTF-8. valid and *utf8 are meaningful only if err is nil and yield never
// returned false.
func members(data []byte, utf8 *bool, yield func(key string, keyStart, keyEnd, start, end int) bool) (valid bool, err error) {
	s := scanner{src: view(data)}
	if s.begin() != tokenObject {
		return false, errNotObject
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
		keyStart, keyEnd := s.start, s.after
		key := s.lastKey()
		s.peek()
		start := s.pos
		strict, ok := s.skip()
		if !ok {
			return false, syntaxError(start)
		}
		valid = valid && strict
		if !yield(key, keyStart, keyEnd, start, s.pos) {
			return false, nil
		}
	}
}

// Elements calls yield with each raw element of the JSON array in data, in order, until yield returns false.
func Elements(data []byte, yield func(value []byte) bool) error {
	return ElementsAt(data, func(start, end int) bool { return yield(data[start:end:end]) })
}

// ElementsAt is like [Elements], but yield gets the positions of the elements in data.
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

// skip reads the value at pos. If the value is invalid JSON, strict is false, and skip finds the end of the value by
// quotes and brackets. ok is false if it finds no end.
func (s *scanner) skip() (strict, ok bool) {
	start, depth := s.pos, s.open.depth
	if s.value() {
		return true, true
	}
	s.open.depth, s.expected = depth, expectAfter
	s.seen = highBits // not all strings were scanned, so the method utf8 must check all of src
	s.pos, ok = looseEnd(s.src, start)
	return false, ok
}

// looseEnd finds the end of the value that begins at text[start] by looking at quotes and brackets only, at any
// nesting depth.
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
		if depth == 0 { // after a string, an array or an object
			return i + 1, true
		}
	}
	return len(text), depth == 0 && len(text) > start
}

// IntID reads an integer id. Some peers return an id of mcpx as a string, others with a fraction (".0").
func IntID(raw json.RawMessage) (int64, bool) {
	text := strings.TrimSuffix(strings.Trim(string(raw), `"`), ".0")
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}
