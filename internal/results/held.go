package results

import "context"

// A call that has outlasted its client's patience also has a handle. It only lives in this process, and cannot be paged.

// Hold keeps a call of this process for its principal and returns its handle.
func (p Pages) Hold(value any) (handle string) {
	return p.Store.kept.Keep(p.Principal, &Kept{held: value, origin: p.Origin}, handleBytes)
}

// Held finds a call by its handle. Its reader must be its principal, and allowed to call the tool still.
func (p Pages) Held(handle string) (value any, of Origin, ok bool) {
	kept, err := p.Store.kept.Get(context.Background(), handle, p.Principal)
	if err != nil || kept.held == nil || !p.MayRead(kept.origin) {
		return nil, Origin{}, false
	}
	return kept.held, kept.origin, true
}

// Grow adds to the size of what a handle keeps. Other handles may be dropped to make room.
func (s *Store) Grow(handle string, size int) { s.kept.Grow(handle, size) }
