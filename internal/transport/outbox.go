package transport

import (
	"runtime"
	"slices"
	"sync"
)

// frame is a message to be written to a stream.
type frame struct {
	message []byte
	taken   bool // the message was passed to Write or TryWrite, so the server may get at least a part of it
}

const (
	// batchBytes bounds how many bytes are written at once, unless a single message is larger.
	batchBytes = 64 << 10
	// maxRounds bounds how many times in a row one caller writes. Then it leaves the messages of the other callers to
	// the method write.
	maxRounds = 8
	// maxNotes bounds how many messages may be in the outbox. Beyond that notifications are dropped, since the
	// server is not reading.
	maxNotes = 4096
)

// outbox queues the messages to be written to a Conn, in order. If the Conn is a tryWriter, a caller that adds a message also
// writes it, unless another caller is writing, so no other goroutine has to run while the stream accepts data. The method write, in
// a goroutine of its own, writes what the stream does not accept at once and, if the Conn is no tryWriter, everything. So no caller
// waits for a server that does not read. Safe for concurrent use.
type outbox struct {
	conn Conn
	try  tryWriter     // nil if conn is no tryWriter
	left chan struct{} // has a buffer of one: a value means that the method write has messages to write

	mu      sync.Mutex
	waiting []*frame
	writing bool     // a caller or the method write is writing
	batch   [][]byte // the messages that are being written
}

func newOutbox(conn Conn) *outbox {
	try, _ := conn.(tryWriter)
	return &outbox{conn: conn, try: try, left: make(chan struct{}, 1)}
}

// add queues a message and, with a tryWriter, writes what the stream accepts at once. crowded means that other callers are
// about to add messages, so that one write can send them together.
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

// addNote adds a notification. If maxNotes messages are queued already, it drops the notification and returns false.
func (o *outbox) addNote(message []byte) bool {
	o.mu.Lock()
	full := len(o.waiting) >= maxNotes
	o.mu.Unlock()
	if !full {
		o.add(&frame{message: message}, false)
	}
	return !full
}

// next returns the messages to write next. If there are none, the caller is no longer the writer.
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

// takeBack removes a message that is not being written yet. It returns false if the message may have been sent.
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

// write writes the messages that callers could not write, until a write fails or closing is closed.
func (o *outbox) write(closing <-chan struct{}) error {
	for {
		select {
		case <-o.left:
		case <-closing:
			return nil
		}
		if o.try != nil { // a Write without messages writes what the last TryWrite has left over
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
