//go:build race

package proc

// raceEnabled: the race detector's own memory is not what is measured. Package mcptest says so too, but with it this
// binary would be larger, which is the reaper that is measured.
const raceEnabled = true
