package upstream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
	"mcpx/internal/transport"
)

const (
	// streamPatience bounds how long the first tools/list waits until the stream for change notifications is open.
	streamPatience = 500 * time.Millisecond
	// missedPause is the least time between two refreshes after a broken stream. A server whose streams break again and
	// again must not cost a full list each time.
	missedPause = time.Minute
)

// changes collects the list_changed notifications of a session. On some transports the server sends them on a stream that
// the session must open. Changes made before that stream is open are not announced, so the lists are read again then.
type changes struct {
	// told has a buffer of one, so that a storm of list_changed costs one refresh. kinds are the lists to refresh.
	told  chan struct{}
	mu    sync.Mutex
	kinds map[catalog.Kind]bool
	// missed, with a buffer of one, signals that a stream opened only after a tools/list had begun.
	missed chan struct{}

	settled  chan struct{} // closed by noStream
	noStream func()        // ends the wait for a first stream: it is open, or will not come
	listing  atomic.Bool   // the first tools/list was or is about to be sent
	worked   atomic.Bool   // a stream was open once

	streams sync.WaitGroup // goroutines that listen; end ends them
	ctx     context.Context
	end     context.CancelFunc
}

func newChanges() *changes {
	c := &changes{
		told: make(chan struct{}, 1), missed: make(chan struct{}, 1), settled: make(chan struct{}),
		kinds: make(map[catalog.Kind]bool),
	}
	c.noStream = sync.OnceFunc(func() { close(c.settled) })
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// tell requests a refresh of the lists of these kinds.
func (c *changes) tell(kinds ...catalog.Kind) {
	c.mu.Lock()
	for _, kind := range kinds {
		c.kinds[kind] = true
	}
	c.mu.Unlock()
	signal(c.told)
}

// due returns the kinds told since the last call of due.
func (c *changes) due() map[catalog.Kind]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.kinds
	c.kinds = make(map[catalog.Kind]bool)
	return due
}

// opened notes that a stream has just been opened.
func (c *changes) opened() {
	c.worked.Store(true)
	if c.listing.Load() {
		signal(c.missed)
	}
	c.noStream()
}

// signal sends to ch, which has a buffer of one, unless a signal is already waiting there.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// beforeListing is called before the first tools/list. It waits for the stream that is being opened, so that no change is
// missed between the two. If the stream takes longer, the list is read a second time once it is open.
func (s *session) beforeListing(ctx context.Context) {
	delay.Until(ctx, streamPatience, s.changes.settled, s.link.Life().Done())
	s.changes.listing.Store(true)
}

// listen opens the stream for what the server sends on its own, on transports that need one. It returns at once; close
// ends the stream.
func (s *session) listen() {
	switch {
	case !s.Modern:
		s.link.Listen(s.changes.opened, s.changes.noStream)
	case s.spec.Catalogue.Shared != nil:
		s.changes.noStream()
	default:
		s.changes.streams.Go(s.subscribe)
	}
}

// subscribe requests change notifications for all lists that the server offers.
func (s *session) subscribe() {
	defer s.changes.noStream()
	s.keepListening(s.changes.ctx, mcp.SubscriptionFilter{
		ToolsListChanged: true, ResourcesListChanged: s.offers.Resources, PromptsListChanged: s.offers.Prompts,
	}, func(error) {})
}

// keepListening keeps a subscriptions/listen request of the modern era open; the server acknowledges it by a
// notification. It returns when ctx ends, or when the server does not offer such streams. refused is called with each
// JSON-RPC error in answer.
func (s *session) keepListening(ctx context.Context, to mcp.SubscriptionFilter, refused func(error)) {
	filter := wire.Encode(map[string]mcp.SubscriptionFilter{"notifications": to})
	delay.Retry(ctx, func() (wait time.Duration, again bool) {
		_, err := s.do(ctx, string(mcp.MethodSubscriptionsListen), filter)
		if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
			refused(rpc)
			err = nil
		}
		// A result ends the stream. Without an acknowledgement before it, it is a refusal.
		refused := err == nil || !transport.Passing(err)
		// If a stream worked before, the refusal may be temporary.
		again = s.link.Life().Cause() == nil && (!refused || s.changes.worked.Load())
		return transport.RetryAfterOf(err), again
	})
}

// relisting is what a session has to list again, and whether it has listed all tools. Only the supervising goroutine uses
// it.
type relisting struct {
	// missing is why the last tools/list was incomplete, nil if it was complete.
	missing error
	// whole means that the list of tools in use is complete.
	whole bool
	again *time.Timer           // fires when kinds are to be listed again
	kinds map[catalog.Kind]bool // the lists that failed or were incomplete
}

func newRelisting() relisting {
	r := relisting{again: time.NewTimer(relistRetry), kinds: make(map[catalog.Kind]bool)}
	r.again.Stop()
	return r
}

// taken notes that the list of tools that was read last is now in use. If it is incomplete, it is read again later.
func (r *relisting) taken() {
	if r.whole = r.missing == nil; !r.whole {
		r.later(catalog.Tools)
	}
}

// later schedules another refresh of a list.
func (r *relisting) later(kind catalog.Kind) {
	r.kinds[kind] = true
	r.again.Reset(relistRetry)
}

// due returns the kinds to list again now, and clears them.
func (r *relisting) due() []catalog.Kind {
	due := slices.Collect(maps.Keys(r.kinds))
	clear(r.kinds)
	return due
}
