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
	// tailBytes is how many bytes of the end of stderr are kept if Spec.StderrBytes is 0.
	tailBytes = 64 << 10
	// lineBytes is the longest line, in bytes, that OnStderr gets in one piece.
	lineBytes = 8 << 10
	// drainRate (bytes per second) and drainBurst (bytes) limit how fast stderr is read. A child that writes faster is slowed down,
	// as by a slow disk. So reading its stderr takes hardly any CPU time.
	drainRate  = 4 << 20
	drainBurst = 1 << 20
)

// drain reads a child's stderr to its end, and at a bounded speed while the child lives. It adds the number of bytes that it reads
// to total.
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

// throttle is a leaky bucket: level grows with the bytes read and sinks by drainRate.
type throttle struct {
	level float64
	last  time.Time
}

// take returns how long to wait after reading n bytes.
func (t *throttle) take(n int, now time.Time) time.Duration {
	t.level = max(0, t.level-now.Sub(t.last).Seconds()*drainRate) + float64(n)
	t.last = now
	if t.level <= drainBurst {
		return 0
	}
	return time.Duration((t.level - drainBurst) / drainRate * float64(time.Second))
}

// tail keeps the last max bytes that were written to it.
type tail struct {
	max int

	mu   sync.Mutex
	buf  []byte // guarded by mu; up to 2*max bytes
	lost bool   // guarded by mu; the beginning of the output was dropped from buf
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
	if room := 2*t.max - len(t.buf); len(b) > room {
		t.lost = true
		b = b[max(0, len(b)-t.max):]
		keep := min(len(t.buf), t.max-len(b))
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-keep:]...)
	}
	t.buf = append(t.buf, b...)
}

// text returns the kept end of the output. If the beginning was dropped, text leaves out the incomplete first line or,
// if there is only one line, an incomplete first character.
func (t *tail) text() string {
	t.mu.Lock()
	b := bytes.Clone(t.buf[max(0, len(t.buf)-t.max):])
	lost := t.lost || len(t.buf) > t.max
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

// lineSplitter splits a stream into lines and calls emit with each, unless emit is nil.
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
