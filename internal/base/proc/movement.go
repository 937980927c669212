package proc

// Movement is what a child's group has done so far, as far as that is cheap to see. Two
// values that differ say that something moved between them; one alone says nothing.
type Movement struct {
	stderr int64  // bytes
	work   uint64 // processor time and processes; see group.work
}

// Movement looks at the child and all of its group. After the child's end it stays the
// same.
func (p *Process) Movement() Movement {
	p.looking.Lock()
	defer p.looking.Unlock()
	if !p.reaped {
		p.work = p.group.work()
	}
	return Movement{stderr: p.stderrBytes.Load(), work: p.work}
}

// stopLooking makes Movement leave the group alone: its number may be another's soon.
func (p *Process) stopLooking() {
	p.looking.Lock()
	defer p.looking.Unlock()
	p.reaped = true
}
