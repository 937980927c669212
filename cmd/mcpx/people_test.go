package main

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// company is an mcpx in which each person logs in to the server tracker with an account of their own.
type company struct {
	*hosted
	h       *home
	tracker *guarded
	base    string // the public URL, from which a proxy forwards to the daemon
	tokens  map[string]string
	*recorder
}

// recorder has the calls of a server: the subject of the token, and the text of the call.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

// record records the calls of a server from now on.
func record(g *guarded) *recorder {
	c, behind := &recorder{}, g.behind
	g.with(func() {
		g.behind = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if text := echoed.FindSubmatch(body); text != nil && bytes.Contains(body, []byte("tools/call")) {
				c.mu.Lock()
				c.calls = append(c.calls, r.Header.Get("X-Sub")+" "+string(text[1]))
				c.mu.Unlock()
			}
			behind.ServeHTTP(w, r)
		})
	})
	return c
}

var echoed = regexp.MustCompile(`"text":"([^"]*)"`)

// startCompany starts an mcpx with a token for each of these people. front has keys of auth.front; nil means none.
func startCompany(t *testing.T, front map[string]any, people ...string) *company {
	t.Helper()
	c := &company{h: newHome(t), tracker: guard(t, 600), tokens: make(map[string]string)}
	c.recorder = record(c.tracker)
	proxy := httptest.NewUnstartedServer(nil)
	c.base = "http://" + proxy.Listener.Addr().String()
	auth := map[string]any{"resource": c.base + "/mcp"}
	if front != nil {
		auth["front"] = front
	}
	servers := map[string]server{"tracker": {"url": c.tracker.url, "oauth": map[string]any{"per": "principal"}}}
	path := c.h.config(t, servers, map[string]any{"auth": auth})
	for _, who := range people {
		out, stderr, code := c.h.run(t, "", "--config", path, "token", "new", who)
		if code != 0 {
			t.Fatal(stderr)
		}
		c.tokens[who] = strings.TrimSpace(out)
	}
	c.hosted = c.h.serveHTTP(t, "--config", path)
	to, err := url.Parse(strings.TrimSuffix(c.hosted.url, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1
	proxy.Config.Handler = pass
	proxy.Start()
	t.Cleanup(proxy.Close)
	return c
}

// agent returns an agent of a person.
func (c *company) agent(t *testing.T, who, era string) *client {
	t.Helper()
	return c.agentWith(t, who, era, "")
}

func (c *company) agentWith(t *testing.T, who, era, caps string) *client {
	t.Helper()
	peer := c.peer(t)
	peer.header.Set("Authorization", "Bearer "+c.tokens[who])
	agent := &client{era: era, name: "e2e", peer: peer, caps: caps}
	agent.open(t)
	return agent
}

var connectLink = regexp.MustCompile(`http://[^\s"]+/connect\?to=[A-Za-z0-9_.-]+`)

// said makes a call with this text, and returns the answer and the link in it.
func (c *company) said(t *testing.T, agent *client, text string) (answer, link string) {
	t.Helper()
	raw := agent.exec(t, "tracker", "echo", `{"text":"`+text+`"}`)
	for _, block := range raw.Content {
		answer += string(block)
	}
	return answer, connectLink.FindString(answer)
}

// browser is the browser of one person, who logs in everywhere as login.
type browser struct {
	*http.Client
	login string
	hops  []string // the addresses that it was redirected to
	holds string   // the browser does not follow redirects to addresses that contain this text
}

func newBrowser(t *testing.T, login string) *browser {
	b := &browser{login: login}
	b.Client = &http.Client{Jar: newLoopbackJar(), Timeout: patience, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		b.hops = append(b.hops, next.URL.String())
		if b.holds != "" && strings.Contains(next.URL.String(), b.holds) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	t.Cleanup(b.CloseIdleConnections)
	return b
}

// visit opens an address and submits each form that it meets, logging in as b.login. It returns the first page that is an error
// or has no form that it may submit. fields says what the person adds: with "code", visit proves with that code who they are;
// without, it answers "Who are you?" only if the page lets them sign in as themselves. With "stop", it does not agree to connect.
func (b *browser) visit(t *testing.T, address string, fields url.Values) (status int, page string) {
	t.Helper()
	resp, err := b.Get(address)
	for range 10 {
		if err != nil {
			t.Fatalf("browsing: %v", err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		page, status = string(body), resp.StatusCode
		if _, next, again := strings.Cut(resp.Header.Get("Refresh"), "url="); again {
			resp, err = b.Get(next)
			continue
		}
		form := anyForm.FindString(page)
		if form == "" || status != http.StatusOK {
			return status, page
		}
		to := resp.Request.URL.String()
		if action := formTo.FindStringSubmatch(form); action != nil {
			to = html.UnescapeString(action[1])
		}
		values := url.Values{"login": {b.login}, "username": {b.login}, "password": {"password"}}
		for _, field := range formField.FindAllStringSubmatch(form, -1) {
			if field[2] != "" { // otherwise the user types it
				values.Set(field[1], html.UnescapeString(field[2]))
			}
		}
		switch {
		case strings.Contains(page, "Who are you?") && fields["code"] == nil && !strings.Contains(page, "Sign in as yourself"),
			strings.Contains(page, "is signed in as"):
			return status, page
		case strings.Contains(page, "Who are you?") && fields["code"] == nil:
			values.Set("answer", "prove")
		case strings.Contains(page, "Who are you?"):
			values.Set("answer", "code")
			values.Set("code", fields.Get("code"))
		case strings.Contains(page, "Connect tracker?"):
			if fields.Get("stop") != "" {
				return status, page
			}
			values.Set("answer", "go")
		}
		resp, err = b.PostForm(to, values)
	}
	t.Fatal("browsing does not end")
	return 0, ""
}

// code returns what mcpx login --for me prints for a person.
func (c *company) code(t *testing.T, who string) (link, code string) {
	t.Helper()
	out, stderr, exit := c.h.run(t, "", "login", "tracker", "--no-browser", "--for", "me", "--url", c.base, "--token", c.tokens[who])
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if exit != 0 || len(lines) < 3 || !strings.Contains(out, "as "+who) {
		t.Fatalf("%d\n%s\n%s", exit, out, stderr)
	}
	return connectLink.FindString(out), lines[len(lines)-1]
}

// TestPeople: two people log in to a server, each with an account of their own. With a code, each proves to mcpx whose browser it
// is. Until then, mcpx sends nothing to the server. Nobody can use the link, the code or the redirect of somebody else, and
// nobody can use one of them twice. Each call goes with the account of its caller, in both eras.
func TestPeople(t *testing.T) {
	mcptest.Parallel(t)
	c := startCompany(t, nil, "alice", "bob", "Alice")
	alice, bob := c.agent(t, "alice", modern), c.agent(t, "bob", legacy)
	answer, link := c.said(t, alice, "too early")
	if link == "" || !strings.Contains(answer, "alice") || len(c.tracker.seen()) > 0 || c.tracker.inner.Count("initialize") > 0 {
		t.Fatalf("%s; tokens seen: %d", answer, len(c.tracker.seen()))
	}
	if answer, link := c.said(t, bob, "too early"); link == "" {
		t.Fatal(answer)
	}

	// Bob opens the link of alice in his browser.
	of, code := c.code(t, "bob")
	thief := newBrowser(t, "berta")
	if status, page := thief.visit(t, link, url.Values{"code": {code}}); status != http.StatusForbidden {
		t.Errorf("the code of bob on the link of alice: %d %s", status, page)
	}
	if status, page := thief.visit(t, link, nil); status != http.StatusOK || !strings.Contains(page, "Who are you?") {
		t.Errorf("the link of alice: %d %s", status, page)
	}
	if status, _ := thief.visit(t, strings.Replace(link, "to=", "to=A", 1), nil); status != http.StatusBadRequest {
		t.Errorf("a changed link: %d", status)
	}
	if status, page := thief.visit(t, of, url.Values{"code": {code}}); status != http.StatusOK || !strings.Contains(page, "tracker is connected") {
		t.Fatalf("bob: %d %s", status, page)
	}
	if status, page := thief.visit(t, link, nil); !strings.Contains(page, "signed in as <strong>bob") {
		t.Errorf("the link of alice, seen by bob: %d %s", status, page)
	}
	if status, _ := newBrowser(t, "carl").visit(t, of, url.Values{"code": {code}}); status != http.StatusForbidden {
		t.Errorf("a code is used twice: %d", status)
	}
	if answer, link := c.said(t, alice, "still too early"); link == "" {
		t.Errorf("alice has the login of bob: %s", answer)
	}

	// Alice logs in. Other browsers try her redirect, before and after it has come to her own browser, and her own browser tries
	// it again.
	_, code = c.code(t, "alice")
	own := newBrowser(t, "anna")
	own.holds = "/connect/callback?"
	own.visit(t, link, url.Values{"code": {code}})
	back := own.hops[len(own.hops)-1]
	if !strings.Contains(back, own.holds) {
		t.Fatal(back)
	}
	_, another := c.code(t, "alice")
	other := newBrowser(t, "anna") // also a browser of alice, but not the one in which this login was begun
	if status, page := other.visit(t, link, url.Values{"code": {another}, "stop": {"yes"}}); !strings.Contains(page, "Connect tracker?") {
		t.Fatalf("another browser of alice: %d %s", status, page)
	}
	for who, b := range map[string]*browser{"bob": thief, "another browser of alice": other, "nobody": newBrowser(t, "carl")} {
		if status, page := b.visit(t, back, nil); status != http.StatusBadRequest || strings.Contains(page, "connected") {
			t.Errorf("the redirect of alice, in the browser of %s: %d %s", who, status, page)
		}
	}
	if status, page := own.visit(t, back, nil); !strings.Contains(page, "tracker is connected") {
		t.Fatalf("alice: %d %s", status, page)
	}
	for who, b := range map[string]*browser{"bob": thief, "alice": own, "nobody": newBrowser(t, "carl")} {
		if status, page := b.visit(t, back, nil); status != http.StatusBadRequest || strings.Contains(page, "connected") {
			t.Errorf("the redirect of alice again, by %s: %d %s", who, status, page)
		}
	}

	want := map[string]bool{}
	for _, era := range []string{legacy, modern} {
		for who, sub := range map[string]string{"alice": "anna", "bob": "berta"} {
			agent := c.agent(t, who, era)
			text := who + " in " + era
			if got := agent.exec(t, "tracker", "echo", `{"text":"`+text+`"}`).text(t); got != text {
				t.Errorf("%s: %s", text, got)
			}
			want[sub+" "+text] = true
		}
	}
	if answer, link := c.said(t, c.agent(t, "Alice", modern), "another one"); link == "" {
		t.Errorf("another letter is another person: %s", answer)
	}
	for _, call := range c.called() {
		if !want[call] {
			t.Errorf("the server was called by %q", call)
		}
		delete(want, call)
	}
	if len(want) > 0 {
		t.Errorf("no calls %v", want)
	}
	c.deleteToken(t)
	for _, token := range append(c.tracker.seen(), code) {
		if strings.Contains(c.stderr.String(), token) {
			t.Error("a token or a code is in the log")
		}
	}
}

// called returns the calls so far, and forgets them.
func (c *recorder) called() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.calls = c.calls, nil
	return all
}

// good looks at all tokens that the server has seen, and returns the subjects of those that it still accepts.
func good(t *testing.T, tracker *guarded) map[string]bool {
	t.Helper()
	whose := map[string]bool{}
	for _, token := range slices.Compact(slices.Sorted(slices.Values(tracker.seen()))) {
		if _, sub, ok := tracker.introspect(token); ok {
			whose[sub] = true
		}
	}
	return whose
}

// deleteToken deletes the tokens of alice. When the last one is deleted, her login is revoked at the server. The login of bob
// goes on.
func (c *company) deleteToken(t *testing.T) {
	t.Helper()
	config := filepath.Join(c.h.dir, "mcpx.json")
	_, list, _ := strings.Cut("\n"+c.h.must(t, 0, "--config", config, "token", "list"), "\nalice ")
	first := strings.Fields(list)[0]
	for _, args := range [][]string{{"token", "new", "alice"}, {"token", "delete", "alice", first}, {"reload"}} {
		out, stderr, code := c.h.run(t, "", append([]string{"--config", config}, args...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		if args[len(args)-1] == "alice" {
			c.tokens["alice"] = strings.TrimSpace(out)
		}
	}
	if text := c.agent(t, "alice", modern).exec(t, "tracker", "echo", `{"text":"with another token"}`).text(t); text != "with another token" {
		t.Errorf("with another token: %s", text)
	}
	c.h.must(t, 0, "--config", config, "token", "delete", "alice")
	c.h.must(t, 0, "--config", config, "reload")
	mcptest.WaitFor(t, "the end of the login of alice", patience, func() bool {
		all := good(t, c.tracker)
		return !all["anna"] && all["berta"]
	})
	if text := c.agent(t, "bob", modern).exec(t, "tracker", "echo", `{"text":"still here"}`).text(t); text != "still here" {
		t.Errorf("bob: %s", text)
	}
}

// TestPeople_Asked: in both eras, a client that can open URLs is asked to open the link. If its user declines, the call ends. A
// call in the modern era goes on after the user has logged in.
func TestPeople_Asked(t *testing.T) {
	mcptest.Parallel(t)
	c := startCompany(t, nil, "alice")
	params := `{"name":"exec","arguments":` + execArgs("tracker", "echo", `{"text":"asked"}`) + `}`
	for _, era := range []string{legacy, modern} {
		agent := c.agentWith(t, "alice", era, `{"elicitation":{"form":{},"url":{}}}`)
		m, questions := agent.consenting(t, "tools/call", params, "decline")
		if len(questions) != 1 || !strings.Contains(questions[0], `"mode":"url"`) || !connectLink.MatchString(questions[0]) || !strings.Contains(string(m.Result), "did not open the link") {
			t.Errorf("%s: %q %s %s", era, questions, m.Result, m.Error)
		}
	}
	agent := c.agentWith(t, "alice", modern, `{"elicitation":{"url":{}}}`)
	var asked inputRequired
	if m := agent.request(t, "tools/call", params); json.Unmarshal(m.Result, &asked) != nil || asked.ResultType != "input_required" {
		t.Fatalf("%s %s", m.Result, m.Error)
	}
	link, code := c.code(t, "alice")
	if status, page := newBrowser(t, "anna").visit(t, link, url.Values{"code": {code}}); !strings.Contains(page, "tracker is connected") {
		t.Fatalf("%d %s", status, page)
	}
	if m := agent.request(t, "tools/call", asked.with(params, "accept")); !strings.Contains(string(m.Result), `"text":"asked"`) {
		t.Errorf("%s %s", m.Result, m.Error)
	}
}

// TestPeople_Front: a person whose client has logged in through auth.front proves who they are by a login at the same issuer. For
// another server, mcpx exchanges the issuer's token of this login. A person who is signed in as somebody else cannot use the
// link. When the last login of a person at mcpx ends, their login at the server is revoked, whether mcpx runs or not.
func TestPeople_Front(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	tracker := guard(t, 600)
	f := h.startFronted(t, nil)
	h.config(t, map[string]server{
		"tracker": {"url": tracker.url, "oauth": map[string]any{"per": "principal"}},
		"swapped": {"url": f.issuer.url, "credentials": map[string]string{"Authorization": "exchange"}, "oauth": map[string]any{"client_id": "exchanger", "client_secret": "exchanger-secret-of-the-tests", "grant": "client_credentials"}},
	}, map[string]any{"auth": f.auth(nil)})
	c := discover(t, f)
	const redirect = "https://claude.ai/api/mcp/auth_callback"
	_, client := c.post("registration_endpoint", "application/json", `{"client_name":"Claude","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"mcp","redirect_uris":["`+redirect+`"]}`)
	tokens := c.connect(f, client["client_id"].(string), redirect)
	call := func(server, text string) string {
		return c.ask(tokens, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":`+execArgs(server, "echo", `{"text":"`+text+`"}`)+`}}`)
	}
	link := ""
	mcptest.WaitFor(t, "the link", patience, func() bool { // once mcpx has read the config again
		link = connectLink.FindString(call("tracker", "early"))
		return link != ""
	})
	if status, page := newBrowser(t, "mallory").visit(t, link, nil); !strings.Contains(page, "is signed in as") {
		t.Errorf("somebody else: %d %s", status, page)
	}
	if status, page := newBrowser(t, "anna").visit(t, link, nil); !strings.Contains(page, "tracker is connected") {
		t.Fatalf("anna: %d %s\n%s", status, page, f.stderr.String())
	}
	if got := call("tracker", "with my own"); !strings.Contains(got, "with my own") || strings.Contains(got, "isError\":true") {
		t.Errorf("after the login: %s", got)
	}
	if got := call("swapped", "exchanged"); !strings.Contains(got, "exchanged") || strings.Contains(got, "isError\":true") {
		t.Errorf("exchange: %s\n%s", got, f.stderr.String())
	}

	end := []string{"--config", filepath.Join(h.dir, "mcpx.json"), "logins", "end", "anna@" + strings.TrimPrefix(f.issuer.issuer, "http://")}
	over := func() bool { return len(good(t, tracker)) == 0 }
	if over() {
		t.Fatal("no token is good")
	}
	h.must(t, 0, end...)
	mcptest.WaitFor(t, "the tokens of anna to be revoked", patience, over)
	c.session, tokens = "", c.connect(f, client["client_id"].(string), redirect)
	link = connectLink.FindString(call("tracker", "after the logout"))
	if status, page := newBrowser(t, "anna").visit(t, link, nil); !strings.Contains(page, "tracker is connected") {
		t.Fatalf("anna again: %d %s", status, page)
	}
	if got := call("tracker", "again"); !strings.Contains(got, "again") || over() {
		t.Fatalf("anna again: %s", got)
	}
	terminate(f.cmd)
	<-f.exited
	h.must(t, 0, end...)
	if !over() {
		t.Error("the tokens of a login that was ended while mcpx did not run are good")
	}
}
