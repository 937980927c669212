package jq

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Both directions carry frames: a length of 8 bytes, big endian, and that many bytes.
// The worker sends an empty frame when it is ready. A request is two frames, filter
// and input; its answer is one, a kind and a body.

const (
	lengthSize = 8
	// maxFilter is the size of a filter in bytes. What is longer is an attempt on the parser.
	maxFilter = 64 << 10
	// maxMessage is the size in bytes of an error's text: gojq's are short, but error("…") is the filter's.
	maxMessage = 400
)

// The kinds of answers.
const (
	kindOutputs = 'o' // frames, one per output
	kindFilter  = 'f' // text of a FilterError
	kindInput   = 'i' // text: the input is no JSON
	kindOutput  = 'l' // nothing: more output than allowed
)

// answer is what a worker says to a request: a kind and its body.
type answer []byte

// parse turns an answer into what Run returns.
func (a answer) parse(l Limits) ([]json.RawMessage, error) {
	if len(a) == 0 {
		return nil, errors.New("reading the answer of the jq worker: it is empty")
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
	return nil, fmt.Errorf("reading the answer of the jq worker: unknown kind %q", kind)
}

func splitOutputs(body []byte) ([]json.RawMessage, error) {
	n := 0
	for rest := body; len(rest) > 0; n++ {
		if len(rest) < lengthSize || binary.BigEndian.Uint64(rest) > uint64(len(rest)-lengthSize) {
			return nil, errors.New("reading the answer of the jq worker: an output is cut")
		}
		rest = rest[lengthSize+binary.BigEndian.Uint64(rest):]
	}
	outputs := make([]json.RawMessage, 0, n)
	for len(body) > 0 {
		end := lengthSize + binary.BigEndian.Uint64(body)
		// The capacity ends with the output, so that an append by the caller spares the next.
		outputs = append(outputs, json.RawMessage(body[lengthSize:end:end]))
		body = body[end:]
	}
	return outputs, nil
}

// writeFrame writes small frames in one piece: a frame is then one wake of the reader.
func writeFrame(w io.Writer, data []byte) error {
	header := binary.BigEndian.AppendUint64(make([]byte, 0, lengthSize+min(len(data), 4<<10)), uint64(len(data)))
	if len(data) <= cap(header)-lengthSize {
		_, err := w.Write(append(header, data...))
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// errFrameSize says that a frame is longer than the reader allows.
var errFrameSize = errors.New("frame is too long")

// readFrame reads a frame of at most limit bytes.
func readFrame(r io.Reader, limit int64) ([]byte, error) {
	var header [lengthSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(header[:])
	if n > uint64(limit) {
		return nil, errFrameSize
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	return data, nil
}
