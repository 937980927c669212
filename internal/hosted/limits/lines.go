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
	second int64  // Unix time, to which count belongs
	count  int    // lines in that second
	left   uint64 // lines left out since the last one
}

// mostLines bounds the lines in a second.
const mostLines = 50

// Take reports whether there is room for a line now. left is how many lines were left out before
// it, which the line should say.
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

// Left is how many lines were left out since the last one.
func (l *Lines) Left() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}
