package front

import "sync/atomic"

// Pending bounds the bytes of the notifications that wait for clients to read them, in all streams together. Each stream has a bound of
// its own ([maxPending]), but a single notification may be larger, and there may be thousands of streams. Several fronts may share one.
type Pending struct {
	most  int64
	bytes atomic.Int64
}

// pendingBytes is how many bytes of notifications may wait (see NewPending).
const pendingBytes = 128 << 20

// NewPending returns a bound for a process that may use this much memory, in bytes; 0 means no limit. The notifications take at most
// pendingBytes, and at most a quarter of the memory. Beyond that, less than largeWrite may wait in each stream while as much is being
// written.
func NewPending(memory int64) *Pending {
	p := &Pending{most: pendingBytes}
	if memory > 0 {
		p.most = min(p.most, memory/4)
	}
	return p
}

// add counts a notification that is to wait, and reports whether there is room for it. behind is how many bytes of notifications wait in
// its stream already. If they are few, there is always room, since a client that reads must not lose what others do not read. A
// notification is never too large if none waits anywhere. If add returns true, written must be called with its size.
func (p *Pending) add(size, behind int) bool {
	all := p.bytes.Add(int64(size))
	if all <= p.most || all == int64(size) || behind+size < largeWrite {
		return true
	}
	p.bytes.Add(-int64(size))
	return false
}

// written subtracts the bytes of notifications that are written, or that are not sent because the connection has ended.
func (p *Pending) written(bytes int) { p.bytes.Add(-int64(bytes)) }
