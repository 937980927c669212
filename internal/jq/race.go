//go:build race

package jq

// raceEnabled says that this is a build with the race detector, which maps several
// times of what the program does.
const raceEnabled = true
