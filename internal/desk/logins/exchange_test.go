package logins

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/base/conf"
)

// exchanger is an MCP server and its authorization server, which exchanges tokens.
type exchanger struct {
	url  string
	life atomic.Int64 // expires_in of tokens; 0 leaves expires_in out

	mu     sync.Mutex
	asked  []url.Values // the forms that the token endpoint received
	dead   map[string]bool
	names  string        // the authorization server that the MCP server names
	refuse string        // if not empty, the error response to all exchanges
	hold   chan struct{} // if not nil, the token endpoint answers once it is closed
	calls  []string      // the Authorization headers that the MCP server received
}

func newExchanger(t *testing.T) *exchanger {
	x := &exchanger{dead: map[string]bool{}}
	x.life.Store(600)
	web := httptest.NewServer(x)
	t.Cleanup(web.Close)
	x.url, x.names = web.URL, web.URL
	return x
}

func (x *exchanger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		x.mu.Lock()
		defer x.mu.Unlock()
		fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%s"]}`, x.url, x.names)
	case "/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"%s/token","code_challenge_methods_supported":["S256"]}`, x.url, x.url)
	case "/token":
		x.mu.Lock()
		hold, refuse := x.hold, x.refuse
		x.mu.Unlock()
		if hold != nil {
			<-hold
		}
		_ = r.ParseForm()
		x.mu.Lock()
		defer x.mu.Unlock()
		x.asked = append(x.asked, maps.Clone(r.PostForm))
		if refuse != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, refuse)
			return
		}
		fmt.Fprintf(w, `{"access_token":"%d-for-%s","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer"`, len(x.asked), r.PostForm.Get("subject_token"))
		if life := x.life.Load(); life != 0 {
			fmt.Fprintf(w, `,"expires_in":%d`, life)
		}
		fmt.Fprint(w, "}")
	default:
		x.mu.Lock()
		defer x.mu.Unlock()
		token := r.Header.Get("Authorization")
		x.calls = append(x.calls, token)
		switch {
		case strings.HasSuffix(r.URL.Path, "/more"):
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="more"`)
			w.WriteHeader(http.StatusForbidden)
		case token == "" || x.dead["all"] || x.dead[token]:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}

func (x *exchanger) set(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

// caller returns a func that makes requests as a caller whose own token is subject, from the issuer x.
func (x *exchanger) caller(of func(string, func() string) (func(http.RoundTripper) http.RoundTripper, func() []string), subject string) func(path string) (int, error) {
	wrap, _ := of(x.principal(), func() string { return subject })
	web := &http.Client{Transport: wrap(http.DefaultTransport)}
	return func(path string) (int, error) {
		resp, err := web.Post(x.url+"/mcp"+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, nil
	}
}

func (x *exchanger) principal() string { return x.url + " ann" }

func (x *exchanger) server() Server {
	return Server{Name: "tracker", URL: x.url + "/mcp", OAuth: conf.OAuth{ClientID: "mcpx", ClientSecret: "s", Scopes: []string{"a", "b"}, Audience: "api"}}
}

// TestExchange: many requests of two callers cause one exchange for each caller. The MCP server receives the exchanged
// tokens, never the callers' own.
func TestExchange(t *testing.T) {
	x := newExchanger(t)
	l := New("", nil)
	of := l.Exchange(x.server())
	hold := make(chan struct{})
	x.set(func() { x.hold = hold })
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if status, err := x.caller(of, fmt.Sprintf("jwt-%d", i%2))(""); status != http.StatusOK || err != nil {
				t.Errorf("%d %v", status, err)
			}
		})
	}
	close(hold)
	all.Wait()
	x.set(func() {
		if len(x.asked) != 2 {
			t.Fatalf("%d exchanges", len(x.asked))
		}
		for key, want := range map[string]string{
			"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "resource": x.url + "/mcp", "audience": "api", "scope": "a b",
			"subject_token_type": "urn:ietf:params:oauth:token-type:access_token", "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
		} {
			if got := x.asked[0].Get(key); got != want {
				t.Errorf("%s: %q, want %q", key, got, want)
			}
		}
		with := map[string]int{}
		for _, token := range x.calls {
			if _, of, ok := strings.Cut(token, "-for-"); ok {
				with[of]++
			} else if token != "" { // without a token: the request that finds out whether the server wants a login
				t.Errorf("a call with %q", token)
			}
		}
		if with["jwt-0"] != 10 || with["jwt-1"] != 10 {
			t.Errorf("calls with %v", with)
		}
	})
	l.Close(0)
}

// TestExchange_Refused: if the server refuses an exchanged token, mcpx exchanges the caller's token once more. A clear
// error follows if the server refuses that too, or if the authorization server refuses the exchange.
func TestExchange_Refused(t *testing.T) {
	x := newExchanger(t)
	l := New("", nil)
	call := x.caller(l.Exchange(x.server()), "jwt")
	exchanges := func() (n int) {
		x.set(func() { n = len(x.asked) })
		return n
	}
	if status, err := call(""); status != http.StatusOK || err != nil || exchanges() != 1 {
		t.Fatalf("%d %v", status, err)
	}
	x.set(func() { x.dead["Bearer 1-for-jwt"] = true })
	if status, err := call(""); status != http.StatusOK || err != nil || exchanges() != 2 {
		t.Errorf("after a refusal: %d %v, %d exchanges", status, err, exchanges())
	}
	x.set(func() { x.dead["all"] = true })
	for range 3 {
		if _, err := call(""); err == nil || !strings.Contains(err.Error(), "the server refuses the token that was exchanged for the caller") {
			t.Errorf("refused for ever: %v", err)
		}
	}
	if exchanges() != 3 {
		t.Errorf("%d exchanges of a token that is never taken", exchanges())
	}
	x.set(func() { delete(x.dead, "all") })
	if status, err := call("/more"); err == nil || !strings.Contains(err.Error(), "see oauth.scopes (it asks for more)") {
		t.Errorf("too few rights: %d %v", status, err)
	}
	x.set(func() { x.refuse = `{"error":"invalid_target","error_description":"no such audience"}` })
	other := x.caller(l.Exchange(x.server()), "jwt")
	if _, err := other(""); err == nil || !strings.Contains(err.Error(), "exchanging the caller's token: the authorization server "+x.url+" says invalid_target: no such audience") {
		t.Errorf("refused by the authorization server: %v", err)
	}
	x.set(func() { x.refuse = "" })
	if status, err := other(""); status != http.StatusOK || err != nil {
		t.Errorf("the next call: %d %v", status, err)
	}
}

// TestExchange_Ends: an expired token is replaced by a new exchange, and the number of kept tokens is bounded.
func TestExchange_Ends(t *testing.T) {
	x := newExchanger(t)
	l := New("", nil)
	of := l.Exchange(x.server())
	x.life.Store(-1)
	call := x.caller(of, "jwt")
	for range 2 {
		if status, err := call(""); status != http.StatusOK || err != nil {
			t.Fatalf("%d %v", status, err)
		}
	}
	if len(x.asked) != 2 {
		t.Errorf("%d exchanges of tokens that end at once", len(x.asked))
	}
	x.life.Store(0)
	for range 2 {
		_, _ = call("")
	}
	if len(x.asked) != 3 {
		t.Errorf("%d exchanges, the last of a token that does not say when it ends", len(x.asked))
	}
	s := newExchanges(l, x.server(), http.DefaultClient)
	for i := range 2*maxExchanged + 10 {
		if _, err := s.get(context.Background(), x.principal(), fmt.Sprint(i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.kept.Len(); n > 2*maxExchanged || n < maxExchanged {
		t.Errorf("%d are kept", n)
	}
	last := len(x.asked)
	if _, err := s.get(context.Background(), x.principal(), fmt.Sprint(2*maxExchanged+9), ""); err != nil || len(x.asked) != last {
		t.Errorf("the newest is not kept: %v", err)
	}
}

// TestExchange_Elsewhere: if the server's URL is plain HTTP to another machine, nothing is sent to the server, and the caller's
// token is sent nowhere.
func TestExchange_Elsewhere(t *testing.T) {
	s := Server{Name: "tracker", URL: "http://192.0.2.1/mcp", OAuth: conf.OAuth{ClientID: "mcpx"}}
	wrap, _ := New("", nil).Exchange(s)("", func() string { return "jwt" })
	none := base(func(*http.Request) { t.Error("a request was sent") })
	req, _ := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("{}"))
	if _, err := wrap(none).RoundTrip(req); err == nil || !strings.Contains(err.Error(), "over https") {
		t.Errorf("got %v", err)
	}
}

type base func(*http.Request)

func (f base) RoundTrip(req *http.Request) (*http.Response, error) {
	f(req)
	return nil, context.Canceled
}

// TestExchange_Foreign: without oauth.issuer, the token of a caller goes to its own issuer alone, whatever authorization server the server
// names: at first, or later.
func TestExchange_Foreign(t *testing.T) {
	x, other := newExchanger(t), newExchanger(t)
	server := newExchanges(New("", nil), x.server(), http.DefaultClient)
	of := server.caller
	later := func() { // what was discovered is staysFor old
		server.mu.Lock()
		defer server.mu.Unlock()
		for _, at := range server.at {
			at.value.since = at.value.since.Add(-2 * staysFor)
		}
	}
	refused := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), other.url+", which did not issue the caller's token; if it may get this token, set oauth.issuer") {
			t.Errorf("got %v", err)
		}
		if other.set(func() {}); len(other.asked) > 0 {
			t.Errorf("the other authorization server got %v", other.asked)
		}
	}
	x.names = other.url
	_, err := x.caller(of, "jwt-1")("")
	refused(err)
	later()
	_, err = x.caller(of, "jwt-1")("")
	refused(err)
	_, err = server.get(t.Context(), "", "jwt-0", "") // a caller without an ID has no issuer
	refused(err)
	x.set(func() { x.names = x.url })
	if status, err := x.caller(of, "jwt-1")(""); status != http.StatusOK || err != nil {
		t.Fatalf("%d %v", status, err)
	}
	x.set(func() { x.refuse, x.names = "<html>", other.url })
	later()
	if _, err := x.caller(of, "jwt-2")(""); err == nil {
		t.Error("exchanged with a failing authorization server")
	}
	_, err = x.caller(of, "jwt-2")("")
	refused(err)
	named := x.server()
	named.Issuer = other.url
	if _, err := x.caller(New("", nil).Exchange(named), "jwt-1")(""); len(other.asked) != 1 {
		t.Errorf("with oauth.issuer: asked %v, %v", other.asked, err)
	}
}

// TestExchange_Moved: a server that names another authorization server later gets the secret of oauth.client_id sent to that one only if
// the config has its issuer. This holds for tokens of mcpx itself.
func TestExchange_Moved(t *testing.T) {
	x, other := newExchanger(t), newExchanger(t)
	l := New("", nil)
	moved := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "tracker now names the authorization server "+other.url) || !strings.Contains(err.Error(), "oauth.issuer") {
			t.Errorf("moved: %v", err)
		}
		if other.set(func() {}); len(other.asked) > 0 {
			t.Errorf("the other authorization server got %v", other.asked)
		}
	}
	own := x.server()
	own.Grant = ClientCredentials
	source := l.source(own)
	token, err := source.refused(t.Context(), "", &http.Response{StatusCode: http.StatusUnauthorized})
	if err != nil || token == "" {
		t.Fatalf("%q %v", token, err)
	}
	x.set(func() { x.refuse, x.names = "<html>", other.url })
	source.worked(token)
	_, err = source.refused(t.Context(), token, &http.Response{StatusCode: http.StatusUnauthorized})
	moved(err)
	own.Issuer = other.url
	if token, err := l.source(own).refused(t.Context(), "", &http.Response{StatusCode: http.StatusUnauthorized}); err != nil || token == "" {
		t.Errorf("with oauth.issuer: %q %v", token, err)
	}
}

// TestExchange_Issuers: the token of each caller is exchanged at its own issuer, if the server names several authorization
// servers. A caller of an issuer that the server does not name is refused, and further requests do not search for the
// authorization server again.
func TestExchange_Issuers(t *testing.T) {
	x, other, foreign := newExchanger(t), newExchanger(t), newExchanger(t)
	x.names = other.url + `","` + x.url
	of := New("", nil).Exchange(x.server())
	as := func(issuer *exchanger, subject string) (int, error) {
		wrap, _ := of(issuer.principal(), func() string { return subject })
		resp, err := (&http.Client{Transport: wrap(http.DefaultTransport)}).Post(x.url+"/mcp", "application/json", strings.NewReader("{}"))
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		return resp.StatusCode, nil
	}
	for range 2 {
		for _, issuer := range []*exchanger{x, other} {
			if status, err := as(issuer, "jwt-of "+issuer.url); status != http.StatusOK || err != nil {
				t.Errorf("%d %v", status, err)
			}
		}
	}
	for _, issuer := range []*exchanger{x, other} {
		if issuer.set(func() {}); len(issuer.asked) != 1 || issuer.asked[0].Get("subject_token") != "jwt-of "+issuer.url {
			t.Errorf("asked %v", issuer.asked)
		}
	}
	var before int
	for i := range 3 {
		if _, err := as(foreign, fmt.Sprint("jwt-", i)); err == nil || !strings.Contains(err.Error(), "which did not issue the caller's token") {
			t.Errorf("a caller of another issuer: %v", err)
		}
		if i == 0 {
			x.set(func() { before = len(x.calls) })
		}
	}
	if x.set(func() {}); len(x.calls) != before {
		t.Errorf("%d searches for the authorization server", len(x.calls)-before)
	}
}
