package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/lazyctx"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// Link carries messages between one session and its server. Implementations:
// streamLink (everything over one [Conn]), httpLink, sseLink.
type Link interface {
	// start lets the server speak. It is called once, before anything else.
	start(in incoming)
	// request sends one request and returns the response to it. Its error is
	// ctx's, or wraps errNotSent, errGone or what broke the link.
	request(ctx context.Context, r outgoing) (wire.Message, error)
	// notify sends a message that has no answer.
	notify(ctx context.Context, message []byte) error
	// lastHeard is when the server said something, whatever it was; if nothing,
	// when the link was made.
	lastHeard() time.Time
	// movement can be compared: two values that differ say that something moved on the
	// server's side between them, be it in its processes.
	movement() any
	// done is closed when the link is of no more use; cause says why, and is nil before.
	done() <-chan struct{}
	cause() error
	// fail makes the link of no more use, for that reason, if it was of any.
	fail(err error)
	// close ends the link and everything it started. Idempotent.
	close()

	traits() traits
	// agreed tells the link which revision was negotiated.
	agreed(version string)
	// listen opens the stream of a legacy session on which the server sends what
	// belongs to no request, where that has to be asked for: opened is called each
	// time that it is open, none when none is to be expected any more. It returns at
	// once; close ends it.
	listen(opened, none func())
	// whyEnded is why a stream has ended, in full; nil if it has not. It may wait for
	// a process to end.
	whyEnded() error
	// remarks are what the server said beside messages, for a reason; mostly empty.
	remarks() string
}

// traits are what a session needs to know of the kind of its link.
type traits struct {
	// oneStream: all messages take one way, which breaks for all or for none.
	oneStream bool
	// ownsProcess: the server ends with the link, and no network is between.
	ownsProcess bool
	// connectionPerRequest: an answer comes on the connection of its request, and what
	// breaks one says nothing of the others. In the modern era the end of that
	// connection cancels the request.
	connectionPerRequest bool
	// headers: a modern request says in HTTP headers what it asks for.
	headers bool
	// legacyOnly: the transport is older than the modern era.
	legacyOnly bool
}

// outgoing is one request on its way.
type outgoing struct {
	id      int64
	method  string
	message []byte
	// header has what HTTP needs beside the standard headers, may be nil.
	header http.Header
	// answered is called by the reader when it has the response, before it reads
	// on; may be nil.
	answered func()
}

// incoming takes what a server sends on its own: notifications and requests. of is the
// request on whose stream it came, 0 where it came on a stream for all requests. A
// reader calls it, so that it must not block.
type incoming func(m wire.Message, of int64)

// life is the part that is the same in all links: when the server was last heard, and
// the end of the link. Safe for concurrent use.
type life struct {
	began time.Time
	heard atomic.Int64 // nanoseconds since began
	ended chan struct{}
	why   atomic.Pointer[error] // set before ended is closed
}

func newLife() *life { return &life{began: time.Now(), ended: make(chan struct{})} }

func (l *life) beat() { l.heard.Store(int64(time.Since(l.began))) }

func (l *life) lastHeard() time.Time { return l.began.Add(time.Duration(l.heard.Load())) }

// end ends the link for that reason, and reports whether it was of use until then.
func (l *life) end(err error) bool {
	first := l.why.CompareAndSwap(nil, &err)
	if first {
		close(l.ended)
	}
	return first
}

func (l *life) done() <-chan struct{} { return l.ended }

func (l *life) cause() error {
	if err := l.why.Load(); err != nil {
		return *err
	}
	return nil
}

// Defaults, for links that have no use for these.

func (l *life) agreed(string)                {}
func (l *life) listen(_ func(), none func()) { none() }
func (l *life) whyEnded() error              { return nil }
func (l *life) remarks() string              { return "" }
func (l *life) movement() any                { return l.heard.Load() }

// mux matches the responses of a two-way stream to their requests.
type mux struct {
	*life
	mu      sync.Mutex
	pending map[int64]*pending
	// unnoised counts the pending requests during which no noise was heard.
	unnoised int
}

// pending is a request that waits for its response.
type pending struct {
	frame    frame // for a stream
	id       int64
	done     chan struct{} // holds one when answer is set
	answer   answer
	answered func()
	noise    string // the first line meanwhile that answers nothing; empty if none
}

type answer struct {
	message wire.Message
	err     error
}

func newMux() *mux {
	return &mux{life: newLife(), pending: make(map[int64]*pending)}
}

// register opens a place for the response to r. crowded says that others wait for
// theirs.
func (m *mux) register(r outgoing) (p *pending, crowded bool, err error) {
	p = &pending{frame: frame{message: r.message}, id: r.id, done: make(chan struct{}, 1), answered: r.answered}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.cause(); err != nil {
		return nil, false, notSent(err)
	}
	m.pending[r.id] = p
	m.unnoised++
	return p, len(m.pending) > 1, nil
}

func (m *mux) forget(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(id)
}

// remove takes a request out of the pending ones. The caller holds the lock.
func (m *mux) remove(id int64) {
	if p, ok := m.pending[id]; ok && p.noise == "" {
		m.unnoised--
	}
	delete(m.pending, id)
}

// noticed notes a line that is no message with every open request that has none yet:
// it may be what the server says in place of the answer. clean makes the line fit for
// a text.
func (m *mux) noticed(clean func() string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unnoised == 0 {
		return
	}
	line := clean()
	if line == "" {
		return
	}
	m.unnoised = 0
	for _, p := range m.pending {
		if p.noise == "" {
			p.noise = line
		}
	}
}

// resolve hands a response to its request. It reports false where no request waits for
// that id: the answer is late, a second one, or invented.
func (m *mux) resolve(id int64, a answer) bool {
	m.mu.Lock()
	p, ok := m.pending[id]
	m.remove(id)
	m.mu.Unlock()
	if ok {
		if p.answered != nil {
			p.answered()
		}
		p.answer = a
		p.done <- struct{}{}
	}
	return ok
}

// resolveLarge fails the request whose answer was skipped, where the id can be read
// from the edges of the message. It reports false where it can not.
func (m *mux) resolveLarge(large *wire.TooLargeError) bool {
	m.beat()
	raw, asks := large.ID()
	id, ours := wire.IntID(raw)
	return ours && !asks && m.resolve(id, answer{err: &request.TooLargeError{Limit: large.Limit}})
}

// fail ends the mux: every open request and every later one gets err.
func (m *mux) fail(err error) {
	if !m.end(err) { // first: a caller that gets the error may look at once for a fresh session
		return
	}
	m.mu.Lock()
	open := m.pending
	m.pending = nil
	m.mu.Unlock()
	for _, p := range open {
		p.answer = answer{err: err}
		p.done <- struct{}{}
	}
}

// deliver sorts what a reader got: responses to their requests, the rest to in.
// It reports whether data was a message at all.
func (m *mux) deliver(data []byte, in incoming) bool {
	if batch, ok := wire.Batch(data); ok {
		for _, one := range batch {
			m.deliver(one, in)
		}
		return len(batch) > 0
	}
	message, err := wire.Parse(data)
	message = markEmpty(message)
	switch {
	case err != nil:
		return false
	case message.Method != "":
		m.beat()
		in(message, 0)
		return true
	case message.IsResponse():
		id, ours := wire.IntID(message.ID)
		if !ours {
			return false // a line of a log in JSON, or an error that says not whose it is
		}
		if known := m.resolve(id, answer{message: message}); !known && string(message.Error) == string(errHollow) {
			return false // it only has an id
		}
		m.beat()
		return true
	}
	return false
}

// errHollow is the error of an answer that has none, and no result either.
var errHollow = json.RawMessage(`{"message":"the answer has neither result nor error"}`)

// markEmpty turns a response with our id but neither result nor error into an error:
// no other answer will come.
func markEmpty(m wire.Message) wire.Message {
	if _, ours := wire.IntID(m.ID); ours && m.Method == "" && !m.IsResponse() && m.Params == nil {
		m.Error = errHollow
	}
	return m
}

// wait waits for the answer that register promised.
func (m *mux) wait(ctx context.Context, p *pending) (wire.Message, error) {
	done, inner, outer := lazyctx.Ends(ctx)
	select {
	case <-p.done:
		return p.answer.message, p.answer.err
	case <-done:
	case <-inner:
	case <-outer:
	}
	return m.giveUp(p, ctx.Err())
}

// giveUp ends a request for the reason err, unless it has been answered: what
// the server has said counts, also if it says it at the same moment.
func (m *mux) giveUp(p *pending, err error) (wire.Message, error) {
	m.mu.Lock()
	m.remove(p.id)
	if p.noise != "" {
		err = &noiseError{err, p.noise}
	}
	m.mu.Unlock()
	select {
	case <-p.done:
		if p.answer.err == nil {
			return p.answer.message, nil
		}
	default:
	}
	return wire.Message{}, err
}
