package mcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main()
	os.Unsetenv("MCPX_FAKE") // here the fakes have the race detector
	os.Exit(m.Run())
}

const patience = 2 * time.Minute

// lineClient is a minimal client for a stdio fake: it writes and reads lines. Its reading goroutine ends when the
// output ends.
type lineClient struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string
	done  chan struct{}
}

func newLineClient(t *testing.T, in io.WriteCloser, out io.Reader) *lineClient {
	c := &lineClient{t: t, in: in, lines: make(chan string, 4096), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer close(c.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				c.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// child starts the fake as a process. The returned buffer gets its stderr. The process is killed and reaped when the
// test ends, unless the test has already waited for it.
func child(t *testing.T, s Spec) (*lineClient, *exec.Cmd, *buffer) {
	t.Helper()
	cmd := s.Command(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &buffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := newLineClient(t, in, out)
	t.Cleanup(func() {
		in.Close()
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			out.Close()
			cmd.Wait()
		}
		<-c.done
	})
	return c, cmd, stderr
}

// buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  []byte
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b = append(b.b, p...)
	return len(p), nil
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.b)
}

func (c *lineClient) send(format string, a ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", a...); err != nil {
		c.t.Fatalf("sending: %v", err)
	}
}

// line returns the next line without its newline, or "" if the output has ended.
func (c *lineClient) line() string {
	c.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case line := <-c.lines:
		return strings.TrimRight(line, "\r\n")
	case <-timer.C:
		c.t.Fatal("no line came")
	}
	return ""
}

type reply struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	raw string
}

// next returns the next message. It skips lines that are not messages.
func (c *lineClient) next() reply {
	c.t.Helper()
	for {
		line := c.line()
		var r reply
		if line == "" {
			select {
			case <-c.done:
				c.t.Fatal("the output has ended")
			default:
				continue
			}
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, bom)), &r) == nil && (r.Method != "" || len(r.ID) > 0 || r.Error != nil) {
			r.raw = line
			return r
		}
	}
}

// answer returns the next response with this ID. It skips everything else.
func (c *lineClient) answer(id string) reply {
	c.t.Helper()
	for {
		if r := c.next(); string(r.ID) == id && r.Method == "" {
			return r
		}
	}
}

const initParams = `{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}`

// handshake does the legacy handshake. The request has the ID 0.
func (c *lineClient) handshake() reply {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`, initParams)
	r := c.answer("0")
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return r
}

func (c *lineClient) call(id int, tool, args string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

// textOf returns the text of the first content block.
func textOf(t *testing.T, r reply) string {
	t.Helper()
	var res struct{ Content []struct{ Text string } }
	if r.Error != nil {
		t.Fatalf("got the error %+v", *r.Error)
	}
	if err := json.Unmarshal(r.Result, &res); err != nil || len(res.Content) == 0 {
		t.Fatalf("no text in %.300s (%v)", r.Result, err)
	}
	return res.Content[0].Text
}
