package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// patience is the longest time that a test waits for something. Only a failing test waits that long.
const patience = 2 * time.Minute

// These are the protocol revisions that the tests use, one for each era.
const (
	legacy = "2025-06-18"
	modern = "2026-07-28"
)

// message is one JSON-RPC message that mcpx sent.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// peer is a connection to mcpx. The tests write JSON-RPC without an SDK, so that they see the exact bytes.
type peer interface {
	// send sends one message and does not wait.
	send(t testing.TB, raw string)
	// answer waits for the response to the request with this id.
	answer(t testing.TB, id string) message
	// notes returns the notifications of this method received so far.
	notes(method string) []message
}

// client uses one protocol era over a peer.
type client struct {
	peer
	era  string
	name string
	caps string // the client's capabilities, a JSON object; empty means no capabilities
	mu   sync.Mutex
	last int
}

// params adds to params what the era requires. meta has further members of _meta, as JSON without the braces.
func (c *client) params(params, meta string) string {
	if c.era == modern {
		era := `"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"` + c.name +
			`","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + cmp.Or(c.caps, "{}")
		meta = strings.TrimSuffix(era+","+meta, ",")
	}
	if meta == "" {
		return params
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(params, "{"), "}")
	if inner != "" {
		inner = "," + inner
	}
	return `{"_meta":{` + meta + `}` + inner + `}`
}

// start sends a request and returns its id.
func (c *client) start(t testing.TB, method, params, meta string) string {
	t.Helper()
	c.mu.Lock()
	c.last++
	id := strconv.Itoa(c.last)
	c.mu.Unlock()
	c.send(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+c.params(params, meta)+`}`)
	return id
}

func (c *client) request(t testing.TB, method, params string) message {
	t.Helper()
	return c.answer(t, c.start(t, method, params, ""))
}

// result sends a request and returns its result. An error fails the test.
func (c *client) result(t testing.TB, method, params string) json.RawMessage {
	t.Helper()
	m := c.request(t, method, params)
	if m.Error != nil || m.Result == nil {
		t.Fatalf("%s %s: no result but %s", method, params, m.Error)
	}
	return m.Result
}

// open sends the handshake of the era, and returns its result.
func (c *client) open(t testing.TB) json.RawMessage {
	t.Helper()
	if c.era == modern {
		return c.result(t, "server/discover", `{}`)
	}
	result := c.result(t, "initialize", `{"protocolVersion":"`+c.era+`","capabilities":`+cmp.Or(c.caps, "{}")+`,"clientInfo":{"name":"`+c.name+`","version":"1"}}`)
	c.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return result
}

// toolResult is a result of tools/call.
type toolResult struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	IsError    bool              `json:"isError"`
	Meta       json.RawMessage   `json:"_meta"`
}

// text returns the text of the result, which must have exactly one content block.
func (r toolResult) text(t testing.TB) string {
	t.Helper()
	var block struct {
		Type string
		Text *string
	}
	if len(r.Content) != 1 || json.Unmarshal(r.Content[0], &block) != nil || block.Type != "text" || block.Text == nil {
		t.Fatalf("want one text block, got %s", r.Content)
	}
	return *block.Text
}

func (c *client) tool(t testing.TB, name, arguments string) toolResult {
	t.Helper()
	raw := c.result(t, "tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)
	var r toolResult
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("reading the result of %s: %v: %s", name, err, raw)
	}
	return r
}

func execArgs(server, tool, arguments string) string {
	return `{"server_name":"` + server + `","tool_name":"` + tool + `","arguments":` + arguments + `}`
}

// waysToExec are the ways in which exec calls a tool: alone, in a list (each), and by a program that returns the result of the
// call. They make the arguments of exec.
var waysToExec = map[string]func(server, tool, arguments string) string{
	"alone": execArgs,
	"each": func(server, tool, arguments string) string {
		return `{"server_name":"` + server + `","tool_name":"` + tool + `","each":[` + arguments + `]}`
	},
	"program": func(server, tool, arguments string) string {
		code, _ := json.Marshal(`return await call("` + server + `", "` + tool + `", ` + arguments + `)`)
		return execArgs("mcpx", "run", `{"code":`+string(code)+`}`)
	},
}

// exec calls a tool of an upstream server through mcpx.
func (c *client) exec(t testing.TB, server, tool, arguments string) toolResult {
	t.Helper()
	return c.tool(t, "exec", execArgs(server, tool, arguments))
}

// inbox collects the messages that mcpx sends.
type inbox struct {
	mu       sync.Mutex
	all      []message
	byID     map[string]message
	arrived  chan struct{} // closed and replaced whenever a message arrives
	ended    error         // why no more messages can come; nil while they can
	unwanted []string      // lines that are no messages, and repeated answers
}

func newInbox() *inbox {
	return &inbox{byID: make(map[string]message), arrived: make(chan struct{})}
}

func (b *inbox) add(raw []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var m message
	var version struct{ JSONRPC string }
	if json.Unmarshal(raw, &m) != nil || json.Unmarshal(raw, &version) != nil || version.JSONRPC != "2.0" {
		b.unwanted = append(b.unwanted, string(raw))
	} else if m.Method == "" {
		if _, twice := b.byID[string(m.ID)]; twice && string(m.ID) != "null" {
			b.unwanted = append(b.unwanted, string(raw))
		}
		b.byID[string(m.ID)] = m
	}
	b.all = append(b.all, m)
	b.wake()
}

// wake wakes the goroutines that wait for a message. The caller holds the lock.
func (b *inbox) wake() {
	close(b.arrived)
	b.arrived = make(chan struct{})
}

func (b *inbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.ended = err
	}
	b.wake()
}

func (b *inbox) answer(t testing.TB, id string) message {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		m, ok := b.byID[id]
		ended, arrived := b.ended, b.arrived
		b.mu.Unlock()
		if ok {
			return m
		}
		if ended != nil {
			t.Fatalf("no answer to %s: %v", id, ended)
		}
		select {
		case <-arrived:
		case <-timer.C:
			t.Fatalf("no answer to %s after %v", id, patience)
		}
	}
}

func (b *inbox) notes(method string) []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	var notes []message
	for _, m := range b.all {
		if m.Method == method && m.ID == nil {
			notes = append(notes, m)
		}
	}
	return notes
}

func (b *inbox) check(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, raw := range b.unwanted {
		t.Errorf("unwanted on the wire: %.300q", raw)
	}
}

// stdioPeer is mcpx, or another MCP server, as a child process.
type stdioPeer struct {
	*inbox
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *lockedBuffer
	exited chan struct{} // closed when the process has ended and its stdout has been read
}

// serveStdio starts mcpx on stdio. When the test ends, it stops mcpx and checks that stdout had only messages.
func (h *home) serveStdio(t testing.TB, args ...string) *stdioPeer {
	t.Helper()
	return startStdio(t, h.command(t, args...))
}

// fetch sends a request on a new connection and reads the answer. Each header has the form "Name: value".
func fetch(t testing.TB, method, to, body string, headers ...string) (response *http.Response, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Add(name, value)
	}
	if response, err = http.DefaultClient.Do(request); err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(data)
}

// bearer returns the Authorization header with a token.
func bearer(token string) string { return "Authorization: Bearer " + token }

const (
	sendsJSON = "Content-Type: application/json"
	takesBoth = "Accept: application/json, text/event-stream"
)

// serveOver starts mcpx over stdio or HTTP, and returns a client of the given era.
func serveOver(t *testing.T, h *home, over, era string, args ...string) (*client, *stdioPeer) {
	t.Helper()
	c := &client{era: era, name: "e2e"}
	if over == "http" {
		d := h.serveHTTP(t, args...)
		c.peer = d.peer(t)
		return c, d.stdioPeer
	}
	p := h.serveStdio(t, args...)
	c.peer = p
	return c, p
}

// startStdio is serveStdio for any MCP server. If cmd.Stderr is set, it keeps it.
func startStdio(t testing.TB, cmd *exec.Cmd) *stdioPeer {
	t.Helper()
	p := &stdioPeer{inbox: newInbox(), cmd: cmd, stderr: &lockedBuffer{}, exited: make(chan struct{})}
	if p.cmd.Stderr == nil {
		p.cmd.Stderr = p.stderr
	}
	stdin, stdout := start(t, cmd)
	p.stdin = stdin
	go func() { // the goroutine ends with the process
		defer close(p.exited)
		lines := bufio.NewReader(stdout)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				p.add(bytes.TrimSuffix(line, []byte("\n")))
			}
			if err != nil {
				break
			}
		}
		err := p.cmd.Wait()
		p.end(fmt.Errorf("mcpx ended: %v", err))
	}()
	t.Cleanup(func() {
		p.stdin.Close()
		p.wait(t)
		p.check(t)
		if t.Failed() {
			t.Logf("stderr of mcpx:\n%.4000s", p.stderr.String())
		}
	})
	return p
}

func (p *stdioPeer) send(t testing.TB, raw string) {
	t.Helper()
	if _, err := io.WriteString(p.stdin, raw+"\n"); err != nil {
		t.Fatalf("writing to mcpx: %v", err)
	}
}

// wait waits until the process ends. If the process does not end in time, wait kills it.
func (p *stdioPeer) wait(t testing.TB) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		t.Errorf("mcpx did not end within %v", patience)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// logged returns the number of log lines that contain all of these texts.
func (p *stdioPeer) logged(texts ...string) int {
	n := 0
	for line := range strings.Lines(p.stderr.String()) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			n++
		}
	}
	return n
}

// follow calls act, which makes mcpx load its config again, and waits until mcpx has logged the outcome.
func (p *stdioPeer) follow(t *testing.T, outcome string, act func()) {
	t.Helper()
	before := p.logged(outcome)
	act()
	mcptest.WaitFor(t, outcome, patience, func() bool { return p.logged(outcome) > before })
}

// hosted is a running mcpx process that serves HTTP.
type hosted struct {
	*stdioPeer
	url string // the URL of the MCP endpoint
}

var servedAt = regexp.MustCompile(`(?:msg=serving url=|serving the demo at )(\S+)`)

// serveHTTP starts mcpx over HTTP on a free port of the loopback interface.
func (h *home) serveHTTP(t testing.TB, args ...string) *hosted {
	t.Helper()
	return h.serving(t, h.command(t, append([]string{"--log-level", "info", "serve", "--http", "127.0.0.1:0"}, args...)...))
}

// serving is serveHTTP for a given command that starts mcpx.
func (h *home) serving(t testing.TB, cmd *exec.Cmd) *hosted {
	t.Helper()
	p := startStdio(t, cmd)
	d := &hosted{stdioPeer: p}
	t.Cleanup(func() { terminate(p.cmd) })
	mcptest.WaitFor(t, "the address of mcpx", patience, func() bool {
		found := servedAt.FindStringSubmatch(p.stderr.String())
		if found == nil {
			select {
			case <-p.exited:
				t.Fatalf("mcpx ended: %s", p.stderr.String())
			default:
			}
			return false
		}
		d.url = found[1]
		return true
	})
	return d
}

// httpPeer is one client of an mcpx over HTTP.
type httpPeer struct {
	*inbox
	url     string
	header  http.Header
	mu      sync.Mutex
	session string
	client  *http.Client
}

func (d *hosted) peer(t testing.TB) *httpPeer {
	t.Helper()
	p := &httpPeer{inbox: newInbox(), url: d.url, header: make(http.Header), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		p.check(t)
	})
	return p
}

// send posts a message in a goroutine, which ends with the answer. Only for initialize and for notifications does send wait for
// the answer, because later messages depend on them.
func (p *httpPeer) send(t testing.TB, raw string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.post(raw); err != nil {
			p.end(err)
		}
	}()
	if strings.Contains(raw, `"initialize"`) || strings.Contains(raw, `"notifications/`) {
		<-done
	}
}

func (p *httpPeer) request(raw string) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(raw))
	if err != nil {
		return nil, err
	}
	request.Header = p.header.Clone()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	var m struct {
		Method string
		Params struct{ Name, URI string }
	}
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.Contains(raw, "io.modelcontextprotocol/protocolVersion"):
		request.Header.Set("Mcp-Protocol-Version", modern)
		request.Header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			request.Header.Set("Mcp-Name", name)
		}
	case m.Method != "initialize":
		request.Header.Set("Mcp-Protocol-Version", legacy)
	}
	if p.session != "" {
		request.Header.Set("Mcp-Session-Id", p.session)
	}
	return request, nil
}

func (p *httpPeer) post(raw string) error {
	request, err := p.request(raw)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		p.mu.Lock()
		p.session = id
		p.mu.Unlock()
	}
	return p.read(response)
}

// read reads the messages of a response, which is a JSON body or an event stream.
func (p *httpPeer) read(response *http.Response) error {
	if response.StatusCode == http.StatusAccepted {
		return nil
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK && !json.Valid(body) {
			return fmt.Errorf("status %s: %s", response.Status, body)
		}
		p.add(body)
		return nil
	}
	lines := bufio.NewReader(response.Body)
	var data []byte
	for {
		line, err := lines.ReadString('\n')
		switch line = strings.TrimRight(line, "\r\n"); {
		case strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(line[5:], " ")...)
		case line == "" && len(data) > 0:
			p.add(data)
			data = nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// listen opens the stream for notifications that belong to no request: GET in the legacy era, subscriptions/listen in the
// modern era. Over stdio the legacy era needs none. The stream of GET is closed when the test ends.
func (c *client) listen(t testing.TB) {
	t.Helper()
	if c.era == modern {
		c.start(t, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, "")
		mcptest.WaitFor(t, "the acknowledgement", patience, func() bool {
			return len(c.notes("notifications/subscriptions/acknowledged")) > 0
		})
		return
	}
	p, ok := c.peer.(*httpPeer)
	if !ok {
		return // over stdio all messages use one stream
	}
	request, err := p.request(`{"method":""}`)
	if err != nil {
		t.Fatal(err)
	}
	request.Method, request.Body, request.ContentLength = http.MethodGet, nil, 0
	response, err := p.client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("opening the stream: %v, %v", response, err)
	}
	done := make(chan struct{})
	go func() { // the goroutine ends with the body
		defer close(done)
		_ = p.read(response)
	}()
	t.Cleanup(func() {
		response.Body.Close()
		<-done
	})
}

// each runs a test over both transports and in both eras. All runs use the same config.
func each(t *testing.T, h *home, args []string, test func(t *testing.T, c *client)) {
	t.Helper()
	eachOver(t, h, args, []string{legacy, modern}, test)
}

// eachSlow is each for tests that hardly depend on the transport. Over stdio each client needs a new mcpx
// process with its own servers, which is slow, so only a full test run includes stdio.
func eachSlow(t *testing.T, h *home, args []string, test func(t *testing.T, c *client)) {
	t.Helper()
	eachOver(t, h, args, mcptest.Part(t, []string{legacy, modern}, 0), test)
}

// eachOver runs a test over HTTP in both eras, and over stdio in the eras that stdio lists.
func eachOver(t *testing.T, h *home, args, stdio []string, test func(t *testing.T, c *client)) {
	t.Helper()
	for _, era := range stdio {
		t.Run("stdio "+era, func(t *testing.T) {
			c := &client{peer: h.serveStdio(t, append(args, "serve")...), era: era, name: "e2e"}
			test(t, c)
		})
	}
	t.Run("http", func(t *testing.T) {
		d := h.serveHTTP(t, args...)
		for _, era := range []string{legacy, modern} {
			t.Run(era, func(t *testing.T) { test(t, &client{peer: d.peer(t), era: era, name: "e2e"}) })
		}
	})
}

// contextOf returns a context that ends with the test, unless it is cancelled before.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}
