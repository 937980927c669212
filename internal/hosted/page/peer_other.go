//go:build !linux

package page

// ownPeer cannot tell whose a connection is. Here the link stands in no arguments that other users can read: macOS gets it over a pipe, and
// Windows keeps arguments from them.
func ownPeer(_, _ string) bool { return true }
