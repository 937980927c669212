package upstream

import (
	"context"
	"errors"
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
	// streamPatience bounds how long the first tools/list waits for the stream on
	// which the server announces changes.
	streamPatience = 500 * time.Millisecond
	// missedPause is the least time between two refreshes for what may have been
	// missed while a stream was broken: a server that ends its streams again and
	// again is not asked for all its tools each time.
	missedPause = time.Minute
)

// changes tells a session that its server has other tools now. Some transports need a
// stream for that, which the session has to ask for: no server announces a change
// between a tools/list and the opening of that stream.
type changes struct {
	// told holds one: a storm of list_changed is one refresh. kinds are those that
	// have changed since the last.
	told  chan struct{}
	mu    sync.Mutex
	kinds map[catalog.Kind]bool
	// missed holds one: a stream opened after a tools/list had begun.
	missed chan struct{}

	// settled is closed once a first stream is open, or known not to come.
	settled chan struct{}
	settle  sync.Once
	// listing is set before the first tools/list is sent.
	listing atomic.Bool
	// worked: a stream was open once.
	worked atomic.Bool

	// streams are the requests that listen; end ends them.
	streams sync.WaitGroup
	ctx     context.Context
	end     context.CancelFunc
}

func newChanges() *changes {
	c := &changes{
		told: make(chan struct{}, 1), missed: make(chan struct{}, 1), settled: make(chan struct{}),
		kinds: make(map[catalog.Kind]bool),
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// tell asks for a refresh of what is of those kinds.
func (c *changes) tell(kinds ...catalog.Kind) {
	c.mu.Lock()
	for _, kind := range kinds {
		c.kinds[kind] = true
	}
	c.mu.Unlock()
	signal(c.told)
}

// due returns the kinds that have changed since the last time, and forgets them.
func (c *changes) due() map[catalog.Kind]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.kinds
	c.kinds = make(map[catalog.Kind]bool)
	return due
}

// opened says that a stream is open from now on.
func (c *changes) opened() {
	c.worked.Store(true)
	if c.listing.Load() {
		signal(c.missed)
	}
	c.noStream()
}

// noStream says that nothing needs to wait for a stream.
func (c *changes) noStream() { c.settle.Do(func() { close(c.settled) }) }

// signal leaves a note in ch, which holds one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// beforeListing is called before the first tools/list. It waits for the stream
// that is being opened, so that nothing falls between the two; a stream that
// takes longer costs a second list.
func (s *session) beforeListing(ctx context.Context) {
	delay.Until(ctx, streamPatience, s.changes.settled, s.link.Life().Done())
	s.changes.listing.Store(true)
}

// listen asks for list_changed on transports that need asking, and for what else
// a server sends by itself. It returns at once; close ends it.
func (s *session) listen() {
	switch {
	case !s.Modern:
		s.link.Listen(s.changes.opened, s.changes.noStream)
	case s.spec.Catalogue.Elsewhere:
		s.changes.noStream()
	default:
		s.changes.streams.Go(s.subscribe)
	}
}

// subscribe asks to hear of changes of all lists that the server offers.
func (s *session) subscribe() {
	defer s.changes.noStream()
	s.keepListening(s.changes.ctx, mcp.SubscriptionFilter{
		ToolsListChanged: true, ResourcesListChanged: s.offers.Resources, PromptsListChanged: s.offers.Prompts,
	}, func(error) {})
}

// keepListening keeps a subscriptions/listen request of the modern era open; the
// server acknowledges it by a notification. It ends with ctx, or when the server does
// not offer it; refused gets an error that it has answered.
func (s *session) keepListening(ctx context.Context, to mcp.SubscriptionFilter, refused func(error)) {
	filter := wire.Encode(map[string]mcp.SubscriptionFilter{"notifications": to})
	delay.Retry(ctx, func() (wait time.Duration, again bool) {
		_, err := s.do(ctx, string(mcp.MethodSubscriptionsListen), filter)
		if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
			refused(rpc)
			err = nil
		}
		// An answer that no acknowledgement came before is a refusal as well.
		refused := err == nil || !transport.Passing(err)
		// Where a stream worked once, the reason for a refusal can pass.
		again = s.link.Life().Cause() == nil && (!refused || s.changes.worked.Load())
		return transport.RetryAfterOf(err), again
	})
}
