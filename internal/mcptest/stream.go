package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// stream serves one client over two byte streams, as the stdio transport does.
type stream struct {
	srv *server
	ses *session
	in  *bufio.Reader
	out *frameWriter
}

func newStream(srv *server, in io.Reader, out io.Writer) *stream {
	w := &frameWriter{spec: srv.spec, out: out}
	st := &stream{srv: srv, in: bufio.NewReaderSize(in, 64<<10), out: w}
	st.ses = newSession("", w.write)
	return st
}

// run reads messages until the input ends or, with NeverReadStdin, until a tools/list. It reports whether the input
// has ended. The server handles requests in goroutines of its own.
func (st *stream) run() (eof bool) {
	for {
		raw, err := st.next()
		if len(raw) > 0 {
			if method := st.dispatch(raw); method == "tools/list" && st.srv.spec.NeverReadStdin {
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

// dispatch handles one message and returns the message's method.
func (st *stream) dispatch(raw []byte) string {
	env, ok := parseEnvelope(raw)
	if !ok {
		st.srv.garbage(st.ses, raw)
		return ""
	}
	st.srv.record(st.ses, raw, env)
	if !env.isRequest() {
		st.srv.take(st.ses, env)
		return env.Method
	}
	c := st.srv.begin(st.ses, env)
	c.note = st.out.write
	c.reply = func(ms ...message) error {
		for _, m := range ms {
			if err := st.out.write(m); err != nil {
				return err
			}
		}
		return nil
	}
	st.srv.wg.Go(func() { st.srv.serve(c) })
	return env.Method
}

// next reads one message in the framing of the spec. If it returns an error, it also returns what it has read before.
func (st *stream) next() ([]byte, error) {
	spec := st.srv.spec
	for {
		line, err := st.in.ReadBytes('\n')
		line = bytes.TrimSpace(line)
		length, framed := contentLength(line)
		switch {
		case framed && spec.ContentLength:
			return st.body(length)
		case spec.ContentLength && !spec.AnyFraming:
			if len(line) > 0 {
				st.srv.garbage(st.ses, line)
			}
			if err != nil {
				return nil, err
			}
		case len(line) > 0 || err != nil:
			return line, err
		}
	}
}

// body reads the remaining header lines, and then the message of this length.
func (st *stream) body(length int) ([]byte, error) {
	for {
		line, err := st.in.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("reading a header: %w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(st.in, raw); err != nil {
		return nil, fmt.Errorf("reading a message of %d bytes: %w", length, err)
	}
	return raw, nil
}

func contentLength(line []byte) (int, bool) {
	name, value, ok := strings.Cut(string(line[:min(len(line), 64)]), ":")
	if !ok || !strings.EqualFold(name, "Content-Length") {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(value))
	return n, err == nil && n >= 0
}

// frameWriter writes complete messages, one after the other, and applies the faults of the spec that concern bytes.
type frameWriter struct {
	spec Spec
	mu   sync.Mutex
	out  io.Writer
	n    int // number of messages written
}

// noise has lines that are written between messages, in turn. They are not messages, so a client must skip them.
var noise = []string{
	"Server starting up... [ok]\n",
	"\n",
	"2026-01-02T03:04:05Z INFO listening on stdio\n",
	"   \r\n",
	"{\"level\":\"info\",\"msg\":\"not a message\"}\n",
	"{\"jsonrpc\":\"2.0\", broken\n",
	"\x1b[32m✔\x1b[0m done\n",
	"[1,2,3]\n",
	"null\n",
	"\"text\"\n",
}

const bom = "\xef\xbb\xbf"

func (w *frameWriter) write(m message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var before, after string
	if w.spec.Noise {
		before = noise[w.n%len(noise)]
		if w.n == 0 {
			before += noise[len(noise)/2]
		}
	}
	w.n++
	if w.spec.BOM {
		before += bom
	}
	if w.spec.ContentLength {
		if m.size() < 0 {
			return errors.New("an endless message has no Content-Length")
		}
		before += "Content-Length: " + strconv.FormatInt(m.size(), 10) + "\r\n\r\n"
	} else if !m.cut {
		after = "\n"
		if w.spec.CRLF {
			after = "\r\n"
		}
	}
	out := w.out
	if w.spec.OneByteWrites {
		out = oneByte{out}
	}
	if _, err := m.in(before, after).WriteTo(out); err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	return nil
}

// oneByte writes each byte separately, so that a reader meets every place where a message can be split.
type oneByte struct{ w io.Writer }

func (o oneByte) Write(p []byte) (int, error) {
	for i := range p {
		if n, err := o.w.Write(p[i : i+1]); err != nil {
			return i + n, err
		}
	}
	return len(p), nil
}

// Serve returns a function that serves the fake in this process, over in and out, until in ends or ctx is cancelled.
// Each call of the function starts a new fake. It also calls began with a function that returns the log of this fake;
// began may be nil.
func (s Spec) Serve(t testing.TB, began func(log func() Log)) func(ctx context.Context, in io.Reader, out io.Writer) error {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		stdin, stdout, log := s.Pipe(t)
		// This is needed because a fake that imitates an installer does not notice the end of its input.
		defer context.AfterFunc(ctx, func() { stdout.Close() })()
		if began != nil {
			began(log)
		}
		go func() { // ends when in ends
			_, _ = io.Copy(stdin, in)
			stdin.Close()
		}()
		_, err := io.Copy(out, stdout)
		return err
	}
}

// Pipe serves the fake in this process over two pipes: the fake reads from stdin and writes to stdout. It works in a synctest
// bubble. Where a process would exit, the fake closes both pipes. Faults of processes that concern signals, stderr or other
// processes have no effect. log returns what has happened so far. The fake ends with the test at the latest.
func (s Spec) Pipe(t testing.TB) (stdin io.WriteCloser, stdout io.ReadCloser, log func() Log) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	srv, err := newServer(s, true)
	if err != nil {
		t.Fatal(err)
	}
	srv.exit = func(int) {
		srv.cancel()
		inR.CloseWithError(io.ErrClosedPipe)
		outW.Close()
	}
	srv.rec.add(Entry{Event: EventStart})
	st := newStream(srv, inR, outW)
	srv.wg.Go(func() {
		if s.ExitAtOnce {
			srv.leave(s.ExitCode)
		}
		s.install(srv.ctx, outW)
		if st.run() {
			srv.rec.add(Entry{Event: EventEOF})
		} else {
			<-srv.ctx.Done()
		}
		if s.IgnoreEOF {
			<-srv.ctx.Done()
		}
		srv.exit(0)
	})
	t.Cleanup(func() {
		srv.exit(0)
		outR.Close()
		srv.stop()
	})
	return inW, outR, srv.rec.log
}
