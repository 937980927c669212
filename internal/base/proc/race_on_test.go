//go:build race

package proc

// raceEnabled tells that the race detector adds its own memory to the reaper's, so a test must not check it. Package
// mcptest has such a constant too, but importing mcptest would make this test binary, which is also the measured
// reaper, larger.
const raceEnabled = true
