package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/state"
)

// Records tests an implementation of [state.Records] that can store a few hundred values. For doors, see the package
// comment.
func Records(t *testing.T, doors func(t *testing.T) (here, there state.Records)) {
	run(t, doors, map[string]func(*testing.T, state.Records, state.Records){
		"a value is what was kept": recordKept, "refused changes": recordRefused, "no change is lost": recordChanges,
		"their time": recordUntil, "sizes": recordSizes, "one of many": recordRaced,
	})
}

// put keeps a value under a key for an hour.
func put(t *testing.T, r state.Records, key string, value []byte) {
	t.Helper()
	if err := r.Change(t.Context(), key, func([]byte) ([]byte, time.Time, error) {
		return value, time.Now().Add(time.Hour), nil
	}); err != nil {
		t.Fatal(err)
	}
}

// valueOf returns a value, or nil if there is none. Any other error fails the test.
func valueOf(t *testing.T, r state.Records, key string) []byte {
	t.Helper()
	value, err := r.Get(key)
	if err != nil && !errors.Is(err, state.ErrUnknown) {
		t.Errorf("getting: %v", err)
	}
	return value
}

func recordKept(t *testing.T, here, there state.Records) {
	const key = "session.a-B_9"
	binary := []byte("\x00\xff{}\n")
	put(t, here, key, []byte("before"))
	put(t, here, key, binary)
	put(t, here, "session.a-b_9", []byte("another"))
	if got := valueOf(t, here, key); !bytes.Equal(got, binary) {
		t.Errorf("here: %q", got)
	}
	soon(t, "there is the same value", func() bool { return bytes.Equal(valueOf(t, there, key), binary) })
	for _, door := range []state.Records{here, there} {
		for _, unknown := range []string{"session", "session.a-B_", "session.A-B_9", "browser.a-B_9"} {
			if _, err := door.Get(unknown); !errors.Is(err, state.ErrUnknown) {
				t.Errorf("%s: %v", unknown, err)
			}
		}
	}
	// Change gets the newest value, even if another process has kept it only a moment ago.
	put(t, there, key, []byte("newest"))
	if err := here.Change(t.Context(), key, func(old []byte) ([]byte, time.Time, error) {
		return append([]byte("after "), old...), time.Now().Add(time.Hour), nil
	}); err != nil || string(valueOf(t, here, key)) != "after newest" {
		t.Errorf("%v, %q", err, valueOf(t, here, key))
	}
}

func recordRefused(t *testing.T, here, there state.Records) {
	refusal := errors.New("no")
	put(t, here, "a", []byte("first"))
	for _, key := range []string{"a", "unknown"} {
		for _, door := range []state.Records{here, there} {
			err := door.Change(t.Context(), key, func([]byte) ([]byte, time.Time, error) {
				return []byte("other"), time.Now().Add(time.Hour), refusal
			})
			if !errors.Is(err, refusal) {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	if got := valueOf(t, here, "a"); string(got) != "first" || valueOf(t, here, "unknown") != nil {
		t.Errorf("a is %q", got)
	}
}

func count(ctx context.Context, r state.Records, key string) error {
	return r.Change(ctx, key, func(old []byte) ([]byte, time.Time, error) {
		n, _ := strconv.Atoi(string(old))
		return strconv.AppendInt(nil, int64(n+1), 10), time.Now().Add(time.Hour), nil
	})
}

func recordChanges(t *testing.T, here, there state.Records) {
	const each = 25
	var all sync.WaitGroup
	for i, door := range []state.Records{here, there, here, there} {
		all.Go(func() {
			for range each {
				for _, key := range []string{"all", fmt.Sprint("own.", i)} {
					if err := count(t.Context(), door, key); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	for _, door := range []state.Records{here, there} {
		soon(t, "all changes are there", func() bool {
			return string(valueOf(t, door, "all")) == strconv.Itoa(4*each) && string(valueOf(t, door, "own.3")) == strconv.Itoa(each)
		})
	}
}

// recordUntil: a value is gone after its time; the func that is passed to Change then gets nil as the old value. A later change may
// give the value more time.
func recordUntil(t *testing.T, here, there state.Records) {
	keep := func(key string, until time.Duration) (old []byte) {
		t.Helper()
		if err := here.Change(t.Context(), key, func(before []byte) ([]byte, time.Time, error) {
			old = before
			return []byte("x"), time.Now().Add(until), nil
		}); err != nil {
			t.Fatal(err)
		}
		return old
	}
	keep("past", -time.Millisecond)
	keep("short", time.Second)
	keep("longer", time.Second)
	keep("longer", time.Hour)
	for _, door := range []state.Records{here, there} {
		soon(t, "the time is over", func() bool { return valueOf(t, door, "past") == nil && valueOf(t, door, "short") == nil })
		soon(t, "the longer time is not over", func() bool { return valueOf(t, door, "longer") != nil })
	}
	if old := keep("short", time.Hour); old != nil {
		t.Errorf("after its time the value is %q", old)
	}
}

func recordSizes(t *testing.T, here, there state.Records) {
	large := bytes.Repeat([]byte("x"), state.MaxRecord)
	put(t, here, "large", large)
	soon(t, "a large value is there", func() bool { return bytes.Equal(valueOf(t, there, "large"), large) })
	err := here.Change(t.Context(), "large", func(old []byte) ([]byte, time.Time, error) {
		return append(bytes.Clone(old), 'x'), time.Now().Add(time.Hour), nil
	})
	if !errors.Is(err, state.ErrLarge) || !bytes.Equal(valueOf(t, here, "large"), large) {
		t.Errorf("a value that is too large: %v", err)
	}
}

// recordRaced: of several processes that claim the same thing, only one gets it.
func recordRaced(t *testing.T, here, there state.Records) {
	taken := errors.New("taken")
	for i := range 20 {
		var mu sync.Mutex
		var got []int
		var all sync.WaitGroup
		for who, door := range []state.Records{here, there, here, there} {
			all.Go(func() {
				err := door.Change(t.Context(), fmt.Sprint("claim.", i), func(old []byte) ([]byte, time.Time, error) {
					if old != nil {
						return nil, time.Time{}, taken
					}
					return []byte{byte(who)}, time.Now().Add(time.Hour), nil
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got = append(got, who)
				} else if !errors.Is(err, taken) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(got) != 1 {
			t.Errorf("%v have claimed it", got)
		}
	}
}
