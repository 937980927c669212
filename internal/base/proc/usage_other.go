//go:build !linux

package proc

// Usage returns false: only Linux says what processes use.
func Usage() (all map[int]Used, ok bool) { return nil, false }
