package page

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// patience is a time limit that only a failing test reaches.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

const (
	adminToken = "admin-token"
	otherToken = "other-token"
)

func asked(tokens ...string) *identity.Options {
	o := &identity.Options{}
	for _, token := range tokens {
		o.Tokens = append(o.Tokens, conf.Token{Name: strings.TrimSuffix(token, "-token"), SHA256: sha256.Sum256([]byte(token))})
	}
	return o
}

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

// site is a page that is being served, with one fake server.
type site struct {
	*httptest.Server
	page *Page
	fake *mcptest.HTTPServer
}

func serve(t *testing.T, o Options) *site {
	t.Helper()
	mcptest.NoLeaks(t)
	s := &site{fake: mcptest.Spec{}.HTTP(t)}
	o.Hour, o.Calls = &Hour{}, &Calls{}
	o.Routes = map[string]http.HandlerFunc{
		"POST /ui/servers/{name}/stop": func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PathValue("name")) },
	}
	r := registry.New([]registry.Server{{Spec: upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.HTTP, Remote: transport.Remote{URL: s.fake.URL}}}}}, registry.Options{
		Rules: &policy.Rules{Servers: map[string]policy.ServerRules{"fake": {Confirm: conf.ConfirmAll}}},
	})
	journal := &request.Journal{}
	journal.Observe(o.Hour.Add, func(r *request.Event) { o.Calls.Add(r, strings.ToUpper) })
	o.Executor = executor.New(r, executor.Options{Journal: journal})
	r.Use(o.Executor.Chain(nil, nil)...)
	o.View = view.NewTwoTools(r, o.Executor, view.Options{})
	if o.Status == nil {
		o.Status = func() any { return map[string]any{"servers": []string{}} }
	}
	if o.Identity == nil {
		o.Identity = &identity.Verifier{}
	}
	if o.Admin == nil {
		o.Admin = func(p *caller.Principal) bool { return p == nil || p.Name == "admin" }
	}
	o.Logger = slog.New(slog.DiscardHandler)
	r.Start()
	s.page = New(o)
	s.Server = httptest.NewUnstartedServer(s.page)
	if o.Links != nil {
		o.Links.Host = s.Listener.Addr().String()
	}
	s.Start()
	t.Cleanup(func() {
		s.page.EndStreams()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
		o.View.Close()
		r.Close(time.Second)
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.WaitTried(ctx)
	return s
}

func (s *site) request(t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Add(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func (s *site) do(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	response := s.request(t, method, path, body, headers...)
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

func (s *site) signIn(t *testing.T, token string) (cookie string) {
	t.Helper()
	response := s.request(t, "POST", "/ui/session", `{"token":"`+token+`"}`)
	if response.StatusCode != 200 || len(response.Cookies()) != 1 {
		t.Fatalf("signing in: %d, %d cookies", response.StatusCode, len(response.Cookies()))
	}
	made := response.Cookies()[0]
	if made.Name != "__Host-mcpx" || !made.Secure || !made.HttpOnly || made.SameSite != http.SameSiteStrictMode || made.Path != "/" || made.Domain != "" || made.MaxAge <= 0 {
		t.Errorf("the cookie is %+v", made)
	}
	if strings.Contains(made.Value, token) {
		t.Error("the cookie has the token")
	}
	return "Cookie: " + made.Name + "=" + made.Value
}

// guarded are the requests that only a signed-in viewer may make.
var guarded = []struct{ method, path string }{
	{"GET", "/ui/state"},
	{"GET", "/ui/events"},
	{"GET", "/ui/tool?server=fake&name=echo"}, {"GET", "/ui/calls"}, {"POST", "/ui/looked"}, {"POST", "/ui/servers/fake/stop"},
	{"GET", "/ui/search?query=echo"},
	{"POST", "/ui/call"},
}

func TestPage_SignIn(t *testing.T) {
	verifier := verifierOf(asked(adminToken, otherToken))
	s := serve(t, Options{Identity: verifier.Verifier})
	if status, body := s.do(t, "GET", "/", ""); status != 200 || strings.Contains(body, "fake") {
		t.Errorf("the page: %d %s", status, body)
	}
	refused := func(t *testing.T, headers ...string) {
		t.Helper()
		for _, one := range guarded {
			if status, body := s.do(t, one.method, one.path, "{}", headers...); status != 401 || strings.Contains(body, "fake") {
				t.Errorf("%s %s: %d %s", one.method, one.path, status, body)
			}
		}
	}
	refused(t)
	refused(t, "Authorization: Bearer "+adminToken) // an Authorization header is ignored: a session is needed
	refused(t, "Cookie: __Host-mcpx="+adminToken)
	for token, want := range map[string]int{"": 401, "wrong": 401, "a b": 401, otherToken: 403} {
		response := s.request(t, "POST", "/ui/session", `{"token":"`+token+`"}`)
		if response.StatusCode != want || len(response.Cookies()) > 0 {
			t.Errorf("signing in with %q: %d, cookies %v", token, response.StatusCode, response.Cookies())
		}
	}

	cookie := s.signIn(t, adminToken)
	if status, body := s.do(t, "GET", "/ui/state", "", cookie); status != 200 || !strings.Contains(body, `"session":true`) {
		t.Errorf("signed in: %d %s", status, body)
	}
	if status, body := s.do(t, "GET", "/ui/tool?server=fake&name=echo", "", cookie); status != 200 || !strings.Contains(body, "echo(") {
		t.Errorf("the tools: %d %s", status, body)
	}
	other := s.signIn(t, adminToken)
	if status, _ := s.do(t, "DELETE", "/ui/session", "", other); status != 200 {
		t.Errorf("signing out: %d", status)
	}
	refused(t, other)
	if status, _ := s.do(t, "GET", "/ui/state", "", cookie); status != 200 {
		t.Errorf("the other session after that: %d", status)
	}

	// When the token is revoked, its session and the session's event stream end.
	stream := s.request(t, "GET", "/ui/events", "", cookie)
	verifier.SetOptions(asked(otherToken))
	if events, err := io.ReadAll(stream.Body); err != nil || !strings.HasSuffix(string(events), "event: refused\ndata: {}\n\n") {
		t.Errorf("the stream: %s, %v", events, err)
	}
	refused(t, cookie)
}

// TestPage_NameTaken: if the token of a session becomes the token of another principal, the session is no longer
// accepted.
func TestPage_NameTaken(t *testing.T) {
	verifier := verifierOf(asked(adminToken))
	s := serve(t, Options{Identity: verifier.Verifier, Admin: func(*caller.Principal) bool { return true }})
	cookie := s.signIn(t, adminToken)
	o := asked(adminToken)
	o.Tokens[0].Name = "somebody"
	verifier.SetOptions(o)
	if status, _ := s.do(t, "GET", "/ui/state", "", cookie); status != 401 {
		t.Errorf("status %d", status)
	}
}

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSessions()
		sign := func(token string) string {
			name, err := s.Open(t.Context(), &Session{Token: token}, time.Now().Add(sessionLife))
			if err != nil {
				t.Fatal(err)
			}
			return name
		}
		first := sign("a")
		if one, err := s.Get(t.Context(), first); err != nil || one.Token != "a" {
			t.Errorf("a new session: %v %v", one, err)
		}
		time.Sleep(time.Minute)
		for range maxSessions - 1 {
			sign("c")
		}
		last := sign("d")
		if _, err := s.Get(t.Context(), first); err == nil {
			t.Errorf("the oldest of %d sessions is there", maxSessions+1)
		}
		if _, err := s.Get(t.Context(), last); err != nil {
			t.Errorf("the newest of %d sessions: %v", maxSessions, err)
		}
		time.Sleep(sessionLife)
		if _, err := s.Get(t.Context(), last); err == nil {
			t.Error("a session outlives its time")
		}
	})
}

// away is a session store that cannot be reached.
type away struct{ state.Sessions[Session] }

func (away) Open(context.Context, *Session, time.Time) (string, error) { return "", state.ErrAway }
func (away) Get(context.Context, string) (*Session, error)             { return nil, state.ErrAway }
func (away) End(context.Context, string) error                         { return state.ErrAway }

// TestPage_Away: while the session store cannot be reached, a user with a cookie is not asked to sign in again.
// Signing out reports the failure.
func TestPage_Away(t *testing.T) {
	s := serve(t, Options{Identity: verifierOf(asked(adminToken)).Verifier, Browsers: &Browsers{Sessions: away{}}, Admin: func(*caller.Principal) bool { return true }})
	for _, one := range []struct{ method, path, body string }{
		{"GET", "/ui/state", ""}, {"POST", "/ui/session", `{"token":"` + adminToken + `"}`}, {"DELETE", "/ui/session", ""},
	} {
		status, body := s.do(t, one.method, one.path, one.body, "Cookie: "+cookieName+"=x")
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "try again") {
			t.Errorf("%s %s: %d %s", one.method, one.path, status, body)
		}
	}
}

func TestPage_Origin(t *testing.T) {
	s := serve(t, Options{})
	for _, headers := range [][]string{
		{"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Origin: http://127.0.0.1:1"},
	} {
		for _, one := range []struct{ method, path string }{{"POST", "/ui/call"}, {"POST", "/ui/session"}, {"DELETE", "/ui/session"}} {
			if status, body := s.do(t, one.method, one.path, "{}", headers...); status != 403 {
				t.Errorf("%s %s with %v: %d %s", one.method, one.path, headers, status, body)
			}
		}
	}
	response := s.request(t, "GET", "/", "")
	if got := response.Header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") || !strings.Contains(got, "trusted-types 'none'") {
		t.Errorf("the policy is %q", got)
	}
	if got := response.Header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options is %q", got)
	}
}

// TestPage_Call: a call that needs consent is made only after the page has sent back the exact question that was
// asked about it, and then exactly once.
func TestPage_Call(t *testing.T) {
	s := serve(t, Options{})
	call := func(tool, arguments, confirmed string) map[string]any {
		t.Helper()
		text := `{"server":"fake","tool":"` + tool + `","arguments":` + arguments + `,"confirmed":` + strconv.Quote(confirmed) + `}`
		status, body := s.do(t, "POST", "/ui/call", text)
		var out map[string]any
		if err := json.Unmarshal([]byte(body), &out); err != nil || status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		return out
	}
	question, _ := call("echo", `{"text":"<b>hi</b>"}`, "")["confirm"].(string)
	if !strings.Contains(question, "fake.echo") || !strings.Contains(question, "<b>hi</b>") {
		t.Fatalf("the question is %q", question)
	}
	if again := call("echo", `{"text":"other"}`, question); again["confirm"] == nil || again["confirm"] == question {
		t.Errorf("other arguments under the same consent: %v", again)
	}
	if n := len(s.fake.Log().Calls("echo")); n != 0 {
		t.Fatalf("%d calls without consent", n)
	}
	if out := call("echo", `{"text":"<b>hi</b>"}`, question); out["text"] != "<b>hi</b>" || out["error"] != false {
		t.Errorf("the result is %v", out)
	}
	if n := len(s.fake.Log().Calls("echo")); n != 1 {
		t.Errorf("%d calls", n)
	}
	if out := call("nope", `{}`, ""); out["error"] != true || !strings.Contains(out["text"].(string), "TOOL_NOT_FOUND") {
		t.Errorf("a tool that is not there: %v", out)
	}
	last := s.page.Hour.last(time.Now())
	if calls, errors := total(last.Calls), total(last.Errors); calls != 2 || errors != 1 { // two calls were not confirmed
		t.Errorf("%d calls with %d errors", calls, errors)
	}
	for _, body := range []string{"", "[]", "{", `{"arguments":`} {
		if status, _ := s.do(t, "POST", "/ui/call", body); status != 400 {
			t.Errorf("the body %q: %d", body, status)
		}
	}
}

func total(values []int) (n int) {
	for _, value := range values {
		n += value
	}
	return n
}

func TestPage_Search(t *testing.T) {
	s := serve(t, Options{})
	_, body := s.do(t, "GET", "/ui/search?query=echo", "")
	var out struct {
		Text   string
		Tokens int
		Tools  []struct{ Server, Name string }
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || len(out.Tools) == 0 || out.Tools[0].Name != "echo" || out.Tools[0].Server != "fake" || out.Tokens == 0 {
		t.Errorf("%v: %s", err, body)
	}
	model := s.page.View.Inspect(t.Context(), nil, view.Query{Text: "echo"}, false)
	if want := model.Text(); out.Text != want {
		t.Errorf("the page shows %q, a model reads %q", out.Text, want)
	}
	if status, body := s.do(t, "GET", "/ui/tool?server=fake&name=echo", ""); status != 200 || !strings.Contains(body, "text:string") || !strings.Contains(body, `"schema":{`) {
		t.Errorf("the tool: %d %s", status, body)
	}
	for _, path := range []string{"/ui/tool?server=fake&name=nope", "/ui/tool?server=nope&name=echo", "/ui/page.html", "/ui/"} {
		if status, _ := s.do(t, "GET", path, ""); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func TestPage_Events(t *testing.T) {
	s := serve(t, Options{})
	stream := s.request(t, "GET", "/ui/events", "")
	if got := stream.Header.Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering is %q", got)
	}
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (calls int) {
		t.Helper()
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var state struct{ Hour struct{ Calls []int } }
			if err := json.Unmarshal([]byte(data), &state); err != nil || len(state.Hour.Calls) != minutes {
				t.Fatalf("%v in %s", err, data)
			}
			return total(state.Hour.Calls)
		}
		t.Fatal("the stream has ended", lines.Err())
		return 0
	}
	if calls := next(); calls != 0 {
		t.Errorf("%d calls at first", calls)
	}
	s.page.Hour.Add(&request.Event{Method: "tools/call", Attempted: true, Outcome: "RESULT", Target: request.Target{Server: "fake", Known: true}})
	for next() != 1 { // skips states: the plots may have moved on by a minute before the call was counted
	}
	for range maxViewers - 1 {
		if response := s.request(t, "GET", "/ui/events", ""); response.StatusCode != 200 {
			t.Fatalf("a viewer: %d", response.StatusCode)
		}
	}
	if status, body := s.do(t, "GET", "/ui/events", ""); status != 503 {
		t.Errorf("one viewer too many: %d %s", status, body)
	}
	s.page.EndStreams()
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the end of the stream: %v", err)
	}
}
