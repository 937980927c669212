//go:build race

package helper

// raceEnabled is true in builds with the race detector, which maps several times as much memory.
const raceEnabled = true
