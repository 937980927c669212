package results

import "context"

// A call that takes longer than its client waits gets a handle, as a long result does. The handle of a call is valid only in this
// process. The client uses it to wait for the result, and cannot read parts of the result with it.

// Hold keeps value, which is a running call of this process, for the principal of p. It returns a handle for the call.
func (p Pages) Hold(value any) (handle string) {
	return p.Store.kept.Keep(p.Principal, &Kept{held: value, origin: p.Origin}, handleBytes)
}

// Held finds the call that [Pages.Hold] has kept under a handle; the call may have ended since. The error is a [RefusedError] if
// the handle is of no call of this principal in this process, or if the principal may no longer call the tool.
func (p Pages) Held(ctx context.Context, handle string) (value any, origin Origin, err error) {
	kept, err := p.Store.kept.Get(ctx, handle, p.Principal)
	switch {
	case err == nil && kept.held != nil && p.MayRead(ctx, kept.origin):
		return kept.held, kept.origin, nil
	case err == nil && kept.result != nil && p.MayRead(ctx, kept.result.origin):
		return nil, Origin{}, &RefusedError{"/handle: is the handle of a result, not of a call; " + Tool + " reads it"}
	}
	return nil, Origin{}, &RefusedError{"/handle: is unknown or has expired"}
}

// Grow records that the call under a handle has ended, and that its result has size bytes. If the store then holds more than it
// may, it drops some of what it keeps. This may be what it keeps under the handle itself.
func (s *Store) Grow(handle string, size int) { s.kept.Grow(handle, size) }
