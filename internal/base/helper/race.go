//go:build race

package helper

// raceEnabled is true in builds with the race detector. It maps several times as much memory, so such builds set no RLIMIT_DATA.
const raceEnabled = true
