package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"mcpx/internal/base/state"
)

// pieces is how many unread pieces the other side may have: after that many, a side waits until the other side has read some.
const pieces = 16

// maxQuestion is the size, in bytes, above which the question of an Ask is refused.
const maxQuestion = 256 << 20

// exchanges has the running exchanges of this replica: those that it began, and those that other replicas began.
type exchanges struct {
	mu   sync.Mutex
	last uint64
	open map[callID]*exchange
}

// callID identifies an exchange in this process: by the other replica, the number that the asker gave to the exchange, and who the
// asker is.
type callID struct {
	peer   string
	number uint64
	asks   bool // true if this process is the asker
}

// exchange is one side of an Ask or of a Stream. Each side sends pieces, and marks its last piece. If either side sends doStop,
// both directions end.
type exchange struct {
	cluster *Cluster
	id      callID
	ctx     context.Context
	cancel  context.CancelCauseFunc
	in      chan piece
	credit  chan struct{} // has one value for each piece that may still be sent

	expect int // number of the next piece to receive; used by the receiving goroutine of NATS alone
	sent   int // number of the next piece to send
	taken  int // number of pieces that were read since the last doTaken was sent
}

type piece struct {
	data []byte
	last bool
	err  string
}

// RemoteError is the error with which another replica ended an exchange. Mostly its answerer has failed. Text is what the other
// replica says.
type RemoteError struct{ Text string }

func (e *RemoteError) Error() string { return e.Text }

var (
	errLost   = errors.New("messages between replicas were lost")
	errNoMore = errors.New("the other side needs no more")
)

func (c *Cluster) exchange(ctx context.Context, id callID) *exchange {
	x := &exchange{cluster: c, id: id, in: make(chan piece, pieces+1), credit: make(chan struct{}, pieces+1)}
	for range pieces {
		x.credit <- struct{}{}
	}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

func (e *exchanges) find(id callID) *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[id]
}

// fail ends all exchanges for which matches returns true. Reading from them and writing to them then fails with err.
func (e *exchanges) fail(matches func(*exchange) bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.open {
		if matches(x) {
			x.cancel(err)
		}
	}
}

func (e *exchanges) remove(x *exchange) {
	x.cancel(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, x.id)
}

// answering returns one of the exchanges that this replica still has to answer, or nil if there are none.
func (e *exchanges) answering() *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, x := range e.open {
		if !id.asks && x.ctx.Err() == nil {
			return x
		}
	}
	return nil
}

// Finish waits until this replica has answered the questions of the others, at most until ctx ends. Then this replica refuses new
// questions.
func (c *Cluster) Finish(ctx context.Context) {
	c.answered(ctx)
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.answered(ctx) // exchanges that began during the first wait
}

func (c *Cluster) answered(ctx context.Context) {
	for x := c.calls.answering(); x != nil && ctx.Err() == nil; x = c.calls.answering() {
		select {
		case <-x.ctx.Done():
		case <-ctx.Done():
		}
	}
}

func (x *exchange) message(h head, data []byte) error {
	h.Of, h.Asks = x.id.number, x.id.asks
	return x.cluster.send("to."+x.id.peer, &h, data)
}

// write sends data in pieces, and waits while the other side has too many unread pieces. If isLast is true, the last of these
// pieces, which may be empty, tells the other side that no more follow. kind is set only in the first write of the asker, and empty
// otherwise. failure is the error of the answerer; empty if it has not failed.
func (x *exchange) write(kind string, data []byte, isLast bool, failure string) error {
	for {
		n := min(len(data), maxPiece)
		select {
		case <-x.credit:
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		}
		if x.ctx.Err() != nil {
			return context.Cause(x.ctx)
		}
		h := head{Do: doPiece, Kind: kind, N: x.sent, Last: isLast && n == len(data), Err: failure}
		if err := x.message(h, data[:n]); err != nil {
			return err
		}
		x.sent++
		if data = data[n:]; len(data) == 0 {
			return nil
		}
	}
}

// read waits for the next piece and returns it. If the exchange ends before, the error is the cause.
func (x *exchange) read() (piece, error) {
	select {
	case p := <-x.in: // a piece that has arrived is returned even if the exchange has ended since
		return x.took(p), nil
	default:
	}
	select {
	case p := <-x.in:
		return x.took(p), nil
	case <-x.ctx.Done():
		return piece{}, context.Cause(x.ctx)
	}
}

func (x *exchange) took(p piece) piece {
	if x.taken++; x.taken >= pieces/2 && !p.last {
		_ = x.message(head{Do: doTaken, N: x.taken}, nil)
		x.taken = 0
	}
	return p
}

// takeExchange handles a doPiece, doTaken or doStop: it belongs to a running exchange, or is the first piece of a new one. Other
// pieces are answered with doStop.
func (c *Cluster) takeExchange(h *head, data []byte) {
	id := callID{h.From, h.Of, !h.Asks}
	x := c.calls.find(id)
	if x == nil {
		switch {
		case h.Do != doPiece:
		case h.Asks && h.N == 0:
			c.begin(id, h, data)
		default:
			_ = c.send("to."+h.From, &head{Do: doStop, Of: h.Of, Asks: !h.Asks}, nil)
		}
		return
	}
	switch h.Do {
	case doPiece:
		x.receive(h, data)
	case doTaken:
		for range h.N {
			select {
			case x.credit <- struct{}{}:
			default:
			}
		}
	case doStop:
		switch {
		case h.Untaken:
			x.cancel(ErrUntaken)
		case h.Err != "":
			x.cancel(&RemoteError{h.Err})
		default:
			x.cancel(errNoMore)
		}
	}
}

func (x *exchange) receive(h *head, data []byte) {
	if h.N != x.expect {
		x.cancel(errLost)
		return
	}
	x.expect++
	select {
	case x.in <- piece{data, h.Last, h.Err}:
	default:
		x.cancel(errLost) // the other side has sent more than its credit
	}
}

// Ask sends data to another replica, and yields what the handler there ([Cluster.Answer]) writes, in pieces of at most 256 KB. The
// iteration ends with an error if ctx ends, if the replica ends, or if the connection to NATS or a message is lost. The error wraps
// [ErrUntaken] if the replica has done nothing. If the handler has failed, it is a [RemoteError]. It wraps [errGone] if the replica
// has ended, and [state.ErrAway] if NATS cannot be reached. If the caller leaves the loop, the context of the handler ends.
func (c *Cluster) Ask(ctx context.Context, to, kind string, data []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		x, err := c.ask(ctx, to)
		if err != nil {
			yield(nil, err)
			return
		}
		defer c.calls.remove(x)
		if err := x.write(kind, data, true, ""); err != nil {
			x.stop("")
			yield(nil, err)
			return
		}
		for {
			p, err := x.read()
			switch {
			case err != nil:
				x.stop("")
				yield(nil, err)
				return
			case p.err != "":
				yield(nil, &RemoteError{p.err})
				return
			case len(p.data) > 0 && !yield(p.data, nil):
				x.stop("")
				return
			case p.last:
				return
			}
		}
	}
}

func (c *Cluster) ask(ctx context.Context, to string) (*exchange, error) {
	if !c.Connected() {
		return nil, fmt.Errorf("%w: %w", ErrUntaken, state.ErrAway)
	}
	c.calls.mu.Lock()
	c.calls.last++
	x := c.exchange(ctx, callID{to, c.calls.last, true})
	c.calls.open[x.id] = x
	c.calls.mu.Unlock()
	// This check comes only after x is in c.calls.open: if the replica ends later, fail finds x there and cancels it.
	if to == c.self || !c.IsLive(to) || c.ended() {
		c.calls.remove(x)
		return nil, fmt.Errorf("%w: %w", ErrUntaken, errGone)
	}
	return x, nil
}

func (x *exchange) stop(why string) { _ = x.message(head{Do: doStop, Err: why}, nil) }

// answerer handles one exchange that another replica has begun. ctx ends with the exchange.
type answerer func(ctx context.Context, x *exchange) error

// Answer calls handle for each Ask of this kind that another replica sends. handle writes its answer with write, in any number of
// parts. write waits while the asker has too many unread pieces. ctx ends when the asker needs no more, or is gone.
func (c *Cluster) Answer(kind string, handle func(ctx context.Context, from string, data []byte, write func([]byte) error) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer[kind] = func(ctx context.Context, x *exchange) error {
		asked, err := x.all()
		if err != nil {
			return err
		}
		return handle(ctx, x.id.peer, asked, func(data []byte) error { return x.write("", data, false, "") })
	}
}

// begin starts to answer an exchange, or refuses it.
func (c *Cluster) begin(id callID, h *head, data []byte) {
	c.mu.RLock()
	do, done := c.answer[h.Kind], c.done || c.stopped
	if do == nil || done {
		c.mu.RUnlock()
		why := "this replica does not answer " + h.Kind
		_ = c.send("to."+id.peer, &head{Do: doStop, Of: id.number, Err: why, Untaken: done}, nil)
		return
	}
	x := c.exchange(context.Background(), id)
	x.receive(h, data)
	c.calls.mu.Lock()
	c.calls.open[id] = x
	c.calls.mu.Unlock()
	// This goroutine ends with the exchange. It begins while c.mu is held and stopped is false. So Close, which first sets stopped
	// under c.mu, waits for it.
	c.closed.Go(func() {
		defer c.calls.remove(x)
		failure := ""
		if err := do(x.ctx, x); err != nil {
			failure = fmt.Sprint(err)
		}
		if err := x.write("", nil, true, failure); err != nil {
			x.stop("the answer was broken off")
		}
	})
	c.mu.RUnlock()
}

// all waits for all pieces of the question, and returns the whole question.
func (x *exchange) all() (data []byte, err error) {
	for {
		p, err := x.read()
		if err != nil {
			return nil, err
		}
		if data == nil {
			data = p.data
		} else {
			data = append(data, p.data...)
		}
		if p.last {
			return data, nil
		}
		if len(data) > maxQuestion {
			return nil, errors.New("too much for one exchange")
		}
	}
}
