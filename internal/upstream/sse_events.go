package upstream

import (
	"bufio"
	"bytes"
	"io"

	"mcpx/internal/wire"
)

// event is one server-sent event (HTML standard, 9.2.6).
type event struct {
	name string
	data []byte
	id   string
}

// eventReader reads server-sent events. An event over the limit is skipped and
// reported as a *wire.TooLargeError; reading goes on behind it.
type eventReader struct {
	r       *bufio.Reader
	limit   int64
	started bool
}

func newEventReader(r io.Reader, limit int64) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next returns the next event that has data. At the end of the stream an
// unfinished event counts, as some servers leave out the last empty line.
func (e *eventReader) next() (event, error) {
	var ev event
	var large *wire.TooLargeError
	seen := false
	for {
		line, tooLong, err := e.line()
		if !e.started && len(line) > 0 {
			e.started = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if tooLong != nil {
			large, seen = tooLong, true
			if err == nil {
				continue
			}
		}
		if len(line) == 0 && (seen || err != nil) {
			switch {
			case large != nil:
				return event{}, large
			case ev.data != nil:
				return ev, nil
			case err != nil:
				return event{}, err
			}
			ev, seen = event{}, false
			continue
		}
		if len(line) > 0 {
			seen = true
			ev.field(line, e.limit, &large)
		}
		if err != nil && large == nil && ev.data == nil {
			return event{}, err
		}
	}
}

func (ev *event) field(line []byte, limit int64, large **wire.TooLargeError) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		ev.name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			ev.id = string(value)
		}
	case "data":
		if int64(len(ev.data)+len(value)) > limit {
			whole := append(ev.data, value...)
			*large = &wire.TooLargeError{Limit: limit, Head: whole[:min(4<<10, len(whole))], Tail: whole[max(0, len(whole)-4<<10):]}
			return
		}
		if ev.data == nil {
			ev.data = append(make([]byte, 0, len(value)), value...)
			return
		}
		ev.data = append(append(ev.data, '\n'), value...)
	}
}

// line reads one line without its end (LF, CR LF; a lone CR is not used by any
// server seen). What is over the limit is dropped but for its edges.
func (e *eventReader) line() ([]byte, *wire.TooLargeError, error) {
	const edge = 4 << 10
	var line []byte
	var large *wire.TooLargeError
	for {
		part, err := e.r.ReadSlice('\n')
		switch {
		case large != nil:
			large.Tail = append(large.Tail, part...)
			large.Tail = large.Tail[max(0, len(large.Tail)-edge):]
		case int64(len(line)+len(part)) > e.limit+16:
			line = append(line, part...)
			head := bytes.TrimLeft(bytes.TrimPrefix(line, []byte("data:")), " ")
			large = &wire.TooLargeError{Limit: e.limit, Head: bytes.Clone(head[:min(edge, len(head))])}
			large.Tail = bytes.Clone(line[max(0, len(line)-edge):])
			line = nil
		default:
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), large, err
	}
}
