package httpd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

const modernVersion = "2026-07-28"

// patience is a time limit that only a failing test reaches.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	mcptest.Main()
	mcptest.AtOnce(6)
	os.Exit(m.Run())
}

// site is an endpoint that is being served.
type site struct {
	url    string // without a path
	addr   string
	stop   func()        // begins the shutdown
	served chan struct{} // closed when Serve has returned
	err    error
}

// serve serves until the test ends, or until stop is called.
func serve(t *testing.T, o Options) *site {
	t.Helper()
	listener, err := Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	if o.Ready == nil {
		o.Ready = func() (Readiness, any) { return Readiness{Ready: true}, nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &site{
		addr: listener.Addr().String(), url: "http://" + listener.Addr().String(),
		stop: cancel, served: make(chan struct{}),
	}
	go func() { // ends when cancel is called
		defer close(s.served)
		s.err = Serve(ctx, listener, o)
	}()
	t.Cleanup(func() {
		cancel()
		<-s.served
		if s.err != nil {
			t.Errorf("serving: %v", s.err)
		}
	})
	return s
}

// stub is an endpoint made of a function. It has no streams or calls that must be ended.
type stub func(http.ResponseWriter, *http.Request)

// Serve implements Endpoint.
func (s stub) Serve(w http.ResponseWriter, r *http.Request) []*request.Event {
	s(w, r)
	return nil
}

// EndStreams implements Endpoint.
func (stub) EndStreams() {}

// EndCalls implements Endpoint.
func (stub) EndCalls() {}

// echoes is an endpoint that answers with the body of the request.
var echoes = stub(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })

// do makes a request with these headers, each "Name: value". If there is no complete response, the status is 0 and
// answer is the error.
func (s *site) do(t *testing.T, method, path, body string, headers ...string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			request.Host = value
			continue
		}
		request.Header.Add(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(data)
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestServe_OriginAndHost(t *testing.T) {
	mcptest.NoLeaks(t)
	s := serve(t, Options{Endpoint: echoes})
	_, port, _ := net.SplitHostPort(s.addr)
	for _, test := range []struct {
		header string
		want   int
	}{
		{"Host: " + s.addr, 200},
		{"Host: localhost:" + port, 200},
		{"Host: LOCALHOST", 200},
		{"Host: [::1]:" + port, 200},
		{"Host: 127.0.0.2:" + port, 200},
		{"Host: evil.example", 403},
		{"Host: evil.example:" + port, 403},
		{"Host: 127.0.0.1.evil.example:" + port, 403},
		{"Host: localhost.evil.example", 403},
		{"Host: 192.168.1.2:" + port, 403},
		{"Host: 0.0.0.0:" + port, 403},
		{"Host: [::ffff:192.168.1.2]:" + port, 403},
		{"Host: 2130706433:" + port, 403},
		{"Origin: http://localhost:3000", 200},
		{"Origin: http://127.0.0.1:" + port, 200},
		{"Origin: https://[::1]", 200},
		{"Origin: http://evil.example", 403},
		{"Origin: https://localhost.evil.example", 403},
		{"Origin: http://localhost@evil.example", 403},
		{"Origin: http://evil.example#localhost", 403},
		{"Origin: null", 403},
		{"Origin: file://", 403},
		{"Origin: chrome-extension://localhost", 403},
		{"Origin: localhost", 403},
	} {
		for _, request := range []struct{ method, path, body string }{
			{"POST", "/mcp", ping}, {"GET", "/mcp", ""}, {"DELETE", "/mcp", ""}, {"GET", "/healthz", ""}, {"GET", "/readyz", ""},
		} {
			want := test.want
			if strings.HasPrefix(test.header, "Host: ") && strings.HasSuffix(request.path, "z") {
				want = 200 // see TestServe_ProbesHost
			}
			if got, body := s.do(t, request.method, request.path, request.body, test.header); got != want {
				t.Errorf("%s: %s %s: %d (%s), want %d", test.header, request.method, request.path, got, strings.TrimSpace(body), want)
			}
		}
	}
	// All origins must be allowed, not only one of them.
	if got, _ := s.do(t, "POST", "/mcp", ping, "Origin: http://localhost", "Origin: http://evil.example"); got != 403 {
		t.Errorf("two origins: %d", got)
	}
}

// dial opens a connection, which is closed when the test ends.
func (s *site) dial(t *testing.T) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	connection.SetDeadline(time.Now().Add(patience))
	return connection
}

// raw sends bytes over a new connection and returns the status of the response.
func (s *site) raw(t *testing.T, bytes string) int {
	t.Helper()
	connection := s.dial(t)
	defer connection.Close()
	if _, err := io.WriteString(connection, bytes); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestListen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1.example.com:0", "[::ffff:192.0.2.1]:0", "*:0"} {
		listener, err := Listen(t.Context(), addr, false)
		var refused *BindError
		if err == nil {
			listener.Close()
		}
		if !asBind(err, &refused) || !strings.Contains(refused.Hint(), "127.0.0.1") || refused.Addr != addr {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "127.0.0.9:0", "0"} {
		if listener, err := Listen(t.Context(), addr, false); err == nil {
			listener.Close()
		} else if addr != "127.0.0.9:0" { // only Linux has all addresses of 127.0.0.0/8
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x"} {
		if listener, err := Listen(t.Context(), addr, false); err == nil {
			listener.Close()
			t.Errorf("%q was accepted", addr)
		}
	}
	listener, err := Listen(t.Context(), "192.0.2.1:0", true)
	refused, ok := errors.AsType[*ListenError](err)
	if err == nil {
		listener.Close()
	}
	if runtime.GOOS != "windows" && (!ok || strings.Contains(refused.Hint(), "port")) {
		t.Errorf("an address of another machine: %v", err)
	}
}

func asBind(err error, target **BindError) bool {
	refused, ok := err.(*BindError)
	*target = refused
	return ok
}

func TestServe_HeaderTimeout(t *testing.T) {
	mcptest.Parallel(t)
	s := serve(t, Options{Endpoint: echoes, timeouts: timeouts{headerTimeout: 2 * time.Second}})
	connection := s.dial(t)
	io.WriteString(connection, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
	if data, err := io.ReadAll(connection); err != nil {
		t.Errorf("the connection is still open: %v, %q", err, data)
	}
	if status, _ := s.do(t, "GET", "/healthz", ""); status != 200 {
		t.Errorf("after that: %d", status)
	}
}

// TestServe_Panic: a panic ends only its own request. It is logged, and the response does not reveal it.
func TestServe_Panic(t *testing.T) {
	mcptest.NoLeaks(t)
	var mu sync.Mutex
	var log strings.Builder
	s := serve(t, Options{
		Endpoint: stub(func(http.ResponseWriter, *http.Request) { panic("secret of the handler") }),
		Logger:   slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { mu.Lock(); defer mu.Unlock(); return log.Write(p) }), nil)),
	})
	status, body := s.do(t, "POST", "/mcp", ping)
	if status != 500 || strings.Contains(body, "secret") {
		t.Errorf("%d %s", status, body)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), "secret of the handler") || !strings.Contains(log.String(), "httpd_test.go") {
		t.Errorf("the log has no stack: %s", log.String())
	}
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestServe_Page: the page at / says what mcpx is and which URL clients need.
func TestServe_Page(t *testing.T) {
	mcptest.NoLeaks(t)
	s := serve(t, Options{Endpoint: echoes, Version: "1.2.3"})
	if status, body := s.do(t, "GET", "/", ""); status != 200 || !strings.Contains(body, "mcpx 1.2.3") || !strings.Contains(body, s.url+"/mcp\n") {
		t.Errorf("%d: %s", status, body)
	}
	guarded := serve(t, Options{Endpoint: echoes, Identity: verifierOf(guardedBy(t, "", "a")).Verifier})
	for site, want := range map[*site]bool{s: false, guarded: true} {
		if _, body := site.do(t, "GET", "/", ""); strings.Contains(body, "Authorization: Bearer TOKEN") != want {
			t.Errorf("it is %v that tokens are needed: %s", want, body)
		}
	}
	if status, body := s.do(t, "POST", "/", ping); status != 405 || !strings.Contains(body, "the MCP endpoint is /mcp") {
		t.Errorf("a client without the path: %d: %s", status, body)
	}
	response, err := http.Post(s.url+"/", "application/json", strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("a client without the path: Allow: %q", response.Header.Get("Allow"))
	}
	if status, body := s.do(t, "GET", "/", "", "Origin: https://example.com"); status != 403 || strings.Contains(body, "mcpx") {
		t.Errorf("from elsewhere: %d: %s", status, body)
	}
}

func TestServe_Health(t *testing.T) {
	mcptest.NoLeaks(t)
	ready := false
	s := serve(t, Options{Endpoint: echoes, Ready: func() (Readiness, any) { return Readiness{Ready: ready}, map[string]int{"tools": 7} }, Status: func() any { return "up" }})
	if status, body := s.do(t, "GET", "/healthz", ""); status != 200 || !strings.Contains(body, "ok") {
		t.Errorf("/healthz: %d %s", status, body)
	}
	if status, body := s.do(t, "GET", "/readyz", ""); status != 503 || !strings.Contains(body, `"tools":7`) {
		t.Errorf("/readyz before: %d %s", status, body)
	}
	ready = true
	if status, body := s.do(t, "GET", "/readyz", ""); status != 200 || !strings.Contains(body, `"tools":7`) {
		t.Errorf("/readyz after: %d %s", status, body)
	}
	if status, body := s.do(t, "GET", "/status", ""); status != 200 || !strings.Contains(body, "up") {
		t.Errorf("/status: %d %s", status, body)
	}
	for _, path := range []string{"/x", "/metrics", "/mcpx", "/debug/pprof/"} {
		if status, _ := s.do(t, "GET", path, ""); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _ := s.do(t, "POST", "/healthz", ping); status != 405 {
		t.Errorf("POST /healthz: %d", status)
	}
}

// TestServe_ProbesHost: probes are answered whatever their Host, which load balancers choose. They then get only the public
// content, as a web page could have sent them by DNS rebinding. Nothing else is served under another Host, and a page of
// another Origin gets nothing.
func TestServe_ProbesHost(t *testing.T) {
	mcptest.NoLeaks(t)
	s := serve(t, Options{Endpoint: echoes, Ready: func() (Readiness, any) {
		return Readiness{Ready: true, Degraded: []string{"audit"}}, map[string]int{"tools": 7}
	}})
	for _, host := range []string{"10.1.2.3", "10.1.2.3:8080", "mcpx.default.svc", "kube-probe", "elsewhere.example.com:80"} {
		if status, body := s.do(t, "GET", "/healthz", "", "Host: "+host); status != 200 || !strings.Contains(body, "ok") {
			t.Errorf("%s: /healthz: %d %s", host, status, body)
		}
		if status, body := s.do(t, "GET", "/readyz", "", "Host: "+host); status != 200 || strings.Contains(body, "tools") || !strings.Contains(body, `"ready":true,"degraded":["audit"]`) {
			t.Errorf("%s: /readyz: %d %s", host, status, body)
		}
		for _, path := range []string{"/", "/mcp", "/status", "/healthz/", "/readyz/x", "//readyz"} {
			if status, _ := s.do(t, "GET", path, "", "Host: "+host); status != 403 {
				t.Errorf("%s: %s: %d", host, path, status)
			}
		}
		if status, _ := s.do(t, "GET", "/readyz", "", "Host: "+host, "Origin: http://"+host); status != 403 {
			t.Errorf("%s: from a page: %d", host, status)
		}
	}
}

// TestServe_Drain: while the server drains, /readyz is 503 and everything else is served as before, over new connections too.
// Each response asks its client for a new connection next time. Then the listener closes, and open requests have the grace.
func TestServe_Drain(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		listener := &crowd{ended: make(chan struct{}), conns: make(chan net.Conn)}
		entered, finish := make(chan struct{}, 1), make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { // ends after stop
			served <- Serve(ctx, listener, Options{
				Endpoint: stub(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == "DELETE" {
						entered <- struct{}{}
						<-finish
					}
					io.WriteString(w, "served")
				}),
				Ready: func() (Readiness, any) { return Readiness{Ready: true}, nil }, Logger: slog.New(slog.DiscardHandler),
				Drain: 5 * time.Second, Grace: 3 * time.Second,
			})
		}()
		web := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case <-listener.ended:
				return nil, net.ErrClosed
			default:
				return listener.dial(t, "127.0.0.1"), nil
			}
		}}}
		defer web.CloseIdleConnections()
		do := func(method, path string) (status int, body string, closes bool, err error) {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := web.Do(request)
			if err != nil {
				return 0, "", false, err
			}
			defer response.Body.Close()
			data, err := io.ReadAll(response.Body)
			return response.StatusCode, string(data), response.Close, err
		}
		check := func(when string, ready int, closing bool) {
			t.Helper()
			if status, body, closes, err := do("GET", "/readyz"); err != nil || status != ready || closes != closing || closing && !strings.Contains(body, `["draining"]`) {
				t.Errorf("%s: /readyz: %d %s %t %v", when, status, body, closes, err)
			}
			if status, _, _, err := do("GET", "/healthz"); err != nil || status != 200 {
				t.Errorf("%s: /healthz: %d %v", when, status, err)
			}
			if status, body, closes, err := do("POST", "/mcp"); err != nil || status != 200 || body != "served" || closes != closing {
				t.Errorf("%s: %d %s %t %v", when, status, body, closes, err)
			}
		}
		check("before", 200, false)
		slow := make(chan string, 1)
		go func() { // ends after finish was closed
			_, body, _, err := do("DELETE", "/mcp")
			slow <- fmt.Sprint(body, err)
		}()
		<-entered
		began := time.Now()
		stop()
		synctest.Wait()
		check("at once", 503, true)
		time.Sleep(5*time.Second - time.Millisecond)
		check("just before the end of the drain", 503, true)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if _, _, _, err := do("GET", "/readyz"); err == nil {
			t.Error("after the drain, the listener is open")
		}
		close(finish)
		if got := <-slow; got != "served<nil>" {
			t.Errorf("the open request: %s", got)
		}
		if err := <-served; err != nil || time.Since(began) > 8*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// whole serves all of mcpx, with one fake upstream.
func whole(t *testing.T, grace time.Duration) (*site, *mcptest.HTTPServer) {
	t.Helper()
	return wholeWith(t, Options{Grace: grace})
}

func wholeWith(t *testing.T, o Options) (*site, *mcptest.HTTPServer) {
	t.Helper()
	o.Limits = cmp.Or(o.Limits, limits.New(conf.Limits{}))
	fake := mcptest.Spec{}.HTTP(t)
	r := registry.New([]registry.Server{{Spec: upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}}}, registry.Options{})
	e := executor.New(r, executor.Options{Journal: o.Journal})
	r.Use(e.Chain(nil, o.Limits.Limit)...)
	two := view.NewTwoTools(r, e, view.Options{})
	f := front.New(two, front.Options{Version: "test", Journal: o.Journal, Admission: o.Limits})
	r.Start()
	t.Cleanup(func() {
		f.Close()
		two.Close()
		r.Close(time.Second)
	})
	o.Endpoint = f
	return serve(t, o), fake
}

// visitor is a client of a site.
type visitor struct {
	site    *site
	session string // empty for a client of the modern protocol version
	// version is the protocol version that is sent with every request.
	version string
}

func (s *site) legacy(t *testing.T) *visitor {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	c := &visitor{site: s, session: response.Header.Get("Mcp-Session-Id"), version: "2025-06-18"}
	if c.session == "" {
		t.Fatalf("no session: %s", response.Status)
	}
	c.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (s *site) modern() *visitor { return &visitor{site: s, version: modernVersion} }

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func (c *visitor) post(t *testing.T, body string) (int, string) {
	t.Helper()
	headers := []string{"Mcp-Protocol-Version: " + c.version}
	if c.session != "" {
		headers = append(headers, "Mcp-Session-Id: "+c.session)
	}
	if c.version == modernVersion {
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		body = strings.Replace(body, `"params":{`, `"params":{`+meta+`,`, 1)
		headers = append(headers, "Mcp-Method: "+m.Method)
		if m.Params.Name != "" {
			headers = append(headers, "Mcp-Name: "+m.Params.Name)
		}
	}
	return c.site.do(t, "POST", "/mcp", body, headers...)
}

func slow(id, ms int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"slow","arguments":{"ms":%d}}}}`, id, ms)
}

// slowWhile is a call that ends once a file no longer exists.
func slowWhile(id int, file string) string {
	return strings.Replace(slow(id, 0), `"ms":0`, fmt.Sprintf(`"while":%q`, file), 1)
}

// TestServe_ForeignCancel: if a client cancels its request 7, request 7 of another client continues.
func TestServe_ForeignCancel(t *testing.T) {
	mcptest.NoLeaks(t)
	s, fake := whole(t, 0)
	victims := map[string]*visitor{"legacy": s.legacy(t), "modern": s.modern()}
	attackers := map[string]*visitor{"legacy": s.legacy(t), "modern": s.modern(), "sessionless": {site: s, version: "2025-06-18"}}
	for name, victim := range victims {
		t.Run(name, func(t *testing.T) {
			before := len(fake.Log().Calls("slow"))
			answer := make(chan string, 1)
			go func() { // ends when the answer has come
				_, body := victim.post(t, slow(7, 700))
				answer <- body
			}()
			mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) > before })
			for _, attacker := range attackers {
				for _, body := range []string{
					`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
					`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`,
					`{"jsonrpc":"2.0","method":"ping","Method":"notifications/cancelled","params":{"requestId":7}}`,
					`{"jsonrpc":"2.0","method":"notifications/initialized","params":{"requestId":7},"METHOD":"notifications/cancelled"}`,
				} {
					attacker.post(t, body)
				}
			}
			if body := <-answer; !strings.Contains(body, "slept 700 ms") {
				t.Errorf("the call was cancelled: %s", body)
			}
		})
	}
	// A client can cancel its own request. This shows that the cases above send valid cancellations.
	t.Run("its own", func(t *testing.T) {
		victim, before := victims["legacy"], len(fake.Log().Calls("slow"))
		answer := make(chan string, 1)
		go func() { // ends when the answer has come
			_, body := victim.post(t, slow(8, 600000))
			answer <- body
		}()
		mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) > before })
		victim.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
		if body := <-answer; strings.Contains(body, "slept") {
			t.Errorf("not cancelled: %s", body)
		}
		mcptest.WaitFor(t, "the cancellation upstream", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) > 0 })
	})
}

// TestServe_Shutdown: the shutdown does not wait for streams. It waits until a call is answered, but ends a call that
// is still open when Grace has passed.
func TestServe_Shutdown(t *testing.T) {
	for _, test := range []struct {
		name  string
		grace time.Duration
		call  bool // whether a call is open; it ends in time if the grace is long enough
	}{
		{"streams only", time.Hour, false},
		{"a call that ends", time.Hour, true},
		{"a call without end", time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			s, fake := whole(t, test.grace)
			legacy, modern := s.legacy(t), s.modern()
			streams := make(chan struct{}, 2)
			for _, open := range []func(*testing.T, chan<- struct{}){legacy.listen, modern.listen} {
				opened := make(chan struct{})
				go func() { // ends with the shutdown
					open(t, opened)
					streams <- struct{}{}
				}()
				<-opened
			}
			ends := test.grace == time.Hour
			working := filepath.Join(t.TempDir(), "working")
			if err := os.WriteFile(working, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			answer := make(chan string, 1)
			if test.call {
				go func() { // ends with the shutdown
					_, body := modern.post(t, slowWhile(1, working))
					answer <- body
				}()
				mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) > 0 })
			}
			began := time.Now()
			s.stop()
			<-streams
			<-streams
			if test.call && ends {
				select {
				case <-s.served:
					t.Error("the end did not wait for the call")
				default:
				}
				os.Remove(working)
			}
			<-s.served
			if took := time.Since(began); test.call && !ends && took < test.grace {
				t.Errorf("the end took %v, the grace is %v", took, test.grace)
			}
			if test.call {
				if body := <-answer; strings.Contains(body, "slept") != ends {
					t.Errorf("the call got %q", body)
				}
			}
		})
	}
}

// listen opens a stream of events for a client, and reads it to its end.
func (c *visitor) listen(t *testing.T, opened chan<- struct{}) {
	defer close(opened)
	method, body := "GET", ""
	if c.version == modernVersion {
		method = "POST"
		body = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + meta + `,"notifications":{"toolsListChanged":true}}}`
	}
	request, err := http.NewRequestWithContext(t.Context(), method, c.site.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "text/event-stream, application/json",
		"Mcp-Protocol-Version": c.version, "Mcp-Session-Id": c.session, "Mcp-Method": "subscriptions/listen",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Errorf("listening: %v", err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		t.Errorf("listening: %s", response.Status)
	}
	opened <- struct{}{}
	io.Copy(io.Discard, response.Body)
}
