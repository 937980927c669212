package httpd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/mcptest"
)

// changing is a verifier whose options a test can change.
type changing struct {
	*identity.Verifier
	state atomic.Pointer[identity.State]
}

func verifierOf(o *identity.Options) *changing {
	c := &changing{}
	c.Verifier = identity.NewVerifier(c.state.Load)
	c.SetOptions(o)
	return c
}

// SetOptions changes the options in the same way as a reload of the config.
func (c *changing) SetOptions(o *identity.Options) {
	before := c.state.Load()
	next := identity.NewState(o, before)
	c.state.Store(next)
	before.Revoke(next)
}

// guarded serves an endpoint to two principals, whose tokens are mcpx_a and mcpx_b.
func guarded(t *testing.T, endpoint Endpoint, resource string) (*site, *changing) {
	t.Helper()
	v := verifierOf(guardedBy(t, resource, "a", "b"))
	return serve(t, Options{Endpoint: endpoint, SSE: true, Identity: v.Verifier, Status: func() any { return "up" }}), v
}

func guardedBy(t testing.TB, resource string, names ...string) *identity.Options {
	o := &identity.Options{}
	if resource != "" {
		var err error
		if o.Resource, err = url.Parse(resource); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		o.Tokens = append(o.Tokens, conf.Token{Name: name, SHA256: sha256.Sum256([]byte("mcpx_" + name))})
	}
	return o
}

// whoami is an endpoint that answers with the principal of the request.
var whoami = stub(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, caller.From(r.Context()).Key())
})

// answer makes a request and returns its response, after closing the body.
func (s *site) answer(t *testing.T, method, path string, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if request.Header.Add(name, value); name == "Host" {
			request.Host = value
		}
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

// TestAuth_EveryRequest: every path but the open ones needs a token, with every method. The token must be in the Authorization
// header.
func TestAuth_EveryRequest(t *testing.T) {
	mcptest.NoLeaks(t)
	s, _ := guarded(t, whoami, "")
	for _, path := range []string{"/mcp", "/mcp/tools", "/mcp/servers/x", "/mcp?access_token=mcpx_a", "/sse", "/messages", "/status", "/metrics", "/nothing"} {
		for _, method := range []string{"POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"} {
			response := s.answer(t, method, path)
			if response.StatusCode != 401 || response.Header.Get("WWW-Authenticate") != `Bearer realm="mcpx"` {
				t.Errorf("%s %s without a token: %d %q", method, path, response.StatusCode, response.Header)
			}
		}
		response := s.answer(t, "POST", path, "Authorization: Bearer mcpx_c", "Cookie: access_token=mcpx_a", "Mcp-Session-Id: mcpx_a")
		if response.StatusCode != 401 || response.Header.Get("WWW-Authenticate") != `Bearer realm="mcpx", error="invalid_token"` {
			t.Errorf("%s with a wrong token: %d %q", path, response.StatusCode, response.Header)
		}
		if response := s.answer(t, "POST", path, "Authorization: Bearer mcpx_a", "Authorization: Bearer mcpx_a"); response.StatusCode != 400 {
			t.Errorf("%s with two headers: %d", path, response.StatusCode)
		}
	}
	for _, path := range []string{"/", "/healthz", "/readyz"} {
		if response := s.answer(t, "GET", path); response.StatusCode != 200 {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/mcp/.well-known/openid-configuration", "/register"} {
		for _, method := range []string{"GET", "POST"} {
			if response := s.answer(t, method, path); response.StatusCode != 404 {
				t.Errorf("%s %s: %d", method, path, response.StatusCode)
			}
		}
	}
	if status, who := s.do(t, "POST", "/mcp", ping, "Authorization: Bearer mcpx_b"); status != 200 || who != "token b" {
		t.Errorf("%d %s", status, who)
	}
}

// TestAuth_BodyUnread: a request without a token is answered before its body has arrived.
func TestAuth_BodyUnread(t *testing.T) {
	mcptest.NoLeaks(t)
	s, _ := guarded(t, whoami, "")
	if status := s.raw(t, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000000\r\n\r\n{"); status != 401 {
		t.Errorf("%d", status)
	}
}

// TestAuth_Revoked: when a token is revoked, its open requests end and new ones are refused.
func TestAuth_Revoked(t *testing.T) {
	mcptest.NoLeaks(t)
	open := make(chan string, 2)
	s, v := guarded(t, stub(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		open <- caller.From(r.Context()).Key()
		<-r.Context().Done()
	}), "")
	ended := make(map[string]chan int)
	for _, name := range []string{"a", "b"} {
		done := make(chan int)
		ended[name] = done
		go func() { // ends when the server ends the stream
			status, _ := s.do(t, "GET", "/mcp", "", "Authorization: Bearer mcpx_"+name)
			done <- status
		}()
		<-open
	}
	v.SetOptions(guardedBy(t, "", "b"))
	if status := <-ended["a"]; status != 200 {
		t.Errorf("the stream of a: %d", status)
	}
	if response := s.answer(t, "GET", "/mcp", "Authorization: Bearer mcpx_a"); response.StatusCode != 401 {
		t.Errorf("a once more: %d", response.StatusCode)
	}
	select {
	case <-ended["b"]:
		t.Error("the stream of b ended too")
	default:
	}
	v.SetOptions(guardedBy(t, "", "c"))
	<-ended["b"]
}

// TestAuth_PublicHost: the host of the public URL is accepted as Host and Origin.
func TestAuth_PublicHost(t *testing.T) {
	mcptest.NoLeaks(t)
	s, _ := guarded(t, whoami, "https://mcp.example.com/mcp")
	for header, want := range map[string]int{
		"Host: mcp.example.com":                   200,
		"Host: MCP.example.com:443":               200,
		"Host: mcp.example.com:80":                403,
		"Host: example.com":                       403,
		"Host: evil.mcp.example.com":              403,
		"Host: localhost:1":                       200,
		"Origin: https://mcp.example.com":         200,
		"Origin: http://mcp.example.com":          403,
		"Origin: https://mcp.example.com:8443":    403,
		"Origin: https://mcp.example.com.evil.co": 403,
		"Origin: https://evil.example.com":        403,
	} {
		if got, _ := s.do(t, "POST", "/mcp", ping, header, "Authorization: Bearer mcpx_a"); got != want {
			t.Errorf("%s: %d, want %d", header, got, want)
		}
	}
}

// TestAuth_AnyAddress: if mcpx listens beyond loopback, Host may also be the IP address that the request came to,
// since DNS rebinding cannot change an IP address.
func TestAuth_AnyAddress(t *testing.T) {
	o := &Options{Identity: &identity.Verifier{}, Logger: slog.New(slog.DiscardHandler)}
	for _, test := range []struct {
		local, host string
		own         bool
	}{
		{"192.0.2.7", "192.0.2.7:8080", true},
		{"192.0.2.7", "192.0.2.7", true},
		{"192.0.2.7", "192.0.2.8:8080", false},
		{"192.0.2.7", "mcp.internal:8080", false},
		{"192.0.2.7", "0.0.0.0:8080", false},
		{"192.0.2.7", "", false},
		{"::ffff:192.0.2.7", "192.0.2.7:8080", true},
		{"2001:db8::1", "[2001:db8::1]:8080", true},
		{"2001:db8::1", "[2001:db8::2]:8080", false},
	} {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(test.local), Port: 8080})
		if own := o.ownHost((&http.Request{Host: test.host}).WithContext(ctx)); own != test.own {
			t.Errorf("%q at %s: %t", test.host, test.local, own)
		}
	}
}

// TestAuth_Challenge: at every path and with every method, the answer to a client without a token says where the metadata about
// this path are. The metadata name the URL that the client used.
func TestAuth_Challenge(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, test := range []struct{ resource, host, base, path, metadata, about string }{
		{"https://mcp.example.com/mcp", "mcp.example.com", "https://mcp.example.com", "/mcp", "/mcp", "/mcp"},
		{"https://mcp.example.com/mcp", "localhost", "https://mcp.example.com", "/mcp/servers/x", "/mcp/servers/x", "/mcp/servers/x"},
		{"https://mcp.example.com/team/mcp", "mcp.example.com", "https://mcp.example.com", "/mcp/tools", "/team/mcp/tools", "/team/mcp/tools"},
		{"https://mcp.example.com", "mcp.example.com", "https://mcp.example.com", "/mcp", "", ""},
		{"", "localhost:8080", "http://localhost:8080", "/sse", "/sse", "/sse"},
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080", "/mcp", "/mcp", "/mcp"},
	} {
		s, v := guarded(t, whoami, test.resource)
		o := guardedBy(t, test.resource, "a")
		o.AuthorizationServers, o.Scopes = []string{"https://login.example.com"}, []string{"mcp:read", "mcp:list"}
		v.SetOptions(o)
		const wellKnown = "/.well-known/oauth-protected-resource"
		at := test.base + wellKnown + test.metadata
		for _, method := range []string{"GET", "POST", "DELETE", "HEAD"} {
			response := s.answer(t, method, test.path, "Host: "+test.host)
			if want := `Bearer resource_metadata="` + at + `", scope="mcp:read mcp:list"`; response.StatusCode != 401 || response.Header.Get("WWW-Authenticate") != want {
				t.Errorf("%s %s: %d %q\nwant %s", method, test.path, response.StatusCode, response.Header, want)
			}
		}
		document := func(path string) string {
			status, body := s.do(t, "GET", wellKnown+path, "", "Host: "+test.host)
			if status != 200 {
				t.Errorf("%s: %d", path, status)
			}
			return body
		}
		if body := document(test.metadata); !strings.Contains(body, `"resource":"`+test.base+test.about+`"`) ||
			!strings.Contains(body, `"authorization_servers":["https://login.example.com"]`) || !strings.Contains(body, `"scopes_supported":["mcp:read","mcp:list"]`) {
			t.Errorf("%s: %s", test.path, body)
		}
		root := test.resource
		if root == "" {
			root = test.base + "/mcp"
		}
		if body := document(""); !strings.Contains(body, `"resource":"`+root+`"`) {
			t.Errorf("the root: %s", body)
		}
	}
}

// TestAuth_Browser: a web page of an allowed origin may send preflight requests, and read why a request was refused.
// A page of another origin may not. Without auth, no page may.
func TestAuth_Browser(t *testing.T) {
	mcptest.NoLeaks(t)
	s, v := guarded(t, whoami, "https://mcp.example.com/mcp")
	preflight := func(origin string) *http.Response {
		return s.answer(t, "OPTIONS", "/mcp", "Origin: "+origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, mcp-param-x")
	}
	for _, origin := range []string{"http://localhost:6274", "https://mcp.example.com"} {
		if response := preflight(origin); response.StatusCode != 204 || response.Header.Get("Access-Control-Allow-Origin") != origin ||
			response.Header.Get("Access-Control-Allow-Headers") != "authorization, mcp-param-x" || response.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %q", origin, response.StatusCode, response.Header)
		}
		response := s.answer(t, "POST", "/mcp", "Origin: "+origin)
		if response.StatusCode != 401 || response.Header.Get("Access-Control-Allow-Origin") != origin || !strings.Contains(response.Header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
			t.Errorf("%s, POST: %d %q", origin, response.StatusCode, response.Header)
		}
	}
	if response := preflight("https://evil.example.com"); response.StatusCode != 403 || response.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("elsewhere: %d %q", response.StatusCode, response.Header)
	}
	v.SetOptions(nil)
	if response := preflight("http://localhost:6274"); response.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without auth: %q", response.Header)
	}
}

// TestAuth_Log: neither the log nor the answer contains the refused token.
func TestAuth_Log(t *testing.T) {
	mcptest.NoLeaks(t)
	var log strings.Builder
	v := verifierOf(guardedBy(t, "", "a"))
	s := serve(t, Options{Endpoint: whoami, Identity: v.Verifier, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	_, body := s.do(t, "POST", "/mcp", ping, "Authorization: Bearer canary-of-a-token")
	s.stop()
	<-s.served
	if strings.Contains(log.String()+body, "canary") || !strings.Contains(log.String(), "the credential is not valid") {
		t.Errorf("%s\n%s", body, log.String())
	}
}

// TestAuth_Server: the paths of the authorization server need no token, and all other paths do.
func TestAuth_Server(t *testing.T) {
	mcptest.NoLeaks(t)
	issues := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "issued to ", caller.From(r.Context()).Key())
	})
	s := serve(t, Options{
		Endpoint: whoami, Identity: verifierOf(guardedBy(t, "", "a")).Verifier,
		AuthServer: func(path string) http.Handler {
			if path == "/token" || path == metadataPath {
				return issues
			}
			return nil
		},
	})
	if status, body := s.do(t, "POST", "/register", ""); status != 404 || !strings.Contains(body, "must pass on") {
		t.Errorf("/register: %d %s", status, body)
	}
	for _, headers := range [][]string{nil, {"Authorization: Bearer wrong"}, {"Authorization: Bearer mcpx_a"}} {
		if status, body := s.do(t, "POST", "/token", "", headers...); status != 200 || body != "issued to " {
			t.Errorf("%v: %d %s", headers, status, body)
		}
	}
	if status, body := s.do(t, "POST", "/mcp", ping); status != 401 {
		t.Errorf("/mcp: %d %s", status, body)
	}
	if status, who := s.do(t, "POST", "/mcp", ping, "Authorization: Bearer mcpx_a"); status != 200 || who != "token a" {
		t.Errorf("/mcp with a token: %d %s", status, who)
	}
	if status, _ := s.do(t, "POST", "/token", "", "Host: elsewhere.example"); status != 403 {
		t.Errorf("from elsewhere: %d", status)
	}
}
