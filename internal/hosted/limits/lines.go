package limits

import (
	"sync"
	"time"
)

// Lines bounds the rate of log lines that anyone can cause, such as lines about refused requests, so that a flood
// does not fill the disk. Safe for concurrent use. The zero value is ready.
type Lines struct {
	mu     sync.Mutex
	second int64  // the second (Unix time) that count is for
	count  int    // lines in that second
	left   uint64 // lines dropped since the last logged line
}

// mostLines is the most lines per second.
const mostLines = 50

// Take reports whether a line may be logged now. left is how many lines were dropped before it; the line should
// mention this number.
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

// Left returns how many lines were dropped since the last logged line.
func (l *Lines) Left() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}
