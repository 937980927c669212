// Package statetest holds implementations of the doors of package state to their contracts.
//
// Each test gets two doors of one implementation, of two processes that share their state: here and there. In memory both are the same.
package statetest

import (
	"testing"
	"time"
)

// Record is a record for tests. The doors must return it as it was.
type Record struct {
	Name   string            `json:"name"`
	Number int               `json:"number"`
	Parts  map[string]string `json:"parts,omitempty"`
	Until  time.Time         `json:"until"`
}

func record(name string) *Record {
	return &Record{Name: name, Parts: map[string]string{"a": `<&> "é"`}, Until: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
}

// heard is how long a process may take to learn what another has done: twice what the contracts say, for a busy machine.
const heard = 4 * time.Second

// soon waits until something is so.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(heard); !is(); <-look.C {
		if time.Now().After(end) {
			t.Errorf("after %v not so: %s", heard, what)
			return
		}
	}
}
