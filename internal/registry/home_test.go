package registry

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// TestHomes: each modern request over HTTP is a client of its own, but the requests of one program share a session with a PerClient
// server. With a principal, these are the requests with the same principal and client name, over any connection. Without a principal,
// they are the requests with the same client name over the same connection. No other caller gets the session, whatever name it claims.
// A session ends after SessionIdle without use; without a principal, it also ends with the connection. A caller that claims many names
// keeps at most maxHomes sessions.
func TestHomes(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var begun, open atomic.Int32
		server := piped(t, "one", mcptest.Spec{})
		serve := server.Spec.Serve
		server.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			begun.Add(1)
			open.Add(1)
			defer open.Add(-1)
			return serve(ctx, in, out)
		}
		server.PerClient, server.SessionIdle = true, time.Minute
		r := start(t, Options{}, server)
		tried(t, r)
		requests := 0
		// sessions sends a call as a new client, and returns how many sessions were opened for it.
		sessions := func(principal, name string, connection *caller.Connection) int32 {
			t.Helper()
			before := begun.Load()
			requests++
			from := caller.Client{ID: fmt.Sprint("request ", requests), Name: name, Version: "2026-07-28"}
			if principal != "" {
				from.Principal = &caller.Principal{ID: principal}
			}
			from = from.AtHome(connection)
			if _, err := call(r, "one", &from, "echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
			r.ForgetClient(from.ID) // as mcpx does at the end of a request
			synctest.Wait()
			return begun.Load() - before
		}
		life, end := context.WithCancel(t.Context())
		one, two := &caller.Connection{ID: 1, Life: life}, &caller.Connection{ID: 2, Life: t.Context()}
		for i, of := range []struct {
			principal, name string
			connection      *caller.Connection
			opens           int32
		}{
			{"alice", "agent", one, 1}, {"alice", "agent", one, 0}, {"alice", "agent", two, 0}, {"alice", "agent", nil, 0},
			{"alice", "other", one, 1}, {"mallory", "agent", one, 1}, {"mallory", `agent" {}`, one, 1}, {`alice" "agent`, "", one, 1},
			{"", "agent", one, 1}, {"", "agent", one, 0}, {"", "agent", two, 1}, {"", "agent", nil, 1}, {"", "agent", nil, 1},
		} {
			if got := sessions(of.principal, of.name, of.connection); got != of.opens {
				t.Errorf("call %d opened %d sessions", i, got)
			}
		}
		before := open.Load()
		end()
		synctest.Wait()
		if ended := before - open.Load(); ended != 1 {
			t.Errorf("%d sessions ended with the connection", ended)
		}
		// A caller that claims many names keeps few sessions, and the sessions of others stay open.
		before = open.Load()
		for i := range 3 * maxHomes {
			sessions("mallory", fmt.Sprint("name ", i), nil)
		}
		if more := open.Load() - before; more > maxHomes {
			t.Errorf("%d sessions of one principal", more)
		}
		if sessions("alice", "agent", two) != 0 {
			t.Error("another principal's names ended a session")
		}
		<-time.After(50 * time.Second)
		if sessions("alice", "agent", nil) != 0 {
			t.Error("a session ended before it was idle")
		}
		<-time.After(30 * time.Second)
		synctest.Wait()
		if n := open.Load(); n != 2 { // the session of alice, and the one that reads the catalogue
			t.Errorf("%d sessions are open", n)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if n := open.Load(); n != 1 {
			t.Errorf("%d sessions are open at the end", n)
		}
		r.Close(0)
	})
}

// TestHomes_Outlived: a request may outlast its connection, such as a program that waited for the user's answer. Its further calls get
// a session, which ends when it was idle.
func TestHomes_Outlived(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		server := piped(t, "one", mcptest.Spec{})
		server.PerClient, server.SessionIdle = true, time.Minute
		r := start(t, Options{}, server)
		tried(t, r)
		life, end := context.WithCancel(t.Context())
		defer end()
		from := caller.Client{ID: "request 1", Name: "agent", Version: "2026-07-28"}
		from = from.AtHome(&caller.Connection{ID: 1, Life: life})
		for range 2 {
			if _, err := call(r, "one", &from, "echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
			end()
			synctest.Wait()
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		r.mu.Lock()
		if len(r.clients) > 0 || len(r.lives) > 0 {
			t.Errorf("%d clients and %d connections are left", len(r.clients), len(r.lives))
		}
		r.mu.Unlock()
		r.Close(0)
	})
}

// watched is the context of a connection. It counts the callbacks that are registered for the connection's end.
type watched struct {
	context.Context
	waiting atomic.Int32
}

// Value hides the inner context, so that [context.AfterFunc] calls the method AfterFunc.
func (w *watched) Value(any) any { return nil }

// AfterFunc implements the method that package context looks for.
func (w *watched) AfterFunc(f func()) (stop func() bool) {
	w.waiting.Add(1)
	stopped := context.AfterFunc(w.Context, f)
	return func() bool {
		defer w.waiting.Add(-1)
		return stopped()
	}
}

// TestHomes_Names: a connection whose client uses one name after another is watched only as long as it has sessions. Another
// connection is not affected. When a connection ends, its sessions end.
func TestHomes_Names(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		server := piped(t, "one", mcptest.Spec{})
		server.PerClient, server.SessionIdle = true, time.Minute
		r := start(t, Options{}, server)
		tried(t, r)
		both, end := context.WithCancel(t.Context())
		lives := []*watched{{Context: both}, {Context: both}}
		request := func(i int, connection int) {
			from := caller.Client{ID: fmt.Sprint(i, connection), Name: fmt.Sprint("name ", i), Version: "2026-07-28"}
			from = from.AtHome(&caller.Connection{ID: uint64(connection), Life: lives[connection]})
			if _, err := call(r, "one", &from, "echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
			r.ForgetClient(from.ID)
		}
		request(0, 1)
		for i := range 10 * maxHomes {
			request(i, 0)
		}
		for i, most := range []int32{maxHomes, 1} {
			if n := lives[i].waiting.Load(); n != most {
				t.Errorf("connection %d: %d wait for its end", i, n)
			}
		}
		<-time.After(5 * time.Minute)
		for i := range lives { // all sessions were idle and have ended
			if n := lives[i].waiting.Load(); n != 0 {
				t.Errorf("connection %d: at last %d wait for its end", i, n)
			}
		}
		request(1, 1)
		end()
		synctest.Wait()
		r.mu.Lock()
		if len(r.clients) > 0 || len(r.lives) > 0 {
			t.Errorf("%d clients and %d connections are left", len(r.clients), len(r.lives))
		}
		r.mu.Unlock()
		r.Close(0)
	})
}
