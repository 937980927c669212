package front

import (
	"context"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestUnsubscribe_early: a client unsubscribes before the server has accepted its subscription. It gets an
// answer to both requests, and mcpx unsubscribes at the server.
func TestUnsubscribe_early(t *testing.T) {
	mcptest.NoLeaks(t)
	spec := offering("fake", mcptest.EraLegacy)
	spec.HangMethods = []string{"resources/subscribe"}
	fake := spec.HTTP(t)
	f := (&once{t: t}).front(Options{}, view.Options{}, remote("fake", fake))
	f.registry.WaitListed(t.Context(), nil)
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	t.Cleanup(f.Close)
	client := newWebClient(t, web, legacyEra)
	request := func(ctx context.Context, id, method string) string {
		response, err := client.send(ctx, "POST", method, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{"uri":"fake://1"}}`)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error()
		}
		return string(body)
	}
	subscribed := make(chan string, 1)
	go func() { subscribed <- request(t.Context(), "1", "resources/subscribe") }() // the goroutine ends with the answer
	mcptest.WaitFor(t, "the subscription", patience, func() bool { return len(fake.Log().Method("resources/subscribe")) == 1 })
	if answer := request(t.Context(), "2", "resources/unsubscribe"); !strings.Contains(answer, `"result":{}`) {
		t.Error(answer)
	}
	if answer := <-subscribed; !strings.Contains(answer, `"code":-32800`) {
		t.Error(answer)
	}
	mcptest.WaitFor(t, "the server to be told", patience, func() bool { return len(fake.Log().Method("resources/unsubscribe")) == 1 })
}

// TestSession_ListsAfterIdle: while a session is idle, mcpx notes no changes of lists for its client. So the client learns
// that the lists may have changed when it goes on; another client, which was not idle, does not.
func TestSession_ListsAfterIdle(t *testing.T) {
	mcptest.NoLeaks(t)
	sessions := NewSessions(state.NewSecret())
	f, web := siteWith(t, Options{Sessions: sessions}) // without servers no list changes
	idle := newWebClient(t, web, legacyEra)
	f.endIdle(time.Now().Add(time.Minute))
	busy := newWebClient(t, web, legacyEra)
	if status, got := idle.status(t, "POST", "ping", "{}"); status != 200 || f.Sessions() != 2 {
		t.Fatalf("%d %s; %d live", status, got, f.Sessions())
	}
	if notes := f.sessions.get(busy.session).pending.take(); len(notes) > 0 {
		t.Errorf("the other client: %v", notes)
	}
	var methods []string
	for _, one := range f.sessions.get(idle.session).pending.take() {
		methods = append(methods, one.method)
	}
	for _, list := range []string{"tools", "resources", "prompts"} {
		if !slices.Contains(methods, "notifications/"+list+"/list_changed") {
			t.Errorf("%s: %v", list, methods)
		}
	}
}

// TestSession_AnewAfterIdle: after an idle time, the result of a client's first call of a PerClient server says that its session
// with that server began anew. Later results do not say it, nor do results for a client that was not idle.
func TestSession_AnewAfterIdle(t *testing.T) {
	mcptest.NoLeaks(t)
	sessions := NewSessions(state.NewSecret())
	f, web := siteWith(t, Options{Sessions: sessions, Homed: func() []string { return []string{"fake"} }},
		remote("fake", offering("fake", mcptest.EraLegacy).HTTP(t)), remote("other", offering("other", mcptest.EraLegacy).HTTP(t)))
	f.registry.WaitListed(t.Context(), nil)
	idle := newWebClient(t, web, legacyEra)
	f.endIdle(time.Now().Add(time.Minute))
	busy := newWebClient(t, web, legacyEra)
	said := func(c *webClient, server string) bool {
		t.Helper()
		status, got := c.status(t, "POST", "tools/call", `{"name":"exec","arguments":{"server_name":"`+server+`","tool_name":"echo","arguments":{"text":"x"}}}`)
		if status != 200 || strings.Contains(got, `"isError":true`) {
			t.Errorf("%d %s", status, got)
		}
		return strings.Contains(got, "your session with "+server+" began anew")
	}
	if said(idle, "other") || !said(idle, "fake") || said(idle, "fake") || said(busy, "fake") {
		t.Error("not said once, or to another client, or of another server")
	}
}

// TestFollow_Again: a session that was idle, or whose process has ended, goes on with its next request. With a new GET
// stream the client gets the updates of the resources that it had subscribed to, and no others; a second client gets
// only its own. After a restart it also learns that the lists may have changed.
func TestFollow_Again(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := offering("fake", mcptest.EraLegacy).HTTP(t)
	records, secrets := state.NewRecords(100, 1<<20), []*state.Secret{state.NewSecret()}
	start := func() (shown, *httptest.Server) {
		f, web := siteWith(t, Options{Sessions: state.NewSealed[Session](secrets, "session", records)}, remote("fake", fake))
		f.registry.WaitListed(t.Context(), nil)
		return f, web
	}
	f, web := start()
	one, two := newWebClient(t, web, legacyEra), newWebClient(t, web, legacyEra)
	status := func(c *webClient, method, uri string) {
		t.Helper()
		if status, got := c.status(t, "POST", method, `{"uri":"`+uri+`"}`); status != 200 || strings.Contains(got, `"error"`) {
			t.Errorf("%s %s: %d %s", method, uri, status, got)
		}
	}
	status(one, "resources/subscribe", "fake://1")
	status(one, "resources/subscribe", "fake://left")
	status(one, "resources/unsubscribe", "fake://left")
	status(two, "resources/subscribe", "mcpx://fake/shared://x")

	heard := func(c *webClient, uri, not string) {
		t.Helper()
		stream := c.stream(t, "", "")
		update := func(uri string) {
			if _, err := c.exec(t.Context(), "9", "notify", `{"method":"notifications/resources/updated","params":{"uri":"`+uri+`"}}`, ""); err != nil {
				t.Error(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		updating := make(chan struct{})
		go func() { // ends with stop; updates until the new subscription is there
			defer close(updating)
			for ctx.Err() == nil {
				update(not)
				update("fake://left")
				update(strings.TrimPrefix(uri, "mcpx://fake/"))
			}
		}()
		for came := ""; !strings.Contains(came, `"uri":"`+uri+`"`); {
			if _, came = stream.next(t); strings.Contains(came, not) || strings.Contains(came, "fake://left") {
				t.Errorf("heard %s", came)
				break
			}
		}
		stop()
		<-updating
		stream.body.Body.Close()
	}
	f.endIdle(time.Now().Add(time.Minute))
	if f.Sessions() != 0 {
		t.Fatalf("%d live", f.Sessions())
	}
	heard(one, "fake://1", "shared://x")
	heard(two, "mcpx://fake/shared://x", "fake://1")

	f.Close()
	_, again := start()
	one.url, two.url = again.URL, again.URL
	stream := one.stream(t, "", "")
	for _, list := range []string{"tools", "resources", "prompts"} {
		if _, came := stream.next(t); !strings.Contains(came, "notifications/"+list+"/list_changed") {
			t.Errorf("after a restart: %s", came)
		}
	}
	stream.body.Body.Close()
	heard(two, "mcpx://fake/shared://x", "fake://1")
	heard(one, "fake://1", "shared://x")
	status(one, "resources/unsubscribe", "fake://1")
	if status, got := one.status(t, "DELETE", "", "{}"); status != 200 {
		t.Errorf("%d %s", status, got)
	}
	if status, _ := one.status(t, "GET", "", ""); status != 404 {
		t.Errorf("after the end: %d", status)
	}
}

// TestFollow_Missed: a resource changes while the session of a client that has subscribed to it is idle. With its next GET stream
// the client learns once that the resource may have changed, and then of each change.
func TestFollow_Missed(t *testing.T) {
	mcptest.NoLeaks(t)
	sessions := NewSessions(state.NewSecret())
	f, web := siteWith(t, Options{Sessions: sessions}, remote("fake", offering("fake", mcptest.EraLegacy).HTTP(t)))
	f.registry.WaitListed(t.Context(), nil)
	c := newWebClient(t, web, legacyEra)
	if status, got := c.status(t, "POST", "resources/subscribe", `{"uri":"fake://1"}`); status != 200 || strings.Contains(got, `"error"`) {
		t.Fatalf("%d %s", status, got)
	}
	update := func(data string) {
		other := newWebClient(t, web, legacyEra)
		if _, err := other.exec(t.Context(), "9", "notify", `{"method":"notifications/resources/updated","params":{"uri":"fake://1","data":"`+data+`"}}`, ""); err != nil {
			t.Error(err)
		}
	}
	f.endIdle(time.Now().Add(time.Minute))
	update("missed")
	updated := func(stream *webStream) string {
		t.Helper()
		for {
			if _, came := stream.next(t); strings.Contains(came, "resources/updated") {
				return came
			}
		}
	}
	stream := c.stream(t, "", "")
	if came := updated(stream); !strings.Contains(came, `"uri":"fake://1"`) || !strings.Contains(came, `"mcpx/origin":"fake"`) || strings.Contains(came, "missed") {
		t.Errorf("after the idle time: %s", came)
	}
	update("next")
	if came := updated(stream); !strings.Contains(came, "next") {
		t.Errorf("then: %s", came)
	}
	stream.body.Body.Close() // the session in memory keeps its subscription, so the next stream does not report the resource as changed again
	mcptest.WaitFor(t, "the end of the stream", patience, func() (ended bool) {
		f.sessions.each(func(s *session) { ended = ended || s.id == c.session && s.outside() == nil })
		return ended
	})
	update("later")
	if came := updated(c.stream(t, "", "")); !strings.Contains(came, "later") {
		t.Errorf("with the next stream: %s", came)
	}
}

// TestFollow_EndedStream: notifications that are pending when a stream ends wait for the next stream. They are not sent on the
// ended one.
func TestFollow_EndedStream(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	notes := newPending()
	notes.add(note{method: mcp.MethodNotificationToolsListChanged})
	for range 100 { // repeated, because the select in follow chooses at random among the channels that are ready
		follow(ended, notes, func(n note) { t.Fatalf("told %v", n) }, func() {})
	}
	if len(notes.due) != 1 || len(notes.take()) != 1 {
		t.Error("the note is lost")
	}
}

// TestFollowed_Bounds: the subscriptions of one principal are bounded together, over all of its sessions and requests. When some
// end, others may begin. Other principals are not affected. A client may ask for more than maxFollowed resources, most of them
// unknown: mcpx then looks for the first maxFollowed only.
func TestFollowed_Bounds(t *testing.T) {
	mcptest.NoLeaks(t)
	f := (&once{t: t}).front(Options{}, view.Options{}, remote("fake", offering("fake", mcptest.EraLegacy).HTTP(t)))
	f.registry.WaitListed(t.Context(), nil)
	t.Cleanup(f.Close)
	follow := func(who string, uris ...string) (granted int, end func()) {
		o, client := &followed{}, &caller.Client{Principal: &caller.Principal{ID: who}}
		notes, stop := f.pendingFor(client)
		defer stop()
		return len(f.followAll(t.Context(), client, uris, o, notes)), o.close
	}
	f.following.add("mallory", maxFollowedOf-2) // as if other sessions had these subscriptions
	n, end := follow("mallory", "fake://1?q", "fake://2?q", "fake://3?q")
	if n != 2 {
		t.Errorf("mallory got %d subscriptions, want the last 2", n)
	}
	granted := func(who string, want int, uris ...string) {
		t.Helper()
		n, end := follow(who, uris...)
		if end(); n != want {
			t.Errorf("%s got %d subscriptions, want %d", who, n, want)
		}
	}
	granted("mallory", 0, "fake://1")
	if f.full(&followed{end: map[string]context.CancelFunc{"fake://1": func() {}}}, &caller.Client{Principal: &caller.Principal{ID: "mallory"}}, "fake://1") {
		t.Error("mallory may not subscribe again to a resource to which this client subscribes")
	}
	granted("alice", 1, "fake://1")
	end()
	granted("mallory", 1, "fake://1")
	// In this front the only server gets requests for unknown resources, so the first URI is granted. Its repetitions are skipped.
	granted("alice", 1, append(slices.Repeat([]string{"unknown:"}, maxFollowed), "fake://1")...)
	f.following.add("mallory", 2-maxFollowedOf)
	if len(f.following.of) > 0 {
		t.Errorf("at the end: %v", f.following.of)
	}
}
