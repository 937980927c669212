// Package statetest tests implementations of the interfaces of package state against their contracts.
//
// Each test calls a function doors, which returns two instances of the implementation, here and there. They behave
// like the stores of two processes that share their state. For an implementation in memory, both are the same
// instance.
package statetest

import (
	"testing"
	"time"
)

// Record is a record for tests. A store must return it unchanged.
type Record struct {
	Name   string            `json:"name"`
	Number int               `json:"number"`
	Parts  map[string]string `json:"parts,omitempty"`
	Until  time.Time         `json:"until"`
}

func record(name string) *Record {
	return &Record{Name: name, Parts: map[string]string{"a": `<&> "é"`}, Until: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
}

// maxDelay is how long it may take until one process sees a change made by another. It is twice the time in the
// contracts of package state, in case the machine is busy.
const maxDelay = 4 * time.Second

// soon waits until a condition is true. If that takes longer than maxDelay, the test fails.
func soon(t *testing.T, what string, cond func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(maxDelay); !cond(); <-look.C {
		if time.Now().After(end) {
			t.Errorf("after %v not so: %s", maxDelay, what)
			return
		}
	}
}

// run runs each test with new instances.
func run[D any](t *testing.T, doors func(*testing.T) (here, there D), tests map[string]func(*testing.T, D, D)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			here, there := doors(t)
			test(t, here, there)
		})
	}
}
