package authserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
)

// late is a store as one of several processes sees it. The process learns what other processes change only when the test calls
// learn.
type late struct {
	state.Followed
	changes bool // this process changes the store now
	behind  []func()
}

func (l *late) Change(ctx context.Context, key string, change func([]byte) ([]byte, time.Time, error)) error {
	l.changes = true
	defer func() { l.changes = false }()
	return l.Followed.Change(ctx, key, change)
}

func (l *late) Watch(prefix string, do func([]byte)) (stop func()) {
	known := true
	stop = l.Followed.Watch(prefix, func(value []byte) {
		if known || l.changes {
			do(value)
			return
		}
		l.behind = append(l.behind, func() { do(value) })
	})
	known = false
	return stop
}

func (l *late) learn() {
	for _, one := range l.behind {
		one()
	}
	l.behind = nil
}

// pageOf returns a valid login of mcpx's own page, by the user ann, who also logs in with clients.
func pageOf(s *Server) *grant {
	s.parts.SignedIn = func(http.ResponseWriter, *http.Request, string, *caller.Principal) error { return nil }
	now := time.Now().Unix()
	return &grant{Number: random(), Who: user{Subject: "ann", Name: "ann"}, Began: now, Renewed: now, Issued: issued{Refresh: "x"}}
}

// TestLeft_AtOnce: two processes end the last two logins of a user at the same moment, so that each of them believes that the
// user has another one. Both call Parts.Left when they learn of the other end, even if the user still has a login whose code was
// not used, or a login of mcpx's own page. A process that starts afterwards calls Parts.Left too, unless the user has logged in
// with a client again.
func TestLeft_AtOnce(t *testing.T) {
	store := storeIn(t, "")
	stores := []*late{{Followed: store}, {Followed: store}}
	var servers []*Server
	var left []string
	for _, one := range stores {
		s := still(t, one, 'k')
		s.parts.Left = func(p *caller.Principal) { left = append(left, p.Name) }
		servers = append(servers, s)
	}
	begin := func() {
		t.Helper()
		if _, err := servers[0].redeem(t.Context(), servers[0].codeOf(t, "c")); err != nil {
			t.Fatal(err)
		}
		stores[1].learn()
	}
	end := func(s *Server, id string) {
		t.Helper()
		if ended, err := s.End(t.Context(), id, "test"); err != nil || len(ended) != 1 {
			t.Fatal(ended, err)
		}
	}
	begin()
	begin()
	servers[0].codeOf(t, "never redeemed")
	stores[1].learn()
	both := servers[0].Logins()
	w := httptest.NewRecorder()
	servers[0].signedIn(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), pageOf(servers[0]), "/")
	stores[1].learn()
	end(servers[0], both[0].ID)
	end(servers[1], both[1].ID)
	if len(left) > 0 {
		t.Fatal("before they have learned of it: ", left)
	}
	stores[0].learn()
	stores[1].learn()
	const ann = "ann@login.example.com"
	if !slices.Equal(left, []string{ann, ann}) {
		t.Errorf("left: %q", left)
	}
	// restarted starts another server, and returns the principals with which it calls Parts.Left. New gets the func Left, because
	// New itself calls it.
	restarted := func() []string {
		left = nil
		s, err := New(servers[0].o, Parts{Store: store, Left: servers[0].parts.Left})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		return left
	}
	if got := restarted(); len(got) == 0 || got[0] != ann {
		t.Errorf("a process that begins tells %q", got)
	}
	begin()
	if got := restarted(); len(got) > 0 {
		t.Errorf("ann is back, and a process that begins tells %q", got)
	}
	// Somebody else signs in to the page, and out: nobody has left.
	left = nil
	g := pageOf(servers[0])
	g.Who.Subject = "bob"
	servers[0].signedIn(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), g, "/")
	if err := servers[0].SignOut(t.Context(), g.Number); err != nil || len(left) > 0 {
		t.Errorf("signed out of the page: left %q %v", left, err)
	}
}
