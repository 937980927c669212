package httpd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
)

// limited serves an endpoint, with limits, to two principals, whose tokens are mcpx_a and mcpx_b.
func limited(t *testing.T, endpoint Endpoint, o conf.Limits) *site {
	t.Helper()
	v := verifierOf(guardedBy(t, "", "a", "b"))
	return serve(t, Options{Endpoint: endpoint, Identity: v.Verifier, Limits: limits.New(o)})
}

// floods sends n requests, several at the same time, and counts the responses by status. It also returns one response
// of each status.
func (s *site) floods(t *testing.T, n int, headers ...string) (count map[int]int, one map[int]*http.Response) {
	t.Helper()
	count, one = make(map[int]int), make(map[int]*http.Response)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range n / 10 {
				answer := s.answer(t, "POST", "/mcp", headers...)
				mu.Lock()
				count[answer.StatusCode]++
				one[answer.StatusCode] = answer
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return count, one
}

// isFlood checks that answer is the refusal of a flood.
func isFlood(t *testing.T, answer *http.Response) {
	t.Helper()
	if answer == nil {
		t.Error("no request was refused")
		return
	}
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || seconds < 1 || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s %v", answer.Status, answer.Header)
	}
}

// TestFlood_Address: a flood of requests without a valid token is refused in plain text, before the tokens are
// verified. Clients with a valid token at the same address, and probes, are still served.
func TestFlood_Address(t *testing.T) {
	mcptest.NoLeaks(t)
	s := limited(t, whoami, conf.Limits{AddressRequests: 2})
	const good = "Authorization: Bearer mcpx_a"
	if status, _ := s.do(t, "POST", "/mcp", ping, good); status != 200 {
		t.Fatal(status)
	}
	count, one := s.floods(t, 150, "Authorization: Bearer mcpx_x")
	if count[401] < 103 || count[429] < 5 || len(count) > 2 {
		t.Errorf("answers by status: %v", count)
	}
	isFlood(t, one[429])
	if count, _ := s.floods(t, 100, good); count[200] != 100 {
		t.Errorf("with a good token: %v", count)
	}
	if status, _ := s.do(t, "GET", "/healthz", ""); status != 200 {
		t.Errorf("a probe: %d", status)
	}
}

// TestFlood_Principal: a flood from one principal is refused on all paths. Other principals are not affected.
func TestFlood_Principal(t *testing.T) {
	mcptest.NoLeaks(t)
	var read atomic.Bool
	endpoint := stub(func(w http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n > 0 {
			read.Store(true)
		}
	})
	s := limited(t, endpoint, conf.Limits{Principal: conf.Quota{RequestsPerSecond: 1}})
	count, one := s.floods(t, 150, "Authorization: Bearer mcpx_a")
	if count[200] < 102 || count[429] < 5 {
		t.Errorf("answers by status: %v", count)
	}
	isFlood(t, one[429])
	status, answer := 0, ""
	for n := 0; n < 30 && status != 429; n++ { // repeated, since one request a second is let through
		read.Store(false)
		status, answer = s.do(t, "POST", "/mcp", ping, "Authorization: Bearer mcpx_a")
	}
	if status != 429 || read.Load() || !strings.HasPrefix(answer, "too many requests; try again in ") {
		t.Errorf("%d %s, body read: %v", status, answer, read.Load())
	}
	if status, _ := s.do(t, "POST", "/mcp", ping, "Authorization: Bearer mcpx_b"); status != 200 {
		t.Errorf("another principal: %d", status)
	}
}

func TestSender(t *testing.T) {
	for remote, want := range map[string]string{
		"1.2.3.4:5": "1.2.3.4", "[::ffff:1.2.3.4]:5": "1.2.3.4", "[2001:db8:1:2:3:4:5:6]:7": "2001:db8:1:2::", "[fe80::1%eth0]:7": "fe80::",
	} {
		if got, _ := sender(&http.Request{RemoteAddr: remote, URL: &url.URL{Path: "/mcp"}}); got.String() != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
	for path, want := range map[string]string{"/mcp_endpoint/call/?token=a%2Bb": "a+b", "/mcp?token=a": ""} {
		if _, got := sender(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("%s: the credential %q, want %q", path, got, want)
		}
	}
}

// TestFlood_Revoked: a flood of requests with a token that was valid once, but is not any more, is refused like one with a wrong token.
func TestFlood_Revoked(t *testing.T) {
	mcptest.NoLeaks(t)
	v := verifierOf(guardedBy(t, "", "a", "b"))
	s := serve(t, Options{Endpoint: whoami, Identity: v.Verifier, Limits: limits.New(conf.Limits{AddressRequests: 2})})
	const revoked, good = "Authorization: Bearer mcpx_b", "Authorization: Bearer mcpx_a"
	for _, token := range []string{revoked, good} {
		if status, _ := s.do(t, "POST", "/mcp", ping, token); status != 200 {
			t.Fatal(status)
		}
	}
	v.SetOptions(guardedBy(t, "", "a"))
	count, one := s.floods(t, 150, revoked)
	if count[401] < 103 || count[429] < 5 || len(count) > 2 {
		t.Errorf("answers by status: %v", count)
	}
	isFlood(t, one[429])
	if count, _ := s.floods(t, 100, good); count[200] != 100 {
		t.Errorf("with a good token: %v", count)
	}
}
