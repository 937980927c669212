package app

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestEndUnknown: a reload ends the streams and sessions of clients that can no longer authenticate: of clients without a token
// if auth is added, and of a principal whose token is removed. Other clients are not affected.
func TestEndUnknown(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	servers := map[string]string{"fake": fake.URL}
	guarded := configOf(t, servers, `[{"principals":["*"]}]`, "")
	open := *guarded
	open.Auth = nil
	e := serving(t, &open)
	listening := func(who string) (visitors []*visitor, streams []*stream) {
		visitors = []*visitor{e.visitor(t, who, legacyEra, false), e.visitor(t, who, modernEra, false), e.visitor(t, who, legacyEra, true)}
		for _, v := range visitors {
			streams = append(streams, v.listening(t, "/mcp", ""))
		}
		return visitors, streams
	}
	refused := func(visitors []*visitor, streams []*stream) {
		t.Helper()
		for i, s := range streams {
			select {
			case <-s.ended:
			case <-time.After(patience):
				t.Fatal("the stream is still open, era", visitors[i].era)
			}
			if status, answer, _ := visitors[i].http(t, "GET", "/mcp", "", nil); status != 401 {
				t.Errorf("once more: %d %s", status, answer)
			}
		}
	}
	visitors, streams := listening("anybody")
	if err := e.app.reload(guarded); err != nil {
		t.Fatal(err)
	}
	refused(visitors, streams)
	if n := e.app.sessions(); n != 0 {
		t.Errorf("%d sessions of anybody", n)
	}
	w := httptest.NewRecorder()
	e.app.metricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if want := `mcp_server_session_duration_seconds_count{mcp_protocol_version="` + legacyEra + `"} 1`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("no %s in %s", want, w.Body)
	}

	visitors, streams = listening("alice")
	_, others := listening("bob")
	less := *guarded
	auth := *guarded.Auth
	auth.Tokens = auth.Tokens[1:]
	less.Auth = &auth
	if err := e.app.reload(&less); err != nil {
		t.Fatal(err)
	}
	refused(visitors, streams)
	if n := e.app.sessions(); n != 1 {
		t.Errorf("%d sessions, want that of bob", n)
	}
	fake.SetTools([]byte(`[{"name":"new","inputSchema":{"type":"object"}}]`))
	fake.Notify(toolsChanged, "{}")
	for _, s := range others {
		s.await(t, toolsChanged)
	}
	if said := visitors[0].ask(t, "/mcp", "ping", ""); !strings.HasPrefix(said, "401 ") {
		t.Errorf("alice: %s", said)
	}
}
