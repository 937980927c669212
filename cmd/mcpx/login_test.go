package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// guarded is an MCP server that requires logins at a real authorization server (npm's oidc-provider). For each
// token it asks the authorization server whether the token is valid.
type guarded struct {
	url, issuer string
	suite       suite
	inner       *mcptest.HTTPServer // the MCP server itself; X-Sub tells it the subject of the request's token

	mu       sync.Mutex
	resource string // the resource in the metadata
	scopes   string // the scopes that a token must have
	tokens   []string
	dead     []string // tokens that are no longer accepted
	repeats  bool     // errors repeat the received token
	client   string   // the id of the client that requested the last login
	// answer, if not nil, may answer a request to the authorization server in its place. It returns true if it has.
	answer func(w http.ResponseWriter, r *http.Request) bool
	behind http.Handler               // the handler for requests with a valid token
	change func(*http.Response) error // if not nil, changes an answer of the authorization server
	asked  map[string]int             // number of requests to the authorization server, by path
}

// with changes settings while the server handles requests.
func (g *guarded) with(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func (g *guarded) count(path string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[path]
}

// seen returns the tokens in the requests so far.
func (g *guarded) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.tokens)
}

func (g *guarded) lastClient() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.client
}

// guard starts both servers. lifetime is how many seconds an access token is valid; more are further settings of the
// authorization server.
func guard(t *testing.T, lifetime int, more ...map[string]any) *guarded {
	t.Helper()
	g := &guarded{suite: findSuite(t), scopes: "mcp", asked: map[string]int{}}
	front := httptest.NewUnstartedServer(nil)
	g.issuer = "http://" + front.Listener.Addr().String()
	settings := map[string]any{"issuer": g.issuer, "lifetime": lifetime}
	for _, one := range more {
		maps.Copy(settings, one)
	}
	to := &url.URL{Scheme: "http", Host: "127.0.0.1:" + provider(t, settings)}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
		},
		ModifyResponse: func(resp *http.Response) error {
			g.mu.Lock()
			change := g.change
			g.mu.Unlock()
			if change != nil {
				return change(resp)
			}
			return nil
		},
	}
	front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.asked[r.URL.Path]++
		if r.URL.Path == "/auth" {
			g.client = r.URL.Query().Get("client_id")
		}
		answer := g.answer
		g.mu.Unlock()
		if answer == nil || !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})
	front.Start()
	t.Cleanup(front.Close)

	g.inner = mcptest.Spec{}.HTTP(t)
	behind, err := url.Parse(g.inner.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind.Host})
	pass.FlushInterval = -1
	g.behind = pass
	server := httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(server.Close)
	g.url = server.URL + "/mcp"
	g.resource = g.url
	return g
}

// serve handles the requests to the MCP server.
func (g *guarded) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	pass, resource, scopes, repeats := g.behind, g.resource, g.scopes, g.repeats
	g.mu.Unlock()
	metadata := strings.TrimSuffix(g.url, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
	if r.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": resource, "authorization_servers": []string{g.issuer}, "scopes_supported": []string{"mcp", "more"}})
		return
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	challenge := fmt.Sprintf(`Bearer resource_metadata=%q, scope=%q`, metadata, scopes)
	granted, sub, ok := g.introspect(token)
	switch {
	case !ok && repeats:
		http.Error(w, "the token "+token+" is not good", http.StatusUnauthorized)
		return
	case !ok:
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "no good token", http.StatusUnauthorized)
		return
	case slices.ContainsFunc(strings.Fields(scopes), func(scope string) bool { return !slices.Contains(granted, scope) }):
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
		http.Error(w, "too little", http.StatusForbidden)
		return
	}
	r.Header.Del("Authorization")
	r.Header.Set("X-Sub", sub)
	pass.ServeHTTP(w, r)
}

// introspect asks the authorization server, by token introspection, whether a token is valid for g.
func (g *guarded) introspect(token string) (scopes []string, sub string, ok bool) {
	if token == "" {
		return nil, "", false
	}
	dead := false
	g.with(func() {
		g.tokens = append(g.tokens, token)
		dead = slices.Contains(g.dead, token)
	})
	if dead {
		return nil, "", false
	}
	req, _ := http.NewRequest(http.MethodPost, g.issuer+"/token/introspection", strings.NewReader(url.Values{"token": {token}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Introspection", "1")
	req.SetBasicAuth("resource", "resource-secret-of-the-tests")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", false
	}
	defer resp.Body.Close()
	var said struct {
		Active bool
		Aud    any
		Scope  string
		Sub    string
	}
	_ = json.NewDecoder(resp.Body).Decode(&said)
	return strings.Fields(said.Scope), said.Sub, said.Active && said.Aud == g.url
}

// admin calls a test endpoint of the authorization server that changes its state.
func (g *guarded) admin(t *testing.T, path string) {
	t.Helper()
	resp, err := http.Post(g.issuer+path, "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(resp.Body)
		t.Errorf("%s: %s %s", path, resp.Status, why)
	}
}

var formAction = regexp.MustCompile(`<form[^>]*action="([^"]+)"[\s\S]*?name="prompt" value="([^"]+)"`)

// browse acts as a user with a browser: it opens the page, logs in, gives consent, and follows the redirect
// back to mcpx. It returns the last page.
func browse(t *testing.T, address string) string {
	t.Helper()
	page, _ := browseFrom(t, address, func(*http.Request, []*http.Request) error { return nil })
	return page
}

// browseFrom acts as a browser. It follows a redirect if the func follow returns nil; last is the address of the redirect that
// it did not follow.
func browseFrom(t *testing.T, address string, follow func(*http.Request, []*http.Request) error) (page, last string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	web := &http.Client{Jar: jar, Timeout: patience, CheckRedirect: follow}
	resp, err := web.Get(address)
	for range 5 {
		if err != nil {
			t.Fatalf("browsing: %v", err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		form := formAction.FindStringSubmatch(string(body))
		if form == nil {
			return string(body), resp.Header.Get("Location")
		}
		resp, err = web.PostForm(form[1], url.Values{"prompt": {form[2]}, "login": {"anna"}, "password": {"any"}})
	}
	t.Fatal("browsing does not end")
	return "", ""
}

// login runs mcpx login; the function browse acts as the user.
func (h *home) login(t *testing.T, code int, args ...string) (output, page string) {
	t.Helper()
	cmd := h.command(t, append([]string{"login", "--no-browser"}, args...)...)
	output, _ = visit(t, cmd, func(to string) { page = browse(t, to) })
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("login %q: exit %d, want %d\n%s\npage: %s", args, got, code, output, page)
	}
	return output, page
}

// TestLogin: mcpx discovers the authorization server and registers, the user logs in, a running mcpx uses the
// login, and logout revokes it.
func TestLogin(t *testing.T) {
	mcptest.Parallel(t)
	checkLogin(t, newHome(t))
}

func checkLogin(t *testing.T, h *home) (path string) {
	g := guard(t, 600)
	path = h.config(t, map[string]server{"tracker": {"url": g.url}}, nil)
	stdout, _, code := h.run(t, "", "check", "--config", path)
	if code != 1 || !strings.Contains(stdout, "needs mcpx login tracker") {
		t.Fatalf("check: exit %d\n%s", code, stdout)
	}
	peer := &client{peer: h.serveStdio(t, "--config", path, "serve"), era: legacy, name: "e2e"}
	peer.open(t)
	if got := peer.exec(t, "tracker", "echo", `{"text":"x"}`).text(t); !strings.HasPrefix(got, "SERVER_UNAVAILABLE") || !strings.Contains(got, "needs mcpx login tracker") {
		t.Fatalf("before the login: %s", got)
	}
	out, page := h.login(t, 0, "--config", path, "tracker")
	if !strings.Contains(out, "logged in to tracker at "+g.issuer) || !strings.Contains(page, "mcpx is logged in to tracker") {
		t.Fatalf("login: %s\n%s", out, page)
	}
	peer.awaitReady(t, "tracker")
	if got := peer.exec(t, "tracker", "echo", `{"text":"x"}`).text(t); got != "x" {
		t.Fatalf("after the login: %s", got)
	}
	registrations := g.count("/reg")
	h.login(t, 0, "--config", path, "tracker")
	if g.count("/reg") != registrations {
		t.Error("a second login registered mcpx again")
	}
	h.login(t, 0, "--config", path, "tracker", "--new")
	if g.count("/reg") != registrations+1 {
		t.Error("login --new did not register mcpx again")
	}
	if got := peer.exec(t, "tracker", "echo", `{"text":"y"}`).text(t); got != "y" {
		t.Fatalf("with another login: %s", got)
	}
	stdout, _, _ = h.run(t, "", "logout", "--config", path, "tracker")
	if stdout != "logged out of tracker\n" {
		t.Errorf("logout: %s", stdout)
	}
	if _, _, ok := g.introspect(g.tokens[len(g.tokens)-1]); ok {
		t.Error("the token still counts after the logout")
	}
	if got := peer.exec(t, "tracker", "echo", `{"text":"x"}`).text(t); !strings.Contains(got, "needs mcpx login tracker") {
		t.Errorf("after the logout: %s", got)
	}
	return path
}

// TestLogin_Pasted: the browser runs on another machine, so the user pastes the address of its last redirect. The first line that
// the user pastes is another one.
func TestLogin_Pasted(t *testing.T) {
	t.Parallel()
	g, h := guard(t, 600), newHome(t)
	path := h.config(t, map[string]server{"tracker": {"url": g.url}}, nil)
	elsewhere := func(next *http.Request, _ []*http.Request) error {
		if next.URL.Path == "/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	cmd := h.command(t, "login", "--no-browser", "--config", path, "tracker")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := visit(t, cmd, func(page string) {
		_, last := browseFrom(t, page, elsewhere)
		fmt.Fprintf(stdin, "%s\n%s\n", page, last)
	})
	if err != nil || !strings.Contains(out, "not the redirect address of this login; paste") || !strings.Contains(out, "logged in to tracker") {
		t.Errorf("%v\n%s", err, out)
	}
}
