package logins

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/state"
)

// tokenEndpoint is a transport to a token endpoint that answers after some time.
type tokenEndpoint struct {
	takes time.Duration
	body  string

	mu     sync.Mutex
	asked  int
	scopes []string // of the requests for tokens
}

func (e *tokenEndpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.ParseForm()
	e.mu.Lock()
	if e.asked++; req.Method == http.MethodPost {
		e.scopes = append(e.scopes, req.PostForm.Get("scope"))
	}
	e.mu.Unlock()
	select {
	case <-time.After(e.takes):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(e.body)), Request: req,
	}, nil
}

// expired stores a login whose access token has expired, and returns its source, which sends its requests for tokens to e.
func expired(t *testing.T, l *Logins, e *tokenEndpoint) *source {
	t.Helper()
	s := Server{Name: "tracker", URL: "https://tracker.example/mcp"}
	old := login{
		Server: s.Name, URL: s.URL, Endpoint: endpoint{Token: "https://login.example/token", Client: client{ID: "x"}},
		Access: "old", Refresh: "once", Expiry: time.Now().Add(-time.Minute).Round(0),
	}
	if err := l.store.write(t.Context(), loginFile(s), old); err != nil {
		t.Fatal(err)
	}
	src := l.source(s)
	src.web = &http.Client{Transport: e, Timeout: 20 * time.Second}
	return src
}

// TestRenew_Ending: if a token lasts for less than twice renewPatience, a call waits until the renewal ends: after renewPatience the old
// token might expire before it reaches the server. If the token lasts longer, the call waits for renewPatience, and then uses the old
// token.
func TestRenew_Ending(t *testing.T) {
	keyring.MockInit()
	for left, want := range map[time.Duration]string{2*renewPatience - time.Millisecond: "new", 2*renewPatience + time.Millisecond: "old"} {
		synctest.Test(t, func(t *testing.T) {
			e := &tokenEndpoint{takes: renewPatience + time.Millisecond, body: `{"access_token":"new","token_type":"Bearer","expires_in":600}`}
			l := New(t.TempDir(), nil)
			src := expired(t, l, e)
			var ending login
			if err := l.store.read(t.Context(), src.file, &ending); err != nil {
				t.Fatal(err)
			}
			ending.Expiry, ending.Issued = time.Now().Add(left).Round(0), time.Now().Add(-time.Hour).Round(0)
			if err := l.store.write(t.Context(), src.file, ending); err != nil {
				t.Fatal(err)
			}
			if token, err := src.token(t.Context()); token != want || err != nil {
				t.Errorf("with %v left: %q, %v", left, token, err)
			}
			l.Close(time.Minute)
		})
	}
}

// TestRenew_Down: while an authorization server does not answer, calls that came together wait for one request together, and not
// for one request after the other.
func TestRenew_Down(t *testing.T) {
	keyring.MockInit()
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{takes: time.Hour}
		l := New(t.TempDir(), nil)
		src := expired(t, l, e)
		began := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := src.token(t.Context()); err == nil || !strings.Contains(err.Error(), "the login is kept") {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); e.asked != 1 || took > 20*time.Second {
			t.Errorf("%d requests, and all calls have their answer after %v", e.asked, took)
		}
		if _, err := src.token(t.Context()); err == nil || e.asked != 2 {
			t.Errorf("a later call does not ask again: %v", err)
		}
		l.Close(time.Minute)
	})
}

// TestRenew_Early: while an authorization server does not answer, calls with a token that is still valid go on with that token soon.
func TestRenew_Early(t *testing.T) {
	keyring.MockInit()
	synctest.Test(t, func(t *testing.T) {
		l := New(t.TempDir(), nil)
		src := expired(t, l, &tokenEndpoint{takes: time.Hour})
		var soon login
		if err := l.store.read(t.Context(), src.file, &soon); err != nil {
			t.Fatal(err)
		}
		soon.Issued, soon.Expiry = time.Now().Add(-time.Hour).Round(0), time.Now().Add(25*time.Second).Round(0)
		if err := l.store.write(t.Context(), src.file, &soon); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			began := time.Now()
			token, err := src.token(t.Context())
			if took := time.Since(began); token != "old" || took > 2*time.Second {
				t.Errorf("%q %v, after %v", token, err, took)
			}
		}
		l.Close(time.Minute)
	})
}

// TestRenew_Queue: a process that has waited long for another one, which renews the same login, has as much time for its own
// request as any. If the request were cut off, its new refresh token would be lost.
func TestRenew_Queue(t *testing.T) {
	keyring.MockInit()
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{takes: 15 * time.Second, body: `{"access_token":"new","token_type":"Bearer","refresh_token":"next"}`}
		l := New(t.TempDir(), nil)
		src := expired(t, l, e)
		unlock, err := New(l.store.(*store).dir, nil).store.lock(t.Context(), src.file)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(35*time.Second, unlock)
		if token, err := src.token(t.Context()); token != "new" {
			t.Errorf("%q %v", token, err)
		}
		l.Close(time.Minute)
	})
}

// TestRenew_Next: while a renewal waits for another process, which renews the same login, the token of that process is refused. The
// call that is refused does not get the refused token again. Meanwhile the source is busy.
func TestRenew_Next(t *testing.T) {
	keyring.MockInit()
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{body: `{"access_token":"new","token_type":"Bearer","refresh_token":"next"}`}
		l := New(t.TempDir(), nil)
		src := expired(t, l, e)
		unlock, err := l.store.lock(t.Context(), src.file)
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if token, err := src.token(t.Context()); token != "theirs" && token != "new" { // whichever call has the lock first
				t.Errorf("the first: %q %v", token, err)
			}
		})
		synctest.Wait()
		if !src.busy() {
			t.Error("not busy")
		}
		theirs := login{Server: "tracker", Endpoint: endpoint{Token: "https://login.example/token"}, Access: "theirs", Refresh: "twice"}
		if err := l.store.write(t.Context(), src.file, theirs); err != nil {
			t.Fatal(err)
		}
		both.Go(func() {
			token, err := src.refused(t.Context(), "theirs", &http.Response{StatusCode: http.StatusUnauthorized})
			if token != "new" {
				t.Errorf("the refused: %q %v", token, err)
			}
		})
		synctest.Wait()
		unlock()
		both.Wait()
		if l.Close(time.Minute); src.busy() {
			t.Error("still busy")
		}
	})
}

// TestRenew_Scopes: two calls whose token lacks different scopes do not share one request for a token.
func TestRenew_Scopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &tokenEndpoint{takes: time.Second, body: `{"access_token":"new","token_type":"Bearer","resource":"https://tracker.example/mcp",
			"issuer":"https://login.example","token_endpoint":"https://login.example/token"}`}
		s := Server{Name: "tracker", URL: "https://tracker.example/mcp"}
		s.Grant, s.ClientID, s.Issuer = ClientCredentials, "x", "https://login.example"
		l := New(t.TempDir(), nil)
		src := l.source(s)
		src.web = &http.Client{Transport: e}
		src.login = &login{Access: "old"}
		var all sync.WaitGroup
		for _, scope := range []string{"read", "write"} {
			all.Go(func() {
				lacks := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="` + scope + `"`}}
				resp := &http.Response{StatusCode: http.StatusForbidden, Header: lacks}
				if token, err := src.refused(t.Context(), "old", resp); token != "new" {
					t.Errorf("%q %v", token, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if slices.Sort(e.scopes); !slices.Equal(e.scopes, []string{"read", "write"}) {
			t.Errorf("%q", e.scopes)
		}
		l.Close(time.Minute)
	})
}

// TestShared_Clocks: the clocks of replicas may differ by a minute (docs/replicas.md). While a replica renews a login, the
// slowest way, one whose clock is a minute ahead does not renew the same login.
func TestShared_Clocks(t *testing.T) {
	records, err := state.OpenFolder("", 1000, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &shared{records}
		unlock, err := s.lock(t.Context(), "a.login")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(netguard.RequestTime)
		ahead := func(f *sharedFile) error { // the same as if the clock of the other replica were ahead
			f.Until -= time.Minute.Milliseconds()
			return nil
		}
		if err := s.change(t.Context(), "a.login", ahead); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.lock(ctx, "a.login"); err == nil {
			t.Error("two replicas have the lock")
		}
		unlock()
		if _, err := s.lock(t.Context(), "a.login"); err != nil {
			t.Error(err)
		}
	})
}

// TestShared_Dead: a process dies while it has the lock of a login. End still ends the login within EndTime, although it must first
// wait until the dead process's lock expires.
func TestShared_Dead(t *testing.T) {
	records, err := state.OpenFolder("", 1000, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := NewShared(records, nil)
		s := Server{Name: "tracker", URL: "https://tracker.example/mcp", Principal: "token ann"}
		old := login{Server: s.Name, URL: s.URL, Principal: s.Principal, Access: "a"}
		if err := l.store.write(t.Context(), loginFile(s), old); err != nil {
			t.Fatal(err)
		}
		if _, err := l.store.lock(t.Context(), loginFile(s)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), EndTime)
		defer cancel()
		one := Account{Server: s.Name, URL: s.URL, Principal: s.Principal}
		if existed, err := l.End(ctx, &one); !existed || l.Holds(s) {
			t.Errorf("%v %v", existed, err)
		}
	})
}
