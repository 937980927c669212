package proc

import (
	"sync"
	"sync/atomic"
)

// Movement is a snapshot of the activity of a child's group. If two snapshots differ, the group was active between
// them.
type Movement struct {
	stderr int64  // bytes read from stderr so far
	work   uint64 // a number that changes with CPU time (not on darwin) and processes
}

// movements is the last known activity of a child's group.
type movements struct {
	stderr atomic.Int64 // bytes read from stderr so far

	mu   sync.Mutex
	over bool   // guarded by mu: the group must not be used any more
	work uint64 // guarded by mu: last result of group.work
}

// Movement returns the activity of the child and its group so far: bytes on stderr, CPU time (not on darwin) and processes.
// After Done it no longer changes.
func (p *Process) Movement() Movement { return p.seen.look(p.group) }

func (m *movements) look(at *group) Movement {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.over {
		m.work = at.work()
	}
	return Movement{stderr: m.stderr.Load(), work: m.work}
}

// stop is called before the child is reaped. After stop, the method look does not use the process group any more, because the
// group's id may soon be reused.
func (m *movements) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
}
