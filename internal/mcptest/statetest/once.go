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
		"names": onceNames, "one of many": onceRaced, "many at once": onceMany,
	})
}

func redeems(t *testing.T, o state.Once, name string) bool {
	t.Helper()
	fresh, err := o.Redeem(context.Background(), name, time.Now().Add(time.Hour))
	if err != nil {
		t.Errorf("redeeming: %v", err)
	}
	return fresh
}

func onceNames(t *testing.T, here, there state.Once) {
	for _, name := range []string{"a", "b", "", "a b/c é"} {
		if !redeems(t, here, name) {
			t.Errorf("%q is not apart from others", name)
		}
		if redeems(t, there, name) || redeems(t, here, name) {
			t.Errorf("%q is fresh twice", name)
		}
	}
}

func onceRaced(t *testing.T, here, there state.Once) {
	for i := range 20 {
		var fresh atomic.Int32
		var all sync.WaitGroup
		for _, door := range []state.Once{here, there, here, there, here, there} {
			all.Go(func() {
				if redeems(t, door, fmt.Sprint(i)) {
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
				if !redeems(t, door, fmt.Sprint(i, " ", j)) {
					t.Error("a name of its own is not fresh")
				}
			}
		})
	}
	all.Wait()
}
