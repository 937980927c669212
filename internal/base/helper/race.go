//go:build race

package helper

// raceEnabled says that this is a build with the race detector, which maps several
// times as much as the program does.
const raceEnabled = true
