// Package state keeps the state of clients behind four interfaces: Sessions, Results, Once (things that can be used only once) and
// Counters. A fifth, Records, is the store behind Sessions. The package also has Secret, from which keys are derived. Several
// processes can serve the same clients if each has the same secret, and implementations of the interfaces that use a common store.
// No other package needs to change for that.
//
// What callers give to these interfaces is data: it can be encoded as JSON, and a decoded copy can be used like the original.
//
// State that belongs to one process is not kept here: the streams and open requests of a session, requests to its client, calls
// that are being executed, sessions with MCP servers that belong to single clients, the instance of a server that a client uses,
// connections, bodies that are being read, caches, and what the status page shows of the last hour. A process finds its own part
// of a session by the session's id, and creates that part if it has none.
package state

import (
	"context"
	"errors"
	"time"
)

// ErrUnknown is the error for an id or a handle that does not exist, does not exist any more, or belongs to another owner.
var ErrUnknown = errors.New("unknown, or ended")

// ErrAway means that the store behind an interface cannot be reached. The caller refuses the request and asks the
// client to try again. The implementations in memory never return it.
var ErrAway = errors.New("the state of clients cannot be reached now; try again")

// ErrElsewhere is the error of [Results] for a result that only another process can use, because its call is still being executed
// there.
var ErrElsewhere = errors.New("another process has this call")

// Sessions keeps the records of sessions; S is the type of a record. Package front uses one Sessions for legacy clients over HTTP,
// package page another for browsers, and package connect two more: for logins that have begun, and for the codes that such a login
// gives out. A caller must not write to a record. Safe for concurrent use.
//
// An id proves nothing about the sender: the caller checks that the record belongs to the principal of the request.
//
// A session ends with End, or at the time given to Open. An implementation may bound the number of sessions, and removes some
// if there are too many.
//
// An id may contain the encrypted record ([NewSealed]) and be up to 1 KB long. If the implementation uses a network, a process
// may notice a Change or an End by another process up to two seconds late. Every request calls Get, so Get uses what the
// process already knows. It uses the network only now and then, to make a session that is in use last longer (see Open).
type Sessions[S any] interface {
	// Open keeps a record until the given time. If the time is zero, it keeps the record until End is called or until the session
	// was not used for a week or more. It returns an id that cannot be guessed.
	Open(ctx context.Context, record *S, until time.Time) (id string, err error)
	// Get returns the record, or the error ErrUnknown or ErrAway.
	Get(ctx context.Context, id string) (*S, error)
	// Change calls change with a copy of the record, keeps the changed copy and returns it. Concurrent changes do not overwrite
	// each other: change may be called again with a newer record. The func may replace pointers, slices and maps in the record, but
	// must not write to what they refer to. The error is ErrUnknown, ErrAway or ErrLarge.
	Change(ctx context.Context, id string, change func(*S)) (*S, error)
	// End ends a session. An unknown id is not an error.
	End(ctx context.Context, id string) error
}

// Results keeps long results under handles. Only package results uses it. Safe for concurrent use.
//
// A result is removed when it is too old or when there are too many bytes. The implementation sets both bounds. If there are too many
// bytes, it removes the oldest result of the owner that uses the most bytes, so an owner cannot push out results of owners that use less.
//
// An R may have a part that cannot be encoded, such as a call that is being executed. In the process that called Keep, Get returns the
// pointer given to Keep. If the implementation uses a network, results stay in that process, and the other processes get copies.
type Results[R any] interface {
	// Keep keeps a result of the given size in bytes. It does not wait for other processes. It returns a handle that
	// cannot be guessed, or an empty handle if the result is too large. The data of r must not change after the call.
	Keep(owner string, r *R, size int) (handle string)
	// Get returns the result if it belongs to the owner; otherwise the error ErrUnknown or ErrAway. If the
	// result is in another process and cannot be encoded, the error is ErrElsewhere.
	Get(ctx context.Context, handle, owner string) (*R, error)
	// Grow adds size, in bytes, to the size of a result that this process has kept. Then results may be removed,
	// perhaps also this one. Grow ignores an unknown handle.
	Grow(handle string, size int)
	// Len returns the number of results that this process keeps.
	Len() int
}

// Once remembers which names were used. A name identifies one suspended call of package front, or one login of package connect,
// or the code of this login. Each package makes its names unique. Safe for concurrent use.
//
// A name is forgotten at the time given with it, or when there are too many names: first the one with the earliest time. A
// forgotten name can be used again.
//
// If the implementation uses a network, Redeem waits for the common store, and fails if it cannot be reached.
type Once interface {
	// Redeem uses up a name. Of all callers in all processes, only one gets fresh = true. The only error is ErrAway: then the
	// name may or may not have been used up, and the caller must refuse the request.
	Redeem(ctx context.Context, name string, until time.Time) (fresh bool, err error)
}

// Counters counts what callers use, as buckets of tokens that fill over time. Only package limits uses it. Safe for
// concurrent use.
//
// A bucket is full at its first use and after its Flow has changed. A bucket that was not used for long may be
// forgotten, and is full at its next use.
//
// Every call of a tool uses Take and Charge, so they do not wait and cannot fail. If the implementation uses a network, each process
// takes from its own copy of a bucket and learns a little later what others took. The implementation documents by how much all processes
// together may exceed a Flow.
type Counters interface {
	// Take takes the tokens from all buckets or from none. If some buckets lack a whole token, short is the index of
	// the first of them, and wait is the time until that bucket has one. Otherwise short is -1.
	Take(from []Draw) (short int, wait time.Duration)
	// Charge takes tokens even from a bucket that has too few, because the size of a result is known only after the
	// call. A negative number gives tokens back.
	Charge(to []Draw)
	// Taken returns, for each bucket of this process that is not full, the tokens that are missing.
	Taken() []Draw
}

// Draw is a number of tokens to take from one bucket. If Tokens is 0, [Counters.Take] takes none, but still needs a
// whole token in the bucket.
type Draw struct {
	// What says what the bucket counts, such as calls of a principal; it has only a few values. Whose says whose bucket it is. Callers
	// can make up values of Whose, so an implementation limits the number of buckets for each What separately.
	What, Whose string
	Flow        Flow
	Tokens      float64
	// Remote means that another process has taken the tokens. Its Flow may differ from the Flow with which this process uses the bucket,
	// because the processes get a changed config one after the other. Then the bucket goes on with the Flow of this process. Only a
	// change of the Flow in this process fills the bucket.
	Remote bool

	bucket *Bucket // set only by Counters in memory, during Take and Charge
}
