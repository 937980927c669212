package proc

import (
	"sync"
	"sync/atomic"
)

// Movement is a snapshot of the activity of a child's group. If two snapshots differ, something happened between
// them.
type Movement struct {
	stderr int64  // bytes
	work   uint64 // processor time and processes; see group.work
}

// movements is what was last seen of a child's group.
type movements struct {
	stderr atomic.Int64 // bytes

	mu   sync.Mutex
	over bool   // under mu: the group must not be used any more
	work uint64 // under mu: last result of group.work
}

// Movement returns the signs of work seen so far in the child and its process group. After the child's end they no longer
// change.
func (p *Process) Movement() Movement { return p.seen.look(p.group) }

func (m *movements) look(at *group) Movement {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.over {
		m.work = at.work()
	}
	return Movement{stderr: m.stderr.Load(), work: m.work}
}

// stop makes look leave the group alone, as its number may soon be reused.
func (m *movements) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
}
