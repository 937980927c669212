package registry

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// TestSessionLimit_Principals: one principal uses all the sessions that a server may have. For each session that another principal
// then needs, the least recently used session of the first one ends. No session with an open call ends. And no session ends if its
// principal would then have fewer sessions than the other.
func TestSessionLimit_Principals(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		server := piped(t, "one", mcptest.Spec{})
		server.PerClient = true
		full := errors.New("full")
		r := start(t, Options{SessionLimit: func(open int) error {
			if open >= 4 {
				return full
			}
			return nil
		}}, server)
		tried(t, r)
		as := func(principal string, i int) error {
			time.Sleep(time.Millisecond) // fake time, so that no two sessions were last used at the same time
			client := &caller.Client{ID: fmt.Sprint(principal, i), Principal: &caller.Principal{ID: principal}}
			_, err := call(r, "one", client, "echo", `{"text":"x"}`)
			return err
		}
		for i := range 5 {
			if err := as("mallory", i); (err != nil) != (i == 4) {
				t.Errorf("session %d of mallory: %v", i, err)
			}
		}
		for i := range 3 {
			if err := as("alice", i); (err != nil) != (i == 2) {
				t.Errorf("session %d of alice: %v", i, err)
			}
		}
		r.mu.Lock()
		for _, left := range []string{"mallory2", "mallory3", "alice0", "alice1"} {
			if len(r.clients[left]) != 1 {
				t.Errorf("the session of %s has ended", left)
			}
		}
		e := r.entries["one"]
		r.mu.Unlock()
		for _, busy := range []string{"alice0", "mallory2", "mallory3"} {
			client := &caller.Client{ID: busy, Principal: &caller.Principal{ID: busy[:len(busy)-1]}}
			open, release, err := r.clientSession(e, client, nil, false)
			if open == nil || err != nil {
				t.Fatal(busy, err)
			}
			defer release()
		}
		if err := as("bob", 0); err != nil { // ends alice1, the only session without an open call
			t.Errorf("bob: %v", err)
		}
		if err := as("carol", 0); !errors.Is(err, full) {
			t.Errorf("carol, when all sessions are in use: %v", err)
		}
		r.Close(0)
	})
}
