package statetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/base/state"
)

// Results tests an implementation of [state.Results]. limit, the argument of doors, is how many bytes the store may keep. For
// doors, see the package comment.
func Results(t *testing.T, doors func(t *testing.T, limit int) (here, there state.Results[Record])) {
	bounded := func(t *testing.T) (here, there state.Results[Record]) { return doors(t, maxBytes) }
	run(t, bounded, map[string]func(*testing.T, state.Results[Record], state.Results[Record]){
		"a result is what was kept": resultKept, "owners": resultOwned, "room": resultRoom, "a fair room": resultFair, "growth": resultGrown,
		"many at once": resultMany,
	})
}

const maxBytes = 1000

// reads reports whether an owner can read a result. Any error except ErrUnknown fails the test.
func reads(t *testing.T, r state.Results[Record], handle, owner string) bool {
	t.Helper()
	_, err := r.Get(context.Background(), handle, owner)
	if err != nil && !errors.Is(err, state.ErrUnknown) {
		t.Errorf("getting: %v", err)
	}
	return err == nil
}

func resultKept(t *testing.T, here, there state.Results[Record]) {
	want := record("a")
	handle := here.Keep("alice", want, 10)
	if got, err := here.Get(t.Context(), handle, "alice"); err != nil || got != want {
		t.Errorf("here: %+v, %v", got, err)
	}
	if got, err := there.Get(t.Context(), handle, "alice"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("there: %+v, %v", got, err)
	}
	if len(handle) < 20 || handle == here.Keep("alice", want, 10) || here.Len() != 2 {
		t.Errorf("handle %s, %d are kept", handle, here.Len())
	}
	// A handle must be safe in JSON, and easy to copy for models, so it has only lower-case letters and digits.
	if strings.Trim(handle, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		t.Errorf("handle %s", handle)
	}
}

func resultOwned(t *testing.T, here, there state.Results[Record]) {
	handle, nobodys := here.Keep("alice", record("a"), 10), here.Keep("", record("b"), 10)
	for _, door := range []state.Results[Record]{here, there} {
		for _, one := range []struct{ handle, owner string }{
			{handle, "bob"}, {handle, ""}, {nobodys, "alice"}, {"", "alice"}, {handle + "x", "alice"}, {handle[1:], "alice"},
		} {
			if reads(t, door, one.handle, one.owner) {
				t.Errorf("%q reads %s", one.owner, one.handle)
			}
		}
		if !reads(t, door, nobodys, "") || !reads(t, door, handle, "alice") {
			t.Error("the owner does not read it")
		}
	}
}

// resultRoom: the total size is bounded. The oldest results are removed to make room, and a result larger than the
// bound is not kept.
func resultRoom(t *testing.T, here, _ state.Results[Record]) {
	var handles []string
	put := func(size int, want ...int) {
		t.Helper()
		handle := here.Keep("", record("a"), size)
		if (handle == "") != (size > maxBytes) {
			t.Errorf("%d bytes: handle %q", size, handle)
		}
		handles = append(handles, handle)
		var kept []int
		for i, handle := range handles {
			if reads(t, here, handle, "") {
				kept = append(kept, i)
			}
		}
		if fmt.Sprint(kept) != fmt.Sprint(want) || here.Len() != len(want) {
			t.Errorf("after %d results: kept %v, %d in all, want %v", len(handles), kept, here.Len(), want)
		}
	}
	put(400, 0)
	put(400, 0, 1)
	put(200, 0, 1, 2) // exactly full
	put(1, 1, 2, 3)
	put(800, 3, 4)
	put(maxBytes+1, 3, 4)
	put(maxBytes, 6)
	put(0, 6, 7)
	put(1, 7, 8)
}

// resultFair: results of one owner do not push out results of another owner who has less.
func resultFair(t *testing.T, here, _ state.Results[Record]) {
	hers := here.Keep("alice", record("a"), 100)
	var his []string
	for range 20 {
		his = append(his, here.Keep("bob", record("b"), 150))
	}
	if !reads(t, here, hers, "alice") {
		t.Error("the result of alice is gone")
	}
	for i, handle := range his {
		if reads(t, here, handle, "bob") != (i >= 14) {
			t.Errorf("his %dth: kept %t", i, i < 14)
		}
	}
	// Now alice has the most, so her results make room.
	if here.Keep("alice", record("a"), 850) == "" || reads(t, here, hers, "alice") || !reads(t, here, his[19], "bob") {
		t.Error("others made room")
	}
}

func resultGrown(t *testing.T, here, _ state.Results[Record]) {
	first, second := here.Keep("alice", record("a"), 0), here.Keep("alice", record("b"), 500)
	here.Grow("unknown", maxBytes)
	here.Grow(second, 500)
	if !reads(t, here, first, "alice") || !reads(t, here, second, "alice") {
		t.Error("what fits is gone")
	}
	here.Grow(second, 1)
	if reads(t, here, first, "alice") || reads(t, here, second, "alice") {
		t.Error("more is kept than fits")
	}
	here.Grow(second, 1) // has no effect: the result is already gone
	if here.Keep("alice", record("c"), maxBytes) == "" || here.Len() != 1 {
		t.Errorf("%d are kept", here.Len())
	}
}

func resultMany(t *testing.T, here, there state.Results[Record]) {
	var all sync.WaitGroup
	for i := range 8 {
		owner := fmt.Sprint("owner ", i%4)
		all.Go(func() {
			for range 50 {
				handle := here.Keep(owner, record("a"), 30)
				here.Grow(handle, 5)
				reads(t, there, handle, owner)
				if reads(t, there, handle, "another") {
					t.Error("another owner reads it")
				}
			}
		})
	}
	all.Wait()
	if n := here.Len(); n != maxBytes/35 {
		t.Errorf("%d of 35 bytes are kept", n)
	}
}
