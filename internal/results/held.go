package results

import "context"

// A call whose client has stopped waiting for it is under a handle too. It lives in this process: no page is made of it, and no other
// process can go on with it.

// Hold keeps a value of this process, a call that goes on, for a principal and returns its handle. No page is made of it.
func (s *Store) Hold(principal string, value any) (handle string) {
	return s.kept.Keep(principal, &Kept{held: value}, 0)
}

// Held finds a value of a principal by its handle.
func (s *Store) Held(handle, principal string) (value any, ok bool) {
	kept, err := s.kept.Get(context.Background(), handle, principal)
	if err != nil || kept.held == nil {
		return nil, false
	}
	return kept.held, true
}

// Grow adds to the size of what a handle keeps. That of another handle may be dropped for
// it.
func (s *Store) Grow(handle string, size int) { s.kept.Grow(handle, size) }
