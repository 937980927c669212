package results

import "context"

// A call that has outlasted its client's patience also has a handle. It only lives in this process, and cannot be paged.

// Hold keeps a call of this process for a principal and returns its handle.
func (s *Store) Hold(principal string, value any) (handle string) {
	return s.kept.Keep(principal, &Kept{held: value}, 0)
}

// Held finds a principal's call by its handle.
func (s *Store) Held(handle, principal string) (value any, ok bool) {
	kept, err := s.kept.Get(context.Background(), handle, principal)
	if err != nil || kept.held == nil {
		return nil, false
	}
	return kept.held, true
}

// Grow adds to the size of what a handle keeps. Other handles may be dropped to make room.
func (s *Store) Grow(handle string, size int) { s.kept.Grow(handle, size) }
