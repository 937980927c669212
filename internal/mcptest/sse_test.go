package mcptest

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// sseClient is a minimal client of the old HTTP+SSE transport.
type sseClient struct {
	*webClient
	said <-chan string
}

func dialSSE(t *testing.T, h *HTTPServer) *sseClient {
	t.Helper()
	c := &sseClient{webClient: newWebClient(t, h.URL)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c.said = c.stream(ctx)
	endpoint, ok := strings.CutPrefix(c.wait(c.said), "endpoint ")
	if !ok {
		t.Fatalf("no endpoint: %s", endpoint)
	}
	c.url = strings.TrimSuffix(h.URL, "/sse") + endpoint
	c.tell(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+initParams+`}`, 202)
	c.wait(c.said)
	c.tell(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202)
	return c
}

// tell posts a message, and checks the status of the response.
func (c *sseClient) tell(body string, want int) {
	c.t.Helper()
	if status, _, said, err := c.post(body); status != want || err != nil {
		c.t.Fatalf("posting %s: %d %q %v, want %d", body, status, said, err, want)
	}
}

func (c *sseClient) hear() reply {
	c.t.Helper()
	return decode(c.t, strings.TrimPrefix(c.wait(c.said), "message "))
}

func TestSSE(t *testing.T) {
	NoLeaks(t)
	h := Spec{Era: EraModern}.SSE(t) // the era is legacy nevertheless
	c := dialSSE(t, h)
	c.tell(callMessage(1, "echo", `{"text":"hi"}`), 202)
	if got := textOf(t, c.hear()); got != "hi" {
		t.Errorf("echo answered %q", got)
	}
	c.tell(callMessage(2, "slow", `{"ms":3600000}`), 202)
	c.tell(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, 202)
	WaitFor(t, "the cancel", patience, func() bool { return len(h.Log().Event(EventCancel)) == 1 })
	c.tell(callMessage(3, "ask", `{}`), 202)
	ask := c.hear()
	c.tell(`{"jsonrpc":"2.0","id":`+string(ask.ID)+`,"result":{"action":"cancel"}}`, 202)
	if got := textOf(t, c.hear()); got != `answered: {"action":"cancel"}` {
		t.Errorf("ask: %s", got)
	}
	h.Notify("notifications/tools/list_changed", `{}`)
	if r := c.hear(); r.Method != "notifications/tools/list_changed" {
		t.Errorf("got %s", r.raw)
	}
	other := newWebClient(t, h.URL)
	if status, _, _, _ := other.post(`{}`); status != http.StatusMethodNotAllowed {
		t.Errorf("POST to the stream: %d, want 405", status)
	}
	h.KillSessions()
	for range c.said { // ends when the session ends
	}
	c.tell(callMessage(4, "pid", `{}`), 404)
}

func TestSSE_Faults(t *testing.T) {
	NoLeaks(t)
	for _, tc := range []struct {
		fault    Fault
		status   int
		executed int
		ends     bool   // whether the stream ends
		odd      string // what is sent instead of the answer; empty if the answer is sent
	}{
		{Reset(), 202, 1, true, ""},
		{End(), 202, 1, true, ""},
		{DropAfter(), 202, 1, true, ""},
		{StallAfter(), 202, 1, false, ""},
		{Fault{Kind: FaultHalfJSON}, 202, 1, false, `{"jsonrpc":"2.0","id":1,"result"`},
		{Fault{Kind: FaultWrongID}, 202, 1, false, "424242"},
		{BadGateway(), 502, 0, false, ""},
		{LostSession(), 404, 0, true, ""},
	} {
		t.Run(string(tc.fault.Kind), func(t *testing.T) {
			h := Spec{}.SSE(t)
			c := dialSSE(t, h)
			h.Script(tc.fault.On("tools/call"))
			c.tell(callMessage(1, "echo", `{"text":"hi"}`), tc.status)
			if tc.ends {
				for s := range c.said {
					t.Errorf("the stream still says %s", s)
				}
				WaitFor(t, "the session to end with its stream", patience, func() bool { return h.Sessions() == 0 })
			} else {
				if tc.odd != "" {
					if got := c.wait(c.said); !strings.Contains(got, tc.odd) || strings.Contains(got, "hi") {
						t.Errorf("got %s, want %s", got, tc.odd)
					}
				}
				WaitFor(t, "the fault to be used up", patience, func() bool { return len(h.Log().Calls("echo")) == tc.executed })
				c.tell(callMessage(2, "echo", `{"text":"next"}`), 202)
				if got := textOf(t, c.hear()); got != "next" {
					t.Errorf("got %s", got)
				}
				tc.executed++
			}
			if got := len(h.Log().Calls("echo")); got != tc.executed {
				t.Errorf("executed %d times, want %d", got, tc.executed)
			}
		})
	}
}

func TestSSE_StreamFaults(t *testing.T) {
	NoLeaks(t)
	h := Spec{}.SSE(t)
	h.Script(BadGateway().On("GET"), Drop().On("GET"), End().On("GET"))
	c := newWebClient(t, h.URL)
	c.http.Transport = &http.Transport{DisableKeepAlives: true} // otherwise the client retries a GET whose connection was reset
	for i, want := range []int{502, 0, 200} {
		resp, err := c.do(context.Background(), "GET", "")
		if err != nil {
			if want != 0 {
				t.Errorf("GET %d: %v", i, err)
			}
			continue
		}
		if events(resp.Body, func(kind, _ string) bool { t.Errorf("GET %d: said %s", i, kind); return false }); resp.StatusCode != want {
			t.Errorf("GET %d: %d, want %d", i, resp.StatusCode, want)
		}
		resp.Body.Close()
	}
	dialSSE(t, h)
	other := Spec{Endpoint: "http://example.com/evil"}.SSE(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	oc := newWebClient(t, other.URL)
	if got := oc.wait(oc.stream(ctx)); got != "endpoint http://example.com/evil" {
		t.Errorf("got %s", got)
	}
}
