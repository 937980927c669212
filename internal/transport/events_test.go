package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"mcpx/internal/base/wire"
)

// readEvents returns each event as "name|id|data", or as "large" if it is over the limit.
func readEvents(t testing.TB, stream io.Reader, limit int64, most int) (events []string) {
	t.Helper()
	r := newEventReader(stream, limit)
	for range most {
		ev, err := r.next()
		var large *wire.TooLargeError
		switch {
		case errors.As(err, &large):
			events = append(events, "large")
		case err != nil:
			return events
		default:
			events = append(events, ev.name+"|"+ev.id+"|"+string(ev.data))
		}
	}
	t.Fatalf("more than %d events", most)
	return nil
}

func TestEventReader(t *testing.T) {
	long := strings.Repeat("x", 500)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"one", "data: a\n\n", []string{"||a"}},
		{"name and id", "event: message\nid: 7\ndata: a\n\n", []string{"message|7|a"}},
		{"no space", "data:a\nid:7\n\n", []string{"|7|a"}},
		{"one space only is taken off", "data:  a\n\n", []string{"|| a"}},
		{"several lines", "data: a\ndata: b\ndata\ndata: c\n\n", []string{"||a\nb\n\nc"}},
		{"CRLF", "event: m\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"m||a", "||b"}},
		{"CR", "event: m\rdata: a\rid: 7\r\rdata: b\r\r", []string{"m|7|a", "||b"}},
		{"all line ends mixed", "data: a\rdata: b\ndata: c\r\n\rdata: d\r\n\ndata: e\n\r\n", []string{"||a\nb\nc", "||d", "||e"}},
		{"CR at the end", "data: a\r", []string{"||a"}},
		{"comments and unknown fields", ": hello\n\nretry: 10\n\nfoo: bar\ndata: a\n:\n\n", []string{"||a"}},
		{"events without data", "event: ping\n\nid: 3\n\ndata: a\n\n", []string{"||a"}},
		{"empty data", "data:\n\ndata\n\n", []string{"||", "||"}},
		{"byte order mark", "\xef\xbb\xbfevent: endpoint\ndata: /x\n\n", []string{"endpoint||/x"}},
		{"byte order mark, data first", "\xef\xbb\xbfdata: /x\n\n", []string{"||/x"}},
		{"no last blank line", "data: a\n\ndata: b\n", []string{"||a", "||b"}},
		{"no last newline", "data: a\n\ndata: b", []string{"||a", "||b"}},
		{"many blank lines", "\n\n\ndata: a\n\n\n\n", []string{"||a"}},
		{"an id with a null is ignored", "id: a\x00b\ndata: a\n\n", []string{"||a"}},
		{"over the limit", "data: a\n\ndata: " + long + "\n\ndata: b\n\n", []string{"||a", "large", "||b"}},
		{"over the limit in pieces", "data: a\n\n" + strings.Repeat("data: "+long[:60]+"\n", 5) + "\ndata: b\n\n", []string{"||a", "large", "||b"}},
		{"over the limit at the end", "data: " + long, []string{"large"}},
		{"over the limit in many lines", "data: a\n\n" + strings.Repeat("data: "+long[:90]+"\n", 50) + "\ndata: b\n\n", []string{"||a", "large", "||b"}},
		{"over the limit in no data", ": " + long + "\nevent: m\nfoo: " + long + "\ndata: a\n\n", []string{"m||a"}},
		{"empty", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, stream := range map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				if got := readEvents(t, stream, 200, 100); !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %q, want %q", name, got, tt.want)
				}
			}
		})
	}
}

// TestEventNeedsNoFurtherByte: the reader returns an event as soon as its last byte has arrived, and does not wait
// for a line feed after a carriage return.
func TestEventNeedsNoFurtherByte(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		for _, cut := range []string{"", "\n"} {
			if cut != "" && end != "\r\n" {
				continue
			}
			stream, server := io.Pipe()
			got := make(chan string)
			go func() { // the goroutine ends with the stream
				defer close(got)
				r := newEventReader(stream, 100)
				for {
					ev, err := r.next()
					if err != nil {
						return
					}
					got <- string(ev.data)
				}
			}()
			// The last line feed of an event is cut off, and sent at the beginning of the next event.
			late := ""
			for _, want := range []string{"a", "b", "c"} {
				whole := late + "data: " + want + end + end
				late = cut
				if _, err := io.WriteString(server, strings.TrimSuffix(whole, cut)); err != nil {
					t.Fatal(err)
				}
				select {
				case data := <-got:
					if data != want {
						t.Errorf("%q: got %q, want %q", end, data, want)
					}
				case <-time.After(patience):
					t.Fatalf("%q, %q comes later: the event did not", end, cut)
				}
			}
			server.Close()
			if data, open := <-got; open {
				t.Errorf("%q: another event: %q", end, data)
			}
		}
	}
}

// TestEventOverLimitIsNotCopied: of an event whose data is over the limit, only the edges are kept, so that its further lines
// are not copied again and again.
func TestEventOverLimitIsNotCopied(t *testing.T) {
	const limit, lines = 256 << 10, 4000
	line := "data: " + strings.Repeat("x", 1000) + "\n"
	first := "data: {\"id\":5,\"x\":\"" // the next line fills the event up to the limit
	first += strings.Repeat("x", limit-len(first)+len("data: ")) + "\n"
	in := first + strings.Repeat(line, lines) + "data: \"end\":6}\n\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := newEventReader(strings.NewReader(in), limit).next()
	runtime.ReadMemStats(&after)
	var large *wire.TooLargeError
	if !errors.As(err, &large) {
		t.Fatalf("got %v", err)
	}
	if !bytes.HasPrefix(large.Head, []byte(`{"id":5,`)) || !bytes.HasSuffix(large.Tail, []byte(`"end":6}`)) || len(large.Head) > eventEdge || len(large.Tail) > eventEdge {
		t.Errorf("edges of %d and %d bytes: %.20q, %q", len(large.Head), len(large.Tail), large.Head, ending(large.Tail)[max(0, len(large.Tail)-20):])
	}
	// Each line is read into a slice of its own.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4*uint64(len(in)) {
		t.Errorf("%d bytes in, %d allocated", len(in), allocated)
	}
}

// TestIDAtEdge: if an answer is over the limit, its id is found at its beginning or end, so that the right call
// fails. Ids deeper inside, or in messages that are not answers, are ignored.
func TestIDAtEdge(t *testing.T) {
	fill := strings.Repeat("x", 300<<10)
	tests := []struct {
		name, message string
		id            int64
		ours, ok      bool
	}{
		{"before", `{"jsonrpc":"2.0","id":5,"result":{"content":[{"id":7,"text":"` + fill + `"}]}}`, 5, true, true},
		{"before, as a string", `{"id":"5","result":"` + fill + `"}`, 5, true, true},
		{"behind", `{"result":{"id":7,"text":"` + fill + `","id":8},"id":5}`, 5, true, true},
		{"behind, not last", `{"result":"` + fill + `","id":5,"jsonrpc":"2.0"}`, 5, true, true},
		{"only deeper down", `{"result":{"text":"` + fill + `","id":7}}`, 0, true, false},
		{"only in a text", `{"result":"` + fill + `\"id\":7}`, 0, true, false},
		{"nowhere", `{"result":"` + fill + `"}`, 0, true, false},
		{"a notification", `{"method":"n","params":"` + fill + `"}`, 0, false, false},
		{"a request of the server", `{"id":5,"method":"n","params":"` + fill + `"}`, 5, false, false},
	}
	for _, tt := range tests {
		for framing, read := range map[string]func() error{
			"lines": func() error {
				_, err := wire.NewReader(strings.NewReader(tt.message+"\n"), 100<<10, nil).Read()
				return err
			},
			"headers": func() error {
				_, err := wire.NewReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(tt.message), tt.message)), 100<<10, nil).Read()
				return err
			},
			"events": func() error {
				_, err := newEventReader(strings.NewReader("data: "+tt.message+"\n\n"), 100<<10).next()
				return err
			},
		} {
			var large *wire.TooLargeError
			if err := read(); !errors.As(err, &large) {
				t.Fatalf("%s, %s: got %v", tt.name, framing, err)
			}
			raw, asks := large.ID()
			id, ok := wire.IntID(raw)
			if ok = ok && !asks; ok != tt.ok || asks == tt.ours || (ok && id != tt.id) {
				t.Errorf("%s, %s: got %d, %t, %t", tt.name, framing, id, !asks, ok)
			}
		}
	}
}

// TestPromisedBody: a large Content-Length costs little memory before the bytes of the body arrive.
func TestPromisedBody(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := readLimited(strings.NewReader("short"), 64<<20, 64<<20)
	runtime.ReadMemStats(&after)
	if string(got) != "short" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4*maxReserved {
		t.Errorf("%d bytes allocated", allocated)
	}
	if got, err := readLimited(endless('x'), 3<<20, 5); len(got) != 0 || err == nil {
		t.Errorf("over the limit: %d bytes, %v", len(got), err)
	}
}

// endless is a reader that returns the same byte without end.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// FuzzEventReader: no stream makes the reader panic, hang, or return more than the limit. The events do not depend
// on how the bytes are split when they arrive.
func FuzzEventReader(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "\xef\xbb\xbfevent: x\r\nid: 1\r\ndata: a\r\n\r\n", ":\n\ndata\ndata:\n", "data: " + strings.Repeat("y", 100) + "\n\ndata: z\n\n",
		"data: a\rdata: b\r\r\ndata: c\r\r", "data: {\n" + strings.Repeat("data: "+strings.Repeat("y", 30)+"\r", 5) + "\rdata: z\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		whole := readEvents(t, bytes.NewReader(in), limit, len(in)+2)
		pieces := readEvents(t, iotest.OneByteReader(bytes.NewReader(in)), limit, len(in)+2)
		if !slices.Equal(whole, pieces) {
			t.Fatalf("got %q at once, %q byte by byte", whole, pieces)
		}
		for _, ev := range whole {
			if data := ev[strings.LastIndexByte(ev, '|')+1:]; len(data) > 2*limit {
				t.Fatalf("an event of %d bytes", len(data))
			}
		}
	})
}

// TestEventReaderState: the reader remembers what is needed to resume a stream: the id and retry also of events
// without data, but not of an unfinished event.
func TestEventReaderState(t *testing.T) {
	tests := []struct {
		in, id string
		retry  time.Duration
	}{
		{"data: a\n\n", "", -1},
		{"id: 7\nretry: 250\ndata:\n\n", "7", 250 * time.Millisecond},
		{"id: 7\n\n", "7", -1},
		{"id: 7\n\nid: 8\ndata: a", "7", -1},
		{"id: 7\n\nid\n\n", "", -1},
		{"id: 7\n\ndata: a\n\n", "7", -1},
		{"id: a\x00b\nretry: soon\n\nretry: -1\n\n", "", -1},
		{"retry: 99999999999999999999\n\n", "", -1},
	}
	for _, tt := range tests {
		r := newEventReader(strings.NewReader(tt.in), 1000)
		for {
			if _, err := r.next(); err != nil {
				break
			}
		}
		if r.lastID != tt.id || r.retry != tt.retry {
			t.Errorf("%q: got %q, %v, want %q, %v", tt.in, r.lastID, r.retry, tt.id, tt.retry)
		}
	}
}
