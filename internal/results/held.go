package results

// Held values are those of others, under a handle: no page is made of them.

// Hold keeps a value for a principal and returns its handle.
func (s *Store) Hold(principal string, value any) (handle string) {
	return s.add(&result{principal: principal, held: value})
}

// Held finds a value of a principal by its handle.
func (s *Store) Held(handle, principal string) (value any, ok bool) {
	h, ok := s.get(handle, principal)
	if !ok || h.held == nil {
		return nil, false
	}
	return h.held, true
}

// Grow adds to the size of what a handle keeps. That of another handle may be dropped for
// it.
func (s *Store) Grow(handle string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.byID[handle]
	if !ok {
		return
	}
	h.size += size
	s.grow(h.principal, size)
	s.makeRoom()
}
