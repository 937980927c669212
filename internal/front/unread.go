package front

import "sync/atomic"

// Unread bounds the bytes of the notifications that wait for clients to read them, in all streams together. Each stream has a bound of
// its own ([maxPending]), but a single notification may be larger, and there may be thousands of streams. Several fronts may share one.
type Unread struct {
	most  int64
	bytes atomic.Int64
}

// unreadBytes is how many bytes of notifications may wait (see NewUnread).
const unreadBytes = 128 << 20

// NewUnread returns a bound for a process that may use this much memory, in bytes; 0 means no limit. The notifications take at most
// unreadBytes, and at most a quarter of the memory. Beyond that, less than largeWrite may wait in each stream while as much is being
// written.
func NewUnread(memory int64) *Unread {
	u := &Unread{most: unreadBytes}
	if memory > 0 {
		u.most = min(u.most, memory/4)
	}
	return u
}

// add counts a notification that is to wait, and reports whether there is room for it. behind is how many bytes of notifications wait in
// its stream already. If they are few, there is always room, since a client that reads must not lose what others do not read. A
// notification is never too large if none waits anywhere. If add returns true, written must be called with its size.
func (u *Unread) add(size, behind int) bool {
	all := u.bytes.Add(int64(size))
	if all <= u.most || all == int64(size) || behind+size < largeWrite {
		return true
	}
	u.bytes.Add(-int64(size))
	return false
}

// written subtracts the bytes of notifications that are written, or that are not sent because the connection has ended.
func (u *Unread) written(bytes int) { u.bytes.Add(-int64(bytes)) }
