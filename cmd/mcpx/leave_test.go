package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"mcpx/internal/app"
	"mcpx/internal/mcptest"
)

// connected is a client that somebody has connected through auth.front.
type connected struct {
	*connector
	f      *fronted
	client string
	tokens map[string]any
}

func (f *fronted) connected(t *testing.T) *connected {
	t.Helper()
	l := &connected{connector: discover(t, f), f: f}
	status, registered := l.post("registration_endpoint", "application/json", `{"client_name":"Claude","redirect_uris":["`+connectorRedirect+`"]}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, registered)
	}
	l.client = registered["client_id"].(string)
	l.again()
	return l
}

// again logs in once more.
func (l *connected) again() { l.tokens = l.connect(l.f, l.client, connectorRedirect) }

// out checks that neither the access token nor the refresh token is accepted any more.
func (l *connected) out(t *testing.T, what string) {
	t.Helper()
	if status, _, answer := l.call(l.f.resource, l.tokens["access_token"].(string), legacyInitialize); status != http.StatusUnauthorized {
		t.Errorf("%s: the access token: %d %s", what, status, answer)
	}
	if status, answer := l.token(refreshForm(l.client, l.tokens)); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("%s: the refresh token: %d %v", what, status, answer)
	}
}

// TestFront_Leave: a login ends when an administrator ends it, when the issuer says that its user logged out, and at the next
// renewal after the user has left the issuer. While the issuer cannot be reached, the login goes on.
func TestFront_Leave(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, nil)
	l := f.connected(t)
	if l.tokens["expires_in"] != 600.0 {
		t.Errorf("tokens last %v seconds", l.tokens["expires_in"])
	}
	config := h.dir + "/mcpx.json"
	logins := func(args ...string) (all []app.Login, stdout, stderr string, code int) {
		t.Helper()
		stdout, stderr, code = h.run(t, "", append([]string{"--config", config, "logins"}, args...)...)
		_ = json.Unmarshal([]byte(stdout), &all)
		return all, stdout, stderr, code
	}
	all, text, stderr, code := logins("list", "--json")
	if code != 0 || len(all) != 1 || !strings.HasPrefix(all[0].Principal, "anna@127.0.0.1:") || all[0].Client != "Claude" {
		t.Fatalf("%d %s %s", code, text, stderr)
	}
	if _, text, _, _ := logins(); !strings.Contains(text, "PRINCIPAL") || !strings.Contains(text, all[0].ID) {
		t.Errorf("%s", text)
	}
	if _, _, stderr, code := logins("end", "bob@example.com"); code != 1 || !strings.Contains(stderr, "there is no login bob@example.com") {
		t.Errorf("%d %s", code, stderr)
	}
	if _, text, stderr, code := logins("end", all[0].ID); code != 0 || !strings.Contains(text, all[0].ID) {
		t.Errorf("%d %s %s", code, text, stderr)
	}
	l.out(t, "ended by its ID")

	l.again()
	f.issuer.admin(t, "/test/logout?sub=bob&to="+url.QueryEscape(l.logoutURL()))
	if status, _, _ := l.call(f.resource, l.tokens["access_token"].(string), legacyInitialize); status != http.StatusOK {
		t.Errorf("after another user has logged out: %d", status)
	}
	f.issuer.admin(t, "/test/logout?sub=anna&to="+url.QueryEscape(l.logoutURL()))
	l.out(t, "logged out at the issuer")

	l.again()
	f.issuer.with(func() {
		f.issuer.answer = func(w http.ResponseWriter, r *http.Request) bool {
			http.Error(w, "down", http.StatusBadGateway)
			return true
		}
	})
	if status, answer := l.token(refreshForm(l.client, l.tokens)); status != http.StatusServiceUnavailable || answer["error"] != "temporarily_unavailable" {
		t.Errorf("while the issuer is away: %d %v", status, answer)
	}
	f.issuer.with(func() { f.issuer.answer = nil })
	status, next := l.token(refreshForm(l.client, l.tokens))
	if status != http.StatusOK {
		t.Fatalf("when it is back: %d %v", status, next)
	}
	l.tokens = next
	f.issuer.admin(t, "/test/leave?sub=anna")
	if status, answer := l.token(refreshForm(l.client, l.tokens)); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("a user who has left: %d %v", status, answer)
	}
	l.out(t, "left")
	if strings.Contains(f.stderr.String(), "front-secret-of-the-tests") {
		t.Error("the log has a secret")
	}
}

func (l *connected) logoutURL() string {
	return strings.TrimSuffix(l.f.resource, "/mcp") + "/oauth/logout"
}

// TestFront_EndStopped: a login can be ended while mcpx does not run, and stays ended when mcpx starts.
func TestFront_EndStopped(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, nil)
	l := f.connected(t)
	terminate(f.cmd)
	<-f.exited
	config := h.dir + "/mcpx.json"
	stdout, stderr, code := h.run(t, "", "--config", config, "logins", "end", "anna@"+strings.TrimPrefix(f.issuer.issuer, "http://"))
	if code != 0 || !strings.Contains(stdout, "Claude") {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	d := h.serveHTTP(t, "--config", config)
	l.metadata["token_endpoint"] = strings.TrimSuffix(d.url, "/mcp") + "/oauth/token"
	f.resource = d.url
	l.out(t, "ended while mcpx did not run")
}

// TestFront_Deny: a rule with deny takes effect with the reload, in open sessions too.
func TestFront_Deny(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, nil)
	l := f.connected(t)
	if got := l.ask(l.tokens, execute(3, "box", "echo", `{"text":"hello"}`)); !strings.Contains(got, "hello") {
		t.Fatalf("before: %s", got)
	}
	f.follow(t, "config loaded again", func() {
		auth := f.auth(nil)
		auth["rights"] = []any{map[string]any{"principals": []string{"*"}}, map[string]any{"principals": []string{"ANNA@*"}, "deny": []string{"box"}}}
		h.config(t, map[string]server{"box": f.box}, map[string]any{"auth": auth})
	})
	if got := l.ask(l.tokens, execute(4, "box", "echo", `{"text":"hello"}`)); !strings.Contains(got, "SERVER_NOT_FOUND") {
		t.Errorf("after: %s", got)
	}
}

// TestFront_Page: an admin signs in to the page of mcpx at the issuer, and is signed out when the login ends. The page does not
// accept the token of a client, and the cookie of the page gives access only to the page. A user who is no admin sees nothing.
func TestFront_Page(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, nil)
	l := f.connected(t)
	admin := func(is bool) {
		f.follow(t, "config loaded again", func() {
			auth := f.auth(nil)
			rules := []any{map[string]any{"principals": []string{"*"}}}
			if is {
				rules = append(rules, map[string]any{"groups": []string{"staff"}, "admin": true})
			}
			auth["rights"] = rules
			h.config(t, map[string]server{"box": f.box}, map[string]any{"auth": auth})
		})
	}
	admin(true)
	at := strings.TrimSuffix(f.resource, "/mcp")
	var cookie string
	signIn := func() {
		t.Helper()
		if cookie = signedIn(t, f, at+"/ui/signin"); cookie == "" {
			t.Fatalf("no cookie\n%s", f.stderr.String())
		}
	}
	see := func(path string) int {
		t.Helper()
		resp, _ := fetch(t, http.MethodGet, at+path, "", "Cookie: __Host-mcpx="+cookie)
		return resp.StatusCode
	}
	cookie = "none"
	if status := see("/ui/state"); status != http.StatusUnauthorized {
		t.Errorf("before: %d", status)
	}
	signIn()
	for path, want := range map[string]int{"/ui/state": 200, "/status": 401, "/mcp": 401, "/api/servers": 401} {
		if status := see(path); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	resp, body := fetch(t, http.MethodPost, at+"/ui/session", fmt.Sprintf(`{"token":%q}`, l.tokens["access_token"]), sendsJSON)
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "takes no tokens") {
		t.Errorf("a token: %d %s", resp.StatusCode, body)
	}
	admin(false)
	if status := see("/ui/state"); status != http.StatusForbidden {
		t.Errorf("no admin any more: %d", status)
	}
	admin(true)
	if status := see("/ui/state"); status != http.StatusOK {
		t.Errorf("an admin again: %d", status)
	}
	f.issuer.admin(t, "/test/logout?sub=anna&to="+url.QueryEscape(l.logoutURL()))
	if status := see("/ui/state"); status != http.StatusUnauthorized {
		t.Errorf("logged out at the issuer: %d", status)
	}
	signIn()
	if resp, _ := fetch(t, http.MethodDelete, at+"/ui/session", "", "Cookie: __Host-mcpx="+cookie); resp.StatusCode != http.StatusOK || see("/ui/state") != http.StatusUnauthorized {
		t.Errorf("signed out: %d", resp.StatusCode)
	}
}

// TestFront_EndRunning: when a login is ended, its running call ends too, at the client and at the server. Calls of others go
// on.
func TestFront_EndRunning(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, nil)
	spec := mcptest.Spec{}.WithFiles(t)
	anna := f.connected(t)
	f.person = "berta"
	berta := f.connected(t)
	f.follow(t, "config loaded again", func() { h.config(t, map[string]server{"box": fake(t, spec)}, map[string]any{"auth": f.auth(nil)}) })
	busy := h.write(t, "busy", "")
	slow := execute(5, "box", "slow", fmt.Sprintf(`{"ms":0,"while":%q}`, busy))
	answers := map[*connected]chan string{anna: make(chan string, 1), berta: make(chan string, 1)}
	for l, answer := range answers {
		l.ask(l.tokens, legacyTools)                    // opens the session
		go func() { answer <- l.ask(l.tokens, slow) }() // ends with the call
	}
	mcptest.WaitFor(t, "both calls to run", patience, func() bool { return len(spec.Log(t).Calls("slow")) == 2 })
	h.must(t, 0, "--config", h.dir+"/mcpx.json", "logins", "end", "anna@"+strings.TrimPrefix(f.issuer.issuer, "http://"))
	if got := <-answers[anna]; strings.Contains(got, `"result"`) {
		t.Errorf("the call of anna: %s", got)
	}
	mcptest.WaitFor(t, "the call of anna to be cancelled", patience, func() bool { return len(arrived(t, spec, "notifications/cancelled")) == 1 })
	if err := os.Remove(busy); err != nil {
		t.Fatal(err)
	}
	if got := <-answers[berta]; !strings.Contains(got, `"result"`) {
		t.Errorf("the call of berta: %s", got)
	}
	anna.out(t, "ended during a call")
}
