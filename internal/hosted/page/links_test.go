package page

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// opened serves the page of a user's own machine, which viewers open with links.
func opened(t *testing.T) (*site, *Links) {
	t.Helper()
	links := NewLinks("")
	return serve(t, Options{Links: links}), links
}

func secretOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Path != "/" || u.RawQuery != "" {
		t.Fatalf("%v: %s", err, link)
	}
	return strings.TrimPrefix(u.Fragment, "link=")
}

// signInAtDesk opens a link and returns the header of its session.
func (s *site) signInAtDesk(t *testing.T, links *Links) (header string) {
	t.Helper()
	status, answer := s.do(t, "POST", "/ui/session", `{"link":"`+secretOf(t, links.New())+`"}`)
	var out struct{ Session string }
	if json.Unmarshal([]byte(answer), &out) != nil || status != 200 || len(out.Session) < 40 {
		t.Fatalf("%d %s", status, answer)
	}
	return sessionHeader + ": " + out.Session
}

// TestLinks: a link works once. A request is refused without the key of a session, with a wrong key, under another host name, or
// from a page of another origin.
func TestLinks(t *testing.T) {
	s, links := opened(t)
	secret := secretOf(t, links.New())
	body := `{"link":"` + secret + `"}`
	for _, one := range []struct {
		status int
		header string
	}{{403, "Origin: https://evil.example"}, {403, "Sec-Fetch-Site: cross-site"}, {403, "Sec-Fetch-Site: same-site"}} {
		if status, answer := s.do(t, "POST", "/ui/session", body, one.header); status != one.status {
			t.Errorf("with %s: %d %s", one.header, status, answer)
		}
	}
	if status, answer := s.do(t, "POST", "/ui/session", body); status != 200 || !strings.Contains(answer, "session") {
		t.Fatalf("%d %s", status, answer)
	}
	for what, link := range map[string]string{"again": secret, "empty": "", "made up": "x", "a token": adminToken} {
		if status, answer := s.do(t, "POST", "/ui/session", `{"link":"`+link+`"}`); status != 401 || !strings.Contains(answer, `"sign_in"`) {
			t.Errorf("%s: %d %s", what, status, answer)
		}
	}
	session := s.signInAtDesk(t, links)
	for _, headers := range [][]string{nil, {sessionHeader + ": x"}, {sessionHeader + ": "}, {"Cookie: __Host-mcpx=" + strings.TrimPrefix(session, sessionHeader+": ")}} {
		for _, one := range guarded {
			if status, answer := s.do(t, one.method, one.path, "{}", headers...); status != 401 || strings.Contains(answer, "fake") {
				t.Errorf("%s %s with %q: %d %s", one.method, one.path, headers, status, answer)
			}
		}
	}
	if status, answer := s.do(t, "POST", "/ui/servers/..%2Fx/stop", "{}", session); status != 200 || answer != "../x" {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := s.do(t, "GET", "/ui/state", "", session); status != 200 || !strings.Contains(answer, `"mode":"desk"`) {
		t.Errorf("%d %s", status, answer)
	}
	for host, want := range map[string]int{"evil.example": 421, "127.0.0.1": 421, "localhost" + s.URL[strings.LastIndexByte(s.URL, ':'):]: 200} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/ui/state", nil)
		r.Header.Set(sessionHeader, strings.TrimPrefix(session, sessionHeader+": "))
		w := httptest.NewRecorder()
		if s.page.ServeHTTP(w, r); w.Code != want {
			t.Errorf("as %s: %d %s", host, w.Code, w.Body)
		}
	}
	if status, _ := s.do(t, "DELETE", "/ui/session", "", session); status != 200 {
		t.Errorf("signing out: %d", status)
	}
	if status, _ := s.do(t, "GET", "/ui/state", "", session); status != 401 {
		t.Errorf("after signing out: %d", status)
	}
}

// TestLinks_Times: a link is void after two minutes, and the page closes after half an hour without use.
func TestLinks_Times(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := NewLinks("127.0.0.1:1")
		in := func(secret string) int {
			w := httptest.NewRecorder()
			links.signIn(w, secret)
			return w.Code
		}
		old, fresh := secretOf(t, links.New()), ""
		time.Sleep(linkLife)
		fresh = secretOf(t, links.New())
		if in(old) != 401 || in(fresh) != 200 {
			t.Error("the life of a link")
		}
		time.Sleep(UnusedFor - time.Second)
		if links.Unused() || links.New() == "" {
			t.Error("the page closes too early")
		}
		time.Sleep(UnusedFor)
		if !links.Unused() || links.New() != "" {
			t.Error("the page does not close")
		}
	})
}

// TestLinks_Use: a request that an open page sends by itself does not count as use of the page.
func TestLinks_Use(t *testing.T) {
	s, links := opened(t)
	session := s.signInAtDesk(t, links)
	links.mu.Lock()
	long := time.Now().Add(-UnusedFor)
	links.used = long
	links.mu.Unlock()
	used := func() bool {
		links.mu.Lock()
		defer links.mu.Unlock()
		return links.used != long
	}
	s.request(t, "GET", "/ui/events", "", session)
	s.do(t, "GET", "/ui/state", "", session)
	s.do(t, "POST", "/ui/looked", "", sessionHeader+": x")
	if used() {
		t.Error("a stream, a GET, or a request without a session is a use")
	}
	if status, _ := s.do(t, "POST", "/ui/looked", "", session); status != 204 || !used() {
		t.Errorf("a look is no use: %d", status)
	}
}

// TestPage_Ended: when the page closes, its streams say why.
func TestPage_Ended(t *testing.T) {
	s, links := opened(t)
	stream := s.request(t, "GET", "/ui/events", "", s.signInAtDesk(t, links))
	s.page.EndUnused("unused")
	if all, err := io.ReadAll(stream.Body); err != nil || !strings.HasSuffix(string(all), "event: ended\ndata: {\"why\":\"unused\"}\n\n") {
		t.Errorf("%v: %s", err, all)
	}
}

// TestPage_Progress: progress comes while the tool runs, the result comes last, and a viewer that goes away cancels the call.
func TestPage_Progress(t *testing.T) {
	s := serve(t, Options{})
	const accepts = "Accept: " + linesType
	call := func(steps int) (body string) {
		arguments := `{"server":"fake","tool":"progress","arguments":{"steps":` + strconv.Itoa(steps) + `,"ms":10}`
		status, answer := s.do(t, "POST", "/ui/call", arguments+"}", accepts)
		var line struct{ Result struct{ Confirm string } }
		if json.Unmarshal([]byte(answer), &line) != nil || status != 200 || line.Result.Confirm == "" {
			t.Fatalf("%d %s", status, answer)
		}
		return arguments + `,"confirmed":` + strconv.Quote(line.Result.Confirm) + "}"
	}
	_, all := s.do(t, "POST", "/ui/call", call(5), accepts)
	if first, last := strings.Index(all, `{"progress":{`), strings.Index(all, `{"result":{"text":`); first != 0 || last < 0 || strings.Count(all[last:], "\n") != 1 {
		t.Errorf("got %s", all)
	}

	response := s.request(t, "POST", "/ui/call", call(100_000), accepts)
	lines := bufio.NewScanner(response.Body)
	for range 2 {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), `{"progress":{`) {
			t.Fatalf("%v: %s", lines.Err(), lines.Text())
		}
	}
	response.Body.Close()
	mcptest.WaitFor(t, "the end of the call", patience, func() bool {
		calls, _ := s.page.Calls.since(0)
		return len(calls) == 2 && calls[0].Outcome == request.OutcomeCancelled && calls[1].Outcome == request.OutcomeResult
	})
}

// TestCalls: secrets are removed from texts. Arguments and results are kept only after KeepContent(true), and KeepContent(false)
// removes them again.
func TestCalls(t *testing.T) {
	calls := &Calls{}
	add := func(outcome, said string) {
		calls.Add(&request.Event{
			Method: "tools/call", Attempted: true, Outcome: outcome, Said: said, Target: request.Target{Server: "s\x1b[1m", Tool: "t"},
			Content: func() (string, string) { return `{"a":"secret"}`, "secret " + strings.Repeat("é", maxContent) },
		}, func(text string) string { return strings.ReplaceAll(text, "secret", "[secret]") })
	}
	add(results.CodeToolNotFound, "no secret\nhere")
	list, next := calls.since(0)
	if len(list) != 1 || next != 1 || list[0].Error != "no [secret] here" || list[0].Arguments+list[0].Result != "" || strings.Contains(list[0].Server, "\x1b") || !list[0].Failed {
		t.Errorf("%+v", list)
	}
	calls.KeepContent(true)
	add(request.OutcomeResult, "")
	list, _ = calls.since(1)
	if len(list) != 1 || list[0].Arguments != `{"a":"[secret]"}` || !strings.HasPrefix(list[0].Result, "[secret] é") || len(list[0].Result) > maxContent+4 || calls.mode() != "full" {
		t.Errorf("%+v", list)
	}
	calls.KeepContent(false)
	if list, _ = calls.since(0); len(list) != 2 || list[0].Arguments+list[0].Result != "" {
		t.Errorf("%+v", list)
	}
	for range maxCalls {
		add(request.OutcomeResult, "")
	}
	if list, next = calls.since(0); len(list) != maxCalls || next != maxCalls+2 || list[0].N != next-1 {
		t.Errorf("%d calls, the next is %d", len(list), next)
	}
}
