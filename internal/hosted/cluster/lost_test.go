package cluster

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mcpx/internal/base/state"
	"mcpx/internal/mcptest"
)

// TestRecords_Lost: if the bucket loses records, the replicas write them again from their copies, so that a replica that starts
// later gets them. Records are lost by a purge of all or of one record, or because the bucket was deleted. In one case NATS also
// refuses records for a while.
func TestRecords_Lost(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b := join(t, n.URL, "a"), join(t, n.URL, "b")
	meet(t, a, b)
	stranger, err := nats.Connect(n.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	js, err := stranger.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	const bucket = "KV_test"
	full := func() {
		info, err := js.StreamInfo(bucket)
		if err != nil {
			t.Fatal(err)
		}
		small := info.Config
		small.MaxBytes = 1
		if _, err := js.UpdateStream(&small); err != nil {
			t.Fatal(err)
		}
		if err := js.PurgeStream(bucket); err != nil {
			t.Fatal(err)
		}
		mcptest.WaitFor(t, "a notices the loss", wait, func() bool {
			a.records.mu.Lock()
			defer a.records.mu.Unlock()
			return len(a.records.heal) > 0
		})
		if _, err := js.UpdateStream(&info.Config); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"a purge", func() { err = js.PurgeStream(bucket) }},
		{"the deleted bucket", func() { err = js.DeleteStream(bucket) }},
		{"a full bucket", full},
		{"a purge of one record", func() { err = js.PurgeStream(bucket, &nats.StreamPurgeRequest{Subject: "$KV.test." + hashed("x")}) }},
	} {
		if err := keep(a, "x", c.what, time.Hour); err != nil {
			t.Fatalf("before %s: %v", c.what, err)
		}
		sees(t, b, "x", c.what)
		if c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		late := join(t, n.URL, "late")
		sees(t, late, "x", c.what)
		late.Close()
		mcptest.WaitFor(t, "changes go on after "+c.what, wait, func() bool { return keep(b, "y", c.what, time.Hour) == nil })
		sees(t, a, "y", c.what)
	}
}

// TestAway_Stalled: if the NATS server accepts connections but sends nothing, as a stopped process does, no method of the cluster
// waits for a second or longer.
func TestAway_Stalled(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a := join(t, n.URL, "a")
	attempts := n.Proxy.Accepted()
	n.Proxy.Set(mcptest.ProxyStall)
	n.Proxy.Cut()
	mcptest.WaitFor(t, "a notices", wait, func() bool { return !a.Connected() })
	mcptest.WaitFor(t, "an attempt to connect again, in which nothing waits for a second", wait, func() bool {
		begun, longest := false, time.Duration(0)
		for ; ; time.Sleep(time.Millisecond) {
			if now := n.Proxy.Accepted(); now > attempts {
				attempts = now
				if begun { // the next attempt
					return longest < time.Second
				}
				begun = true
			}
			before := time.Now()
			_ = a.Connected()
			_ = a.Tell("word", nil)
			_ = keep(a, "x", "1", time.Hour)
			longest = max(longest, time.Since(before))
		}
	})
	n.Proxy.Set(mcptest.ProxyPass)
	mcptest.WaitFor(t, "changes go on", wait, func() bool { return keep(a, "x", "1", time.Hour) == nil })
}

// TestRecords_Cut: a replica that loses the connection while it reads the records does not wait for the rest, which never comes,
// but reads the records when it is connected again.
func TestRecords_Cut(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b := join(t, n.URL, "a"), join(t, n.URL, "b")
	meet(t, a, b)
	large := strings.Repeat("x", state.MaxRecord/2)
	for i := range 150 { // so that reading takes a while
		if err := keep(b, fmt.Sprint("large ", i), large, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	sees(t, a, "large 149", large)
	newest := func() (round int) {
		a.records.mu.RLock()
		defer a.records.mu.RUnlock()
		for _, one := range a.records.byKey {
			round = max(round, one.round)
		}
		return round
	}
	before := newest()
	a.records.read()
	for newest() == before {
		runtime.Gosched()
	}
	n.Kill()
	n.Forget()
	n.Start()
	mcptest.WaitFor(t, "changes go on", wait, func() bool { return keep(b, "x", "1", time.Hour) == nil })
	// nats.go gives up after 20 s
	mcptest.WaitFor(t, "a reads the records again", 15*time.Second, func() bool { return valueAt(a, "x") == "1" })
}

// TestJoin_Cut: if the connection is lost while a replica joins, Join returns an error at once, because the answers that it waits
// for never come.
func TestJoin_Cut(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	b := join(t, n.URL, "b")
	for i := range 150 { // so that joining takes a while
		if err := keep(b, fmt.Sprint("large ", i), strings.Repeat("x", state.MaxRecord/2), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	joined := make(chan error, 1)
	go func() { // ends with Join
		_, err := tryJoin(t, n.URL, "a")
		joined <- err
	}()
	for b.replicas() < 2 {
		runtime.Gosched()
	}
	n.Proxy.Set(mcptest.ProxyStall)
	n.Proxy.Cut()
	cut := time.Now()
	if err := <-joined; err == nil || !strings.Contains(err.Error(), "the connection to NATS broke") || time.Since(cut) > joinTime/2 {
		t.Errorf("after %v: %v", time.Since(cut), err)
	}
}

// TestRecords_Room: the less room is left, the smaller a new record must be. So clients with large records do not keep out
// others.
func TestRecords_Room(t *testing.T) {
	r := &records{}
	for _, c := range []struct {
		full, size int // full is the percentage of maxRecords that is in use
		fits       bool
	}{
		{0, state.MaxRecord, true}, {0, state.MaxRecord + 1, false}, {40, state.MaxRecord, true},
		{75, state.MaxRecord, false}, {75, 20 << 10, true}, {95, 20 << 10, false}, {95, 4 << 10, true},
		{100, 4 << 10, false}, {100, smallRecord, true}, {201, 1, false},
	} {
		r.bytes = maxRecords / 100 * c.full
		if err := r.fits(c.size); (err == nil) != c.fits {
			t.Errorf("%d bytes, %d %% full: %v", c.size, c.full, err)
		}
	}
}
