//go:build !race

package jq

// raceEnabled says that the detector's memory is in what is measured.
const raceEnabled = false
