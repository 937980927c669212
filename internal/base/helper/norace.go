//go:build !race

package helper

const raceEnabled = false
