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

// maxLines is how many lines may be logged per second.
const maxLines = 50

// Take reports whether a line may be logged now. dropped is how many lines were dropped since the last logged line; the new line
// should mention this number.
func (l *Lines) Take() (dropped uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := time.Now().Unix(); second != l.second {
		l.second, l.count = second, 0
	}
	if l.count++; l.count > maxLines {
		l.left++
		return 0, false
	}
	dropped, l.left = l.left, 0
	return dropped, true
}

// Left returns how many lines were dropped since the last logged line.
func (l *Lines) Left() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}
