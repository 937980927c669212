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
	// id is valid where hasID is set; an empty one takes back the last.
	id    string
	hasID bool
	// large is set, and data is not, where the data was over the limit.
	large *wire.TooLargeError
}

// eventEdge is how much is kept of both ends of an event over the limit.
const eventEdge = 4 << 10

// eventReader reads server-sent events. An event over the limit is skipped and
// reported as a *wire.TooLargeError; reading goes on behind it.
type eventReader struct {
	r       *bufio.Reader
	limit   int64
	started bool
	afterCR bool // a line feed that comes next belongs to the last line's end

	// lastID is the id of the last event that had one, retry the time that the
	// server asks for before the stream is opened again, -1 if it named none.
	lastID string
	retry  time.Duration
}

func newEventReader(r io.Reader, limit int64) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), limit: limit, retry: -1}
}

// next returns the next event that has data. At the end of the stream an
// unfinished event is returned too, as some servers leave out the last empty line.
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

// field takes one line; tail is the end of one that is over the limit.
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

// add takes one line of data. Of data over the limit only the edges are kept,
// and each further line costs no more than itself.
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

// ending is the end of text that is kept where text is over the limit.
func ending(text []byte) []byte { return text[max(0, len(text)-eventEdge):] }

// line reads one line without its end. Of one over the limit, line is only its
// beginning and tail, which is nil else, its end.
func (e *eventReader) line() (line, tail []byte, err error) {
	for {
		part, ended, err := e.part()
		switch {
		case tail != nil:
			tail = append(tail, ending(part)...)
			tail = append(tail[:0], ending(tail)...)
		case int64(len(line)+len(part)) > e.limit+16: // the data, and the name of the field
			line = append(line, part...)
			kept := min(len(line), eventEdge+16)
			tail = bytes.Clone(ending(line[kept:]))
			line = bytes.Clone(line[:kept])
		default:
			line = append(line, part...)
		}
		_, _ = e.r.Discard(len(part)) // it is buffered
		if ended {
			_, _ = e.r.Discard(1)
		}
		if ended || err != nil {
			return line, tail, err
		}
	}
}

// part returns what has arrived of a line, at least a byte unless it is at its
// end, which is LF, CR LF or CR. It leaves that in the buffer. Behind a CR it
// waits for nothing: an event is complete before its LF comes, if one does.
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
