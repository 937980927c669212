package helper

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// The protocol: parent and helper send each other frames. A frame has a kind (1 byte), a number and the size of the
// body (8 bytes each, big endian), and the body. The parent sends a job. The helper may send requests, each with its
// own number, and the parent sends a reply with the number of the request. When the helper is done, it sends an answer
// with the number of the job. A helper has only one job at a time, and sends no request after the answer.

const (
	kindReady   = 'r' // to the parent, once: the helper can take jobs
	kindJob     = 'j' // to the helper
	kindAnswer  = 'a' // to the parent
	kindRequest = 'q' // to the parent
	kindReply   = 'p' // to the helper
)

const (
	headerSize = 1 + 8 + 8
	// smallFrame is the size in bytes up to which a frame is written with one call.
	smallFrame = 4 << 10
)

// frame is a received frame.
type frame struct {
	kind   byte
	number uint64
	body   []byte
}

// frameError says what is wrong with received data. Its message begins with "it sent", because callers put a text about the sender
// before the message.
type frameError string

func (e frameError) Error() string { return "it sent " + string(e) }

// writeFrame writes a frame whose body is all parts joined. It writes small parts together, so that a small frame
// wakes the reader only once.
func writeFrame(w io.Writer, kind byte, number uint64, parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	header := binary.BigEndian.AppendUint64([]byte{kind}, number)
	out := bufio.NewWriterSize(w, min(headerSize+size, smallFrame))
	_, _ = out.Write(binary.BigEndian.AppendUint64(header, uint64(size))) // Flush returns the first error
	for _, part := range parts {
		_, _ = out.Write(part)
	}
	return out.Flush()
}

// readFrame reads a frame. If its kind is not one of kinds, or its body has more than limit bytes, the error is a
// frameError.
func readFrame(r io.Reader, kinds string, limit int64) (frame, error) {
	var header [headerSize]byte
	// Invalid data may be shorter than a header, so the kind is checked before the rest is read.
	have, err := io.ReadAtLeast(r, header[:], 1)
	if err != nil {
		return frame{}, err
	}
	if strings.IndexByte(kinds, header[0]) < 0 {
		return frame{}, frameError(fmt.Sprintf("%q, which is not the start of an expected frame", header[:have]))
	}
	if _, err := io.ReadFull(r, header[have:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: header[0], number: binary.BigEndian.Uint64(header[1:])}
	n := binary.BigEndian.Uint64(header[9:])
	if n > uint64(limit) {
		return frame{}, frameError(fmt.Sprintf("a frame of %d bytes, over the limit of %d", n, limit))
	}
	f.body = make([]byte, n)
	if _, err := io.ReadFull(r, f.body); err != nil {
		return frame{}, err
	}
	return f, nil
}
