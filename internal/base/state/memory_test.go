package state

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

// TestResults_Age: results over the maximum age are removed, also if no new result is kept.
func TestResults_Age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const age = 30 * time.Minute
		s := NewResults[int](100, age).(*results[int])
		kept := func(handles ...string) (list []int) {
			for i, handle := range handles {
				if _, err := s.Get(t.Context(), handle, ""); err == nil {
					list = append(list, i)
				}
			}
			return list
		}
		a := s.Keep("", new(int), 10)
		<-time.After(age / 2)
		b := s.Keep("", new(int), 10)
		<-time.After(age/2 - time.Second)
		if got := kept(a, b); len(got) != 2 {
			t.Errorf("kept %v before their time", got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got := kept(a, b); len(got) != 1 || got[0] != 1 || s.Len() != 1 {
			t.Errorf("kept %v, %d in memory", got, s.Len())
		}
		<-time.After(age)
		synctest.Wait()
		s.mu.Lock()
		if len(s.byHandle) != 0 || len(s.order) != 0 || s.bytes != 0 || len(s.byOwner) != 0 || s.timer != nil {
			t.Errorf("%d results of %d bytes are left", len(s.byHandle), s.bytes)
		}
		s.mu.Unlock()
		c := s.Keep("", new(int), 10)
		<-time.After(age)
		synctest.Wait()
		if s.Len() != 0 {
			t.Errorf("%s is still there", c)
		}
	})
}

// TestResults_Sums: the counted bytes, in total and per owner, always match the kept results.
func TestResults_Sums(t *testing.T) {
	s := NewResults[int](1000, time.Hour).(*results[int])
	var handles []string
	for i := range 500 {
		handles = append(handles, s.Keep(fmt.Sprint(i%3), new(int), i*7%300))
		s.Grow(handles[i*13%len(handles)], i%40)
		bytes, of := 0, map[string]int{}
		for _, one := range s.byHandle {
			bytes += one.size
			of[one.owner] += one.size
		}
		for owner, size := range of {
			if size == 0 {
				delete(of, owner)
			}
		}
		if s.bytes != bytes || fmt.Sprint(s.byOwner) != fmt.Sprint(of) || len(s.order) != len(s.byHandle) || bytes > 1000 {
			t.Fatalf("after %d: %d bytes, %v, counted %d, %v; %d results, %d in order", i, bytes, of, s.bytes, s.byOwner, len(s.byHandle), len(s.order))
		}
	}
}

// TestCounters_Bounded: a caller that makes up values of Whose cannot fill the memory, and does not push out buckets
// with another What.
func TestCounters_Bounded(t *testing.T) {
	const most = 100
	c := NewCounters(most).(*counters)
	flow := Flow{Rate: 1e-6, Burst: 1}
	alice := Draw{What: "calls", Whose: "alice", Flow: flow, Tokens: 1}
	if short, _ := c.Take([]Draw{alice}); short >= 0 {
		t.Fatal("the first call is refused")
	}
	for i := range 50 * most {
		c.Take([]Draw{{What: "requests of an address", Whose: fmt.Sprint(i), Flow: flow, Tokens: 1}})
		c.Charge([]Draw{{What: "bytes", Whose: fmt.Sprint(i), Flow: flow, Tokens: 1}})
	}
	for _, one := range c.kept {
		if n := one.of.Len(); n > 2*most+1 {
			t.Errorf("%d of %s are kept", n, one.what)
		}
	}
	if short, _ := c.Take([]Draw{alice}); short != 0 {
		t.Error("the calls of alice were forgotten")
	}
}

// TestCounters_Fill: tokens come back evenly, up to the size of the bucket.
func TestCounters_Fill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCounters(10)
		d := []Draw{{What: "calls", Whose: "a", Flow: Flow{Rate: 0.1, Burst: 6}, Tokens: 1}}
		takes := func() (n int) {
			for short := -1; ; n++ {
				if short, _ = c.Take(d); short >= 0 {
					return n
				}
			}
		}
		if n := takes(); n != 6 {
			t.Errorf("%d at first", n)
		}
		if _, wait := c.Take(d); wait != 10*time.Second {
			t.Errorf("to wait %v", wait)
		}
		time.Sleep(25 * time.Second)
		if n := takes(); n != 2 {
			t.Errorf("%d after 25 s", n)
		}
		time.Sleep(time.Hour)
		if n := takes(); n != 6 {
			t.Errorf("%d after an hour", n)
		}
	})
}

// TestSecret: a key depends only on the secret and the purpose, and is the same in all versions of mcpx, so that data
// sealed by an earlier version can be opened.
func TestSecret(t *testing.T) {
	secret := SecretOf([]byte("0123456789abcdef0123456789abcdef"))
	const login = "mcpx authorization server 1 access https://mcp.example.com/mcp"
	if got := hex.EncodeToString(secret.Key(login)); got != "49f5b3c3410630d04e0765d5aab25f197bdad685a90d6a8ede166bbbc9647f42" {
		t.Errorf("the key of access tokens is %s", got)
	}
	seen := map[string]bool{}
	for _, key := range [][]byte{secret.Key(""), secret.Key("a"), secret.Key("b"), NewSecret().Key("a"), NewSecret().Key("a")} {
		if seen[string(key)] || len(key) != 32 {
			t.Errorf("%x is there twice", key)
		}
		seen[string(key)] = true
	}
	if !bytes.Equal(secret.Key("a"), SecretOf([]byte("0123456789abcdef0123456789abcdef")).Key("a")) {
		t.Error("two processes with one secret have other keys")
	}
}

// TestSecretFile: the first call creates the file, readable only by its user; the second call returns the same secret.
func TestSecretFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "front.key")
	one, err := SecretFile(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	two, err := SecretFile(path, quiet)
	if err != nil || !bytes.Equal(one.secret, two.secret) || len(one.secret) < minSecret {
		t.Errorf("%q %q %v", one.secret, two.secret, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := SecretFile(path, quiet); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a short key: %v", err)
	}
	if _, err := SecretFile(filepath.Join(path, "in a file"), quiet); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder can be made: %v", err)
	}
}
