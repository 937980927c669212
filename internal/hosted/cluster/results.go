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
	// mostResult is the size of the largest result that another replica gets.
	mostResult = 64 << 20
	// copyAge and mostCopies bound what a replica keeps of results of others: as long as somebody may read on in one.
	copyAge    = time.Minute
	mostCopies = 128 << 20
	// handleStart is the first letter of a handle. The id of the replica follows, then what the replica has chosen.
	handleStart = "r"
)

// results implement [state.Results]. A result stays in the replica that has kept it. Its handle names the replica, which the
// others ask for a copy.
type results[R any] struct {
	state.Results[R]
	c *Cluster

	mu     sync.Mutex
	copies map[wanted]*copied[R]
	bytes  int
}

// wanted is also the question to the other replica.
type wanted struct {
	Handle string `json:"handle"`
	Owner  string `json:"owner"`
}

type copied[R any] struct {
	result *R
	size   int
}

// NewResults makes results that are kept in local readable in all replicas. An R that is encoded as null is not data: for it, Get
// returns a [state.Elsewhere] in the other replicas.
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
		if err == nil && len(text) > mostResult {
			err = state.ErrUnknown
		}
		if err != nil {
			return err
		}
		return write(text)
	})
	return s
}

// Keep implements [state.Results].
func (s *results[R]) Keep(owner string, r *R, size int) (handle string) {
	if handle = s.Results.Keep(owner, r, size); handle == "" {
		return ""
	}
	return handleStart + s.c.self + handle
}

// Grow implements [state.Results].
func (s *results[R]) Grow(handle string, size int) {
	if replica, of := split(handle, len(s.c.self)); replica == s.c.self {
		s.Results.Grow(of, size)
	}
}

// split returns the replica that has a result, and the handle that it knows.
func split(handle string, length int) (replica, of string) {
	rest, ok := strings.CutPrefix(handle, handleStart)
	if !ok || len(rest) <= length {
		return "", ""
	}
	return rest[:length], rest[length:]
}

// Get implements [state.Results].
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
		if err == nil && len(text)+len(piece) > mostResult {
			err = state.ErrUnknown
		}
		if err != nil {
			return nil, unknownOrAway(ctx, err)
		}
		text = append(text, piece...)
	}
	if string(text) == "null" {
		return nil, &state.Elsewhere{Replica: replica}
	}
	r := new(R)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	s.remember(key, &copied[R]{r, len(text)})
	return r, nil
}

// unknownOrAway returns the error of the contract: a replica that has ended has taken its results with it.
func unknownOrAway(ctx context.Context, err error) error {
	remote := new(RemoteError)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, state.ErrAway):
		return state.ErrAway
	case errors.As(err, &remote), errors.Is(err, ErrGone), errors.Is(err, ErrUntaken), errors.Is(err, state.ErrUnknown):
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

// remember keeps a copy for copyAge. If there are too many bytes, it first removes all others.
func (s *results[R]) remember(key wanted, one *copied[R]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+one.size > mostCopies {
		clear(s.copies)
		s.bytes = 0
	}
	if old := s.copies[key]; old != nil { // of a call at the same time
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
