//go:build !race

package mcptest

// Race says that the test was built with the race detector.
const Race = false
