package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

const one = `{"jsonrpc":"2.0","id":1,"result":{}}`

func framed(message string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(message), message)
}

// readAll reads messages until the end of the stream. In its result, "large" replaces a message over the limit.
func readAll(t *testing.T, r *Reader) (messages []string) {
	t.Helper()
	for range 1000 {
		message, err := r.Read()
		var large *TooLargeError
		switch {
		case err == nil:
			messages = append(messages, string(message))
		case errors.As(err, &large):
			messages = append(messages, "large")
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return messages
		default:
			t.Fatalf("Read: %v", err)
		}
	}
	t.Fatal("the stream does not end")
	return nil
}

func TestReader(t *testing.T) {
	long := `{"id":1,"result":"` + strings.Repeat("x", 2000) + `"}`
	tests := []struct {
		name, in    string
		want, noise []string
	}{
		{"lines", one + "\n" + one + "\r\n", []string{one, one}, nil},
		{"blank lines and spaces", "\n \r\n\t" + one + "  \n\n", []string{one}, nil},
		{"last line without newline", one + "\n" + one, []string{one, one}, nil},
		{"byte order mark", "\xef\xbb\xbf" + one + "\n\xef\xbb\xbf" + one + "\n", []string{one, one}, nil},
		{"noise", "starting...\nnull\n\"text\"\n42\n" + one + "\ndone\n", []string{one}, []string{"starting...", "null", `"text"`, "42", "done"}},
		{"looks like a message", "[INFO] up\n{broken\n" + one + "\n", []string{"[INFO] up", "{broken", one}, nil},
		{"headers", framed(one) + framed(one), []string{one, one}, nil},
		{"header names in any case, more of them", "content-type: application/json\r\nCONTENT-LENGTH:  36 \r\nX-Other: 1\r\n\r\n" + one, []string{one}, nil},
		{"headers with bare line feeds", "Content-Length: 36\n\n" + one, []string{one}, nil},
		{"both framings in turn", one + "\n" + framed(one) + "\n" + one + "\n", []string{one, one, one}, nil},
		{"noise before a header", "hello\n" + framed(one), []string{one}, []string{"hello"}},
		{"byte order mark before a header", "\xef\xbb\xbf" + framed(one), []string{one}, nil},
		{"byte order mark in a body", framed("\xef\xbb\xbf" + one), []string{one}, nil},
		{"newlines in a body", framed("{\n\"id\":1}\n"), []string{"{\n\"id\":1}"}, nil},
		{"a noise line like a header", "Content-Type: text/html\n" + one + "\n" + one + "\n", []string{one, one}, []string{"Content-Type: text/html"}},
		{"a noise line like a length", "Content-Length: 5\n" + one + "\n", []string{one}, []string{"Content-Length: 5"}},
		{"headers without a length", "Content-Type: x\r\n\r\n" + one + "\n", []string{one}, []string{"Content-Type: x"}},
		{"no number as length", "Content-Length: many\r\n\r\n" + one + "\n", []string{one}, []string{"Content-Length: many"}},
		{"negative length", "Content-Length: -1\r\n\r\n" + one + "\n", []string{one}, []string{"Content-Length: -1"}},
		{"body cut off", "Content-Length: 100\r\n\r\n" + one, nil, nil},
		{"over the limit", long + "\n" + one + "\n", []string{"large", one}, nil},
		{"over the limit, in a body", framed(long) + framed(one), []string{"large", one}, nil},
		{"over the limit, without end", one + "\n" + long, []string{one}, nil},
		{"noise over the limit", strings.Repeat("n", 5000) + "\n" + one + "\n", []string{"large", one}, nil},
		{"empty", "", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, stream := range map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				var noise []string
				r := NewReader(stream, 1000, func(line []byte) { noise = append(noise, string(line)) })
				if got := readAll(t, r); !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %q, want %q", name, got, tt.want)
				}
				if !slices.Equal(noise, tt.noise) {
					t.Errorf("%s: got noise %q, want %q", name, noise, tt.noise)
				}
			}
		})
	}
}

// TestReaderLimit: a message of exactly the limit is read, a message one byte longer is refused, in both framings. The
// limits are below, at and above the sizes of the buffers.
func TestReaderLimit(t *testing.T) {
	for _, limit := range []int{100, 9000, 64 << 10, 64<<10 + 1, 200 << 10} {
		fits := `{"a":"` + strings.Repeat("x", limit-8) + `"}`
		over := `{"a":"` + strings.Repeat("y", limit-7) + `"}`
		for name, in := range map[string]string{
			"lines":   fits + "\r\n" + over + "\r\n" + fits + "\n",
			"headers": framed(fits) + framed(over) + framed(fits),
		} {
			r := NewReader(strings.NewReader(in), int64(limit), nil)
			if got, want := readAll(t, r), []string{fits, "large", fits}; !slices.Equal(got, want) {
				t.Errorf("limit %d, %s: got %d messages, the second %.20q", limit, name, len(got), got[min(1, len(got)-1)])
			}
		}
	}
}

// TestTooLargeKeepsEdges: a TooLargeError has the first and the last bytes of the message, which contain the id.
func TestTooLargeKeepsEdges(t *testing.T) {
	body := `{"id":17,"result":"` + strings.Repeat("x", 300<<10) + `","end":18}`
	for name, in := range map[string]string{"lines": body + "\n", "headers": framed(body)} {
		_, err := NewReader(strings.NewReader(in), 100<<10, nil).Read()
		var large *TooLargeError
		if !errors.As(err, &large) {
			t.Fatalf("%s: got %v, want a TooLargeError", name, err)
		}
		if large.Limit != 100<<10 || !bytes.HasPrefix(large.Head, []byte(`{"id":17,`)) || !bytes.HasSuffix(bytes.TrimSpace(large.Tail), []byte(`"end":18}`)) {
			t.Errorf("%s: got limit %d, head %.20q, tail %q", name, large.Limit, large.Head, large.Tail[max(0, len(large.Tail)-20):])
		}
		if len(large.Head) > edge || len(large.Tail) > edge {
			t.Errorf("%s: edges of %d and %d bytes", name, len(large.Head), len(large.Tail))
		}
	}
}

// TestSkippedLineTakesNoMemory: a line far over the limit is skipped without keeping it in memory.
func TestSkippedLineTakesNoMemory(t *testing.T) {
	huge := io.MultiReader(strings.NewReader(`{"id":1,"x":"`), io.LimitReader(endless{}, 200<<20), strings.NewReader("\"}\n"+one+"\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := readAll(t, NewReader(huge, 1<<20, nil)); !slices.Equal(got, []string{"large", one}) {
		t.Errorf("got %d messages", len(got))
	}
	runtime.ReadMemStats(&after)
	// Up to the limit of 1 MB the line is kept, in a buffer that grows by doubling. The other 199 MB must not be
	// allocated.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 40<<20 {
		t.Errorf("%d bytes allocated", allocated)
	}
}

// endless is a reader that never returns an error.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReaderFraming(t *testing.T) {
	r := NewReader(strings.NewReader(one+"\n"+framed(one)+"noise\n"+one+"\n"), 1000, nil)
	for _, want := range []Framing{Newline, ContentLength, Newline} {
		if _, err := r.Read(); err != nil || r.Framing() != want {
			t.Errorf("got framing %d, %v, want %d", r.Framing(), err, want)
		}
	}
}

// TestReaderPinned: after Pin, messages in the other framing are noise, and a Content-Length does not make the reader
// skip what follows.
func TestReaderPinned(t *testing.T) {
	long := strings.Repeat("x", maxHeaders+100)
	tests := []struct {
		name, in    string
		framing     Framing
		want, noise []string
	}{
		{"lines", one + "\n" + one + "\r\n", Newline, []string{one, one}, nil},
		{"lines, after a length and an empty line", "Content-Length: 5\n\n" + one + "\n", Newline, []string{one}, []string{"Content-Length: 5"}},
		{"lines, after a huge length", "content-length: 900\r\n\r\n" + one + "\n" + one + "\n", Newline, []string{one, one}, []string{"content-length: 900"}},
		{"lines, noise", "hello\n" + one + "\n", Newline, []string{one}, []string{"hello"}},
		{"headers", framed(one) + framed(one), ContentLength, []string{one, one}, nil},
		{"headers, after lines", one + "\n[1]\n" + framed(one), ContentLength, []string{one}, []string{one, "[1]"}},
		{"headers, noise", "hello\n" + framed(one), ContentLength, []string{one}, []string{"hello"}},
		{"headers, after a long line", "{" + long + "\n" + framed(one), ContentLength, []string{one}, []string{"{" + long[:edge-1]}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, stream := range map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				var noise []string
				r := NewReader(stream, 1000, func(line []byte) { noise = append(noise, string(line)) })
				r.Pin(tt.framing)
				if got := readAll(t, r); !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %q, want %q", name, got, tt.want)
				}
				if !slices.Equal(noise, tt.noise) {
					t.Errorf("%s: got noise %q, want %q", name, noise, tt.noise)
				}
				if r.Framing() != tt.framing {
					t.Errorf("%s: got framing %d, want %d", name, r.Framing(), tt.framing)
				}
			}
		})
	}
}

// TestBodyGrowsWithWhatArrives: a large Content-Length allocates no memory before the bytes of the body arrive. A body
// that arrives is read completely.
func TestBodyGrowsWithWhatArrives(t *testing.T) {
	const limit = 64 << 20
	allocated := func(in io.Reader) (message []byte, bytes uint64, err error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		message, err = NewReader(in, limit, nil).Read()
		runtime.ReadMemStats(&after)
		return message, after.TotalAlloc - before.TotalAlloc, err
	}
	header := fmt.Sprintf("Content-Length: %d\r\n\r\n", limit)
	for _, came := range []int{0, 10, firstBody, 100 << 10} {
		_, bytes, err := allocated(strings.NewReader(header + strings.Repeat("x", came)))
		if !errors.Is(err, io.ErrUnexpectedEOF) && (came > 0 || !errors.Is(err, io.EOF)) {
			t.Errorf("%d bytes and the end: got %v", came, err)
		}
		if bytes > 1<<20 {
			t.Errorf("%d bytes came, %d were allocated", came, bytes)
		}
	}
	for _, size := range []int{firstBody - 1, firstBody, firstBody + 1, 5<<20 + 3} {
		body := `{"a":"` + strings.Repeat("x", size-8) + `"}`
		in := framed(body) + framed(one)
		message, bytes, err := allocated(iotest.HalfReader(strings.NewReader(in)))
		if err != nil || string(message) != body {
			t.Errorf("a body of %d bytes: got %d bytes, %v", size, len(message), err)
		}
		if bytes > 4*uint64(size)+1<<20 {
			t.Errorf("a body of %d bytes: %d were allocated", size, bytes)
		}
	}
}

func TestReaderError(t *testing.T) {
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader(one+"\n"+one), iotest.ErrReader(broken)), 1000, nil)
	for range 2 {
		if message, err := r.Read(); err != nil || string(message) != one {
			t.Fatalf("got %q, %v", message, err)
		}
	}
	if _, err := r.Read(); !errors.Is(err, broken) {
		t.Errorf("got %v, want the stream's error", err)
	}
}

// TestReaderGivesMessagesAway: a later Read does not change a message that was returned before.
func TestReaderGivesMessagesAway(t *testing.T) {
	r := NewReader(strings.NewReader(one+"\n"+framed(strings.ToUpper(one))+one+"\n"), 1000, nil)
	var kept [][]byte
	for range 3 {
		message, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, message)
	}
	if string(kept[0]) != one || string(kept[1]) != strings.ToUpper(one) {
		t.Errorf("got %q", kept)
	}
}

func TestWriter(t *testing.T) {
	var out countingWriter
	w := NewWriter(&out, Newline)
	for _, framing := range []Framing{Newline, ContentLength} {
		w.SetFraming(framing)
		if err := w.Write([]byte(one)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), one+"\n"+framed(one); got != want || out.calls != 2 {
		t.Errorf("got %q in %d calls, want %q in 2", got, out.calls, want)
	}
}

type countingWriter struct {
	bytes.Buffer
	calls int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.calls++
	return w.Buffer.Write(p)
}

func TestWriterConcurrent(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, ContentLength)
	var writers sync.WaitGroup
	for i := range 50 {
		writers.Go(func() {
			if i%5 == 0 {
				w.SetFraming(Framing(i % 2))
			}
			if err := w.Write([]byte(one)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if got := readAll(t, NewReader(&out, 1000, nil)); len(got) != 50 {
		t.Errorf("got %d messages, want 50", len(got))
	}
}

// FuzzReader: no input makes the reader panic, hang or return a message over the limit. The messages are the same
// however the bytes are split.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{one + "\n", framed(one), "noise\n\xef\xbb\xbf" + one, "Content-Length: 3\n\n{}\n" + one,
		"Content-Length: 9999999999999999999\r\n\r\n", "Content-Length: 70000\r\n\r\n{", "[1]\r\n" + strings.Repeat("x", 100) + "\n" + one,
		"Content-Type: a\nContent-Length: 0\n\n" + one} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		read := func(stream io.Reader) (messages []string) {
			r := NewReader(stream, limit, nil)
			for range len(in) + 2 {
				message, err := r.Read()
				var large *TooLargeError
				switch {
				case errors.As(err, &large):
					messages = append(messages, "large "+string(large.Head)+string(large.Tail))
				case err != nil:
					return messages
				case len(message) > limit:
					t.Fatalf("a message of %d bytes: %q", len(message), message)
				default:
					messages = append(messages, string(message))
				}
			}
			t.Fatal("more messages than bytes")
			return nil
		}
		if whole, pieces := read(bytes.NewReader(in)), read(iotest.OneByteReader(bytes.NewReader(in))); !slices.Equal(whole, pieces) {
			t.Fatalf("got %q at once, %q byte by byte", whole, pieces)
		}
	})
}
