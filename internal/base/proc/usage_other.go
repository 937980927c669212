//go:build !linux

package proc

// Usage works only on Linux.
func Usage() (all map[int]Used, ok bool) { return nil, false }
