package front

import (
	"errors"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
)

// gatedOutput is a writer that lets the test permit each write.
type gatedOutput struct {
	began, let chan struct{}
	writes     []string
	err        error
}

func (g *gatedOutput) Write(p []byte) (int, error) {
	g.began <- struct{}{}
	<-g.let
	g.writes = append(g.writes, string(p))
	return len(p), g.err
}

// TestOutput: messages that are queued during a write are written together afterwards, in the order of the
// queue. Only the goroutine that writes has to wait.
func TestOutput(t *testing.T) {
	out := &gatedOutput{began: make(chan struct{}, 9), let: make(chan struct{}, 9)}
	o := newOutput(wire.NewWriter(out, wire.Newline), NewPending(0), func() bool { return false })
	var written []string
	say := func(text string) (message []byte, done func()) {
		return []byte(text), func() { written = append(written, text) }
	}
	ended := make(chan struct{})
	go func() { // the goroutine ends when the test permits its write
		defer close(ended)
		o.now(say("one"))
	}()
	<-out.began
	if !o.notify(make([]byte, maxPending+1)) {
		t.Error("no room for a large notification alone")
	}
	clear(o.queue)
	o.queue, o.pending = o.queue[:0], 0
	o.now(say("two"))
	if !o.notify([]byte("note")) {
		t.Error("no room for a note")
	}
	o.later(say("three"))
	if o.notify(make([]byte, maxPending)) {
		t.Error("room for more than there is")
	}
	if n := o.unread(); n != 3 {
		t.Errorf("%d answers are unread", n)
	}
	out.let <- struct{}{}
	out.let <- struct{}{}
	<-ended
	if got := strings.Join(out.writes, "|"); got != "one\n|two\nnote\nthree\n" {
		t.Errorf("wrote %q", got)
	}
	if got := strings.Join(written, " "); got != "one two three" || o.unread() != 0 {
		t.Errorf("written %s, %d unread", got, o.unread())
	}
	out.err = errors.New("gone")
	for range 2 {
		out.let <- struct{}{}
		o.now(say("lost"))
	}
	<-o.failed
	if len(out.writes) != 3 || len(written) != 5 {
		t.Errorf("after the end: wrote %q, written %q", out.writes, written)
	}
}

// TestOutput_Pending: the notifications in a queue count towards those of all clients until they are written, or the queue has ended.
// Also if there is no more room, each queue takes less than largeWrite.
func TestOutput_Pending(t *testing.T) {
	all := NewPending(0)
	all.most = 2 * largeWrite
	out := &gatedOutput{began: make(chan struct{}, 9), let: make(chan struct{}, 9)}
	o := newOutput(wire.NewWriter(out, wire.Newline), all, func() bool { return false })
	other := newOutput(wire.NewWriter(out, wire.Newline), all, func() bool { return false })
	for _, one := range []struct {
		to   *output
		size int
		want bool
	}{{o, largeWrite, true}, {o, largeWrite, true}, {other, 2 * largeWrite, false}, {other, largeWrite - 11, true}, {other, 10, true}, {other, largeWrite, false}, {other, 10, false}} {
		if got := one.to.notify(make([]byte, one.size)); got != one.want {
			t.Errorf("%d bytes: %v", one.size, got)
		}
	}
	for range cap(out.let) {
		out.let <- struct{}{}
	}
	o.flush()
	if got := all.bytes.Load(); got != largeWrite-1 {
		t.Errorf("%d bytes are counted after a write", got)
	}
	out.err = errors.New("gone")
	other.end()
	if got := all.bytes.Load(); got != 0 || other.notify([]byte("late")) {
		t.Errorf("%d bytes are counted after the end, or one more is taken", got)
	}
}
