// Package state keeps the state of clients behind four doors: sessions, kept results, things that can be used once, and counters. Beside
// them is the one secret from which keys are derived. To serve the same clients from several processes, give each process doors to a
// common store and a common secret; no other package changes.
//
// What passes a door is data: it can be encoded as JSON, and a decoded copy is as good as the original.
//
// What lives in one process is not here. These are the streams, open requests and questions of a session, calls under way, sessions with
// upstreams that belong to single clients, the instance of a server that a client uses, connections, bodies that are being read, caches,
// and what the page shows of the last hour. A process finds the live part of a session by the session's id, and makes it anew if it has
// none.
package state

import (
	"context"
	"errors"
	"time"
)

// ErrUnknown is the error for an id or a handle that does not exist, does not exist any more, or belongs to another owner.
var ErrUnknown = errors.New("unknown, or ended")

// ErrAway is the error of a door whose store cannot be reached. The caller refuses the request and asks the client to try again. The
// implementations in memory never return it.
var ErrAway = errors.New("the state of clients cannot be reached now; try again")

// Sessions keep the records of sessions, each an S. Package front owns the sessions of legacy clients over HTTP, package page the ones of
// browsers; each has a door of its own. No caller writes to a record. Safe for concurrent use.
//
// An id proves nothing about the sender: the caller checks that the record belongs to the principal of the request.
//
// A session ends with End, or at the time given to Open. An implementation may bound the number of sessions; then the sessions that end
// first make room.
//
// Over a network, an id may contain the sealed record and be up to 2 KB long, and a process may learn of a Change or an End by another
// one up to two seconds late. Every request calls Get, so it answers from what the process knows already, and asks the network only for
// an id that the process has never seen.
type Sessions[S any] interface {
	// Open keeps a record until the given time, or until End if that is zero. It returns an id that cannot be guessed.
	Open(ctx context.Context, record *S, until time.Time) (id string, err error)
	// Get returns a record, ErrUnknown or ErrAway.
	Get(ctx context.Context, id string) (*S, error)
	// Change calls change with a copy of the record, keeps the changed copy and returns it. Changes do not overwrite each other: change
	// may be called again with a newer record. It may replace what the record refers to, but must not write into it. The errors are the
	// same as of Get.
	Change(ctx context.Context, id string, change func(*S)) (*S, error)
	// End ends a session. An unknown id is no error.
	End(ctx context.Context, id string, why Ending) error
}

// Ending says why a session ends.
type Ending int

const (
	// Closed means that nobody may use the session any more: the client or the user has ended it, its principal may not connect any
	// more, or its view is gone.
	Closed Ending = iota
	// Released means that this process lets go of the session, because it was idle here or because the process ends. An implementation
	// for several processes keeps the record for the others.
	Released
)

// Results keep long results under handles. Package results owns them. Safe for concurrent use.
//
// A result ends when it is too old or when its room is needed. The implementation sets both bounds. To make room it drops the oldest
// result of the owner that uses most, so no owner pushes out the results of one that uses less.
//
// An R may have a live part that is not encoded, such as a call under way. Get returns the pointer given to Keep in the process that
// kept it. Over a network, results stay in that process, and the others fetch copies.
type Results[R any] interface {
	// Keep keeps a result of the given size in bytes. It does not wait for other processes. It returns a handle that cannot be guessed,
	// or an empty one if the result is too large. The data of r must not change any more.
	Keep(owner string, r *R, size int) (handle string)
	// Get returns a result of an owner, ErrUnknown or ErrAway.
	Get(ctx context.Context, handle, owner string) (*R, error)
	// Grow adds to the size of a result that this process has kept. Results, this one too, may have to make room. An unknown handle is
	// ignored.
	Grow(handle string, size int)
	// Len returns the number of results that this process keeps.
	Len() int
}

// Once knows what was used up and what has ended: the codes, refresh tokens and logins of package authserver, and the states of parked
// calls of package front. A thing has a name, which its owner makes unique, and numbers from 0 up, which are used one after the other.
// Safe for concurrent use.
//
// A name is forgotten at the time given with it, or when there are too many names: first the ones that have not ended, and among them the
// ones with the earliest time. A number of a forgotten name can be used again.
//
// Over a network, Redeem and End wait for the common store and fail if it is away. Standing learns of the End of another process within
// two seconds.
type Once interface {
	// Redeem uses up a number of a name, and all numbers below it. Of all callers in all processes, one gets fresh. A number above the
	// known ones is fresh as well, since only the owner can have made it. A number that was used before ends the name: either it was
	// stolen, or the next one was. The only error is ErrAway: the number may be used up then, and the caller must refuse it.
	Redeem(ctx context.Context, name string, number int, until time.Time) (fresh bool, err error)
	// End ends a name, known or not: none of its numbers is fresh any more. The only error is ErrAway.
	End(ctx context.Context, name string, until time.Time) error
	// Standing returns a context that ends with ctx or when the name ends; nil if the name has ended. For an unknown name it returns
	// ctx. Many requests call it, so it does not wait.
	Standing(ctx context.Context, name string) context.Context
}

// Counters count what callers use, as buckets of tokens that fill over time. Package limits owns them. Safe for concurrent use.
//
// A bucket is full at its first use and after its flow has changed. A bucket that was not used for long may be forgotten; then it is full
// at its next use.
//
// Every call uses both methods, so they do not wait and cannot fail. Over a network, each process takes its share of a bucket in advance;
// the implementation documents by how much all processes together may exceed a flow.
type Counters interface {
	// Take takes from all buckets or from none. If a bucket lacks a whole token, short is the index of the first such one, and wait the
	// time until it has a token. Otherwise short is -1.
	Take(from []Draw) (short int, wait time.Duration)
	// Charge takes tokens even if they are not there, as the size of a result is known only afterwards. Negative tokens give back.
	Charge(to []Draw)
}

// Draw is a number of tokens of one bucket. In [Counters.Take], 0 takes none but still needs a whole token in the bucket.
type Draw struct {
	// What names what the bucket counts, one of a few names; Whose names the bucket among them. Callers can make up new values of Whose,
	// so an implementation bounds the buckets of each What apart.
	What, Whose string
	Flow        Rate
	Tokens      float64

	bucket *Bucket // in memory, during Take and Charge
}
