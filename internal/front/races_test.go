package front

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// hooked is a session store that calls a func once, after a Get or before an End.
type hooked struct {
	state.Sessions[Session]
	got, ending func()
}

func run(hook *func()) {
	if do := *hook; do != nil {
		*hook = nil
		do()
	}
}

func (h *hooked) Get(ctx context.Context, id string) (*Session, error) {
	record, err := h.Sessions.Get(ctx, id)
	run(&h.got)
	return record, err
}

func (h *hooked) End(ctx context.Context, id string) error {
	run(&h.ending)
	return h.Sessions.End(ctx, id)
}

func newHooked() *hooked {
	return &hooked{Sessions: NewSessions(state.NewSecret())}
}

const echoX = `{"name":"exec","arguments":{"server_name":"fake","tool_name":"echo","arguments":{"text":"x"}}}`

// TestSession_IdleMeanwhile: a session idles out while a request of its client is under way. The request is answered, and the
// session is counted once.
func TestSession_IdleMeanwhile(t *testing.T) {
	mcptest.NoLeaks(t)
	sessions, ended := newHooked(), 0
	f, web := siteWith(t, Options{Sessions: sessions, SessionEnded: func(*caller.Client, time.Duration) { ended++ }},
		remote("fake", offering("fake", mcptest.EraLegacy).HTTP(t)))
	f.registry.WaitListed(t.Context(), nil)
	c := newWebClient(t, web, legacyEra)
	for range 3 {
		sessions.got = func() { f.endIdle(time.Now().Add(time.Minute)) }
		if status, got := c.status(t, "POST", "tools/call", echoX); status != 200 || strings.Contains(got, "ended") || strings.Contains(got, `"isError":true`) {
			t.Errorf("%d %s", status, got)
		}
		if f.Sessions() != 1 || ended != 1 {
			t.Errorf("%d sessions live, %d were counted", f.Sessions(), ended)
		}
	}
	// While a request is under way, the session is not idle.
	s, err := f.find(t.Context(), c.session, nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	f.endIdle(time.Now().Add(time.Minute))
	if f.Sessions() != 1 {
		t.Error("the session of a request has idled out")
	}
	s.inflight.free()
	if f.endIdle(time.Now().Add(time.Minute)); f.Sessions() != 0 {
		t.Error("the session has not idled out")
	}
}

// TestSession_TakenUpWhileEnding: a client ends a session that this process does not have live, and a request takes it up at the
// same time. When the end is answered, the session is not live, and its stream has ended.
func TestSession_TakenUpWhileEnding(t *testing.T) {
	mcptest.NoLeaks(t)
	sessions := newHooked()
	f, web := siteWith(t, Options{Sessions: sessions})
	c := newWebClient(t, web, legacyEra)
	f.release(f.sessions.get(c.session))
	var stream *http.Response
	sessions.ending = func() {
		var err error
		if stream, err = c.send(t.Context(), "GET", "", ""); err != nil || stream.StatusCode != 200 {
			t.Errorf("the stream: %v", err)
		}
	}
	if status, got := c.status(t, "DELETE", "", "{}"); status != 200 || f.Sessions() != 0 {
		t.Errorf("the end: %d %s; %d live", status, got, f.Sessions())
	}
	defer stream.Body.Close()
	if _, err := io.ReadAll(stream.Body); err != nil { // hangs if the stream has not ended with the session
		t.Error(err)
	}
	if status, _ := c.status(t, "POST", "ping", "{}"); status != 404 {
		t.Errorf("after the end: %d", status)
	}
}
