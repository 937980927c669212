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

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// withKey returns a client whose request has these keys in a header for the server.
func withKey(client string, keys ...string) *caller.Client {
	return &caller.Client{ID: client, Headers: http.Header{"X-User-Key": keys}, Notify: func(string, json.RawMessage) {}}
}

// TestCredentials: clients change their keys, and many calls run concurrently. Each call is sent over a session that has only
// ever used the caller's present key. Without a key, no call is made.
func TestCredentials(t *testing.T) {
	mcptest.NoLeaks(t)
	web := mcptest.Spec{}.HTTP(t)
	r := start(t, Options{}, Server{
		Spec:      upstream.Spec{Options: transport.Options{Name: "web", Type: transport.HTTP, Remote: transport.Remote{URL: web.URL, Headers: map[string]string{"x-api-key": "catalogue", "X-Other": "o"}}}},
		PerClient: true, Credentials: map[string]Credential{"X-Api-Key": {Header: "X-User-Key"}},
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
	// Two clients with the same key still have separate sessions.
	for _, client := range []string{"twin-1", "twin-2"} {
		all.Go(func() {
			if _, err := call(r, "web", withKey(client, "twin"), "echo", `{"text":"twin"}`); err != nil {
				t.Error(err)
			}
		})
	}
	for _, nobody := range []*caller.Client{
		nil, {ID: "0"}, {ID: "0", Headers: http.Header{"X-Api-Key": {"key-0-0"}}},
		withKey("0", ""), withKey("0", " "), withKey("0", "key-0-0", "key-1-0"), withKey("", "key-0-0"),
	} {
		all.Go(func() {
			_, err := call(r, "web", nobody, "echo", `{"text":"nobody"}`)
			if unavailable, ok := errors.AsType[*request.UnavailableError](err); !ok || !strings.Contains(unavailable.Reason, "X-User-Key") || strings.Contains(err.Error(), "key-") {
				t.Errorf("%v: %v", nobody, err)
			}
		})
	}
	all.Wait()

	keyOf := map[string]string{} // the keys by session
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

// TestCredentials_Refused: if a server refuses one caller's key, only that caller's calls fail. The configured login is used
// only to read the catalogue.
func TestCredentials_Refused(t *testing.T) {
	mcptest.NoLeaks(t)
	web := mcptest.Spec{Token: "good"}.HTTP(t)
	var loggedIn atomic.Int32
	r := start(t, Options{}, Server{
		Spec: upstream.Spec{Options: transport.Options{Name: "web", Type: transport.HTTP, Remote: transport.Remote{URL: web.URL, Headers: map[string]string{"authorization": "Bearer good"}, Authorize: func(base http.RoundTripper) http.RoundTripper {
			loggedIn.Add(1)
			return base
		}}}},
		PerClient: true, Credentials: map[string]Credential{"Authorization": {Header: "X-User-Key"}},
	})
	tried(t, r)
	before := loggedIn.Load()
	if _, err := call(r, "web", withKey("a", "Bearer hush-1111"), "echo", `{"text":"x"}`); err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v", err)
	}
	for _, client := range []string{"a", "b"} { // including the client that was refused, now with another key
		if got, err := call(r, "web", withKey(client, "Bearer good"), "echo", `{"text":"x"}`); err != nil || got != "x" {
			t.Errorf("%s: %q, %v", client, got, err)
		}
	}
	if before == 0 || loggedIn.Load() != before {
		t.Errorf("the login was used %d times for the catalogue, then %d times", before, loggedIn.Load()-before)
	}
}

// ofPrincipal returns a client whose request has a verified JWT with these claims.
func ofPrincipal(client, principal, token, claims string) *caller.Client {
	return &caller.Client{
		ID: client, Headers: http.Header{"Authorization": {"Bearer " + token}}, Notify: func(string, json.RawMessage) {},
		Principal: &caller.Principal{ID: principal, Claims: json.RawMessage(claims)},
	}
}

// TestCredentials_Claims: a claim of the caller's JWT becomes a header: the content of a string, or a number or boolean as
// spelled in the JSON. A value that cannot be in a header is treated as missing.
func TestCredentials_Claims(t *testing.T) {
	s := &Server{Credentials: map[string]Credential{"X-Tenant": {Claim: "https://a.example/tenant"}}}
	for claims, want := range map[string]string{
		`{"https://a.example/tenant":"acme"}`:               "acme",
		`{"https://a.example/tenant":"Zo\u00eb & co"}`:      "Zoë & co",
		`{"https://a.example/tenant":12345678901234567890}`: "12345678901234567890",
		`{"https://a.example/tenant":1.10}`:                 "1.10",
		`{"https://a.example/tenant":false}`:                "false",
		// like the verifier, which uses the last value
		`{"https://a.example/tenant":"x","https://a.example/tenant":"the last"}`: "the last",
		`{"HTTPS://a.example/tenant":"acme"}`:                                    "",
		`{"https://a.example/tenant":""}`:                                        "",
		`{"https://a.example/tenant":" "}`:                                       "",
		`{"https://a.example/tenant":null}`:                                      "",
		`{"https://a.example/tenant":["acme"]}`:                                  "",
		`{"https://a.example/tenant":{"id":"acme"}}`:                             "",
		`{"https://a.example/tenant":"acme\r\nX-Admin: 1"}`:                      "",
		`{"https://a.example/tenant":"acme\u0000"}`:                              "",
		`{}`: "",
		``:   "",
	} {
		own, err := s.credentialsOf(t.Context(), ofPrincipal("a", "p", "t", claims))
		if want == "" {
			if unavailable, ok := errors.AsType[*request.UnavailableError](err); !ok || !strings.Contains(unavailable.Reason, "claim https://a.example/tenant") || strings.Contains(err.Error(), "acme") {
				t.Errorf("%s: %v", claims, err)
			}
		} else if err != nil || own.Headers["X-Tenant"] != want {
			t.Errorf("%s: %+v, %v", claims, own, err)
		}
	}
	for _, nobody := range []*caller.Client{nil, {ID: "a"}, {ID: "a", Principal: &caller.Principal{ID: "p"}}} {
		if _, err := s.credentialsOf(t.Context(), nobody); err == nil {
			t.Errorf("%v: no error", nobody)
		}
	}
}

// TestCredentials_Exchange: each client has a session for each of its principals, for which the newest token of the principal
// is exchanged. The token itself and the configured Authorization header are not sent to the server.
func TestCredentials_Exchange(t *testing.T) {
	mcptest.NoLeaks(t)
	web := mcptest.Spec{}.HTTP(t)
	down := atomic.Bool{}
	r := start(t, Options{}, Server{
		Spec:      upstream.Spec{Options: transport.Options{Name: "web", Type: transport.HTTP, Remote: transport.Remote{URL: web.URL, Headers: map[string]string{"authorization": "Bearer catalogue"}}}},
		PerClient: true,
		Exchange: func(_ string, subject func() string) (func(http.RoundTripper) http.RoundTripper, func() []string) {
			return func(base http.RoundTripper) http.RoundTripper {
				return roundTrip(func(req *http.Request) (*http.Response, error) {
					if down.Load() {
						return nil, errors.New("no token for " + subject())
					}
					out := req.Clone(req.Context())
					out.Header.Set("Authorization", "Bearer for-"+subject())
					return base.RoundTrip(out)
				})
			}, func() []string { return []string{subject()} }
		},
	})
	tried(t, r)
	for _, nobody := range []*caller.Client{
		nil, {ID: "a"}, withKey("a", "x"), ofPrincipal("", "p", "t", `{}`), ofPrincipal("a", "p", "", `{}`),
		{ID: "a", Headers: http.Header{"Authorization": {"Bearer h.static.s"}}, Principal: &caller.Principal{ID: "p"}}, // no verified JWT
		ofPrincipal("a", "p", "mcpx_at_sealed", `{}`),                                                                  // issued by auth.front
		{ID: "a", Headers: http.Header{"Authorization": {"Bearer h.a.s", "Bearer h.b.s"}}, Principal: &caller.Principal{ID: "p", Claims: []byte(`{}`)}},
	} {
		if _, err := call(r, "web", nobody, "echo", `{"text":"nobody"}`); err == nil || !strings.Contains(err.Error(), "a caller's JWT") {
			t.Errorf("%+v: %v", nobody, err)
		}
	}
	for _, one := range []struct{ client, principal, token string }{
		{"a", "anna", "h.anna-1.s"}, {"a", "anna", "h.anna-2.s"}, {"a", "bert", "h.bert-1.s"}, {"b", "anna", "h.anna-2.s"},
	} {
		if got, err := call(r, "web", ofPrincipal(one.client, one.principal, one.token, `{}`), "echo", `{"text":"`+one.token+`"}`); err != nil || got != one.token {
			t.Errorf("%v: %q, %v", one, got, err)
		}
	}
	sessions := map[string]bool{}
	for _, entry := range web.Log().Event(mcptest.EventHTTP) {
		token := entry.Header.Get("Authorization")
		if strings.Contains(string(entry.Message), `"tools/call"`) && !strings.Contains(string(entry.Message), strings.TrimPrefix(token, "Bearer for-")+`"`) {
			t.Errorf("with %s: %s", token, entry.Message)
		}
		sessions[entry.Session] = true
	}
	if delete(sessions, ""); len(sessions) != 4 { // one of them reads the catalogue
		t.Errorf("%d sessions", len(sessions))
	}

	// If a session could not be opened with one token, the next token is tried immediately.
	down.Store(true)
	if _, err := call(r, "web", ofPrincipal("c", "carl", "h.carl-1.s", `{}`), "echo", `{"text":"x"}`); err == nil || strings.Contains(err.Error(), "carl-1") {
		t.Errorf("got %v", err)
	}
	down.Store(false)
	if got, err := call(r, "web", ofPrincipal("c", "carl", "h.carl-2.s", `{}`), "echo", `{"text":"x"}`); err != nil || got != "x" {
		t.Errorf("with another token: %q, %v", got, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
