package front

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"mcpx/internal/base/catalog"
	"mcpx/internal/view"
)

// opened opens a session and returns its id.
func opened(f shown) (session string) {
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(strings.SplitN(hello("a"), "\n", 2)[0]))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Header().Get("Mcp-Session-Id")
}

// listening opens a GET stream of a session, in a synctest bubble.
func listening(t *testing.T, f shown, session string) (stream *httptest.ResponseRecorder, leave func()) {
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "/mcp", nil)
	r.Header.Set("Mcp-Session-Id", session)
	w := httptest.NewRecorder()
	go f.ServeHTTP(w, r) // ends with leave, or with the test
	synctest.Wait()
	return w, leave
}

// TestStreams_Newest: of several GET streams of a session, the newest alone gets the notifications that are part of no request.
// When it ends, the one before it gets them again.
func TestStreams_Newest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := connectWith(t, Options{}, view.Options{})
		session := opened(f)
		got := func(w *httptest.ResponseRecorder) int { return strings.Count(w.Body.String(), "tools/list_changed") }
		change := func() {
			f.changes.announce(catalog.Tools)
			synctest.Wait()
			f.sessions.get(session).notify("notifications/tools/list_changed", nil)
			synctest.Wait()
		}
		older, _ := listening(t, f, session)
		newest, leave := listening(t, f, session)
		for range 10 { // both streams wait for a change, and either may take it first
			change()
		}
		if got(older) != 0 || got(newest) != 20 {
			t.Errorf("the older stream got %d, the newest %d of 20", got(older), got(newest))
		}
		leave()
		synctest.Wait()
		change()
		if got(older) != 2 {
			t.Errorf("the stream that is left got %d of 2", got(older))
		}
	})
}

// peersHere are Peers without another replica.
type peersHere struct{ Peers }

func (peersHere) Self() string { return "replica1" }

func (peersHere) IsLive(string) bool { return false }

// TestStreams_Record: the record of a session names this replica until the last of its GET streams here has ended.
func TestStreams_Record(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := connectWith(t, Options{Peers: peersHere{}}, view.Options{})
		session := opened(f)
		stream := func() string {
			synctest.Wait()
			record, err := f.options.Sessions.Get(t.Context(), session)
			if err != nil {
				t.Fatal(err)
			}
			return record.Stream
		}
		_, leaveOlder := listening(t, f, session)
		_, leaveNewest := listening(t, f, session)
		leaveOlder()
		if at := stream(); at != "replica1" {
			t.Errorf("with a stream: %q", at)
		}
		leaveNewest()
		if at := stream(); at != "" {
			t.Errorf("without a stream: %q", at)
		}
	})
}
