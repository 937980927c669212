//go:build !race

package schemats

// raceFactor is how much longer things may take in this build.
const raceFactor = 1
