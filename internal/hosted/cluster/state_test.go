package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mcpx/internal/base/state"
	"mcpx/internal/mcptest"
	"mcpx/internal/mcptest/statetest"
)

// two returns two replicas of a new cluster.
func two(t *testing.T) (here, there *Cluster) {
	t.Helper()
	n := mcptest.StartNATS(t)
	here, there = join(t, n.URL, "here"), join(t, n.URL, "there")
	meet(t, here, there)
	return here, there
}

// TestContracts: the implementations do what the comments of package state promise, in two replicas.
func TestContracts(t *testing.T) {
	t.Run("records", func(t *testing.T) {
		statetest.Records(t, func(t *testing.T) (a, b state.Records) {
			here, there := two(t)
			return here.Records(), there.Records()
		})
	})
	t.Run("results", func(t *testing.T) {
		statetest.Results(t, func(t *testing.T, most int) (a, b state.Results[statetest.Record]) {
			here, there := two(t)
			local := func() state.Results[statetest.Record] { return state.NewResults[statetest.Record](most, time.Hour) }
			return NewResults(here, local()), NewResults(there, local())
		})
	})
	t.Run("counters", func(t *testing.T) {
		// Each replica may admit a burst before it learns of the other's calls.
		statetest.Counters(t, 500, func(t *testing.T) (a, b state.Counters) {
			here, there := two(t)
			return here.NewCounters(state.NewCounters(1000)), there.NewCounters(state.NewCounters(1000))
		})
	})
	t.Run("sessions", func(t *testing.T) {
		statetest.Sessions(t, func(t *testing.T) (a, b state.Sessions[statetest.Record]) {
			here, there := two(t)
			keys := []*state.Secret{secret}
			return state.NewSealed[statetest.Record](keys, "test", here.Records()), state.NewSealed[statetest.Record](keys, "test", there.Records())
		})
	})
	t.Run("stored sessions", func(t *testing.T) {
		statetest.Sessions(t, func(t *testing.T) (a, b state.Sessions[statetest.Record]) {
			here, there := two(t)
			return state.NewStored[statetest.Record]("test", here.Records()), state.NewStored[statetest.Record]("test", there.Records())
		})
	})
	t.Run("once", func(t *testing.T) {
		statetest.Once(t, func(t *testing.T) (a, b state.Once) {
			here, there := two(t)
			return state.NewOnce("test", here.Records()), state.NewOnce("test", there.Records())
		})
	})
}

func keep(c *Cluster, key, value string, until time.Duration) error {
	return c.Records().Change(context.Background(), key, func([]byte) ([]byte, time.Time, error) {
		return []byte(value), time.Now().Add(until), nil
	})
}

func valueAt(c *Cluster, key string) string {
	value, err := c.Records().Get(key)
	if err != nil {
		return err.Error()
	}
	return string(value)
}

func sees(t *testing.T, c *Cluster, key, want string) {
	t.Helper()
	mcptest.WaitFor(t, c.name+" has "+key+" = "+want, wait, func() bool { return valueAt(c, key) == want })
}

// TestRecords_Away: while NATS is down, each replica can read the records that it knew, but cannot change them. When NATS is
// back, changes work again. If NATS has lost all records meanwhile, the replicas write them again.
func TestRecords_Away(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b := join(t, n.URL, "a"), join(t, n.URL, "b")
	once := map[*Cluster]state.Once{a: state.NewOnce("codes", a.Records()), b: state.NewOnce("codes", b.Records())}
	until := time.Now().Add(time.Hour)
	redeem := func(c *Cluster, name string) string {
		fresh, err := once[c].Redeem(t.Context(), name, until)
		return fmt.Sprint(fresh, " ", err)
	}
	if err := keep(a, "x", "1", time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := redeem(a, "before"); got != "true <nil>" {
		t.Error(got)
	}
	for _, forget := range []bool{false, true} {
		sees(t, b, "x", "1")
		n.Kill()
		mcptest.WaitFor(t, "both notice", wait, func() bool { return !a.Connected() && !b.Connected() })
		if valueAt(a, "x") != "1" {
			t.Error("a forgets what it knew")
		}
		if err := keep(a, "x", "2", time.Hour); !errors.Is(err, state.ErrAway) {
			t.Errorf("a change without NATS: %v", err)
		}
		if got := redeem(b, "meanwhile"); !strings.HasPrefix(got, "false") || !strings.Contains(got, state.ErrAway.Error()) {
			t.Error(got)
		}
		if forget {
			n.Forget()
		}
		n.Start()
		mcptest.WaitFor(t, "changes go on", wait, func() bool { return keep(b, fmt.Sprint("after ", forget), "3", time.Hour) == nil })
		sees(t, a, fmt.Sprint("after ", forget), "3")
		sees(t, b, "x", "1")
		if got := redeem(b, "before"); got != "false <nil>" {
			t.Errorf("forgotten: %t: a code is redeemed twice: %s", forget, got)
		}
		late := join(t, n.URL, "late")
		sees(t, late, "x", "1")
		late.Close()
	}
}

// TestRecords_Hostile: another user of NATS can neither forge, swap, roll back nor delete records that a replica knows.
func TestRecords_Hostile(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b := join(t, n.URL, "a"), join(t, n.URL, "b")
	stranger, err := nats.Connect(n.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	js, err := stranger.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(keep(a, "x", "secret one", time.Hour), keep(a, "y", "other", time.Hour)); err != nil {
		t.Fatal(err)
	}
	old, errOld := kv.Get(hashed("x"))
	y, errY := kv.Get(hashed("y"))
	if err := errors.Join(errOld, errY, keep(a, "x", "secret two", time.Hour)); err != nil || strings.Contains(string(old.Value()), "secret") {
		t.Fatalf("%v, or it can be read", err)
	}
	sees(t, b, "x", "secret two")
	forged := newBox([]*state.Secret{other}).seal("record test "+hashed("x"), []byte(`{"key":"x","n":99,"until":9999999999999}`+"\nforged"))
	for what, data := range map[string][]byte{"an old one": old.Value(), "that of y": y.Value(), "noise": []byte("x"), "forged": forged, "deleted": nil} {
		refused := b.Refused()
		if data == nil {
			err = kv.Delete(hashed("x"))
		} else {
			_, err = kv.Put(hashed("x"), data)
		}
		if err != nil {
			t.Error(err)
		}
		mcptest.WaitFor(t, what+" is refused", wait, func() bool { return b.Refused() > refused })
		if valueAt(a, "x") != "secret two" || valueAt(b, "x") != "secret two" {
			t.Errorf("%s is taken: %s", what, valueAt(b, "x"))
		}
		mcptest.WaitFor(t, "it is written again after "+what, wait, func() bool {
			now, err := kv.Get(hashed("x"))
			if err != nil {
				return false
			}
			text, _, _, err := b.box.open("record test "+hashed("x"), now.Value())
			return err == nil && strings.HasSuffix(string(text), "secret two")
		})
	}
	if err := keep(b, "x", "three", time.Hour); err != nil {
		t.Error(err)
	}
	sees(t, a, "x", "three")
}

// TestRecords_Over: when a record expires, NATS and all replicas remove it. Its key can be used again.
func TestRecords_Over(t *testing.T) {
	mcptest.NoLeaks(t)
	a, b := two(t)
	if err := keep(a, "x", "1", time.Second); err != nil {
		t.Fatal(err)
	}
	sees(t, b, "x", state.ErrUnknown.Error())
	sees(t, a, "x", state.ErrUnknown.Error())
	mcptest.WaitFor(t, "NATS has removed it", wait, func() bool {
		m, err := a.records.stream.GetLastMsgForSubject(t.Context(), "$KV.test."+hashed("x"))
		return err != nil || len(m.Data) == 0
	})
	for _, c := range []*Cluster{a, b} {
		c.records.expire(time.Now().Add(time.Hour / 2))
	}
	late := time.Now().Add(time.Hour)
	if err := errors.Join(keep(b, "x", "2", time.Hour), keep(a, "x", "3", time.Hour)); err != nil {
		t.Error(err)
	}
	sees(t, b, "x", "3")
	mcptest.WaitFor(t, "only the record of the cluster itself is left", wait, func() bool {
		a.records.expire(late.Add(time.Hour)) // repeated, because an update from NATS may bring a record back
		a.records.mu.Lock()
		defer a.records.mu.Unlock()
		return len(a.records.byKey) == 1 && a.records.bytes <= 100
	})
	if a.Refused()+b.Refused() > 0 {
		t.Errorf("%d and %d refused", a.Refused(), b.Refused())
	}
}
