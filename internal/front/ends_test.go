package front

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestEndUnknown_Late: EndUnknown has ended the sessions of unknown principals. A session that such a
// principal opens just afterwards is ended too.
func TestEndUnknown_Late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known atomic.Bool
		f := connectWith(t, Options{Known: func(*caller.Principal) bool { return known.Load() }}, view.Options{})
		f.EndUnknown()
		post := httptest.NewRequest("POST", "/mcp", strings.NewReader(strings.SplitN(hello("late"), "\n", 2)[0]))
		post.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, post)
		if f.Sessions() != 1 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		time.Sleep(2 * time.Minute)
		if n := f.Sessions(); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestExpired: when a token expires, the streams and subscriptions that were opened with it end. Calls go on.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := connectWith(t, Options{SessionIdle: 24 * time.Hour}, view.Options{})
		proof := &identity.Proof{Principal: &caller.Principal{ID: "a"}, Revoked: t.Context(), Until: time.Now().Add(time.Hour)}
		var open atomic.Int32
		serve := func(handle http.HandlerFunc, method, body string, header ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), method, "/mcp", strings.NewReader(body))
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			open.Add(1)
			go func() { // the goroutine ends with the request
				ctx, end := proof.Context(r.Context())
				defer end()
				handle(w, r.WithContext(ctx))
				open.Add(-1)
			}()
			synctest.Wait()
			return w
		}
		session := serve(f.ServeHTTP, "POST", strings.SplitN(hello("a"), "\n", 2)[0]).Header().Get("Mcp-Session-Id")
		stream := serve(f.ServeHTTP, "GET", "", "Mcp-Session-Id", session)
		listen := serve(f.ServeHTTP, "POST", `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+modernMeta+`}}`,
			"Mcp-Protocol-Version", modernEra, "Mcp-Method", "subscriptions/listen", "Accept", "application/json, text/event-stream")
		older := serve(func(w http.ResponseWriter, r *http.Request) { f.ServeSSE(w, r, "/messages") }, "GET", "")
		ctx, end := proof.Context(t.Context())
		defer end()
		call, begun := f.stateless.begin(ctx, "call", false)
		defer f.stateless.done(begun)

		time.Sleep(time.Hour - time.Second)
		if n := open.Load(); n != 3 {
			t.Errorf("%d of 3 streams are open before", n)
		}
		time.Sleep(time.Minute)
		if n := open.Load(); n != 0 {
			t.Errorf("%d streams are open after that", n)
		}
		if call.Err() != nil {
			t.Error("the call ended too")
		}
		if f.Sessions() != 1 {
			t.Error("the session ended too")
		}
		if stream.Code != 200 || older.Code != 200 || !strings.Contains(listen.Body.String(), `"resultType":"complete"`) {
			t.Errorf("%d, %d, %s", stream.Code, older.Code, listen.Body)
		}
	})
}

// TestSessionEnded: SessionEnded is called once for each session, whether the client ends the session or the session is idle
// for too long.
func TestSessionEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		ended := func(c *caller.Client, lasted time.Duration) { seen = append(seen, c.Version+" "+lasted.String()) }
		f := connectWith(t, Options{SessionEnded: ended, SessionIdle: 10 * time.Minute}, view.Options{})
		open := func() (id string) {
			r := httptest.NewRequest("POST", "/mcp", strings.NewReader(strings.SplitN(hello("a"), "\n", 2)[0]))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			return w.Header().Get("Mcp-Session-Id")
		}
		id := open()
		time.Sleep(90 * time.Second)
		for range 2 {
			r := httptest.NewRequest("DELETE", "/mcp", nil)
			r.Header.Set("Mcp-Session-Id", id)
			f.ServeHTTP(httptest.NewRecorder(), r)
		}
		open()
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []string{"2025-06-18 1m30s", "2025-06-18 10m10s"}; !slices.Equal(seen, want) {
			t.Errorf("%q, want %q", seen, want)
		}
	})
}

// TestEndCalls_Late: a session that begins after EndCalls makes no calls and gets no stream.
func TestEndCalls_Late(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	f, web := site(t, remote("fake", fake))
	f.EndCalls()
	c := newWebClient(t, web, legacyEra)
	got, err := c.exec(t.Context(), "1", "echo", `{"text":"late"}`, "")
	if m, idErr := answerOf(got, "1"); err != nil || idErr != nil || !strings.Contains(string(m.Error), "shutting down") {
		t.Errorf("got %+v, %v, %v", got, err, idErr)
	}
	if n := len(fake.Log().Calls("echo")); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := c.send(ctx, "GET", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream does not end: %v", err)
	}
}
