package transport

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"

	"mcpx/internal/base/wire"
)

// event is one server-sent event (HTML standard, 9.2.6).
type event struct {
	name string
	data []byte
	// id is meaningful only if hasID is set. An empty id means that the stream has no last event ID any more.
	id    string
	hasID bool
	// large replaces data if the data was longer than the limit; otherwise it is nil.
	large *wire.TooLargeError
}

// Of an event that is over the limit, only the first eventEdge bytes and the last eventEdge bytes are kept.
const eventEdge = 4 << 10

// eventReader reads server-sent events. It skips an event that is longer than the limit and reports it as a
// *wire.TooLargeError; the next event can then be read.
type eventReader struct {
	r       *bufio.Reader
	limit   int64
	started bool
	afterCR bool // the last line ended with CR, so an LF that follows belongs to that line end

	// lastID is the id of the last event that had one. retry is the pause that the server requests before the
	// stream is opened again; -1 if the server has requested none.
	lastID string
	retry  time.Duration
}

func newEventReader(r io.Reader, limit int64) *eventReader {
	return (&eventReader{limit: limit, retry: -1}).resumed(r)
}

// resumed returns a reader of r. The stream r continues the stream that e has read.
func (e *eventReader) resumed(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), limit: e.limit, lastID: e.lastID, retry: e.retry}
}

// next returns the next event that has data. At the end of the stream it also returns an unfinished event, as some servers
// omit the last empty line.
func (e *eventReader) next() (event, error) {
	var ev event
	for {
		line, tail, err := e.line()
		if !e.started && len(line) > 0 {
			e.started = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		e.field(&ev, line, tail)
		if len(line) > 0 && err == nil {
			continue
		}
		if err == nil && ev.hasID {
			e.lastID = ev.id
		}
		switch {
		case ev.large != nil:
			return event{}, ev.large
		case ev.data != nil:
			return ev, nil
		case err != nil:
			return event{}, err
		}
		ev = event{}
	}
}

// field adds one line to ev. If the line is over the limit, line is only its beginning, and tail its end; otherwise tail is nil.
func (e *eventReader) field(ev *event, line, tail []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		ev.name = string(value)
	case "id":
		if len(line) <= eventEdge && bytes.IndexByte(value, 0) < 0 {
			ev.id, ev.hasID = string(value), true
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	case "data":
		ev.add(value, tail, e.limit)
	}
}

// add adds one line of data. If the line is over the limit, value is only its beginning, and tail its end; otherwise
// tail is nil. If all lines of data together are over the limit, only their beginning and their end are kept, so that
// further lines take no more memory.
func (ev *event) add(value, tail []byte, limit int64) {
	switch {
	case ev.large != nil:
	case tail == nil && int64(len(ev.data)+len(value)) <= limit:
		if ev.data == nil {
			ev.data = append(make([]byte, 0, len(value)), value...)
			return
		}
		ev.data = append(append(ev.data, '\n'), value...)
		return
	default:
		head := bytes.Clone(ev.data[:min(eventEdge, len(ev.data))])
		head = append(head, value[:min(eventEdge-len(head), len(value))]...)
		ev.large = &wire.TooLargeError{Limit: limit, Head: head, Tail: bytes.Clone(ending(ev.data))}
		ev.data = nil
	}
	ev.large.Tail = append(append(ev.large.Tail, ending(value)...), tail...)
	ev.large.Tail = append(ev.large.Tail[:0], ending(ev.large.Tail)...)
}

// ending returns the end of text: the last eventEdge bytes.
func ending(text []byte) []byte { return text[max(0, len(text)-eventEdge):] }

// line reads one line without its line end. If the line is over the limit, line is only its beginning, and tail
// its end; otherwise tail is nil.
func (e *eventReader) line() (line, tail []byte, err error) {
	for {
		part, ended, err := e.part()
		switch {
		case tail != nil:
			tail = append(tail, ending(part)...)
			tail = append(tail[:0], ending(tail)...)
		case int64(len(line)+len(part)) > e.limit+16: // 16 bytes more than the limit, for the name of the field
			line = append(line, part...)
			kept := min(len(line), eventEdge+16)
			tail = bytes.Clone(ending(line[kept:]))
			line = bytes.Clone(line[:kept])
		default:
			line = append(line, part...)
		}
		_, _ = e.r.Discard(len(part)) // cannot fail, as these bytes are in the buffer
		if ended {
			_, _ = e.r.Discard(1)
		}
		if ended || err != nil {
			return line, tail, err
		}
	}
}

// part returns the bytes of a line that have arrived, and whether the line has ended, by LF, CR LF or CR. It
// leaves those bytes in the buffer. It blocks until there is at least one byte, but never waits for the LF after a
// CR, so that an event is returned as soon as it is complete.
func (e *eventReader) part() (part []byte, ended bool, err error) {
	if _, err := e.r.Peek(1); err != nil {
		return nil, false, err
	}
	part, _ = e.r.Peek(e.r.Buffered())
	if e.afterCR {
		e.afterCR = false
		if part[0] == '\n' {
			_, _ = e.r.Discard(1)
			return e.part()
		}
	}
	if n := bytes.IndexByte(part, '\n'); n >= 0 {
		part, ended = part[:n], true
	}
	if n := bytes.IndexByte(part, '\r'); n >= 0 {
		part, ended = part[:n], true
		e.afterCR = true
	}
	return part, ended, nil
}
