package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// webClient is a minimal client of streamable HTTP.
type webClient struct {
	t       *testing.T
	url     string
	session string
	header  map[string]string
	http    *http.Client
}

func newWebClient(t *testing.T, url string) *webClient {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &webClient{t: t, url: url, header: map[string]string{}, http: &http.Client{
		Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// do sends one request. The caller closes the body of the response.
func (c *webClient) do(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	return c.http.Do(req)
}

// post sends a message. It returns the status, the header, and the messages of the response: the JSON body, or the
// data of all events.
func (c *webClient) post(body string) (int, http.Header, []string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := c.do(ctx, "POST", body)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		data, err := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header, []string{string(data)}, err
	}
	var said []string
	err = events(resp.Body, func(kind, data string) bool {
		if kind == "message" {
			said = append(said, data)
		}
		return true
	})
	return resp.StatusCode, resp.Header, said, err
}

// events reads an event stream until f returns false or the stream ends.
func events(r io.Reader, f func(kind, data string) bool) error {
	br := bufio.NewReader(r)
	var kind, data string
	for {
		line, err := br.ReadString('\n')
		line = strings.TrimPrefix(strings.TrimRight(line, "\r\n"), bom)
		switch {
		case line == "" && data != "" && err == nil:
			if !f(kind, data) {
				return nil
			}
			kind, data = "", ""
		case strings.HasPrefix(line, "event: "):
			kind = line[7:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// handshake does the legacy handshake.
func (c *webClient) handshake() {
	c.t.Helper()
	status, header, said, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":` + initParams + `}`)
	if err != nil || status != 200 {
		c.t.Fatalf("initialize: %d %v %v", status, said, err)
	}
	c.session = header.Get("Mcp-Session-Id")
	if status, _, _, err := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || status != 202 {
		c.t.Fatalf("initialized: %d %v", status, err)
	}
}

func callMessage(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":"p1"}`

// modern sets the client's headers for a request of the modern protocol version, and returns the body of this
// request.
func (c *webClient) modern(id int, method, name, params string) string {
	c.header["Mcp-Protocol-Version"], c.header["Mcp-Method"] = ModernVersion, method
	delete(c.header, "Mcp-Name")
	if name != "" {
		c.header["Mcp-Name"] = name
		params += `,"name":"` + name + `"`
	}
	params = strings.TrimPrefix(params+`,`+modernMeta, ",")
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params)
}

func decode(t *testing.T, s string) reply {
	t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatalf("decoding %.200q: %v", s, err)
	}
	r.raw = s
	return r
}
