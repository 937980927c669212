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
	// streamPatience bounds how long a new session waits until the stream for the server's own messages is open.
	streamPatience = 500 * time.Millisecond
	// mcpx refreshes the lists after a stream was opened late, or again. missedPause is the least time between two such refreshes.
	// Without this pause, a server whose streams break again and again would have to send its full lists each time.
	missedPause = time.Minute
	// mcpx refreshes the tools when the method Relist is called, and when a server has refused the headers of a call. silentPause
	// is the least time between two such refreshes.
	silentPause = 10 * time.Second
)

// changes collects the list_changed notifications of a session. On some transports the server sends them on a stream that the
// session must open first. The server does not announce changes made before that stream is open. So if the session has begun to
// read the lists by the time the stream opens, it then reads them again.
type changes struct {
	// told gets a value when lists must be read again, and kinds says which lists. told has a buffer of one, so many list_changed
	// notifications in a row cost one refresh.
	told  chan struct{}
	mu    sync.Mutex
	kinds map[catalog.Kind]bool
	// asked is when the method again last requested the tools. The channel read is closed when this request has been carried out.
	// unread is the same channel until the session begins to read the tools, then nil.
	asked        time.Time
	read, unread chan struct{}
	// missed signals that the stream opened only after a tools/list had begun, so changes may have been missed. It
	// has a buffer of one.
	missed chan struct{}

	settled  chan struct{} // closed when the first stream is open, or when it is clear that no stream will be opened
	noStream func()        // closes settled
	listing  atomic.Bool   // the first tools/list was sent, or is about to be sent
	worked   atomic.Bool   // a stream has been open at least once; streams for single resources do not count

	streams sync.WaitGroup // the goroutines that hold subscriptions; the func end stops them
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

// tell requests that the lists of these kinds are read again.
func (c *changes) tell(kinds ...catalog.Kind) {
	c.mu.Lock()
	for _, kind := range kinds {
		c.kinds[kind] = true
	}
	c.mu.Unlock()
	signal(c.told)
}

// due returns the kinds that calls of tell and again have requested since the last call of due. The caller must call done when it
// has read these lists.
func (c *changes) due() (due map[catalog.Kind]bool, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	due, unread := c.kinds, c.unread
	c.kinds, c.unread = make(map[catalog.Kind]bool), nil
	return due, func() {
		if unread != nil {
			close(unread)
		}
	}
}

// again requests that the tools are read again. But if the last such request is more recent than pause, again makes no new one. The
// returned channel is closed when the last request has been carried out.
func (c *changes) again(pause time.Duration) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil || time.Since(c.asked) >= pause {
		if c.unread == nil { // otherwise an older request still waits, and this one joins it
			c.read = make(chan struct{})
			c.unread = c.read
		}
		c.asked, c.kinds[catalog.Tools] = time.Now(), true
		signal(c.told)
	}
	return c.read
}

// opened records that a stream has just been opened. If the session has already begun to read the lists, opened requests that they
// are read again.
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

// awaitStream waits until the stream for the server's own messages is open, for at most streamPatience. It is called
// before the first tools/list, so that no change after that list is missed, and before the first call, because some
// servers drop a question to the client while the stream is not open. It returns at once if no stream will be opened. If
// the stream opens after streamPatience, the list is read a second time.
func (s *session) awaitStream(ctx context.Context) {
	delay.Until(ctx, streamPatience, s.changes.settled, s.link.Life().Done())
	s.changes.listing.Store(s.spec.Catalogue.Shared == nil)
}

// listen opens the stream on which the server sends its own messages. A modern session subscribes to changes of the lists,
// unless [Catalogue.Shared] is set; a legacy session opens a stream on transports that need one. listen returns at once. The
// method close ends the stream.
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

// subscribe requests notifications of changes of the tools and, if the server offers them, the resources and prompts.
func (s *session) subscribe() {
	defer s.changes.noStream()
	s.keepListening(s.changes.ctx, mcp.SubscriptionFilter{
		ToolsListChanged: true, ResourcesListChanged: s.offers.Resources, PromptsListChanged: s.offers.Prompts,
	}, func(error) {})
}

// keepListening keeps a subscriptions/listen request of the modern era open. The server acknowledges the request by a notification,
// and then reports the wanted changes on the stream of the request. If the stream breaks, keepListening sends the request again. It
// returns when ctx or the session ends. It also returns when the server refuses or ends the request, unless a stream for lists has
// worked in this session before (changes.worked). It calls refused with each JSON-RPC error that the server returns for the
// request.
func (s *session) keepListening(ctx context.Context, wanted mcp.SubscriptionFilter, refused func(error)) {
	filter := wire.Encode(map[string]mcp.SubscriptionFilter{"notifications": wanted})
	delay.Retry(ctx, func() (wait time.Duration, again bool) {
		_, err := s.do(ctx, string(mcp.MethodSubscriptionsListen), filter)
		if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
			refused(rpc)
			err = nil
		}
		// A result ends the stream. A result without an acknowledgement before it means that the server refuses
		// the stream.
		refused := err == nil || !transport.Passing(err)
		// If a stream worked before, the refusal may be temporary.
		again = s.link.Life().Cause() == nil && (!refused || s.changes.worked.Load())
		return transport.RetryAfterOf(err), again
	})
}

// relisting records which lists a session has to read again, and whether it has read all tools. Only the
// supervising goroutine uses it.
type relisting struct {
	// missing is the error that kept mcpx from reading the last tools/list to its end; nil if there was none.
	missing error
	// whole means that this session has read the list of tools to its end at least once.
	whole bool
	again *time.Timer           // fires when the lists in kinds are to be read again
	kinds map[catalog.Kind]bool // the lists that could not be read, or only in part
	read  map[catalog.Kind]bool // the lists, besides the tools, that the session has read at least in part
}

func newRelisting() relisting {
	r := relisting{again: time.NewTimer(relistRetry), kinds: make(map[catalog.Kind]bool), read: make(map[catalog.Kind]bool)}
	r.again.Stop()
	return r
}

// taken records that the list of tools was read. If it is incomplete, it is read again later.
func (r *relisting) taken() {
	if r.whole = r.missing == nil; !r.whole {
		r.later(catalog.Tools)
	}
}

// later records that the list of this kind is to be read again, and starts the timer for that.
func (r *relisting) later(kind catalog.Kind) {
	r.kinds[kind] = true
	r.again.Reset(relistRetry)
}

// due returns the kinds of lists to read again now, and clears them.
func (r *relisting) due() []catalog.Kind {
	due := slices.Collect(maps.Keys(r.kinds))
	clear(r.kinds)
	return due
}
