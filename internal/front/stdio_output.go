package front

import (
	"io"
	"sync"

	"mcpx/internal/wire"
)

// output writes messages to one client in the order in which they were queued:
// what belongs to a request never comes after its answer. Messages that are queued
// while one is written go out together.
type output struct {
	w      *wire.Writer
	failed chan struct{} // closed when a write has failed, after err is set
	err    error
	queued chan struct{} // holds one: somebody has to flush

	mu      sync.Mutex
	queue   []outgoing
	spare   []outgoing // what the queue was before
	notes   int        // bytes of notifications in the queue
	answers int        // that were not written yet
	writing bool       // somebody flushes
}

// outgoing is a queued message. written is nil for a notification.
type outgoing struct {
	message []byte
	written func()
}

// maxNotes bounds the notifications that wait for a client to read, in bytes.
const maxNotes = 1 << 20

func newOutput(w io.Writer) *output {
	return &output{w: wire.NewWriter(w, wire.Newline), failed: make(chan struct{}), queued: make(chan struct{}, 1)}
}

func (o *output) setFraming(framing wire.Framing) { o.w.SetFraming(framing) }

// unread is the number of answers that the client has not read.
func (o *output) unread() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answers
}

// now writes an answer, behind what is queued; where somebody writes already, it is
// left to them. written is called when it has been written, or never will be.
func (o *output) now(message []byte, written func()) {
	o.add(outgoing{message, written})
	o.flush()
}

// later is now for those who must not wait: whoever gets queued flushes.
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

// note queues a notification. It does not block; it reports false where there is
// no room.
func (o *output) note(message []byte) bool {
	o.mu.Lock()
	room := o.notes+len(message) <= maxNotes
	if room {
		o.notes += len(message)
		o.queue = append(o.queue, outgoing{message: message})
	}
	o.mu.Unlock()
	o.wake()
	return room
}

func (o *output) wake() {
	select {
	case o.queued <- struct{}{}:
	default:
	}
}

// flush writes what is queued, unless somebody does already.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return
	}
	o.writing = true
	for len(o.queue) > 0 {
		batch := o.queue
		o.queue, o.spare, o.notes = o.spare[:0], nil, 0
		o.mu.Unlock()
		o.write(batch)
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

// write writes messages in one piece. A write that fails is the last one.
func (o *output) write(batch []outgoing) {
	if o.err == nil {
		messages := make([][]byte, len(batch))
		for i, one := range batch {
			messages[i] = one.message
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
