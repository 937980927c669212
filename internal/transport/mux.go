package transport

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"mcpx/internal/base/lazyctx"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// mux matches the responses on a two-way stream to their requests.
type mux struct {
	life    *Lifecycle
	log     *slog.Logger
	mu      sync.Mutex
	pending map[int64]*pending
	// unnoised is the number of waiting requests whose field noise is empty: since they were sent, the server has written no line
	// that is not a message. If it is 0, noticed has nothing to do.
	unnoised int
}

// pending is a request that waits for its response.
type pending struct {
	frame    frame // has the message of the request
	id       int64
	done     chan struct{} // has a buffer of one; gets a value when answer is set
	answer   answer
	answered func()
	noise    string // the first line of output after the request that is not a message; empty if there was none
}

type answer struct {
	message wire.Message
	err     error
}

func newMux(log *slog.Logger) *mux {
	m := &mux{log: log, pending: make(map[int64]*pending)}
	m.life = newLifecycle(m.failed)
	return m
}

func (m *mux) Life() *Lifecycle { return m.life }

// Agreed and Evidence do nothing, and Listen reports that there is no stream. Links that need more have their own methods.

func (m *mux) Agreed(string)                       {}
func (m *mux) Listen(_ func(), unavailable func()) { unavailable() }
func (m *mux) Evidence() *Evidence                 { return nil }

// register adds a request to the requests that wait for a response. crowded reports whether other requests wait too.
func (m *mux) register(r Outgoing) (p *pending, crowded bool, err error) {
	p = &pending{frame: frame{message: r.Message}, id: r.ID, done: make(chan struct{}, 1), answered: r.Answered}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.life.Cause(); err != nil {
		return nil, false, NotSent(err)
	}
	m.pending[r.ID] = p
	m.unnoised++
	return p, len(m.pending) > 1, nil
}

// remove takes a request off the requests that wait for a response. The caller holds the lock.
func (m *mux) remove(id int64) {
	if p, ok := m.pending[id]; ok && p.noise == "" {
		m.unnoised--
	}
	delete(m.pending, id)
}

// noticed handles a line of output that is not a message. The server may have written it instead of an answer to any waiting
// request, so noticed records it in each waiting request that has no such line yet. clean returns the line shortened and without
// secrets.
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

// resolve passes a response to the request with this id. It returns false if no such request waits, because the response is
// late, repeated, or invented.
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

// resolveLarge fails the request whose answer was longer than the limit and was skipped. It returns false if the message is no
// answer, if its id is neither in its beginning nor in its end, or if no request with the id waits.
func (m *mux) resolveLarge(large *wire.TooLargeError) bool {
	m.life.beat()
	raw, asks := large.ID()
	id, ours := wire.IntID(raw)
	return ours && !asks && m.resolve(id, answer{err: &request.TooLargeError{Limit: large.Limit}})
}

// failed ends every pending request with err. After that, register refuses new requests.
func (m *mux) failed(err error) {
	m.mu.Lock()
	open := m.pending
	m.pending = nil
	m.mu.Unlock()
	for _, p := range open {
		p.answer = answer{err: err}
		p.done <- struct{}{}
	}
}

// deliver passes responses to their requests, and all other messages to the func handle. It reports whether data was a message.
func (m *mux) deliver(data []byte, handle Incoming) bool {
	switch batch, err := wire.Batch(data); err {
	case nil:
		for _, one := range batch {
			m.deliver(one, handle)
		}
		return len(batch) > 0
	case wire.ErrLargeBatch:
		m.log.Warn("message skipped", "err", err)
		return false
	}
	message, err := wire.Parse(data)
	message = markEmpty(message)
	switch {
	case err != nil:
		return false
	case message.Method != "":
		m.life.beat()
		handle(message, 0)
		return true
	case message.IsResponse():
		id, ours := wire.IntID(message.ID)
		if !ours {
			return false // a log line in JSON, or an error without an id
		}
		if known := m.resolve(id, answer{message: message}); !known && string(message.Error) == string(errHollow) {
			return false // JSON that happens to have a member id
		}
		m.life.beat()
		return true
	}
	return false
}

// errHollow is the error for a response that has neither result nor error.
var errHollow = json.RawMessage(`{"message":"the answer has neither result nor error"}`)

// markEmpty turns a message that has the id of a request of mcpx, but neither result nor error, into an error
// response, since no other answer will come.
func markEmpty(m wire.Message) wire.Message {
	if m.Method == "" && !m.IsResponse() && m.Params == nil {
		if _, ours := wire.IntID(m.ID); ours {
			m.Error = errHollow
		}
	}
	return m
}

// wait waits for the response to p, until ctx ends.
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

// giveUp ends a request with err, as a [NoiseError] if the server wrote a line that is not a message. If the answer came at the
// same moment, it returns the answer.
func (m *mux) giveUp(p *pending, err error) (wire.Message, error) {
	m.mu.Lock()
	m.remove(p.id)
	if p.noise != "" {
		err = &NoiseError{err, p.noise}
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
