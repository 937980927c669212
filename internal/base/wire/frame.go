package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Framing is how the messages on a stream are separated.
type Framing int32

// These are the framings of MCP over stdio.
const (
	// Newline is one message per line, as in the MCP specification.
	Newline Framing = iota
	// ContentLength is the framing of the Language Server Protocol: header lines, an empty line and the body. Some
	// MCP clients and servers use it.
	ContentLength
)

// TooLargeError is the error for a message over the limit. The next Read continues after that message.
type TooLargeError struct {
	Limit int64
	// Head and Tail are the first and last bytes of the message, at most 4 KiB each. They usually contain the id.
	Head, Tail []byte
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message over the limit of %d bytes", e.Limit)
}

// ID returns the raw id of the message, or nil if the id is in neither Head nor Tail. It ignores ids in nested objects: in Head
// it reads only members of the message itself, and in Tail it expects no nested value after the id. request reports whether
// Head, or Tail after the id, contains a method.
func (e *TooLargeError) ID() (id json.RawMessage, request bool) {
	read := func(text []byte) error {
		return Fields(text, func(key string, value []byte) bool {
			switch key {
			case "id":
				id = value
			case "method":
				request = true
			}
			return true
		})
	}
	if _ = read(e.Head); id != nil {
		return id, request
	}
	at := bytes.LastIndex(e.Tail, []byte(`"id"`))
	if at < 0 {
		return nil, request
	}
	if read(append([]byte{'{'}, e.Tail[at:]...)) != nil {
		id = nil
	}
	return id, request
}

const (
	edge       = 4 << 10
	maxHeaders = 16 << 10
	// firstBody bounds, in bytes, the buffer that is allocated for a body before any of it has arrived.
	firstBody = 64 << 10
	bom       = "\xef\xbb\xbf"
)

// Reader reads messages from a stream. Each message may have either framing, unless Pin was called. Only one goroutine
// may use a Reader.
type Reader struct {
	r     *bufio.Reader
	limit int64
	// framing is the pinned framing, or the framing of the last message.
	framing atomic.Int32
	pinned  bool
	noise   func(line []byte)
}

// NewReader returns a reader of r. A message over limit bytes is a [TooLargeError]. noise, if not nil, is called with
// each line that is not part of a message; the slice is valid only during the call.
func NewReader(r io.Reader, limit int64, noise func(line []byte)) *Reader {
	if noise == nil {
		noise = func([]byte) {}
	}
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), limit: limit, noise: noise}
}

// Pin makes the reader accept only framing f; a message in the other framing is noise. Call Pin before the first Read.
func (r *Reader) Pin(f Framing) {
	r.pinned = true
	r.framing.Store(int32(f))
}

// reads reports whether the reader accepts messages in the framing f.
func (r *Reader) reads(f Framing) bool { return !r.pinned || r.Framing() == f }

// Framing returns the pinned framing, or the framing of the last message.
func (r *Reader) Framing() Framing { return Framing(r.framing.Load()) }

// Read returns the next message, which the caller owns. It skips blank lines, a byte order mark, and lines that are
// not a JSON object or array. The last line may lack a newline. At the end of the stream the error is io.EOF. After a
// *[TooLargeError] the caller may call Read again.
func (r *Reader) Read() ([]byte, error) {
	limit := r.limit
	if !r.reads(Newline) {
		limit = maxHeaders
	}
	for {
		line, err := r.line(limit)
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte(bom)))
		large, _ := err.(*TooLargeError)
		switch {
		case large != nil && r.reads(Newline):
			return nil, err
		case large != nil:
			r.noise(large.Head)
			continue
		case len(text) > 0 && (text[0] == '{' || text[0] == '[') && r.reads(Newline):
			r.framing.Store(int32(Newline))
			return text, nil
		case isHeader(text) && r.reads(ContentLength):
			length, ok := r.headers(text)
			if !ok {
				r.noise(text)
				continue
			}
			body, err := r.body(length)
			if err == nil {
				r.framing.Store(int32(ContentLength))
			}
			return body, err
		case len(text) > 0:
			r.noise(text)
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads a line including its newline. If the line is over the limit, it skips the line and returns an error.
func (r *Reader) line(limit int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if int64(len(line)+len(bytes.TrimRight(part, "\r\n"))) > limit {
			return nil, r.skipLine(append(line, part...), err)
		}
		if len(line) > 0 && cap(line)-len(line) < len(part) {
			line = slices.Grow(line, max(len(line), len(part))) // append alone would grow a large slice by only a quarter
		}
		line = append(line, part...)
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// skipLine reads the rest of a line over the limit and returns its TooLargeError, or the error of reading if the stream ends
// within the line. line is what was read so far, err the error of that read.
func (r *Reader) skipLine(line []byte, err error) error {
	large := &TooLargeError{Limit: r.limit, Head: bytes.Clone(line[:min(edge, len(line))])}
	tail := bytes.Clone(line[max(0, len(line)-edge):])
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = r.r.ReadSlice('\n')
		part = part[max(0, len(part)-edge):]
		keep := min(len(tail), edge-len(part))
		copy(tail, tail[len(tail)-keep:])
		tail = append(tail[:keep], part...)
	}
	if err != nil {
		return err
	}
	large.Tail = tail
	return large
}

// Skip skips a message over the limit. begin is the part of the message that was read already; stream contains the other bytes.
// Skip returns the [TooLargeError] of the message, or the error of reading stream.
func Skip(stream io.Reader, begin []byte, limit int64) error {
	large := &TooLargeError{Limit: limit, Head: bytes.Clone(begin[:min(edge, len(begin))])}
	tail, part := bytes.Clone(begin[max(0, len(begin)-edge):]), make([]byte, firstBody)
	for {
		n, err := stream.Read(part)
		large.Head = append(large.Head, part[:min(n, edge-len(large.Head))]...)
		tail = append(tail, part[:n]...)
		tail = append(tail[:0], tail[max(0, len(tail)-edge):]...)
		if err == io.EOF {
			large.Tail = tail
			return large
		}
		if err != nil {
			return err
		}
	}
}

func isHeader(line []byte) bool {
	name, _, ok := bytes.Cut(line, []byte(":"))
	return ok && (bytes.EqualFold(name, []byte("Content-Length")) || bytes.EqualFold(name, []byte("Content-Type")))
}

// headers reads the header lines after firstLine, up to the empty line, and returns the Content-Length. If a line after
// firstLine looks like a message instead, ok is false: firstLine was not a header, and the next Read returns that message.
func (r *Reader) headers(firstLine []byte) (length int64, ok bool) {
	length = -1
	line := firstLine
	for total := 0; total < maxHeaders; total += len(line) + 2 {
		name, value, _ := strings.Cut(string(line), ":")
		if strings.EqualFold(name, "Content-Length") {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err == nil && n >= 0 {
				length = n
			}
		}
		if start, err := r.r.Peek(1); err == nil && (start[0] == '{' || start[0] == '[') {
			return 0, false
		}
		next, err := r.line(maxHeaders)
		if err != nil {
			return 0, false
		}
		line = bytes.TrimSpace(next)
		if len(line) == 0 {
			return length, length >= 0
		}
	}
	return 0, false
}

func (r *Reader) body(length int64) ([]byte, error) {
	if length > r.limit {
		return nil, Skip(io.LimitReader(r.r, length), nil, r.limit)
	}
	body, err := r.grow(length)
	if err != nil {
		return nil, err
	}
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte(bom))), nil
}

// grow reads length bytes. It allocates memory as the bytes arrive, since a sender can claim any length.
func (r *Reader) grow(length int64) ([]byte, error) {
	body := make([]byte, 0, min(length, firstBody))
	for {
		n, err := io.ReadFull(r.r, body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) == length:
			return body, nil
		case err == io.EOF && len(body) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		larger := make([]byte, len(body), min(4*int64(cap(body)), length))
		copy(larger, body)
		body = larger
	}
}

// Writer writes whole messages to a stream. It is safe for concurrent use, but after an incomplete TryWrite the next call must
// be Write.
type Writer struct {
	mu      sync.Mutex
	w       io.Writer
	framing atomic.Int32
	frames  []byte   // reused buffer for small messages with their framing
	list    [][]byte // reused array behind parts
	parts   [][]byte // what must still be written, in order
}

func NewWriter(w io.Writer, framing Framing) *Writer {
	writer := &Writer{w: w}
	writer.framing.Store(int32(framing))
	return writer
}

func (w *Writer) SetFraming(f Framing) { w.framing.Store(int32(f)) }

// Write writes messages, which must not contain newlines. It calls the underlying writer once, unless a message is large or a
// TryWrite has left something to write.
func (w *Writer) Write(messages ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.flush(); err != nil {
		return err
	}
	w.frame(messages)
	return w.flush()
}

// TryWrite writes as much of the messages as the underlying writer accepts without blocking. The underlying writer needs a method
// TryWrite(p []byte) (n int); without that method nothing is written. The result is true if everything was written. Otherwise the
// next Write first writes the rest. Until then the messages must not be changed, and TryWrite must not be called again.
func (w *Writer) TryWrite(messages ...[]byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frame(messages)
	try, ok := w.w.(interface{ TryWrite(p []byte) int })
	for ok && len(w.parts) > 0 {
		n := try.TryWrite(w.parts[0])
		if n < len(w.parts[0]) {
			w.parts[0] = w.parts[0][n:]
			break
		}
		w.parts = w.parts[1:]
	}
	return len(w.parts) == 0
}

// Messages of at least largeMessage bytes are not copied into the buffer of frames. A buffer of more than keptFrames
// bytes is not kept for the next write.
const (
	largeMessage = 64 << 10
	keptFrames   = 128 << 10
)

// frame sets parts to the messages with their framing. All earlier parts must have been written.
func (w *Writer) frame(messages [][]byte) {
	headers := Framing(w.framing.Load()) == ContentLength
	frames, parts := w.frames[:0], w.list[:0]
	start := 0 // frames[start:] is not in parts yet
	for _, message := range messages {
		if headers {
			frames = append(strconv.AppendInt(append(frames, "Content-Length: "...), int64(len(message)), 10), "\r\n\r\n"...)
		}
		if len(message) < largeMessage {
			frames = append(frames, message...)
		} else {
			if start < len(frames) {
				parts = append(parts, frames[start:])
			}
			parts = append(parts, message)
			start = len(frames)
		}
		if !headers {
			frames = append(frames, '\n')
		}
	}
	if start < len(frames) {
		parts = append(parts, frames[start:])
	}
	w.parts, w.list, w.frames = parts, parts, nil
	if cap(frames) <= keptFrames {
		w.frames = frames
	}
}

func (w *Writer) flush() error {
	parts := w.parts
	w.parts = nil
	defer clear(parts)
	for _, part := range parts {
		if _, err := w.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
