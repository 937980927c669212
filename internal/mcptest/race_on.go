//go:build race

package mcptest

// Race reports whether the test was built with the race detector.
const Race = true
