//go:build !linux

package page

// ownPeer always returns true: it cannot find out who has opened a connection. This does no harm here, since other users cannot read the
// link in the arguments of a browser: macOS gets the link over a pipe, and Windows hides arguments from other users.
func ownPeer(_, _ string) bool { return true }
