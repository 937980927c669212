// Package state is where the state of clients lies: behind four doors and one secret. Several processes that are to serve the same
// clients get other implementations of the doors and a common secret, and nothing else changes.
//
// What passes a door is data: it can be encoded as JSON, and a copy of it in another process is as good. What lives in a process
// stays out of here, with a comment at its place: streams, open requests and questions of a session, calls under way, sessions with
// upstreams (those of single clients too, and which instance of a server a client uses), connections, bodies that are being read,
// caches, and what the page shows of the last hour. A process finds the live part of a session or a result by its id, and makes it
// anew where another process has the old one.
package state

import (
	"context"
	"errors"
	"time"
)

// ErrUnknown is the error of an id or a handle that the door does not have: it never had it, it has ended, or it is another owner's.
var ErrUnknown = errors.New("unknown, or ended")

// ErrAway is the error of a door that cannot tell now, as what is behind it cannot be reached. The caller refuses what it was asked
// for, as a thing to try again. An implementation in memory never returns it.
var ErrAway = errors.New("the state of clients cannot be reached now; try again")

// Sessions keep what a session is, as records of the type S, which no caller writes to. Package front owns those of legacy clients
// over HTTP, and package page those of browsers, each with sessions of its own. Who uses a session checks itself that the record is of
// the principal that asks: an id proves nothing. Safe for concurrent use.
//
// A session ends with End, or at the time that Open got. An implementation may keep only so many, and end the ones that end first.
//
// Over a network the record may be sealed into its id, which then has up to 2 KB; and another process may hear of a Change or an End
// up to two seconds late. Get is part of each request: it answers from what the process knows, unless that is nothing.
type Sessions[S any] interface {
	// Open keeps a record, at the zero time until End, and returns its id, which nobody can guess.
	Open(ctx context.Context, record *S, until time.Time) (id string, err error)
	// Get returns the record; or ErrUnknown, or ErrAway.
	Get(ctx context.Context, id string) (*S, error)
	// Change lets change write to a copy of the record, and keeps that. No other change comes between the two, so that change may be
	// called again; it must not write into what the record refers to. The errors are those of Get.
	Change(ctx context.Context, id string, change func(*S)) (*S, error)
	// End ends a session. It is no error if there is none.
	End(ctx context.Context, id string, why Ending) error
}

// Ending says why a session ends.
type Ending int

const (
	// Closed: the client or the user has ended it, its principal may not come back, or its view is gone.
	Closed Ending = iota
	// Released: this process lets go of it, as it has not seen it for long or is about to end. An implementation for several
	// processes keeps the session for them.
	Released
)

// Results keep results that clients may come back for, under handles. Package results owns them. Safe for concurrent use.
//
// A result ends when it is too old, or when there is no room: then it is the oldest of the owner that has most, so that no owner
// pushes out the results of others who have less. Both bounds are the implementation's.
//
// R may have a live part, which is not encoded, such as a call under way: Get returns it in the process that has kept it, as there
// it returns the pointer that Keep got. Over a network results stay where they were kept, and others ask for copies, in pieces.
type Results[R any] interface {
	// Keep keeps a result of so many bytes for its owner, in this process and at once, and returns its handle, which nobody can guess;
	// empty if it is too large. No caller writes to the data of r any more.
	Keep(owner string, r *R, size int) (handle string)
	// Get returns the result of an owner; or ErrUnknown, or ErrAway.
	Get(ctx context.Context, handle, owner string) (*R, error)
	// Grow adds to the size of a result that this process has kept. Others, and itself, may have to make room. It does nothing if
	// there is no such result.
	Grow(handle string, size int)
	// Len is how many results this process keeps.
	Len() int
}

// Once knows what was redeemed, and what has ended: authorization codes, refresh tokens and the logins that they belong to, and the
// states of calls that wait for their clients. Each thing has a name, which its owner chooses so that no other has it, and numbers
// from 0 up, of which one follows the other. Safe for concurrent use.
//
// A name is forgotten at its time, or if there are too many: first those that have not ended, and among them the ones whose time
// comes first. A number of a name that was forgotten can be redeemed again.
//
// Over a network Redeem and End wait for the others, and fail while they cannot be reached; Standing learns of the End of another
// process within two seconds.
type Once interface {
	// Redeem uses up a number of a name, and all below it. fresh is true for one caller alone. A number that was used before ends the
	// name: it was stolen, or the next one was. A number beyond those that are known is fresh too, as only the owner can make it.
	// With an error, which is ErrAway, the number may be used up, and the caller must not act on it.
	Redeem(ctx context.Context, name string, number int, until time.Time) (fresh bool, err error)
	// End ends a name, which need not be known: none of its numbers is fresh any more. Its error is ErrAway.
	End(ctx context.Context, name string, until time.Time) error
	// Standing returns a context that ends with ctx, or when the name ends; nil if it has ended. A name that is not known is as good
	// as ctx. It is part of each request, and waits for nothing.
	Standing(ctx context.Context, name string) context.Context
}

// Counters count what callers use, in buckets of tokens that fill by themselves. Package limits owns them. Safe for concurrent use.
//
// A bucket is made full at its first use, and again when its flow has changed. One that was not used for long may be forgotten, which
// is as if it were full.
//
// Both methods are part of each call, so they wait for nothing and cannot fail. Over a network a process takes its share of each
// bucket in advance; how much more is taken than the flow allows, the implementation says.
type Counters interface {
	// Take takes from all of the buckets, or from none. If a bucket lacks a whole token, short is its index in from, the first such,
	// and wait the time until it has one. Else short is -1.
	Take(from []Draw) (short int, wait time.Duration)
	// Charge takes tokens whether or not they are there: the size of a result is known only when the result is there. Fewer than 0
	// give back.
	Charge(to []Draw)
}

// Draw is so many tokens of one bucket; 0 in [Counters.Take] only asks for a whole token.
type Draw struct {
	// What the bucket counts, one of a few, and Whose it is. Callers may make up the second: an implementation bounds those of each
	// What apart.
	What, Whose string
	Flow        Flow
	Tokens      float64

	bucket *Bucket // in memory, during Take and Charge
}
