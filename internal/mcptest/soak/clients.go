package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcpx/internal/front"
	"mcpx/internal/mcptest"
)

// tally counts what the clients got. Safe for concurrent use.
type tally struct {
	mu       sync.Mutex
	calls    int
	sessions int
	codes    map[string]int // of everything but a good result
}

func newTally() *tally { return &tally{codes: make(map[string]int)} }

func (t *tally) session() {
	t.mu.Lock()
	t.sessions++
	t.mu.Unlock()
}

// count takes one answer: a JSON-RPC response, or why there is none.
func (t *tally) count(response []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	if code := codeOf(response, err); code != "" {
		t.codes[code]++
	}
}

// codeOf names what went wrong, empty where nothing did.
func codeOf(response []byte, err error) string {
	var message struct {
		Error  *struct{ Code int }
		Result *struct {
			IsError           bool
			StructuredContent struct{ Error struct{ Code string } }
		}
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled by the client"
	case err != nil:
		return "transport"
	case json.Unmarshal(response, &message) != nil:
		return "not JSON"
	case message.Error != nil:
		return fmt.Sprint("JSON-RPC ", message.Error.Code)
	case message.Result == nil:
		return "no result"
	case message.Result.IsError && message.Result.StructuredContent.Error.Code == "":
		return "error of the tool"
	case message.Result.IsError:
		return message.Result.StructuredContent.Error.Code
	}
	return ""
}

// randomCall is the params of a tools/call.
func randomCall(long int) string {
	if rand.IntN(8) == 0 {
		arguments := []string{`{}`, `{"server_name":"steady"}`, `{"query":"adds two numbers"}`, `{"server_name":"storms","tool_name":"add"}`}
		return `"name":"inspect","arguments":` + arguments[rand.IntN(len(arguments))]
	}
	servers := []string{"steady", "steady", "steady", "modern", "own", "crashes", "hangs", "floods", "storms", "odd", "stubborn",
		"never", "half-reads", "http", "http", "http-own", "http-modern", "sse", "nobody"}
	calls := []string{
		`"tool_name":"echo","arguments":{"text":"hello"}`, `"tool_name":"read_echo","arguments":{"text":"hello"}`,
		`"tool_name":"add","arguments":{"a":1,"b":2}`, `"tool_name":"table","arguments":{"rows":100}`,
		`"tool_name":"table","arguments":{"rows":100},"select":".[3].name"`, `"tool_name":"table","arguments":{"rows":50},"select":".["`,
		`"tool_name":"content","arguments":{}`, `"tool_name":"big","arguments":{"bytes":20000}`, `"tool_name":"slow","arguments":{"ms":300}`,
		`"tool_name":"slow","arguments":{"ms":20000}`, `"tool_name":"progress","arguments":{"steps":5,"ms":20}`,
		`"tool_name":"fail","arguments":{}`, `"tool_name":"rpc_error","arguments":{}`, `"tool_name":"add","arguments":{"a":"x"}`,
		`"tool_name":"nothing","arguments":{}`, `"tool_name":"notify","arguments":{"times":5}`, `"tool_name":"ask","arguments":{}`,
	}
	call := calls[rand.IntN(len(calls))]
	switch {
	case rand.IntN(long) == 0:
		call = `"tool_name":"table","arguments":{"rows":2000}`
	case rand.IntN(150) == 0:
		call = `"tool_name":"crash","arguments":{"partial":true}`
	}
	return `"name":"exec","arguments":{"server_name":"` + servers[rand.IntN(len(servers))] + `",` + call + `}`
}

// patience is what a client has for one call: some take it back early.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	d := 10 * time.Second
	if rand.IntN(10) == 0 {
		d = time.Duration(1+rand.IntN(200)) * time.Millisecond
	}
	return context.WithTimeout(ctx, d)
}

// startClients starts them; they end with ctx.
func startClients(ctx context.Context, a *assembly, o options, t *tally) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range o.clients {
		c := &httpClient{url: a.url, tally: t, options: o, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
		all.Go(func() {
			for ctx.Err() == nil {
				if i%3 == 2 {
					c.modern(ctx)
				} else {
					c.legacy(ctx)
				}
				c.http.CloseIdleConnections()
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			overStdio(ctx, a.front, o, t)
		}
	})
	return &all
}

// httpClient is a client over HTTP.
type httpClient struct {
	url     string
	http    *http.Client
	tally   *tally
	options options
}

// post sends one message and returns the response to it.
func (c *httpClient) post(ctx context.Context, body string, headers map[string]string) (http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if i := bytes.LastIndex(data, []byte("data: ")); strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") && i >= 0 {
		data = data[i+len("data: "):]
	}
	return response.Header, data, err
}

// legacy is the life of one session.
func (c *httpClient) legacy(ctx context.Context) {
	c.tally.session()
	header, _, err := c.post(ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`, nil)
	if err != nil {
		wait(ctx, time.Second)
		return
	}
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}
	_, _, _ = c.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	listening, stop := context.WithCancel(ctx)
	var stream sync.WaitGroup
	if rand.IntN(2) == 0 {
		stream.Go(func() { c.listen(listening, session) })
	}
	_, _, _ = c.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, session)
	for id := range 1 + rand.IntN(30) {
		more := ""
		if rand.IntN(3) == 0 {
			more = fmt.Sprintf(`,"_meta":{"progressToken":%d}`, id)
		}
		c.call(ctx, id+2, more, session)
	}
	stop()
	stream.Wait()
	// Also when the soak is over: a session that is not ended is kept for half an hour.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ending, http.MethodDelete, c.url, nil)
	if err != nil {
		return
	}
	request.Header.Set("Mcp-Session-Id", session["Mcp-Session-Id"])
	if response, err := c.http.Do(request); err == nil {
		response.Body.Close()
	}
}

// listen holds the stream of a session open.
func (c *httpClient) listen(ctx context.Context, session map[string]string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Mcp-Session-Id", session["Mcp-Session-Id"])
	if response, err := c.http.Do(request); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

func (c *httpClient) call(ctx context.Context, id int, more string, headers map[string]string) {
	bounded, cancel := patience(ctx)
	defer cancel()
	_, response, err := c.post(bounded, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s%s}}`, id, randomCall(c.options.long), more), headers)
	if err != nil && bounded.Err() != nil {
		err = bounded.Err()
		if ctx.Err() == nil && headers["Mcp-Session-Id"] != "" {
			_, _, _ = c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id), headers)
		}
	}
	c.tally.count(response, err)
	wait(ctx, c.options.pause)
}

const modernMeta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + mcptest.ModernVersion +
	`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"soak","version":"1"}}`

// modern are some calls without a session.
func (c *httpClient) modern(ctx context.Context) {
	c.tally.session()
	for id := range 1 + rand.IntN(30) {
		params := randomCall(c.options.long)
		name := "exec"
		if strings.HasPrefix(params, `"name":"inspect"`) {
			name = "inspect"
		}
		bounded, cancel := patience(ctx)
		_, response, err := c.post(bounded, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s%s}}`, id, params, modernMeta),
			map[string]string{"Mcp-Protocol-Version": mcptest.ModernVersion, "Mcp-Method": "tools/call", "Mcp-Name": name})
		if err != nil && bounded.Err() != nil {
			err = bounded.Err()
		}
		cancel()
		c.tally.count(response, err)
		wait(ctx, c.options.pause)
	}
}

// overStdio is the life of one client on a pair of pipes.
func overStdio(ctx context.Context, f *front.Front, o options, t *tally) {
	t.session()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() { // ends with inW
		_ = f.ServeStdio(context.WithoutCancel(ctx), inR, outW, front.StdioOptions{})
		outW.Close()
		inR.Close()
		close(served)
	}()
	answers := make(chan []byte, 256)
	go func() { // ends with outW
		defer close(answers)
		lines := bufio.NewReader(outR)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			if bytes.Contains(line[:min(len(line), 40)], []byte(`"id":`)) {
				answers <- line
			}
		}
	}()
	fmt.Fprintln(inW, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	<-answers
	fmt.Fprintln(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for id := 1; id < 2+rand.IntN(40) && ctx.Err() == nil; id++ {
		bounded, cancel := patience(ctx)
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s,"_meta":{"progressToken":%d}}}`+"\n", id, randomCall(o.long), id)
		select {
		case answer := <-answers:
			t.count(answer, nil)
		case <-bounded.Done():
			fmt.Fprintf(inW, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
			t.count(nil, bounded.Err())
		}
		cancel()
		wait(ctx, o.pause)
	}
	inW.Close()
	for range answers {
	}
	<-served
}
