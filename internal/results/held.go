package results

import "context"

// A call that takes longer than its client waits gets a handle, as a long result does. The handle of a call is valid only in
// this process. It serves to wait for the result, not to read parts of it.

// Hold keeps a running call of this process for its principal and returns its handle.
func (p Pages) Hold(value any) (handle string) {
	return p.Store.kept.Keep(p.Principal, &Kept{held: value, origin: p.Origin}, handleBytes)
}

// Held finds a running call by its handle. It finds only calls of this principal, and only if the principal may still call the
// tool.
func (p Pages) Held(ctx context.Context, handle string) (value any, origin Origin, ok bool) {
	kept, err := p.Store.kept.Get(ctx, handle, p.Principal)
	if err != nil || kept.held == nil || !p.MayRead(ctx, kept.origin) {
		return nil, Origin{}, false
	}
	return kept.held, kept.origin, true
}

// Grow adds to the size of what a handle keeps. Other handles may be dropped to make room.
func (s *Store) Grow(handle string, size int) { s.kept.Grow(handle, size) }
