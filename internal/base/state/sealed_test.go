package state

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// client is a record for tests.
type client struct {
	Name  string `json:"name"`
	Level string `json:"level,omitempty"`
}

func sealing(secrets ...*Secret) Sessions[client] {
	return NewSealed[client](secrets, "session", NewRecords(100, 1<<20))
}

func mustOpen(t *testing.T, s Sessions[client], name string) (id string) {
	t.Helper()
	id, err := s.Open(t.Context(), &client{Name: name}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func mustEnd(t *testing.T, s Sessions[client], id string) {
	t.Helper()
	if err := s.End(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// nameOf returns the name in a record, or the error.
func nameOf(s Sessions[client], id string) string {
	record, err := s.Get(context.Background(), id)
	if err != nil {
		return err.Error()
	}
	return record.Name + record.Level
}

// TestSealed_Restart: a process that has the secret, and nothing else, goes on with the sessions of an earlier one. What had
// changed since a session was opened is forgotten. Without the secret, for another purpose, or after any change of the id,
// there is no session.
func TestSealed_Restart(t *testing.T) {
	secret, old := NewSecret(), NewSecret()
	before := sealing(secret)
	alice, bob := mustOpen(t, before, "alice"), mustOpen(t, before, "bob")
	if _, err := before.Change(t.Context(), alice, func(c *client) { c.Level = " debug" }); err != nil || nameOf(before, alice) != "alice debug" {
		t.Errorf("%v, %s", err, nameOf(before, alice))
	}
	after := sealing(secret)
	if a, b := nameOf(after, alice), nameOf(after, bob); a != "alice" || b != "bob" {
		t.Errorf("after a restart: %s, %s", a, b)
	}
	if strings.Contains(alice, "alice") || len(alice) > longestID {
		t.Errorf("the id is %s", alice)
	}
	// A list of secrets: the first one seals new ids, and ids that were sealed with any of them are opened.
	turned := sealing(secret, old)
	late := mustOpen(t, sealing(old), "late")
	if nameOf(turned, alice) != "alice" || nameOf(turned, late) != "late" || nameOf(sealing(old), mustOpen(t, turned, "new")) != ErrUnknown.Error() {
		t.Error("a list of secrets")
	}
	for name, other := range map[string]Sessions[client]{
		"another secret": sealing(NewSecret()), "none": NewStored[client]("session", NewRecords(1, 100)),
		"another purpose": NewSealed[client]([]*Secret{secret}, "browser", NewRecords(1, 100)),
	} {
		if got := nameOf(other, alice); got != ErrUnknown.Error() {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, id := range tampered(t, alice, bob) {
		if got := nameOf(after, id); got != ErrUnknown.Error() {
			t.Errorf("%s is the session %s", id, got)
		}
	}
}

// tampered returns ids that a hostile client may make of two ids of its own.
func tampered(t *testing.T, one, other string) (ids []string) {
	t.Helper()
	text := one[len(idPrefix):]
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		changed := append([]byte(nil), raw...)
		changed[i] ^= 1
		ids = append(ids, idPrefix+base64.RawURLEncoding.EncodeToString(changed), idPrefix+base64.RawURLEncoding.EncodeToString(raw[:i]))
	}
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range 64 { // other last digits; base64 decodes some of them to the same bytes
		if last := text[:len(text)-1] + digits[i:i+1]; last != text {
			ids = append(ids, idPrefix+last)
		}
	}
	half := len(one) / 2
	return append(ids, one[:half]+other[half:], text, one+"\n", one[:20]+"\r\n"+one[20:], one+"=", strings.Repeat(one, 20), idPrefix, idPrefix+text+text)
}

// TestSealed_End: a closed session has ended for this process, also when another client's session, which was opened
// with the same record, goes on.
func TestSealed_End(t *testing.T) {
	secret := NewSecret()
	s := sealing(secret)
	closed, other := mustOpen(t, s, "alice"), mustOpen(t, s, "alice")
	mustEnd(t, s, closed)
	if a, b := nameOf(s, closed), nameOf(s, other); a != ErrUnknown.Error() || b != "alice" {
		t.Errorf("%s, %s", a, b)
	}
	before := sealing(secret)
	earlier := mustOpen(t, before, "bob")
	mustEnd(t, s, earlier) // a session that this process sees for the first time
	if got := nameOf(s, earlier); got != ErrUnknown.Error() {
		t.Error(got)
	}
}

// TestSealed_Week: a session lives for 7 days without use, and one that was not used for 8 days has ended. A session that is used
// goes on in this process, but a process that has only the secret does not know of the use.
func TestSealed_Week(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		secret := NewSecret()
		s := sealing(secret)
		used, idle, ended := mustOpen(t, s, "used"), mustOpen(t, s, "idle"), mustOpen(t, s, "ended")
		time.Sleep(6*day + time.Hour)
		mustEnd(t, s, ended)
		for range 4 {
			if got := nameOf(s, used); got != "used" {
				t.Fatal(got)
			}
			time.Sleep(6*day + time.Hour)
		}
		if a, b := nameOf(s, idle), nameOf(s, ended); a != ErrUnknown.Error() || b != ErrUnknown.Error() {
			t.Errorf("%s, %s", a, b)
		}
		if got := nameOf(sealing(secret), used); got != ErrUnknown.Error() {
			t.Errorf("after a restart: %s", got)
		}
		rare := mustOpen(t, s, "rare")
		for _, unused := range []time.Duration{day + time.Hour, 7 * day, 7 * day} {
			time.Sleep(unused)
			if got := nameOf(s, rare); got != "rare" {
				t.Errorf("unused for %v: %s", unused, got)
			}
		}
		own, err := s.Open(t.Context(), &client{Name: "own"}, time.Now().Add(time.Minute))
		if err != nil || nameOf(s, own) != "own" {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if got := nameOf(s, own); got != ErrUnknown.Error() {
			t.Errorf("after its own end: %s", got)
		}
	})
}

// TestSealed_Large: a record that is too large for an id is kept in Records under a random id until the session ends. A record
// that is too large for Records is refused.
func TestSealed_Large(t *testing.T) {
	secret := NewSecret()
	records := NewRecords(100, 1<<20)
	s := NewSealed[client]([]*Secret{secret}, "session", records)
	name := strings.Repeat("x", longestID)
	id := mustOpen(t, s, name)
	for _, door := range []Sessions[client]{s, NewSealed[client]([]*Secret{secret}, "session", records), NewStored[client]("session", records)} {
		if len(id) > 40 || nameOf(door, id) != name {
			t.Errorf("%s: %.40s", id, nameOf(door, id))
		}
	}
	mustEnd(t, s, id)
	if nameOf(s, id) != ErrUnknown.Error() {
		t.Error("it goes on")
	}
	if _, err := s.Open(t.Context(), &client{Name: strings.Repeat("x", MaxRecord)}, time.Time{}); !errors.Is(err, ErrLarge) {
		t.Errorf("too much: %v", err)
	}
}

// TestStored_Full: if there are too many sessions, opening one more ends only a few of the oldest ones, because each session
// belongs to a person at work.
func TestStored_Full(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStored[client]("browser", NewRecords(200, 1<<20))
		var all []string
		for range 201 {
			all = append(all, mustOpen(t, s, "alice"))
			time.Sleep(time.Second)
		}
		var over []int
		for i, id := range all {
			if nameOf(s, id) != "alice" {
				over = append(over, i)
			}
		}
		if !slices.Equal(over, []int{0, 1}) {
			t.Errorf("sessions %v have ended", over)
		}
	})
}

// TestSealed_Bounded: a client that opens and ends sessions for ever, or sends much in each, does not fill the memory
// and does not push out what others have.
func TestSealed_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecords(1000, 1<<20).(*records)
		s := NewSealed[client]([]*Secret{NewSecret()}, "session", r)
		alice := mustOpen(t, s, "alice")
		if _, err := s.Change(t.Context(), alice, func(c *client) { c.Level = " debug" }); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			mustOpen(t, s, strings.Repeat("x", MaxRecord/2))
		}
		if n := len(r.byKey); r.bytes > 1<<20 || n > 33 || nameOf(s, alice) != "alice debug" {
			t.Errorf("%d values of %d bytes; %s", n, r.bytes, nameOf(s, alice))
		}
		for i := range 5000 {
			mustEnd(t, s, mustOpen(t, s, fmt.Sprint(i)))
		}
		sum := 0
		for key, one := range r.byKey {
			sum += len(key) + len(one.value)
		}
		if len(r.byKey) > 1000 || sum != r.bytes || s.(*sealed[client]).byID.Len() > 2*maxKnown {
			t.Errorf("%d values, %d bytes of %d counted", len(r.byKey), sum, r.bytes)
		}
		if got := nameOf(s, alice); !strings.HasPrefix(got, "alice") {
			t.Error(got)
		}
		time.Sleep(sessionLife)
		r.makeRoom(0)
		if len(r.byKey) != 0 || r.bytes != 0 {
			t.Errorf("%d values of %d bytes after their time", len(r.byKey), r.bytes)
		}
	})
}

// TestSealed_Flood: a client that opens and ends sessions for ever does not end the sessions of others that are kept in
// Records, and does not undo their changes.
func TestSealed_Flood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSealed[client]([]*Secret{NewSecret()}, "session", NewRecords(1000, 1<<20))
		large := strings.Repeat("x", 2*longestID)
		kept, changed := mustOpen(t, s, large), mustOpen(t, s, "alice")
		if _, err := s.Change(t.Context(), changed, func(c *client) { c.Level = " debug" }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		last := ""
		for i := range 5000 {
			last = mustOpen(t, s, fmt.Sprint(i))
			mustEnd(t, s, last)
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		if nameOf(s, kept) != large || nameOf(s, changed) != "alice debug" {
			t.Errorf("%.20s; %s", nameOf(s, kept), nameOf(s, changed))
		}
		if _, err := s.Get(t.Context(), last); err == nil {
			t.Error("the session that ended last goes on")
		}
	})
}

// TestSealed_Allocations: a request of a known session allocates nothing for its record, changed or not.
func TestSealed_Allocations(t *testing.T) {
	s := sealing(NewSecret())
	same, changed := mustOpen(t, s, "same"), mustOpen(t, s, "changed")
	if _, err := s.Change(t.Context(), changed, func(c *client) { c.Level = " debug" }); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{same, changed} {
		first, _ := s.Get(t.Context(), id)
		if n := testing.AllocsPerRun(100, func() {
			if again, _ := s.Get(t.Context(), id); again != first {
				t.Fatal("another record")
			}
		}); n > 0 {
			t.Errorf("%.1f allocations", n)
		}
	}
}

// TestSecretFile_Together: several mcpx of one user that start at the same time for the first time have the same secret.
func TestSecretFile_Together(t *testing.T) {
	for range 50 {
		path := filepath.Join(t.TempDir(), "sessions.key")
		var all sync.WaitGroup
		secrets := make([]string, 8)
		for i := range secrets {
			all.Go(func() {
				secret, err := SecretFile(path, quiet)
				if err != nil {
					t.Error(err)
					return
				}
				secrets[i] = string(secret.secret)
			})
		}
		all.Wait()
		if slices.Sort(secrets); secrets[0] != secrets[7] {
			t.Fatalf("%q", secrets)
		}
		if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
			t.Fatalf("%v", files)
		}
	}
}

// TestSealed_ManyEnds: a client that opens and ends sessions all the time does not fill the records, and pushes out nothing of
// other clients. Each session has ended for at least two minutes; on the next day, ends are kept for long again.
func TestSealed_ManyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = maxEnds + 2_000
		kept := NewRecords(room, 32<<20).(*records)
		s := NewSealed[client]([]*Secret{NewSecret()}, "session", kept)
		ended, changed := mustOpen(t, s, "alice"), mustOpen(t, s, "alice")
		mustEnd(t, s, ended)
		if _, err := s.Change(t.Context(), changed, func(c *client) { c.Level = " debug" }); err != nil {
			t.Fatal(err)
		}
		open := func() bool { return nameOf(s, ended) != ErrUnknown.Error() || nameOf(s, changed) != "alice debug" }
		last := ""
		for i := range maxEnds + 6_000 {
			last = mustOpen(t, s, "mallory")
			mustEnd(t, s, last)
			if nameOf(s, last) != ErrUnknown.Error() {
				t.Fatal("an ended session goes on")
			}
			time.Sleep(endKept / 1_000)
			if i%5_000 == 0 && open() {
				t.Fatalf("after %d ends, the sessions of alice are %s and %s", i, nameOf(s, ended), nameOf(s, changed))
			}
		}
		if len(kept.byKey) > room || open() {
			t.Errorf("%d records; the sessions of alice are %s and %s", len(kept.byKey), nameOf(s, ended), nameOf(s, changed))
		}
		time.Sleep(24 * time.Hour)
		mustEnd(t, s, changed)
		time.Sleep(5 * 24 * time.Hour)
		if nameOf(s, changed) != ErrUnknown.Error() {
			t.Error("on the next day, an end is not kept")
		}
	})
}
