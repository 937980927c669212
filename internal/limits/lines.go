package limits

import (
	"sync"
	"time"
)

// Lines bounds the lines that a log gets of something that anybody can cause, such as
// refused requests: a flood must not fill the disk. Safe for concurrent use. The zero value
// is ready.
type Lines struct {
	mu     sync.Mutex
	second int64  // of Unix, the one that count belongs to
	count  int    // of lines in it
	left   uint64 // out, since the last line
}

// mostLines bounds the lines in a second.
const mostLines = 50

// Take reports whether there is room for a line now, and how many before it had none: the
// line should say so.
func (l *Lines) Take() (left uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := time.Now().Unix(); second != l.second {
		l.second, l.count = second, 0
	}
	if l.count++; l.count > mostLines {
		l.left++
		return 0, false
	}
	left, l.left = l.left, 0
	return left, true
}

// Left is how many lines have had no room since the last one.
func (l *Lines) Left() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}
