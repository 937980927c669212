package front

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestSession_Data: encoding and decoding a session record loses nothing.
func TestSession_Data(t *testing.T) {
	for _, record := range []*Session{
		{Began: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)},
		{
			View: "servers/a", Level: "warning", Began: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
			Said:      caller.Said{Name: `an "agent" <&>`, Version: legacyEra, Capabilities: json.RawMessage(`{"elicitation":{"url":{}},"x":1.10}`)},
			Principal: "https://issuer.example.com u",
		},
	} {
		kept := state.NewStored[Session]("test", state.NewRecords(1, 1<<20))
		id, err := kept.Open(t.Context(), record, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kept.Get(t.Context(), id); err != nil || !reflect.DeepEqual(got, record) {
			t.Errorf("got %+v, %v, want %+v", got, err, record)
		}
	}
}

// processes are several fronts that share the records of their sessions, like processes behind a load
// balancer. The header At says which front gets a request; the header Who names the principal.
type processes struct {
	*httptest.Server
	fronts map[string]shown
	ended  map[string]*atomic.Int32 // by the name of the process: number of sessions that have ended there
	limits map[string]*limits.Limits
}

// startProcesses starts a front for each name. All their views have the same name, except the view of the front
// named "view".
func startProcesses(t *testing.T, sessions state.Sessions[Session], names ...string) *processes {
	t.Helper()
	p := &processes{fronts: map[string]shown{}, ended: map[string]*atomic.Int32{}, limits: map[string]*limits.Limits{}}
	fake := mcptest.Spec{}.HTTP(t)
	for _, name := range names {
		ended := new(atomic.Int32)
		l := limits.New(conf.Limits{Principal: conf.Quota{Sessions: 1}})
		shows := view.Options{Name: "tools"}
		if name == "view" {
			shows.Name = "another"
		}
		p.limits[name], p.ended[name] = l, ended
		p.fronts[name] = connectWith(t, Options{Sessions: sessions, Admission: l, SessionEnded: func(client *caller.Client, lasted time.Duration) {
			if client.Name != "many" || lasted <= 0 {
				t.Errorf("%s of %v has ended", client.Name, lasted)
			}
			ended.Add(1)
		}}, shows, remote("fake", fake))
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := &caller.Principal{ID: r.Header.Get("Who")}
		p.fronts[r.Header.Get("At")].ServeHTTP(w, r.WithContext(caller.With(r.Context(), who, time.Time{})))
	}))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// at returns a client whose requests go to the named process. It uses the session of c; if c is nil, it has no session.
func (p *processes) at(t *testing.T, name string, c *webClient) *webClient {
	t.Helper()
	at := &webClient{url: p.URL, era: legacyEra, http: &http.Client{Transport: to{name, "alice", http.DefaultTransport}}}
	if c != nil {
		at.session = c.session
	}
	return at
}

// to is a transport that adds the headers At and Who to each request.
type to struct {
	at, who string
	http.RoundTripper
}

func (o to) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("At", o.at)
	r.Header.Set("Who", o.who)
	return o.RoundTripper.RoundTrip(r)
}

func (c *webClient) status(t *testing.T, verb, method, params string) (status int, answer string) {
	t.Helper()
	response, err := c.send(t.Context(), verb, method, `{"jsonrpc":"2.0","id":"s","method":"`+method+`","params":`+params+`}`)
	if err != nil {
		t.Fatal(err)
	}
	data := bodyOf(t, response)
	return response.StatusCode, string(data)
}

// TestSession_TooLarge: a client that says more about itself in initialize than a session's record can hold gets an error that
// says what is too large.
func TestSession_TooLarge(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	p := startProcesses(t, NewSessions(state.NewSecret()), "here")
	status, got := p.at(t, "here", nil).status(t, "POST", "initialize", `{"protocolVersion":"`+legacyEra+`","clientInfo":{"name":"many","version":"1"},
		"capabilities":{"experimental":{"x":{"text":"`+strings.Repeat("x", state.MaxRecord)+`"}}}}`)
	if status != 413 || !strings.Contains(got, "what the client has said of itself and subscribed to is too large to be kept: at most 64 KiB") {
		t.Errorf("%d %s", status, got)
	}
}

// TestSession_Elsewhere: another process can continue a session. That process knows the session's client, the client's capabilities
// and log level, and the principal. Each process that has handled requests of the session counts it among its own sessions, and
// towards its own limits. A session that ends in one process ends in all.
func TestSession_Elsewhere(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	p := startProcesses(t, NewSessions(state.NewSecret()), "here", "there", "view")
	here := p.at(t, "here", nil)
	here.initializeWith(t, `{"elicitation":{}}`)
	there := p.at(t, "there", here)
	for id, c := range map[string]*webClient{"1": there, "2": here, "3": there} {
		got, err := c.exec(t.Context(), id, "echo", `{"text":"x"}`, "")
		if m, wrong := answerOf(got, id); err != nil || wrong != nil || m.text() != "x" {
			t.Errorf("call %s: %+v, %v, %v", id, got, err, wrong)
		}
	}
	// The other process knows which questions the client supports.
	response, err := there.send(t.Context(), "POST", "tools/call", there.call("4", "ask", `{}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	reading, writing := io.Pipe()
	go func() { // the goroutine ends with the response
		_, err := io.Copy(writing, response.Body)
		writing.CloseWithError(err)
	}()
	question := make([]byte, 1<<10)
	n, err := reading.Read(question)
	if asked := string(question[:n]); err != nil || !strings.Contains(asked, "Which word?") {
		t.Fatalf("asked %s, %v", asked, err)
	}
	answer, err := there.send(t.Context(), "POST", "", answerLine("1", "mellon"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if rest, err := messagesIn("text/event-stream", reading); err != nil || len(rest) != 1 || !strings.Contains(rest[0].text(), "mellon") {
		t.Errorf("got %+v, %v", rest, err)
	}
	// A log level that is set in one process is valid in all.
	if status, got := there.status(t, "POST", "logging/setLevel", `{"level":"warning"}`); status != 200 {
		t.Errorf("%d %s", status, got)
	}
	if status, _ := here.status(t, "POST", "ping", "{}"); status != 200 || p.fronts["here"].sessions.get(here.session).minLevel() != "warning" {
		t.Errorf("%d, or the level is unknown here", status)
	}
	stream, err := there.send(t.Context(), "GET", "", "")
	if err != nil || stream.StatusCode != 200 {
		t.Fatalf("a stream: %v %v", stream.Status, err)
	}
	defer stream.Body.Close()

	bob := p.at(t, "there", here)
	bob.http.Transport = to{"there", "bob", http.DefaultTransport}
	for name, c := range map[string]*webClient{"bob": bob, "another view": p.at(t, "view", here)} {
		if status, got := c.status(t, "POST", "ping", "{}"); status != 404 {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	for name, want := range map[string]int{"here": 1, "there": 1, "view": 0} {
		over := p.limits[name].OpenSession(alice)
		if over == nil {
			p.limits[name].CloseSession(alice)
		}
		if n := p.fronts[name].Sessions(); n != want || (over != nil) != (want > 0) {
			t.Errorf("%s: %d sessions live, and the next one is refused with %v", name, n, over)
		}
	}
	if status, got := there.status(t, "DELETE", "", "{}"); status != 200 {
		t.Errorf("the end: %d %s", status, got)
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the end of the stream: %v", err)
	}
	for name, c := range map[string]*webClient{"here": here, "there": there} {
		if status, got := c.status(t, "POST", "ping", "{}"); status != 404 || !strings.Contains(got, `"id":"s"`) {
			t.Errorf("%s after the end: %d %s", name, status, got)
		}
		ended := map[string]int32{"here": 1}[name] // counted once, where it was opened
		if n := p.ended[name].Load(); n != ended || p.fronts[name].Sessions() != 0 || p.limits[name].OpenSession(alice) != nil {
			t.Errorf("%s: %d have ended, %d live", name, n, p.fronts[name].Sessions())
		}
	}
}

// TestSession_Lost: a session continues although a process no longer has it in memory. Many requests at the same time make it in
// memory only once. If the principal has reached its limit on sessions, it is not made, but the principal can still end it.
func TestSession_Lost(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	p := startProcesses(t, NewSessions(state.NewSecret()), "here")
	f, l := p.fronts["here"], p.limits["here"]
	c := p.at(t, "here", nil)
	c.initialize(t)
	if status, _ := c.status(t, "POST", "logging/setLevel", `{"level":"error"}`); status != 200 {
		t.Fatal(status)
	}
	for range 5 {
		f.release(f.sessions.get(c.session))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if status, got := c.status(t, "POST", "tools/list", "{}"); status != 200 || !strings.Contains(got, `"exec"`) {
					t.Errorf("%d %.200s", status, got)
				}
			})
		}
		all.Wait()
		s := f.sessions.get(c.session)
		if s == nil || f.Sessions() != 1 || s.minLevel() != "error" || s.client.Load().Name != "many" || p.ended["here"].Load() != 1 {
			t.Fatalf("%d live, %+v", f.Sessions(), s)
		}
	}
	f.release(f.sessions.get(c.session))
	if over := l.OpenSession(alice); over != nil {
		t.Fatal(over)
	}
	if status, got := c.status(t, "POST", "ping", "{}"); status != 200 || !strings.Contains(got, `"id":"s","error":{"code":-32000,"message":"over the limit of 1 open sessions`) {
		t.Errorf("without room: %d %s", status, got)
	}
	if status, got := c.status(t, "GET", "", ""); status != 429 || !strings.HasPrefix(got, "over the limit") {
		t.Errorf("a stream without room: %d %s", status, got)
	}
	bob := &webClient{url: p.URL, era: legacyEra, session: c.session, http: &http.Client{Transport: to{"here", "bob", http.DefaultTransport}}}
	if status, got := bob.status(t, "DELETE", "", "{}"); status != 404 {
		t.Errorf("another principal ends it: %d %s", status, got)
	}
	if status, got := c.status(t, "DELETE", "", "{}"); status != 200 || f.Sessions() != 0 {
		t.Errorf("the end without room: %d %s; %d sessions live", status, got, f.Sessions())
	}
	l.CloseSession(alice)
	if status, _ := c.status(t, "POST", "ping", "{}"); status != 404 || f.Sessions() != 0 || l.OpenSession(alice) != nil {
		t.Errorf("after the end: %d; %d sessions live", status, f.Sessions())
	}
}

// TestSession_MadeOnce: two requests at the same time find no session in memory. The first one makes it, and both use it.
func TestSession_MadeOnce(t *testing.T) {
	mcptest.NoLeaks(t)
	sessions := &reads{Sessions: NewSessions(state.NewSecret())}
	l := limits.New(conf.Limits{Anybody: conf.Quota{Sessions: 1}})
	f, web := siteWith(t, Options{Sessions: sessions, Admission: l})
	c := newWebClient(t, web, legacyEra)
	f.release(f.sessions.get(c.session))
	f.sessions.making.Lock()
	before := sessions.seen.Load()
	found := make(chan *session)
	for range 2 {
		go func() { // the goroutine ends with its send
			s, err := f.find(t.Context(), c.session, nil, nil, false)
			if err != nil {
				t.Error(err)
			}
			found <- s
		}()
	}
	mcptest.WaitFor(t, "both to have the record", patience, func() bool { return sessions.seen.Load() == before+2 })
	f.sessions.making.Unlock()
	if one, other := <-found, <-found; one != other || one == nil || f.Sessions() != 1 {
		t.Errorf("%p and %p; %d live", one, other, f.Sessions())
	}
	// The client can be asked questions without a new handshake.
	select {
	case <-f.sessions.get(c.session).begun:
	default:
		t.Error("it waits for the client to initialize")
	}
}

// reads is a session store that counts the reads. It can also end a session after a number of reads.
type reads struct {
	state.Sessions[Session]
	seen  atomic.Int32
	looks atomic.Int32 // the read with this number, counted from 1, gets ErrUnknown; 0 means that none does
}

func (e *reads) Get(ctx context.Context, id string) (*Session, error) {
	defer e.seen.Add(1)
	if e.looks.Load() > 0 && e.looks.Add(-1) == 0 {
		return nil, state.ErrUnknown
	}
	return e.Sessions.Get(ctx, id)
}

// TestSession_EndedMeanwhile: if a session ends while it is being made in memory, it does not stay in memory.
func TestSession_EndedMeanwhile(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	sessions := &reads{Sessions: NewSessions(state.NewSecret())}
	p := startProcesses(t, sessions, "here")
	f := p.fronts["here"]
	c := p.at(t, "here", nil)
	c.initialize(t)
	f.release(f.sessions.get(c.session))
	sessions.looks.Store(2)
	if status, got := c.status(t, "POST", "ping", "{}"); status != 404 || f.Sessions() != 0 || p.limits["here"].OpenSession(alice) != nil {
		t.Errorf("%d %s; %d live", status, got, f.Sessions())
	}
}

// TestSession_Endings: a session ends in all processes if its client ends it, its principal is no longer known, or its view is
// removed. If it has been idle in this process for long, or if the process stops, other processes may continue it.
func TestSession_Endings(t *testing.T) {
	mcptest.NoLeaks(t)
	for name, test := range map[string]struct {
		end  func(f *Front, c *webClient)
		want error
	}{
		"the client":    {func(_ *Front, c *webClient) { c.status(t, "DELETE", "", "{}") }, state.ErrUnknown},
		"the principal": {func(f *Front, _ *webClient) { f.EndUnknown() }, state.ErrUnknown},
		"the view":      {func(f *Front, _ *webClient) { f.Remove() }, state.ErrUnknown},
		"idle":          {func(f *Front, _ *webClient) { f.endIdle(time.Now().Add(time.Minute)) }, nil},
		"the process":   {func(f *Front, _ *webClient) { f.Close() }, nil},
	} {
		sessions := NewSessions(state.NewSecret())
		var stranger atomic.Bool
		f, web := siteWith(t, Options{Sessions: sessions, Known: func(*caller.Principal) bool { return !stranger.Load() }})
		c := newWebClient(t, web, legacyEra)
		stranger.Store(name == "the principal")
		test.end(f.Front, c)
		if _, err := sessions.Get(t.Context(), c.session); !errors.Is(err, test.want) || f.Sessions() != 0 {
			t.Errorf("%s: the record: %v, want %v; %d live", name, err, test.want, f.Sessions())
		}
	}
}

// away is a session store that becomes unreachable when the test wants it. Only Get then still works.
type away struct {
	state.Sessions[Session]
	now atomic.Bool
}

func (a *away) err() error {
	if a.now.Load() {
		return state.ErrAway
	}
	return nil
}

func (a *away) Open(ctx context.Context, record *Session, until time.Time) (string, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	return a.Sessions.Open(ctx, record, until)
}

func (a *away) Change(ctx context.Context, id string, change func(*Session)) (*Session, error) {
	if err := a.err(); err != nil {
		return nil, err
	}
	return a.Sessions.Change(ctx, id, change)
}

func (a *away) End(ctx context.Context, id string) error {
	if err := a.err(); err != nil {
		return err
	}
	return a.Sessions.End(ctx, id)
}

// TestSession_Away: while the session store is unreachable, open sessions continue, but none can begin or
// change. mcpx does not tell a client that its session has ended if the session may still exist. Sessions
// counts only sessions in memory.
func TestSession_Away(t *testing.T) {
	mcptest.NoLeaks(t)
	sessions := &away{Sessions: NewSessions(state.NewSecret())}
	l := limits.New(conf.Limits{Anybody: conf.Quota{Sessions: 2}})
	var log strings.Builder
	f, web := siteWith(t, Options{Sessions: sessions, Admission: l, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := newWebClient(t, web, legacyEra)
	sessions.now.Store(true)
	for _, one := range []struct{ verb, method, params, want string }{
		{"POST", "initialize", `{"protocolVersion":"` + legacyEra + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, "503 " + `"id":"s","error":{"code":-32000,"message":"the state of clients cannot be reached now; try again"`},
		{"POST", "ping", "{}", `200 "result"`},
		{"POST", "logging/setLevel", `{"level":"info"}`, `200 "message":"the state of clients cannot be reached now`},
		{"DELETE", "", "{}", "503 the state of clients cannot be reached now"},
		{"POST", "ping", "{}", `200 "result"`},
	} {
		want, text, _ := strings.Cut(one.want, " ")
		status, got := c.status(t, one.verb, one.method, one.params)
		if strconv.Itoa(status) != want || !strings.Contains(got, text) {
			t.Errorf("%s %s: %d %s, want %s", one.verb, one.method, status, got, one.want)
		}
	}
	if l.OpenSession(nil) != nil || l.OpenSession(nil) == nil {
		t.Error("the session that did not begin is counted")
	}
	l.CloseSession(nil)
	f.Remove() // removes the session from memory here, even if other processes cannot learn of it
	if f.Sessions() != 0 || !strings.Contains(log.String(), "could not be ended") {
		t.Errorf("%d live; the log says %s", f.Sessions(), log.String())
	}
}
