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
		"numbers": onceNumbers, "a second use": onceTwice, "the end": onceEnded, "one of many": onceRaced, "standing": onceStanding,
		"standing of several": onceParents, "many at once": onceMany,
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
	soon(t, "the name has ended for requests", func() bool {
		return here.Standing(t.Context(), "a") == nil && there.Standing(t.Context(), "a") == nil
	})
}

func onceEnded(t *testing.T, here, there state.Once) {
	if !redeems(t, here, "known", 0) {
		t.Error("it is not fresh")
	}
	for _, name := range []string{"known", "unknown"} {
		for range 2 {
			if err := here.End(t.Context(), name, time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}
		if here.Standing(t.Context(), name) != nil || redeems(t, here, name, 5) || redeems(t, there, name, 6) {
			t.Errorf("%s goes on", name)
		}
		soon(t, "it has ended there", func() bool { return there.Standing(t.Context(), name) == nil })
	}
	if here.Standing(t.Context(), "another") == nil {
		t.Error("another has ended too")
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

func onceStanding(t *testing.T, here, there state.Once) {
	server, stop := context.WithCancel(t.Context())
	unknown := here.Standing(server, "unknown")
	redeems(t, here, "a", 0)
	redeems(t, here, "b", 0)
	soon(t, "a is known there", func() bool { s := there.Standing(server, "a"); return s != nil && s != server })
	a, again, elsewhere, b := here.Standing(server, "a"), here.Standing(server, "a"), there.Standing(server, "a"), here.Standing(server, "b")
	for name, ctx := range map[string]context.Context{"unknown": unknown, "a": a, "a again": again, "a there": elsewhere, "b": b} {
		if ctx == nil || ctx.Err() != nil {
			t.Fatalf("%s does not stand", name)
		}
	}
	if err := here.End(t.Context(), "a", time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if a.Err() == nil || again.Err() == nil || b.Err() != nil || unknown.Err() != nil {
		t.Error("the end of a ended something else, or not a")
	}
	soon(t, "requests there have ended", func() bool { return elsewhere.Err() != nil })
	stop()
	if b.Err() == nil || unknown.Err() == nil {
		t.Error("a context outlives the one that it was made from")
	}
}

// onceParents: a context made for one server does not end when another server's context does.
func onceParents(t *testing.T, here, _ state.Once) {
	redeems(t, here, "a", 0)
	first, stop := context.WithCancel(t.Context())
	second, stopSecond := context.WithCancel(t.Context())
	defer stopSecond()
	one, two := here.Standing(first, "a"), here.Standing(second, "a")
	stop()
	if one.Err() == nil || two.Err() != nil {
		t.Error("the first server ended the requests of the second, or not its own")
	}
	three := here.Standing(second, "a")
	if three == nil || three.Err() != nil {
		t.Error("no request can begin at the second server")
	}
	if err := here.End(t.Context(), "a", time.Now().Add(time.Hour)); err != nil || two.Err() == nil || three.Err() == nil {
		t.Errorf("the requests of the second server go on: %v", err)
	}
}

func onceMany(t *testing.T, here, there state.Once) {
	var all sync.WaitGroup
	for i, door := range []state.Once{here, there, here, there} {
		all.Go(func() {
			for j := range 50 {
				name := fmt.Sprint(i, " ", j)
				if !redeems(t, door, name, 0) || !redeems(t, door, name, 1) || door.Standing(t.Context(), name) == nil {
					t.Error("a name of its own does not stand")
				}
				if err := door.End(t.Context(), fmt.Sprint("all ", j), time.Now().Add(time.Hour)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
