//go:build !race

package main

// raceEnabled says that the test was built with the race detector.
const raceEnabled = false
