//go:build race

package schemats

// raceFactor is how much longer things may take in this build: the race detector
// makes scanning text some ten times slower.
const raceFactor = 10
