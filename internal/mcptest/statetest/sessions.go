package statetest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/state"
)

// Sessions tests an implementation of [state.Sessions] that can store a few hundred sessions. For doors, see the
// package comment.
func Sessions(t *testing.T, doors func(t *testing.T) (here, there state.Sessions[Record])) {
	run(t, doors, map[string]func(*testing.T, state.Sessions[Record], state.Sessions[Record]){
		"a record is what was kept": sessionKept, "unknown": sessionUnknown, "changes": sessionChanged, "no change is lost": sessionChanges,
		"the end": sessionEnded, "an end among changes": sessionEndedAmongChanges, "its time": sessionUntil,
	})
}

func opened(t *testing.T, s state.Sessions[Record], r *Record) (id string) {
	t.Helper()
	id, err := s.Open(t.Context(), r, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// has reports whether a store has a session. Any error except ErrUnknown fails the test.
func has(t *testing.T, s state.Sessions[Record], id string) bool {
	t.Helper()
	_, err := s.Get(context.Background(), id)
	if err != nil && !errors.Is(err, state.ErrUnknown) {
		t.Errorf("getting: %v", err)
	}
	return err == nil
}

func sessionKept(t *testing.T, here, there state.Sessions[Record]) {
	ids := make(map[string]bool)
	for range 100 {
		ids[opened(t, here, record("x"))] = true
	}
	if len(ids) != 100 {
		t.Errorf("%d ids of 100 sessions", len(ids))
	}
	want := record("a")
	id := opened(t, here, want)
	if len(id) < 20 {
		t.Errorf("the id is short: %s", id)
	}
	if got, err := here.Get(t.Context(), id); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("here: %+v, %v", got, err)
	}
	soon(t, "there is the same record", func() bool {
		got, err := there.Get(t.Context(), id)
		return err == nil && reflect.DeepEqual(got, want)
	})
}

func sessionUnknown(t *testing.T, here, _ state.Sessions[Record]) {
	id := opened(t, here, record("a"))
	for _, id := range []string{"", "x", id + "x", id[1:], "mcpx-AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		if has(t, here, id) {
			t.Errorf("%q is a session", id)
		}
		if _, err := here.Change(t.Context(), id, func(*Record) {}); !errors.Is(err, state.ErrUnknown) {
			t.Errorf("changing %q: %v", id, err)
		}
		if err := here.End(t.Context(), id); err != nil {
			t.Errorf("ending %q: %v", id, err)
		}
	}
	if !has(t, here, id) {
		t.Error("the end of others ended it")
	}
}

func sessionChanged(t *testing.T, here, there state.Sessions[Record]) {
	id := opened(t, here, record("a"))
	before, err := here.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	next, err := here.Change(t.Context(), id, func(r *Record) { r.Number = 7 })
	if err != nil || next.Number != 7 || next.Name != "a" {
		t.Fatalf("%+v, %v", next, err)
	}
	if got, err := here.Get(t.Context(), id); err != nil || got.Number != 7 {
		t.Errorf("here: %+v, %v", got, err)
	}
	if before.Number != 0 {
		t.Error("a record was written to that somebody reads")
	}
	soon(t, "the change is known there", func() bool {
		got, err := there.Get(t.Context(), id)
		return err == nil && got.Number == 7
	})
}

func sessionChanges(t *testing.T, here, there state.Sessions[Record]) {
	id := opened(t, here, record("a"))
	soon(t, "the session is known there", func() bool { return has(t, there, id) })
	const each = 25
	var all sync.WaitGroup
	for _, door := range []state.Sessions[Record]{here, there, here, there} {
		all.Go(func() {
			for range each {
				if _, err := door.Change(t.Context(), id, func(r *Record) { r.Number++ }); err != nil {
					t.Error(err)
					return
				}
				has(t, door, id)
			}
		})
	}
	all.Wait()
	soon(t, "all changes are there", func() bool {
		got, err := here.Get(t.Context(), id)
		return err == nil && got.Number == 4*each
	})
}

func sessionEnded(t *testing.T, here, there state.Sessions[Record]) {
	id := opened(t, here, record("a"))
	soon(t, "the session is known there", func() bool { return has(t, there, id) })
	for range 2 {
		if err := there.End(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if has(t, there, id) {
			t.Error("it goes on where it was ended")
		}
	}
	soon(t, "it has ended here", func() bool { return !has(t, here, id) })
	if _, err := here.Change(t.Context(), id, func(*Record) {}); !errors.Is(err, state.ErrUnknown) || has(t, here, id) {
		t.Errorf("a change brings it back: %v", err)
	}
}

// sessionEndedAmongChanges: if a session is changed and ended at the same time, the change does not bring it back.
func sessionEndedAmongChanges(t *testing.T, here, there state.Sessions[Record]) {
	for range 20 {
		id := opened(t, here, record("a"))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for {
					if _, err := here.Change(t.Context(), id, func(r *Record) { r.Number++ }); err != nil {
						return
					}
				}
			})
		}
		if err := here.End(t.Context(), id); err != nil {
			t.Error(err)
		}
		all.Wait()
		if has(t, here, id) {
			t.Error("it goes on")
		}
		soon(t, "it has ended there", func() bool { return !has(t, there, id) })
	}
}

func sessionUntil(t *testing.T, here, there state.Sessions[Record]) {
	id, err := here.Open(t.Context(), record("a"), time.Now().Add(time.Hour))
	if err != nil || !has(t, here, id) {
		t.Errorf("%v, or it ends before its time", err)
	}
	id, err = here.Open(t.Context(), record("a"), time.Now().Add(-time.Millisecond))
	if err != nil || has(t, here, id) || has(t, there, id) {
		t.Errorf("%v, or it outlives its time", err)
	}
	if _, err := here.Change(t.Context(), id, func(*Record) {}); !errors.Is(err, state.ErrUnknown) {
		t.Errorf("changing it after its time: %v", err)
	}
}
