package logins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
)

// TestNeeded: if each principal logs in to a server for itself, mcpx reads the server's lists in a session of its own. This
// session uses the login of the user who runs mcpx, even if that login was made on the page of mcpx.
func TestNeeded(t *testing.T) {
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			fmt.Fprint(w, `{"access_token":"t","token_type":"Bearer"}`)
		} else if r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer fake.Close()
	l := New(t.TempDir(), nil)
	server := Server{Name: "tracker", URL: fake.URL + "/mcp"}
	web := &http.Client{Transport: l.Needed(server)(http.DefaultTransport)}
	if _, err := web.Get(server.URL); err == nil || !strings.HasSuffix(err.Error(), "needs mcpx login tracker") {
		t.Errorf("without a login: %v", err)
	}
	pending := &Pending{Endpoint: endpoint{Token: fake.URL + "/token", Client: client{ID: "c"}}}
	if _, err := l.Finish(t.Context(), server, pending, url.Values{"code": {"x"}}); err != nil {
		t.Fatal(err)
	}
	resp, err := web.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// TestFinish_Revokes: a new login revokes the tokens of the one before, also if there are no refresh tokens, unless the authorization
// server has given one of these tokens again.
func TestFinish_Revokes(t *testing.T) {
	type tokens struct{ Access, Refresh string }
	var next tokens
	var revoked []string
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/revoke" {
			revoked = append(revoked, r.FormValue("token"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer"}`, next.Access, next.Refresh)
	}))
	defer fake.Close()
	pending := &Pending{Endpoint: endpoint{Token: fake.URL + "/token", Revoke: fake.URL + "/revoke", Client: client{ID: "c"}}}
	for _, test := range []struct {
		before, made tokens
		want         string
	}{
		{tokens{"a1", "r1"}, tokens{"a2", "r2"}, "r1 a1"},
		{tokens{"a1", "r1"}, tokens{"a2", "r1"}, ""},
		{tokens{"a1", "r1"}, tokens{"a2", ""}, "r1 a1"},
		{tokens{"a1", ""}, tokens{"a2", ""}, "a1"},
		{tokens{"a1", ""}, tokens{"a1", ""}, ""},
	} {
		l, server := New(t.TempDir(), nil), Server{Name: "tracker", URL: fake.URL + "/mcp"}
		revoked = nil
		for _, next = range []tokens{test.before, test.made} {
			if _, err := l.Finish(t.Context(), server, pending, url.Values{"code": {"x"}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(revoked, " "); got != test.want {
			t.Errorf("%v, then %v: revoked %q, want %q", test.before, test.made, got, test.want)
		}
	}
}

// TestPrincipals: several processes share the logins of principals whose names differ little, and use them at the same time when
// the tokens have expired. Each refresh token is used once, and each principal gets its own token. A login is never accepted as
// the login of another principal, even if somebody has stored it under the other principal's name.
func TestPrincipals(t *testing.T) {
	people := []string{"alice", "Alice", "alic\u00e9", "alice\u0301"}
	secret := state.NewSecret()
	dir := t.TempDir()
	records, err := state.OpenFolder("", 1000, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() *Logins{
		"shared": func() *Logins { return NewShared(records, nil) },
		"folder": func() *Logins { return NewOfPrincipals(dir, secret, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			used := map[string]int{}
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				refresh := r.FormValue("refresh_token")
				mu.Lock()
				used[refresh]++
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"access_token":"new %s","token_type":"Bearer","expires_in":3600,"refresh_token":"next %s"}`, refresh, refresh)
			}))
			defer issuer.Close()
			server := func(who string) Server { return Server{Name: "tracker", URL: issuer.URL + "/mcp", Principal: who} }
			processes := []*Logins{open(), open(), open()}
			ctx := t.Context()
			for i, who := range people {
				old := &login{
					Server: "tracker", URL: issuer.URL + "/mcp", Principal: who, ID: fmt.Sprint("id", i), Access: "old", Refresh: "of " + who,
					Issued: time.Now().Add(-time.Hour), Expiry: time.Now().Add(-time.Minute),
					Endpoint: endpoint{Token: issuer.URL + "/token", Client: client{ID: "c"}},
				}
				if _, err := processes[0].keep(ctx, server(who), old); err != nil {
					t.Fatal(err)
				}
			}
			var all sync.WaitGroup
			for _, l := range processes {
				for i, who := range people {
					for range 4 {
						all.Go(func() {
							p := &oneLogin{l.source(server(who)), fmt.Sprint("id", i)}
							if token, err := p.token(ctx); err != nil || token != "new of "+who {
								t.Errorf("%s: %q %v", who, token, err)
							}
						})
					}
				}
			}
			all.Wait()
			for refresh, n := range used {
				if n != 1 {
					t.Errorf("%q was used %d times", refresh, n)
				}
			}
			if len(used) != len(people) {
				t.Errorf("used %v", used)
			}
			if _, err := (&oneLogin{processes[1].source(server("alice")), "id1"}).token(ctx); err == nil {
				t.Error("a session goes on with another login")
			}
			stolen(t, processes[0], server("alice"), server("mallory"))
			if id, err := open().Held(ctx, server("mallory")); id != "" || err != nil {
				t.Errorf("mallory has the login of alice: %q %v", id, err)
			}
			listed(t, processes, issuer.URL+"/mcp", people)
			for _, l := range processes {
				l.Close(time.Second)
			}
		})
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.login"))
	if err != nil || len(files) < len(people)-1 {
		t.Fatal(files, err)
	}
	eve := Server{Name: "tracker", URL: "http://127.0.0.1/mcp", Principal: "eve"}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{whole, whole[:len(whole)/2], []byte(`{}`), []byte(`{"open":{"principal":"eve","id":"1","access_token":"x"}}`)} {
		if err := os.WriteFile(filepath.Join(dir, loginFile(eve)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		l := NewOfPrincipals(dir, secret, nil)
		if id, err := l.Held(t.Context(), eve); id != "" || err != nil {
			t.Errorf("eve has a login of the file %.40q: %q %v", data, id, err)
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		var kept map[string][]byte // the key "sealed" is decoded from base64, because in base64 four letters may occur by chance
		if err := errors.Join(err, json.Unmarshal(data, &kept)); err != nil || len(kept) != 1 || len(kept["sealed"]) == 0 {
			t.Errorf("%s: %s %v", file, data, err)
		}
		if sealed := string(kept["sealed"]); strings.Contains(sealed, "alic") || strings.Contains(sealed, "new of") {
			t.Errorf("%s is not sealed: %q", file, sealed)
		}
	}
}

// listed checks that a process lists the logins of all principals, whichever process has stored them. If several processes end
// the same login at once, only one of them does it.
func listed(t *testing.T, processes []*Logins, url string, people []string) {
	t.Helper()
	all, err := processes[2].Accounts(t.Context())
	var whose []string
	for _, one := range all {
		if whose = append(whose, one.Principal); one.Server != "tracker" || one.URL != url || one.ID != AccountID(one.server()) {
			t.Errorf("%+v", one)
		}
	}
	slices.Sort(whose)
	if want := slices.Sorted(slices.Values(people)); err != nil || !slices.Equal(whose, want) {
		t.Fatalf("%q %v", whose, err)
	}
	var ended atomic.Int32
	var ending sync.WaitGroup
	for _, l := range processes {
		ending.Go(func() {
			if did, _ := l.End(t.Context(), &all[0]); did { // this issuer has no revocation
				ended.Add(1)
			}
		})
	}
	ending.Wait()
	left, err := processes[0].Accounts(t.Context())
	if ended.Load() != 1 || len(left) != len(people)-1 || err != nil {
		t.Errorf("%d processes ended it; left are %+v %v", ended.Load(), left, err)
	}
	for _, l := range processes {
		if id, err := l.Held(t.Context(), all[0].server()); id != "" || err != nil {
			t.Errorf("it goes on: %q %v", id, err)
		}
	}
}

// stolen stores the login of one principal under the name of another, as somebody with access to the store could do.
func stolen(t *testing.T, l *Logins, from, to Server) {
	t.Helper()
	var one login
	if err := l.store.read(context.Background(), loginFile(from), &one); err != nil {
		t.Fatal(err)
	}
	if err := l.store.write(context.Background(), loginFile(to), &one); err != nil {
		t.Fatal(err)
	}
}

// TestPrincipals_Many: however many principals there are, mcpx keeps what it knows of a bounded number of them in memory. It
// always keeps renewed tokens that it could not write, because without them the login is lost.
func TestPrincipals_Many(t *testing.T) {
	l := NewOfPrincipals(t.TempDir(), state.NewSecret(), nil)
	server := func(principal string) Server {
		return Server{Name: "tracker", URL: "https://tracker.example/mcp", Principal: principal}
	}
	unwritten := l.source(server("unwritten"))
	unwritten.use(&login{Principal: "unwritten", ID: "1", Access: "renewed"})
	unwritten.stamp, unwritten.unwritten = stamp{absent: true}, true
	for i := range 5 * maxSources {
		if id, err := l.Held(t.Context(), server(fmt.Sprint("principal ", i))); err != nil || id != "" {
			t.Fatal(id, err)
		}
	}
	if n := l.sources.Len(); n > 2*maxSources+1 {
		t.Errorf("%d principals are in memory", n)
	}
	if id, err := l.Held(t.Context(), server("unwritten")); id != "1" || err != nil {
		t.Errorf("the tokens that could not be written: %q, %v", id, err)
	}
}

// TestBegin_ClientDocument: a login of a principal uses the document about the client where the authorization server reads such documents,
// as mcpx login does.
func TestBegin_ClientDocument(t *testing.T) {
	var web *httptest.Server
	reads := true
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","registration_endpoint":"%[1]s/register",
				"code_challenge_methods_supported":["S256"],"client_id_metadata_document_supported":%[2]t}`, web.URL, reads)
		case "/register":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"client_id":"registered"}`)
		case "/mcp":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer web.Close()
	const document = "https://mcp.example.com/client.json"
	s := Server{Name: "tracker", URL: web.URL + "/mcp", Principal: "alice", OAuth: conf.OAuth{ClientMetadataURL: document}}
	l := NewOfPrincipals(t.TempDir(), state.NewSecret(), nil)
	defer l.Close(time.Minute)
	for _, want := range []string{document, "registered"} {
		p, err := l.Begin(t.Context(), s, "https://mcp.example.com/connect/callback")
		if err != nil || p.Endpoint.Client.ID != want {
			t.Errorf("documents %t: %+v %v", reads, p, err)
		}
		reads = false
	}
}

// TestHeld_Narrowed: if a renewed token lacks a scope that the server asked for before the login, the login stays in use: the server may
// not need the scope now. A principal would have to log in again after each renewal otherwise.
func TestHeld_Narrowed(t *testing.T) {
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"new","token_type":"Bearer","expires_in":3600,"refresh_token":"next","scope":"first"}`)
	}))
	defer issuer.Close()
	s := Server{Name: "tracker", URL: issuer.URL + "/mcp", Principal: "alice"}
	l := NewOfPrincipals(t.TempDir(), state.NewSecret(), nil)
	defer l.Close(time.Minute)
	held := func(want string) {
		t.Helper()
		if id, err := l.Held(t.Context(), s); id != want || err != nil {
			t.Errorf("held: %q %v, want %q", id, err, want)
		}
	}
	_ = l.source(s).want(t.Context(), []string{"later"}) // returns an error always
	made := &login{
		Server: s.Name, URL: s.URL, Principal: "alice", ID: "id", Access: "old", Refresh: "r", Scopes: []string{"first", "later"},
		Issued: time.Now().Add(-time.Hour), Expiry: time.Now().Add(-time.Minute),
		Endpoint: endpoint{Token: issuer.URL + "/token", Client: client{ID: "c"}},
	}
	if _, err := l.keep(t.Context(), s, made); err != nil {
		t.Fatal(err)
	}
	held("id")
	if token, err := l.source(s).token(t.Context()); token != "new" || err != nil {
		t.Fatalf("%q %v", token, err)
	}
	held("id")
	_ = l.source(s).want(t.Context(), []string{"later"})
	held("")
}
