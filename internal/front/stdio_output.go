package front

import (
	"runtime"
	"sync"
)

// output writes messages to one client in the order in which they were queued, so that no notification of a
// request comes after its answer. Messages that are queued during a write are written together by the next
// write.
type output struct {
	w      messageWriter
	all    *Pending      // bounds the notifications of all clients together
	busy   func() bool   // reports whether more answers may be queued in a moment
	failed chan struct{} // closed after a write has failed and err is set
	err    error
	trace  func(message []byte) // gets each message when it is written; may be nil
	queued chan struct{}        // has a buffer of one: a value makes the pump flush

	mu      sync.Mutex
	queue   []outgoing
	spare   []outgoing // the array of the previous queue, which is used again
	pending int        // bytes of notifications in the queue
	answers int        // number of answers and questions in the queue or being written
	writing bool       // a flush is running
	ended   bool       // end was called
}

// outgoing is a queued message. written is called after the write, even if the write has failed. For a notification, written is
// nil.
type outgoing struct {
	message []byte
	written func()
}

// maxPending is the maximum total size, in bytes, of the notifications that wait in one queue; over HTTP also of the questions that wait.
// A single one may be larger.
const maxPending = 1 << 20

// messageWriter writes whole messages.
type messageWriter interface {
	Write(messages ...[]byte) error
}

func newOutput(w messageWriter, all *Pending, busy func() bool) *output {
	return &output{w: w, all: all, busy: busy, failed: make(chan struct{}), queued: make(chan struct{}, 1)}
}

// unread returns the number of answers and questions that are not written yet.
func (o *output) unread() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answers
}

// now queues an answer and writes the queue, unless another goroutine is already writing. It calls written
// when the answer is written or the output has failed.
func (o *output) now(message []byte, written func()) {
	o.add(outgoing{message, written})
	o.flush()
}

// later queues an answer or a question without writing it: the pump writes it. It does not block.
func (o *output) later(message []byte, written func()) {
	o.add(outgoing{message, written})
	o.wake()
}

func (o *output) add(one outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	o.queue = append(o.queue, one)
}

// notify queues a notification. It does not block; it returns false if the queue is full, if too many wait in all
// queues together, or after end.
func (o *output) notify(message []byte) bool {
	o.mu.Lock()
	room := !o.ended && (o.pending == 0 || o.pending+len(message) <= maxPending) && o.all.add(len(message), o.pending)
	if room {
		o.pending += len(message)
		o.queue = append(o.queue, outgoing{message: message})
	}
	o.mu.Unlock()
	o.wake()
	return room
}

// end writes the queue for the last time. Further notifications are dropped, as nothing would write them.
func (o *output) end() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.flush()
}

func (o *output) wake() {
	select {
	case o.queued <- struct{}{}:
	default:
	}
}

// flush writes the queue, unless another flush is running. If other goroutines may queue more answers in a moment, flush first
// lets them run, so that one write is enough for more answers. With 64 callers this saves a third of the writes.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return
	}
	o.writing = true
	if o.busy() {
		o.mu.Unlock()
		runtime.Gosched()
		o.mu.Lock()
	}
	for len(o.queue) > 0 {
		batch, notifications := o.queue, o.pending
		o.queue, o.spare, o.pending = o.spare[:0], nil, 0
		o.mu.Unlock()
		o.write(batch)
		o.all.written(notifications)
		o.mu.Lock()
		for _, one := range batch {
			if one.written != nil {
				o.answers--
			}
		}
		clear(batch)
		o.spare = batch
	}
	o.writing = false
}

// write writes all messages of the batch with one write, and then calls their funcs written. If an earlier write has failed, it
// only calls the funcs.
func (o *output) write(batch []outgoing) {
	if o.err == nil {
		messages := make([][]byte, len(batch))
		for i, one := range batch {
			messages[i] = one.message
			if o.trace != nil {
				o.trace(one.message)
			}
		}
		if o.err = o.w.Write(messages...); o.err != nil {
			close(o.failed)
		}
	}
	for _, one := range batch {
		if one.written != nil {
			one.written()
		}
	}
}
