package limits

import (
	"sync"
	"time"
)

// Lines bounds the rate of log lines that anyone can cause, such as lines about refused requests, so that a flood of them does not
// fill the disk. The zero value is ready. A Lines may be used by several goroutines at the same time.
type Lines struct {
	mu     sync.Mutex
	second int64  // the second in which count began, in Unix time
	count  int    // lines in that second
	left   uint64 // lines that were dropped since a line was last logged
}

// maxLines is how many lines may be logged per second.
const maxLines = 50

// Take reports whether a line may be logged now (ok). dropped is how many lines were dropped since a line was last logged; the new
// line should mention this number.
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

// Left returns how many lines were dropped since a line was last logged.
func (l *Lines) Left() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}
