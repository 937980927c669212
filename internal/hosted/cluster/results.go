package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/state"
)

const (
	kindResult = "result"
	// maxResult is the size in bytes of the largest result that another replica gets.
	maxResult = 64 << 20
	// copyAge and maxCopies limit the copies of results of other replicas. The copies are for callers that read a result in several
	// parts. copyAge is how long a copy is kept, and maxCopies is the maximum size, in bytes, of all copies together.
	copyAge   = time.Minute
	maxCopies = 128 << 20
	// handleStart is the first letter of a handle that all replicas understand. After it come the ID of the replica that has the
	// result, and the handle that this replica has given the result.
	handleStart = "r"
)

// results implement [state.Results] for all replicas together. A result stays in the replica that made it. Its handle names this
// replica, so the other replicas know whom to ask for a copy.
type results[R any] struct {
	state.Results[R]
	c *Cluster

	mu     sync.Mutex
	copies map[wanted]*copied[R]
	bytes  int
}

// wanted identifies a result. It is also the question to the replica that has the result. In a question, Handle is the handle
// within that replica. In the keys of results.copies, Handle is the handle that all replicas understand.
type wanted struct {
	Handle string `json:"handle"`
	Owner  string `json:"owner"`
}

type copied[R any] struct {
	result *R
	size   int
}

// NewResults makes the results in local readable in all replicas. A running call cannot be copied, because its R is encoded as
// null: Get returns [state.ErrElsewhere] for it in the other replicas.
func NewResults[R any](c *Cluster, local state.Results[R]) state.Results[R] {
	s := &results[R]{Results: local, c: c, copies: make(map[wanted]*copied[R])}
	c.Answer(kindResult, func(ctx context.Context, _ string, data []byte, write func([]byte) error) error {
		var w wanted
		if err := json.Unmarshal(data, &w); err != nil {
			return err
		}
		r, err := local.Get(ctx, w.Handle, w.Owner)
		if err != nil {
			return err
		}
		text, err := json.Marshal(r)
		if err == nil && len(text) > maxResult {
			err = state.ErrUnknown
		}
		if err != nil {
			return err
		}
		return write(text)
	})
	return s
}

// Keep keeps a result in this replica, and returns a handle that all replicas understand. The handle is "" if the result is not
// kept.
func (s *results[R]) Keep(owner string, r *R, size int) (handle string) {
	if handle = s.Results.Keep(owner, r, size); handle == "" {
		return ""
	}
	return handleStart + s.c.self + handle
}

// Grow adds size to the size of a result that this replica has.
func (s *results[R]) Grow(handle string, size int) {
	if replica, of := split(handle, len(s.c.self)); replica == s.c.self {
		s.Results.Grow(of, size)
	}
}

// split returns the two parts of a handle: the ID of the replica that has the result, and the handle within that replica (of).
// length is the length of an ID. Both parts are empty if the handle is malformed.
func split(handle string, length int) (replica, of string) {
	rest, ok := strings.CutPrefix(handle, handleStart)
	if !ok || len(rest) <= length {
		return "", ""
	}
	return rest[:length], rest[length:]
}

// Get returns the result with this handle. If another replica has the result, Get asks it for a copy, and keeps the copy for
// copyAge.
func (s *results[R]) Get(ctx context.Context, handle, owner string) (*R, error) {
	replica, of := split(handle, len(s.c.self))
	if replica == s.c.self {
		return s.Results.Get(ctx, of, owner)
	}
	w := wanted{of, owner}
	key := wanted{handle, owner}
	if r := s.copyOf(key); r != nil {
		return r, nil
	}
	question, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	var text []byte
	for piece, err := range s.c.Ask(ctx, replica, kindResult, question) {
		if err == nil && len(text)+len(piece) > maxResult {
			err = state.ErrUnknown
		}
		if err != nil {
			return nil, unknownOrAway(ctx, err)
		}
		text = append(text, piece...)
	}
	if string(text) == "null" {
		return nil, state.ErrElsewhere
	}
	r := new(R)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	s.remember(key, &copied[R]{r, len(text)})
	return r, nil
}

// unknownOrAway turns an error of Ask into one that [state.Results] allows. The results of a replica that has ended are lost, so
// for them the error is [state.ErrUnknown].
func unknownOrAway(ctx context.Context, err error) error {
	remote := new(RemoteError)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, state.ErrAway):
		return state.ErrAway
	case errors.As(err, &remote), errors.Is(err, errGone), errors.Is(err, ErrUntaken), errors.Is(err, state.ErrUnknown):
		return state.ErrUnknown
	}
	return state.ErrAway
}

func (s *results[R]) copyOf(key wanted) *R {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.copies[key]; one != nil {
		return one.result
	}
	return nil
}

// remember keeps a copy for copyAge. If all copies together would then exceed maxCopies, it first removes the others.
func (s *results[R]) remember(key wanted, one *copied[R]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+one.size > maxCopies {
		clear(s.copies)
		s.bytes = 0
	}
	if old := s.copies[key]; old != nil { // another Get has fetched the same result meanwhile
		s.bytes -= old.size
	}
	s.copies[key] = one
	s.bytes += one.size
	time.AfterFunc(copyAge, func() { s.forget(key, one) })
}

func (s *results[R]) forget(key wanted, one *copied[R]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copies[key] == one {
		delete(s.copies, key)
		s.bytes -= one.size
	}
}
