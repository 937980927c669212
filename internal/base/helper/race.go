//go:build race

package helper

// raceEnabled is true in builds with the race detector. The detector maps much more memory than the program uses, so these builds
// set no RLIMIT_DATA.
const raceEnabled = true
