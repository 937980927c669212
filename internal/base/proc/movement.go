package proc

import (
	"sync"
	"sync/atomic"
)

// Movement is what a child's group has done so far, as far as that is cheap to see. Two
// values that differ say that something moved between them; one alone says nothing.
type Movement struct {
	stderr int64  // bytes
	work   uint64 // processor time and processes; see group.work
}

// movements are what was seen of a child's group.
type movements struct {
	stderr atomic.Int64 // bytes

	mu   sync.Mutex
	over bool   // under mu: the group is not looked at any more
	work uint64 // under mu: what was seen last
}

// Movement looks at the child and all of its group. After the child's end it stays the
// same.
func (p *Process) Movement() Movement { return p.seen.look(p.group) }

func (m *movements) look(at *group) Movement {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.over {
		m.work = at.work()
	}
	return Movement{stderr: m.stderr.Load(), work: m.work}
}

// stop makes look leave the group alone: its number may be another's soon.
func (m *movements) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
}
