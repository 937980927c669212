package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/upstream"
)

// withKey is one request of a client, with a header for the server.
func withKey(client string, keys ...string) *upstream.Client {
	return &upstream.Client{ID: client, Headers: http.Header{"X-User-Key": keys}, Notify: func(string, json.RawMessage) {}}
}

// TestCredentials: many callers at once, whose keys change, and each call goes over a
// session that has only ever had the caller's present key. Nobody without one gets through.
func TestCredentials(t *testing.T) {
	mcptest.NoLeaks(t)
	web := mcptest.Spec{}.HTTP(t)
	r := start(t, Options{}, Server{
		Spec:      upstream.Spec{Name: "web", Type: upstream.HTTP, URL: web.URL, Headers: map[string]string{"x-api-key": "catalogue", "X-Other": "o"}},
		PerClient: true, Credentials: map[string]string{"X-Api-Key": "X-User-Key"},
	})
	tried(t, r)
	const callers, keys, calls = 8, 3, 4
	var all sync.WaitGroup
	for i := range callers {
		for j := range keys {
			for range calls {
				all.Go(func() {
					key := fmt.Sprintf("key-%d-%d", i, j)
					if got, err := call(r, "web", withKey(fmt.Sprint(i), key), "echo", `{"text":"`+key+`"}`); err != nil || got != key {
						t.Errorf("%s: %q, %v", key, got, err)
					}
				})
			}
		}
	}
	// The same key of another client: still a session of its own.
	for _, client := range []string{"twin-1", "twin-2"} {
		all.Go(func() {
			if _, err := call(r, "web", withKey(client, "twin"), "echo", `{"text":"twin"}`); err != nil {
				t.Error(err)
			}
		})
	}
	for _, nobody := range []*upstream.Client{
		nil, {ID: "0"}, {ID: "0", Headers: http.Header{"X-Api-Key": {"key-0-0"}}},
		withKey("0", ""), withKey("0", " "), withKey("0", "key-0-0", "key-1-0"), withKey("", "key-0-0"),
	} {
		all.Go(func() {
			_, err := call(r, "web", nobody, "echo", `{"text":"nobody"}`)
			if unavailable, ok := errors.AsType[*upstream.UnavailableError](err); !ok || !strings.Contains(unavailable.Reason, "X-User-Key") || strings.Contains(err.Error(), "key-") {
				t.Errorf("%v: %v", nobody, err)
			}
		})
	}
	all.Wait()

	keyOf := map[string]string{} // by session
	for _, entry := range web.Log().Event(mcptest.EventHTTP) {
		if session := entry.Session; session != "" {
			key := strings.Join(entry.Header.Values("X-Api-Key"), ",")
			if before, ok := keyOf[session]; ok && before != key {
				t.Errorf("session %s has had %s and %s", session, before, key)
			}
			keyOf[session] = key
		}
		if entry.Header.Get("X-Other") != "o" || entry.Header.Get("X-User-Key") != "" {
			t.Errorf("headers %v", entry.Header)
		}
	}
	echoed := web.Log().Calls("echo")
	if len(echoed) != callers*keys*calls+2 {
		t.Errorf("%d calls arrived", len(echoed))
	}
	for _, entry := range echoed {
		if key := keyOf[entry.Session]; key == "catalogue" || !strings.Contains(string(entry.Message), `"`+key+`"`) {
			t.Errorf("with the key %s: %s", key, entry.Message)
		}
	}
	if len(keyOf) != callers*keys+2+1 {
		t.Errorf("%d sessions", len(keyOf))
	}
	if n := web.Count("tools/list"); n != 1 {
		t.Errorf("the catalogue was read %d times", n)
	}
	for i := range callers {
		r.ForgetClient(fmt.Sprint(i))
	}
	mcptest.WaitFor(t, "the end of their sessions", patience, func() bool { return web.Sessions() == 3 })
}

// TestCredentials_Refused: a server that refuses one caller's key refuses that caller alone;
// a login of the server stays with its catalogue.
func TestCredentials_Refused(t *testing.T) {
	mcptest.NoLeaks(t)
	web := mcptest.Spec{Token: "good"}.HTTP(t)
	var loggedIn atomic.Int32
	r := start(t, Options{}, Server{
		Spec: upstream.Spec{Name: "web", Type: upstream.HTTP, URL: web.URL, Headers: map[string]string{"authorization": "Bearer good"}, Authorize: func(base http.RoundTripper) http.RoundTripper {
			loggedIn.Add(1)
			return base
		}},
		PerClient: true, Credentials: map[string]string{"Authorization": "X-User-Key"},
	})
	tried(t, r)
	before := loggedIn.Load()
	if _, err := call(r, "web", withKey("a", "Bearer hush-1111"), "echo", `{"text":"x"}`); err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v", err)
	}
	for _, client := range []string{"a", "b"} { // the refused one too, with another key
		if got, err := call(r, "web", withKey(client, "Bearer good"), "echo", `{"text":"x"}`); err != nil || got != "x" {
			t.Errorf("%s: %q, %v", client, got, err)
		}
	}
	if before == 0 || loggedIn.Load() != before {
		t.Errorf("the login was used %d times for the catalogue, then %d times", before, loggedIn.Load()-before)
	}
}
