package statetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/state"
)

// Once tests an implementation of [state.Once] that can store a few hundred names. For doors, see the package
// comment.
func Once(t *testing.T, doors func(t *testing.T) (here, there state.Once)) {
	run(t, doors, map[string]func(*testing.T, state.Once, state.Once){
		"numbers": onceNumbers, "a second use": onceTwice, "one of many": onceRaced, "many at once": onceMany,
	})
}

func redeems(t *testing.T, o state.Once, name string, number int) bool {
	t.Helper()
	fresh, err := o.Redeem(context.Background(), name, number, time.Now().Add(time.Hour))
	if err != nil {
		t.Errorf("redeeming: %v", err)
	}
	return fresh
}

func onceNumbers(t *testing.T, here, there state.Once) {
	for i, door := range []state.Once{here, there, here, here} {
		if !redeems(t, door, "a", i) {
			t.Errorf("%d is not fresh", i)
		}
	}
	if !redeems(t, there, "a", 9) { // accepted although lower numbers were not seen: only the owner of the name can have made it
		t.Error("a number is not fresh that nobody has seen")
	}
	if !redeems(t, here, "b", 0) || !redeems(t, here, "", 0) || !redeems(t, here, "a b/c é", 0) {
		t.Error("a name is not apart from others")
	}
	if redeems(t, there, "a", 4) {
		t.Error("a number below one that was used is fresh")
	}
}

func onceTwice(t *testing.T, here, there state.Once) {
	if !redeems(t, here, "a", 0) || !redeems(t, here, "a", 1) || redeems(t, there, "a", 0) {
		t.Error("a number is fresh twice")
	}
	// This token or the next one was stolen, so no token of the name is valid any more.
	if redeems(t, here, "a", 2) || redeems(t, there, "a", 3) {
		t.Error("the name goes on")
	}
}

func onceRaced(t *testing.T, here, there state.Once) {
	for i := range 20 {
		var fresh atomic.Int32
		var all sync.WaitGroup
		for _, door := range []state.Once{here, there, here, there, here, there} {
			all.Go(func() {
				if redeems(t, door, fmt.Sprint(i), 0) {
					fresh.Add(1)
				}
			})
		}
		all.Wait()
		if n := fresh.Load(); n != 1 {
			t.Errorf("%d have redeemed it", n)
		}
	}
}

func onceMany(t *testing.T, here, there state.Once) {
	var all sync.WaitGroup
	for i, door := range []state.Once{here, there, here, there} {
		all.Go(func() {
			for j := range 50 {
				name := fmt.Sprint(i, " ", j)
				if !redeems(t, door, name, 0) || !redeems(t, door, name, 1) {
					t.Error("a number of a name of its own is not fresh")
				}
			}
		})
	}
	all.Wait()
}
