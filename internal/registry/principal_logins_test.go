package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// fakeLogins are logins of principals. A token is the ID of its principal, with the number of the login.
type fakeLogins struct {
	mu   sync.Mutex
	held map[string]int // by principal; 0 is none
	last int
}

func (f *fakeLogins) now(p string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[p] == 0 {
		return ""
	}
	return fmt.Sprint(f.held[p])
}

func (f *fakeLogins) set(p string, in bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	if f.held[p] = 0; in {
		f.held[p] = f.last
	}
}

func (f *fakeLogins) Held(_ context.Context, p *caller.Principal) (string, error) {
	return f.now(p.ID), nil
}

func (f *fakeLogins) Authorize(p *caller.Principal, id string) (func(http.RoundTripper) http.RoundTripper, func() []string) {
	who := p.ID
	return func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if f.now(who) != id {
				return nil, errors.New("this login is over")
			}
			req = req.Clone(req.Context())
			req.Header.Set("Authorization", "Bearer "+who+" "+id)
			return base.RoundTrip(req)
		})
	}, nil
}

func (f *fakeLogins) Need(_ context.Context, client *caller.Client, _ bool) error {
	return &request.UnavailableError{State: catalog.NeedsLogin, Reason: "log in as " + client.On().Name}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestPrincipalLogins: random people of random groups log in and out of random servers and call them, at the same time, with
// clients of both eras. No request of one person has the token of another, or a token that was replaced before the call began. A
// person without a login gets an error, and none of this person's requests reaches the server. The shared session sends nothing.
func TestPrincipalLogins(t *testing.T) {
	mcptest.NoLeaks(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	people := []string{"alice", "Alice", "alic\u00e9", "alice\u0301", "alice ", "token alice", "https://a.test alice", "https://b.test alice", "bob"}
	draw.Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
	people = people[:3+draw.IntN(3)]
	groups := make([][]string, len(people)) // by index of people; some people have the same groups
	for i := range groups {
		groups[i] = [][]string{nil, {"dev"}, {"dev", "ops"}}[draw.IntN(3)]
	}
	of := 2 + draw.IntN(3)
	var servers []Server
	webs, logins := map[string]*mcptest.HTTPServer{}, map[string]*fakeLogins{}
	for i := range of {
		name := fmt.Sprint("s", i)
		webs[name], logins[name] = mcptest.Spec{}.HTTP(t), &fakeLogins{held: map[string]int{}}
		never := func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("needs mcpx login") })
		}
		servers = append(servers, Server{
			Spec:      upstream.Spec{Options: transport.Options{Name: name, Type: transport.HTTP, Remote: transport.Remote{URL: webs[name].URL, Authorize: never}}},
			PerClient: true, PerPrincipal: draw.IntN(3) > 0, Logins: logins[name],
		})
	}
	r := start(t, Options{ManyClients: true}, servers...)
	tried(t, r)
	for i := range r.Snapshot().Servers {
		if s := &r.Snapshot().Servers[i]; s.State != catalog.NeedsLogin || len(s.Tools) > 0 {
			t.Errorf("%s is %s", s.Name, s.State)
		}
	}
	var all sync.WaitGroup
	for n, who := range people {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n+1)))
			for step := range 60 {
				server := fmt.Sprint("s", random.IntN(of))
				in := logins[server].now(who)
				switch random.IntN(4) {
				case 0:
					logins[server].set(who, random.IntN(3) > 0)
					r.ForgetLogin(server, who)
					continue
				}
				from := &caller.Client{ID: fmt.Sprint(who, n, step), Name: "agent", Version: "2025-11-25", Principal: &caller.Principal{ID: who, Name: "ann@x", Groups: groups[n]}}
				if random.IntN(2) == 0 {
					from.Version = "2026-07-28"
					home := from.AtHome(nil)
					from = &home
				}
				text := who + " " + in
				got, err := call(r, server, from, "echo", `{"text":"`+text+`"}`)
				unavailable, needs := errors.AsType[*request.UnavailableError](err)
				switch {
				case in == "" && (!needs || unavailable.State != catalog.NeedsLogin):
					t.Errorf("%s without a login: %q %v", who, got, err)
				case in != "" && (err != nil || got != text):
					t.Errorf("%s with a login: %q %v", who, got, err)
				}
				r.ForgetClient(from.ID)
			}
		})
	}
	all.Wait()
	calls := 0
	for name, web := range webs {
		for _, entry := range web.Log().Event(mcptest.EventHTTP) {
			if entry.Header.Get("Authorization") == "" {
				t.Errorf("%s: a request without a token", name)
			}
		}
		tokenOf := map[string]string{}
		for _, entry := range web.Log().Event(mcptest.EventHTTP) {
			token := strings.TrimPrefix(entry.Header.Get("Authorization"), "Bearer ")
			if before, ok := tokenOf[entry.Session]; ok && entry.Session != "" && before != token {
				t.Errorf("%s: a session of %q and %q", name, before, token)
			}
			tokenOf[entry.Session] = token
		}
		for _, entry := range web.Log().Calls("echo") {
			calls++
			if token := tokenOf[entry.Session]; entry.Session != "" && !strings.Contains(string(entry.Message), `"`+token+`"`) {
				t.Errorf("%s: with the token %q: %s", name, token, entry.Message)
			}
		}
	}
	if calls < 20 {
		t.Errorf("only %d calls", calls)
	}
}
