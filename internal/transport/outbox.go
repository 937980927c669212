package transport

import (
	"runtime"
	"slices"
	"sync"
)

// frame is a message on its way to a stream.
type frame struct {
	message []byte
	taken   bool // a writer has it: some of it may be written
}

const (
	// batchBytes bounds what goes out in one write, beside a single large message.
	batchBytes = 64 << 10
	// maxRounds bounds how often one caller writes for the others in a row.
	maxRounds = 8
	// maxNotes bounds the messages in the outbox when a notification comes: a server
	// that leaves so many unread does not read, and the notification is dropped.
	maxNotes = 4096
)

// outbox has the messages that are to be written to a Conn, in order. A caller that
// adds one writes it as well, unless another caller is writing: nothing is handed to
// another goroutine while the stream takes it. What it does not take is left to
// write, which runs in a goroutine of its own, so that no caller waits for a server
// that does not read. Safe for concurrent use.
type outbox struct {
	conn Conn
	try  tryWriter     // nil if conn cannot
	left chan struct{} // holds one: callers have left something to write

	mu      sync.Mutex
	waiting []*frame
	writing bool     // a caller or the writer has the right to write
	batch   [][]byte // what the writer has in hand
}

func newOutbox(conn Conn) *outbox {
	try, _ := conn.(tryWriter)
	return &outbox{conn: conn, try: try, left: make(chan struct{}, 1)}
}

// add queues a message and writes what the stream takes at once. crowded says that
// other callers are about to add theirs: they share a write then.
func (o *outbox) add(f *frame, crowded bool) {
	o.mu.Lock()
	o.waiting = append(o.waiting, f)
	if o.writing {
		o.mu.Unlock()
		return
	}
	o.writing = true
	o.mu.Unlock()
	if o.try == nil {
		o.left <- struct{}{}
		return
	}
	if crowded {
		runtime.Gosched()
	}
	for range maxRounds {
		messages := o.next()
		if len(messages) == 0 {
			return
		}
		if !o.try.TryWrite(messages...) {
			break
		}
	}
	o.left <- struct{}{}
}

// addNote is add for a notification. It reports false, and drops it, where too many
// messages are queued already.
func (o *outbox) addNote(message []byte) bool {
	o.mu.Lock()
	full := len(o.waiting) >= maxNotes
	o.mu.Unlock()
	if !full {
		o.add(&frame{message: message}, false)
	}
	return !full
}

// next returns the messages that are written next. None are left when there are
// none: the right to write is given back then.
func (o *outbox) next() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.batch)
	o.batch = o.batch[:0]
	size, n := 0, 0
	for _, f := range o.waiting {
		if size += len(f.message); n > 0 && size > batchBytes {
			break
		}
		f.taken = true
		o.batch = append(o.batch, f.message)
		n++
	}
	o.waiting = slices.Delete(o.waiting, 0, n)
	o.writing = n > 0
	return o.batch
}

// takeBack takes a message back that is not being written yet. It reports false for
// one that may have been sent.
func (o *outbox) takeBack(f *frame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.taken {
		return false
	}
	if i := slices.Index(o.waiting, f); i >= 0 {
		o.waiting = slices.Delete(o.waiting, i, i+1)
	}
	f.taken = true
	return true
}

// write writes what callers have left, until a write fails or closing is closed.
func (o *outbox) write(closing <-chan struct{}) error {
	for {
		select {
		case <-o.left:
		case <-closing:
			return nil
		}
		if o.try != nil { // what the last TryWrite has left
			if err := o.conn.Write(); err != nil {
				return err
			}
		}
		for messages := o.next(); len(messages) > 0; messages = o.next() {
			if err := o.conn.Write(messages...); err != nil {
				return err
			}
		}
	}
}
