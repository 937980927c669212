package helper

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Both directions carry frames: a kind (1 byte), a number (8 bytes), the size of the body
// (8 bytes), both big endian, and the body. The parent sends a job; the helper sends any
// number of requests, each with a number of its own, and the parent a reply with the number
// of its request; the helper sends an answer with the number of the job. One job is under
// way at a time, and no request follows the answer.

// The kinds of frames.
const (
	kindReady   = 'r' // to the parent, once: the helper takes jobs
	kindJob     = 'j' // to the helper
	kindAnswer  = 'a' // to the parent
	kindRequest = 'q' // to the parent
	kindReply   = 'p' // to the helper
)

const (
	headerSize = 1 + 8 + 8
	// smallFrame is the size of a frame that is written in one piece.
	smallFrame = 4 << 10
)

// frame is a frame that was read.
type frame struct {
	kind   byte
	number uint64
	body   []byte
}

// frameError says what is wrong with what the other side sent, after "it sent".
type frameError string

func (e frameError) Error() string { return "it sent " + string(e) }

// writeFrame writes a frame whose body is the parts joined. It writes small parts together:
// a small frame is then one wake of the reader.
func writeFrame(w io.Writer, kind byte, number uint64, parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	buf := make([]byte, 0, min(headerSize+size, smallFrame))
	buf = append(buf, kind)
	buf = binary.BigEndian.AppendUint64(buf, number)
	buf = binary.BigEndian.AppendUint64(buf, uint64(size))
	for _, part := range parts {
		if len(buf)+len(part) <= cap(buf) {
			buf = append(buf, part...)
			continue
		}
		if len(buf) > 0 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	if len(buf) == 0 {
		return nil
	}
	_, err := w.Write(buf)
	return err
}

// readFrame reads a frame of one of the kinds whose body has at most limit bytes. What is
// none is a frameError.
func readFrame(r io.Reader, kinds string, limit int64) (frame, error) {
	var header [headerSize]byte
	// Garbage may be shorter than a header, so the first byte is judged alone.
	have, err := io.ReadAtLeast(r, header[:], 1)
	if err != nil {
		return frame{}, err
	}
	if strings.IndexByte(kinds, header[0]) < 0 {
		return frame{}, frameError(fmt.Sprintf("%q, which begins no frame that is due", header[:have]))
	}
	if _, err := io.ReadFull(r, header[have:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: header[0], number: binary.BigEndian.Uint64(header[1:])}
	n := binary.BigEndian.Uint64(header[9:])
	if n > uint64(limit) {
		return frame{}, frameError(fmt.Sprintf("a frame of %d bytes, and may send %d", n, limit))
	}
	f.body = make([]byte, n)
	if _, err := io.ReadFull(r, f.body); err != nil {
		return frame{}, err
	}
	return f, nil
}
