package limits

import (
	"sync"
	"time"
)

// Lines bounds the rate of log lines that anyone can cause, such as refused requests, so that a flood does not fill
// the disk. Safe for concurrent use. The zero value is ready.
type Lines struct {
	mu     sync.Mutex
	second int64  // Unix time of count
	count  int    // lines in that second
	left   uint64 // lines left out since the last one
}

// mostLines bounds the lines per second.
const mostLines = 50

// Take reports whether a line may be logged now. left is the number of lines dropped before it, which the line should
// mention.
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

// Left returns the number of lines dropped since the last one.
func (l *Lines) Left() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}
