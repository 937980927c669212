package proc

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	// tailBytes is what is kept of stderr when the Spec does not say.
	tailBytes = 64 << 10
	// lineBytes is the longest line that OnStderr gets in one piece.
	lineBytes = 8 << 10
	// drainRate and drainBurst (bytes a second, bytes) limit how fast stderr is read. A
	// child that floods it waits for us, as it would for a slow disk, and costs us next
	// to nothing.
	drainRate  = 4 << 20
	drainBurst = 1 << 20
)

// drain reads a child's stderr to its end, at a bounded speed while the child lives. It
// counts the bytes in total.
func drain(from *output, to *tail, total *atomic.Int64, onLine func(string), exited <-chan struct{}) {
	defer from.end()
	buf := make([]byte, 32<<10)
	lines := lineSplitter{emit: onLine}
	flow := throttle{last: time.Now()}
	for {
		n, err := from.Read(buf)
		total.Add(int64(n))
		to.write(buf[:n])
		lines.write(buf[:n])
		if err != nil {
			lines.flush()
			return
		}
		if pause := flow.take(n, time.Now()); pause > 0 {
			t := time.NewTimer(pause)
			select {
			case <-t.C:
			case <-exited:
				t.Stop()
			}
		}
	}
}

// throttle is a bucket that n bytes fill and that leaks drainRate bytes a second.
type throttle struct {
	level float64
	last  time.Time
}

// take says how long to wait after n bytes were read.
func (t *throttle) take(n int, now time.Time) time.Duration {
	t.level = max(0, t.level-now.Sub(t.last).Seconds()*drainRate) + float64(n)
	t.last = now
	if t.level <= drainBurst {
		return 0
	}
	return time.Duration((t.level - drainBurst) / drainRate * float64(time.Second))
}

// tail keeps the last bytes that were written to it, in a ring.
type tail struct {
	max int

	mu   sync.Mutex
	buf  []byte // guarded by mu; grows up to max
	next int    // guarded by mu; where the oldest byte is once buf is full
	lost bool   // guarded by mu; something was overwritten
}

func newTail(limit int) *tail {
	if limit <= 0 {
		limit = tailBytes
	}
	return &tail{max: limit}
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if grow := min(t.max-len(t.buf), len(b)); grow > 0 {
		t.buf = append(t.buf, b[:grow]...)
		b = b[grow:]
	}
	if len(b) == 0 {
		return
	}
	t.lost = true
	if len(b) > t.max {
		b = b[len(b)-t.max:]
	}
	n := copy(t.buf[t.next:], b)
	copy(t.buf, b[n:])
	t.next = (t.next + len(b)) % t.max
}

// text is what is kept. When it does not begin at the beginning, the broken first line,
// or at least the broken first character, is left off.
func (t *tail) text() string {
	t.mu.Lock()
	b := append(append(make([]byte, 0, len(t.buf)), t.buf[t.next:]...), t.buf[:t.next]...)
	lost := t.lost
	t.mu.Unlock()
	if lost {
		if i := bytes.IndexByte(b, '\n'); i >= 0 && i+1 < len(b) {
			b = b[i+1:]
		} else {
			for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
				b = b[1:]
			}
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// lineSplitter cuts a stream into lines for emit, which may be nil.
type lineSplitter struct {
	emit func(string)
	part []byte
}

func (l *lineSplitter) write(b []byte) {
	if l.emit == nil {
		return
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		whole := i >= 0
		if !whole {
			i = len(b)
		}
		if room := lineBytes - len(l.part); i > room {
			i, whole = room, false
		}
		l.part = append(l.part, b[:i]...)
		b = b[i:]
		if whole {
			b = b[1:]
			l.send()
		} else if len(l.part) == lineBytes && len(b) > 0 && b[0] != '\n' {
			l.send()
		}
	}
}

// flush sends what is left at the end of the stream.
func (l *lineSplitter) flush() {
	if l.emit != nil && len(l.part) > 0 {
		l.send()
	}
}

func (l *lineSplitter) send() {
	line := strings.ToValidUTF8(string(bytes.TrimSuffix(l.part, []byte("\r"))), "\uFFFD")
	l.part = l.part[:0]
	l.emit(line)
}
