//go:build race

package proc

// raceEnabled: the race detector's own memory is not what is measured.
const raceEnabled = true
