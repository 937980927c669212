package jq

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// A job is the size of the filter (8 bytes, big endian), the filter and the input. An answer
// is a kind and a body.

const (
	// sizeBytes is how many bytes say the size of what follows.
	sizeBytes = 8
	// maxFilter is the size of a filter in bytes. What is longer is an attempt on the parser.
	maxFilter = 64 << 10
	// maxMessage is the size in bytes of an error's text: gojq's are short, but error("…") is the filter's.
	maxMessage = 400
	// notOutput is the size in bytes of what an answer may have beside outputs, or instead.
	notOutput = 1 + maxMessage
)

// The kinds of answers.
const (
	kindOutputs = 'o' // the outputs, each after its size
	kindFilter  = 'f' // text of a FilterError
	kindInput   = 'i' // text: the input is no JSON
	kindOutput  = 'l' // nothing: more output than allowed
)

// answer is what a helper says to a job: a kind and its body.
type answer []byte

// parse turns an answer into what Run returns.
func (a answer) parse(l Limits) ([]json.RawMessage, error) {
	if len(a) == 0 {
		return nil, errors.New("reading the answer of the jq helper: it is empty")
	}
	kind, body := a[0], a[1:]
	switch kind {
	case kindOutputs:
		return splitOutputs(body)
	case kindFilter:
		return nil, &FilterError{Message: string(body)}
	case kindInput:
		return nil, fmt.Errorf("decoding the input of the filter: %s", body)
	case kindOutput:
		return nil, limitError("output", l)
	}
	return nil, fmt.Errorf("reading the answer of the jq helper: unknown kind %q", kind)
}

func splitOutputs(body []byte) ([]json.RawMessage, error) {
	n := 0
	for rest := body; len(rest) > 0; n++ {
		if len(rest) < sizeBytes || binary.BigEndian.Uint64(rest) > uint64(len(rest)-sizeBytes) {
			return nil, errors.New("reading the answer of the jq helper: an output is cut")
		}
		rest = rest[sizeBytes+binary.BigEndian.Uint64(rest):]
	}
	outputs := make([]json.RawMessage, 0, n)
	for len(body) > 0 {
		end := sizeBytes + binary.BigEndian.Uint64(body)
		// The capacity ends with the output, so that an append by the caller spares the next.
		outputs = append(outputs, json.RawMessage(body[sizeBytes:end:end]))
		body = body[end:]
	}
	return outputs, nil
}
