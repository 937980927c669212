package upstream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/transport"
)

// forgetful is a legacy HTTP server that, like the Python SDK, drops a question of a call if the GET stream is not
// open. The stream needs some time to open.
type forgetful struct {
	opens  time.Duration
	opened atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	response.Header.Set("Mcp-Session-Id", "s")
	response.Body = http.NoBody
	if r.Method == http.MethodGet {
		select {
		case <-time.After(f.opens):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		f.opened.Store(true)
		out, in := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(context.Canceled) })
		response.Header.Set("Content-Type", "text/event-stream")
		response.Body = out
		return response, nil
	}
	if r.Body == nil {
		return response, nil
	}
	var m struct {
		ID     json.Number
		Method string
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return nil, err
	}
	answer := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
		"tools/call": `{"content":[{"type":"text","text":"the question is lost"}]}`,
	}[m.Method]
	if m.Method == "tools/call" && f.opened.Load() {
		answer = `{"content":[{"type":"text","text":"the question is sent"}]}`
	}
	if answer == "" {
		response.StatusCode, response.Status = http.StatusAccepted, "202 Accepted"
		return response, nil
	}
	response.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + answer + `}`))
	return response, nil
}

// TestStreamBeforeCalls: a session that reads no lists, such as one client's own, passes its first call on only when its GET
// stream is open. Each of two clients has such a session. A stream that does not open delays that call for at most
// streamPatience.
func TestStreamBeforeCalls(t *testing.T) {
	for name, test := range map[string]struct {
		opens time.Duration
		want  string
	}{
		"soon":  {200 * time.Millisecond, "the question is sent"},
		"never": {time.Hour, "the question is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				for _, client := range []string{"alice", "bob"} {
					owner := &caller.Client{ID: client}
					u := connect(t, Spec{
						Options: transport.Options{Type: transport.HTTP, Remote: transport.Remote{
							URL: "http://nowhere.example/mcp", Transport: &forgetful{opens: test.opens},
						}},
						Introduction: Introduction{Owner: func() *caller.Client { return owner }}, Protocol: EraLegacy,
						Catalogue: Catalogue{Shared: func() []catalog.Tool { return []catalog.Tool{{Name: "ask"}} }},
					})
					began := time.Now()
					got, err := text(u, "ask", `{}`)
					if err != nil || got != test.want || time.Since(began) > streamPatience {
						t.Errorf("%s: %q, %v after %s", client, got, err, time.Since(began))
					}
				}
			})
		})
	}
}
