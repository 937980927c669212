package jq

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// A job is the size of the filter (8 bytes, big endian), the filter and the input. An answer is one byte for its
// kind, followed by a body.

const (
	// sizeBytes is the length, in bytes, of the size that is written before a filter and before each output.
	sizeBytes = 8
	// maxFilter bounds a filter, in bytes. Real filters are far shorter.
	maxFilter = 64 << 10
	// maxMessage bounds the text of an error, in bytes, as a filter can make an error with a text of any length.
	maxMessage = 400
	// notOutput bounds the bytes of an answer that are not output: its kind, and the text of an error, if any.
	notOutput = 1 + maxMessage
)

// These are the kinds of answers.
const (
	kindOutputs = 'o' // the body has the outputs, each after its size
	kindFilter  = 'f' // the body is the text of a FilterError
	kindInput   = 'i' // the input is not JSON; the body is a text that says why
	kindOutput  = 'l' // no body: there is more output than allowed
)

// answer is the result of a job: a kind and its body.
type answer []byte

// parse turns an answer into the results of Run.
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
	outputs := []json.RawMessage{}
	for len(body) > 0 {
		if len(body) < sizeBytes || binary.BigEndian.Uint64(body) > uint64(len(body)-sizeBytes) {
			return nil, errors.New("reading the answer of the jq helper: an output is cut")
		}
		end := sizeBytes + binary.BigEndian.Uint64(body)
		// The capacity ends with the output, so that an append by the caller does not write into the next output.
		outputs = append(outputs, json.RawMessage(body[sizeBytes:end:end]))
		body = body[end:]
	}
	return outputs, nil
}
