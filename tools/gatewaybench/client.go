package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/wire"
)

// session is an MCP session with a gateway. Many callers may use it at the same time. It does not decode results, so that the
// bench uses little time compared with the gateway.
type session interface {
	// send sends a request and returns its raw result. A JSON-RPC error response is an *answerError.
	send(ctx context.Context, method string, params []byte) ([]byte, error)
	notify(method string) error
	close()
}

// answerError is a JSON-RPC error response of the gateway.
type answerError struct{ raw string }

func (e *answerError) Error() string { return "answered the error " + clip(e.raw, 300) }

func clip(text string, n int) string {
	if len(text) > n {
		return text[:n] + "…"
	}
	return text
}

// handshake opens the session and returns the result of initialize.
func handshake(ctx context.Context, s session) ([]byte, error) {
	result, err := s.send(ctx, "initialize", []byte(`{"protocolVersion":"`+protocolVersion+
		`","capabilities":{},"clientInfo":{"name":"gatewaybench","version":"1"}}`))
	if err != nil {
		return nil, err
	}
	return result, s.notify("notifications/initialized")
}

func requestLine(id int64, method string, params []byte) []byte {
	b := make([]byte, 0, len(params)+len(method)+64)
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id > 0 {
		b = append(b, `"id":`...)
		b = strconv.AppendInt(b, id, 10)
		b = append(b, ',')
	}
	b = append(b, `"method":"`...)
	b = append(b, method...)
	b = append(b, '"')
	if params != nil {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, "}\n"...)
}

// replyTo answers a request of the gateway. Except for ping it answers with an error, since the client has declared no
// capabilities.
func replyTo(m wire.Message) []byte {
	if m.Method == "ping" {
		return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}` + "\n")
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"not supported"}}` + "\n")
}

func outcome(m wire.Message) ([]byte, error) {
	if m.Error != nil {
		return nil, &answerError{string(m.Error)}
	}
	return m.Result, nil
}

var errGone = errors.New("the gateway has closed the connection")

// pipeSession is a session over the stdin and stdout of a process. The target owns the process and ends it.
type pipeSession struct {
	in      io.Writer
	write   sync.Mutex
	mu      sync.Mutex
	pending map[int64]chan wire.Message // guarded by mu
	next    atomic.Int64
	gone    chan struct{} // closed at the end of stdout
}

func newPipeSession(in io.Writer, out io.Reader) *pipeSession {
	s := &pipeSession{in: in, pending: map[int64]chan wire.Message{}, gone: make(chan struct{})}
	go s.read(out) // ends with the process
	return s
}

func (s *pipeSession) read(out io.Reader) {
	defer close(s.gone)
	r := bufio.NewReaderSize(out, 256<<10)
	for {
		line, err := r.ReadBytes('\n')
		if m, bad := wire.Parse(line); bad == nil {
			s.received(m)
		}
		if err != nil {
			return
		}
	}
}

func (s *pipeSession) received(m wire.Message) {
	if m.Method != "" {
		if m.ID != nil {
			go s.writeLine(replyTo(m)) // reading must not wait for writing
		}
		return
	}
	id, ok := wire.IntID(m.ID)
	if !ok {
		return
	}
	s.mu.Lock()
	waiting := s.pending[id]
	delete(s.pending, id)
	s.mu.Unlock()
	if waiting != nil {
		waiting <- m
	}
}

func (s *pipeSession) writeLine(line []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	_, err := s.in.Write(line)
	return err
}

func (s *pipeSession) send(ctx context.Context, method string, params []byte) ([]byte, error) {
	id := s.next.Add(1)
	waiting := make(chan wire.Message, 1)
	s.mu.Lock()
	s.pending[id] = waiting
	s.mu.Unlock()
	if err := s.writeLine(requestLine(id, method, params)); err != nil {
		return nil, fmt.Errorf("%w: %v", errGone, err)
	}
	select {
	case m := <-waiting:
		return outcome(m)
	case <-s.gone:
		return nil, errGone
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.pending, id)
		s.mu.Unlock()
		return nil, ctx.Err()
	}
}

func (s *pipeSession) notify(method string) error { return s.writeLine(requestLine(0, method, nil)) }

func (s *pipeSession) close() {}

// httpSession is a session over streamable HTTP. Each open request has a connection of its own, which later requests use again.
// Requests are written by hand, since the goroutines of net/http's client cost more than many of the gateways.
type httpSession struct {
	host, path string
	id         atomic.Value // a string: the value of Mcp-Session-Id, "" before the handshake
	next       atomic.Int64
	mu         sync.Mutex
	idle       []*httpConn // guarded by mu
}

type httpConn struct {
	net.Conn
	r *bufio.Reader
}

func newHTTPSession(address string) (*httpSession, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	s := &httpSession{host: u.Host, path: u.RequestURI()}
	s.id.Store("")
	return s, nil
}

func (s *httpSession) conn() (c *httpConn, reused bool, err error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		c, s.idle = s.idle[n-1], s.idle[:n-1]
		s.mu.Unlock()
		return c, true, nil
	}
	s.mu.Unlock()
	tcp, err := net.DialTimeout("tcp", s.host, 5*time.Second)
	if err != nil {
		return nil, false, err
	}
	return &httpConn{tcp, bufio.NewReaderSize(tcp, 64<<10)}, false, nil
}

func (s *httpSession) request(method string, body []byte) []byte {
	head := method + " " + s.path + " HTTP/1.1\r\nHost: " + s.host + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: " + protocolVersion + "\r\n"
	if id := s.id.Load().(string); id != "" {
		head += "Mcp-Session-Id: " + id + "\r\n"
	}
	head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return append([]byte(head), body...)
}

// post sends a message. If id is not 0, it waits for the response with this id.
func (s *httpSession) post(ctx context.Context, id int64, body []byte) (m wire.Message, err error) {
	c, reused, err := s.conn()
	if err != nil {
		return m, err
	}
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })()
	if _, err = c.Write(s.request("POST", body)); err == nil {
		_, err = c.r.Peek(1)
	}
	if err != nil && reused && !errors.Is(err, os.ErrDeadlineExceeded) { // the gateway has closed an idle connection
		c.Close()
		return s.post(ctx, id, body)
	}
	var response *http.Response
	if err == nil {
		response, err = http.ReadResponse(c.r, nil)
	}
	if err != nil {
		c.Close()
		return m, err
	}
	m, err = s.answer(response, id)
	if err != nil || response.Close {
		c.Close()
		return m, err
	}
	if _, drained := io.Copy(io.Discard, response.Body); drained != nil {
		c.Close()
		return m, nil
	}
	s.mu.Lock()
	s.idle = append(s.idle, c)
	s.mu.Unlock()
	return m, nil
}

func (s *httpSession) answer(response *http.Response, id int64) (m wire.Message, err error) {
	if got := response.Header.Get("Mcp-Session-Id"); got != "" && s.id.Load().(string) == "" {
		s.id.Store(got)
	}
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 400))
		return m, fmt.Errorf("HTTP %d: %s", response.StatusCode, bytes.TrimSpace(text))
	}
	if id == 0 {
		return m, nil
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return s.events(response.Body, id)
	}
	var body []byte
	if n := response.ContentLength; n > 0 {
		body = make([]byte, n)
		_, err = io.ReadFull(response.Body, body)
	} else {
		body, err = io.ReadAll(response.Body)
	}
	if err != nil {
		return m, err
	}
	return wire.Parse(body)
}

// events reads an event stream until the response with this id arrives. It answers requests of the gateway.
func (s *httpSession) events(stream io.Reader, id int64) (m wire.Message, err error) {
	r := bufio.NewReaderSize(stream, 64<<10)
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return m, fmt.Errorf("the event stream ended without an answer: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue
		}
		m, bad := wire.Parse(data)
		data = nil
		if got, _ := wire.IntID(m.ID); bad == nil && m.Method == "" && got == id {
			return m, nil
		}
		if bad == nil && m.Method != "" && m.ID != nil {
			reply := replyTo(m)
			go func() { // ends after five seconds at the latest
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_, _ = s.post(ctx, 0, reply)
			}()
		}
	}
}

func (s *httpSession) send(ctx context.Context, method string, params []byte) ([]byte, error) {
	id := s.next.Add(1)
	m, err := s.post(ctx, id, requestLine(id, method, params))
	if err != nil {
		return nil, err
	}
	return outcome(m)
}

func (s *httpSession) notify(method string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := s.post(ctx, 0, requestLine(0, method, nil))
	return err
}

func (s *httpSession) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		c.Close()
	}
	s.idle = nil
}

// tool has the parts of a tool definition that a client shows to its model.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func listTools(ctx context.Context, s session) (tools []tool, err error) {
	params := `{}`
	for range 1000 {
		result, err := s.send(ctx, "tools/list", []byte(params))
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []tool
			NextCursor string
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return nil, err
		}
		tools = append(tools, page.Tools...)
		if page.NextCursor == "" {
			return tools, nil
		}
		params = `{"cursor":` + string(wire.Encode(page.NextCursor)) + `}`
	}
	return nil, errors.New("tools/list has no last page")
}
