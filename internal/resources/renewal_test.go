package resources

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
)

// TestFollow_Renewal: while a server is down, mcpx does not request its subscriptions again and again. When it is up again,
// mcpx renews them, and that does not count towards any limit.
func TestFollow_Renewal(t *testing.T) {
	fake := offering("one", 2).HTTP(t)
	server := remote("one", fake)
	server.Spec.Health = conf.Health{Interval: 10 * time.Millisecond, Timeout: patience, Threshold: 1}
	s := start(t, registry.Options{}, server)
	var asked, free atomic.Int32
	s.Registry.Use(func(next request.Handler) request.Handler {
		return func(ctx context.Context, r *request.Request) (json.RawMessage, error) {
			asked.Add(1)
			if r.Belongs() {
				free.Add(1)
			}
			return next(ctx, r)
		}
	})
	s.awaitLists(t.Context(), patience)
	changed := followed(t, s)
	fake.Down()
	fake.KillSessions()
	mcptest.WaitFor(t, "the server to be down", patience, func() bool {
		server, _ := s.Registry.Snapshot().Server("one")
		return server.State == catalog.Unavailable
	})
	during := asked.Load()
	status, _ := s.Registry.Status("one")
	mcptest.WaitFor(t, "further attempts to connect", patience, func() bool {
		s.Registry.Retry("one")
		now, _ := s.Registry.Status("one")
		return now.RetryAfter.After(status.RetryAfter)
	})
	if n := asked.Load() - during; n > 1 { // one request may have been under way already
		t.Errorf("%d renewals while the server is down", n)
	}
	before, wasFree := asked.Load(), free.Load()
	fake.Up()
	mcptest.WaitFor(t, "the renewal", patience, func() bool {
		s.Registry.Retry("one")
		return asked.Load() > before
	})
	<-changed // the resource may have changed meanwhile
	if paid := (asked.Load() - before) - (free.Load() - wasFree); paid != 0 {
		t.Errorf("%d renewals count for the limits", paid)
	}
}

// followed subscribes to a resource until the test ends, and waits until the server accepts. The channel gets a
// value for each update.
func followed(t *testing.T, s *Servers) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	topic, err := s.Topic(ctx, request.From{}, "one://0001", false)
	if err != nil {
		t.Fatal(err)
	}
	agreed, changed, ended := make(chan struct{}), make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		_ = topic.Follow(ctx, func() { close(agreed) }, func(json.RawMessage) { changed <- struct{}{} })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-agreed
	return changed
}

// TestFollow_Instances: if the instance of a server that holds a subscription loses its session, mcpx renews the
// subscription at an instance that is up.
func TestFollow_Instances(t *testing.T) {
	one, two := offering("one", 2).HTTP(t), offering("one", 2).HTTP(t)
	server := remote("one", one)
	server.Spec.Remote.URLs = []string{one.URL, two.URL}
	server.Spec.Health = conf.Health{Interval: 10 * time.Millisecond, Timeout: patience, Threshold: 1}
	s := start(t, registry.Options{}, server)
	s.awaitLists(t.Context(), patience)
	changed := followed(t, s)
	one.Restart()
	two.Restart()
	<-changed // the resource may have changed meanwhile
}
