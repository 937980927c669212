package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mcpx/internal/base/state"
	"mcpx/internal/mcptest"
)

const wait = time.Minute

var secret, other = state.SecretOf([]byte("0123456789abcdef0123456789abcdef")), state.SecretOf([]byte("another secret of thirty-two bytes"))

func join(t testing.TB, url, name string, keys ...*state.Secret) *Cluster {
	t.Helper()
	c, err := tryJoin(t, url, name, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryJoin(t testing.TB, url, name string, keys ...*state.Secret) (*Cluster, error) {
	t.Helper()
	if keys == nil {
		keys = []*state.Secret{secret}
	}
	return joinWith(t, Options{URLs: []string{url}, Keys: keys, Name: name})
}

func joinWith(t testing.TB, o Options) (*Cluster, error) {
	t.Helper()
	o.Bucket, o.Log = "test", slog.New(slog.DiscardHandler)
	c, err := Join(t.Context(), o)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// joinPatient is like join, but the replica never assumes that silent replicas or NATS have ended. On a busy machine they may be
// silent for a while.
func joinPatient(t testing.TB, url, name string) *Cluster {
	t.Helper()
	c, err := joinWith(t, Options{URLs: []string{url}, Keys: []*state.Secret{secret}, Name: name, patience: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// meet waits until all replicas know each other.
func meet(t testing.TB, all ...*Cluster) {
	t.Helper()
	mcptest.WaitFor(t, "the replicas know each other", wait, func() bool {
		return !slices.ContainsFunc(all, func(c *Cluster) bool { return c.replicas() != len(all) })
	})
}

// echo answers an Ask with the data of the Ask, in parts.
func echo(_ context.Context, _ string, data []byte, write func([]byte) error) error {
	for part := range slices.Chunk(data, 100_000) {
		if err := write(part); err != nil {
			return err
		}
	}
	return nil
}

func asked(t testing.TB, from, to *Cluster, kind string, data []byte) (all []byte, err error) {
	t.Helper()
	for part, err := range from.Ask(t.Context(), to.Self(), kind, data) {
		if err != nil {
			return all, err
		}
		all = append(all, part...)
	}
	return all, nil
}

func TestPresence(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b := join(t, n.URL, "a"), join(t, n.URL, "b")
	proxy := mcptest.NewProxy(t, n.URL)
	c := join(t, "nats://"+proxy.Addr(), "c")
	meet(t, a, b, c)
	if got := a.Others(); len(got) != 2 || !slices.Contains(got, b.Self()) || !slices.Contains(got, c.Self()) || !b.IsLive(a.Self()) {
		t.Errorf("the others are %v", got)
	}
	began := time.Now()
	b.Close()
	mcptest.WaitFor(t, "b is gone", time.Second, func() bool { return !a.IsLive(b.Self()) })
	if d := time.Since(began); d > deadAfter/2 {
		t.Errorf("the goodbye took %v", d)
	}
	proxy.Set(mcptest.ProxyHalfOpen)
	mcptest.WaitFor(t, "c is dead", wait, func() bool { return !a.IsLive(c.Self()) })
	if !c.IsLive(a.Self()) {
		t.Error("a replica without NATS forgets the others")
	}
	proxy.Cut()
	proxy.Set(mcptest.ProxyPass)
	mcptest.WaitFor(t, "c is back", wait, func() bool { return a.IsLive(c.Self()) && c.IsLive(a.Self()) && c.Connected() })
}

func TestTell(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b, c := join(t, n.URL, "a"), join(t, n.URL, "b"), join(t, n.URL, "c")
	var mu sync.Mutex
	var got []string
	for _, one := range []*Cluster{a, b, c} {
		one.Hear("word", func(from string, data []byte) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, from+" "+string(data))
		})
	}
	for i := range 100 {
		if err := a.Tell("word", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Tell("other", nil); err != nil {
		t.Error(err)
	}
	if a.Tell("word", make([]byte, maxPiece+1)) == nil {
		t.Error("too much is sent")
	}
	mcptest.WaitFor(t, "both others hear it", wait, func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 200 })
	if want := a.Self() + " 99"; got[199] != want {
		t.Errorf("last is %s, want %s", got[199], want)
	}
}

// TestAsk: questions and answers of any size arrive whole, even if many are sent at the same time. If the answerer fails, the
// asker gets the error.
func TestAsk(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t, `write_deadline: "1h"`)
	a, b := joinPatient(t, n.URL, "a"), joinPatient(t, n.URL, "b")
	b.Answer("echo", echo)
	a.Answer("echo", echo)
	b.Answer("fails", func(_ context.Context, from string, data []byte, write func([]byte) error) error {
		_ = write([]byte("half"))
		return fmt.Errorf("no %s for %s", data, from)
	})
	meet(t, a, b)
	for _, size := range []int{0, 1, maxPiece, maxPiece + 1, 2*pieces*maxPiece + 1} { // the last waits for the reader
		data := bytes.Repeat([]byte{7}, size)
		if got, err := asked(t, a, b, "echo", data); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes come back as %d: %v", size, len(got), err)
		}
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			data := bytes.Repeat(fmt.Append(nil, i), 100_000*(i%7))
			from, to := a, b
			if i%2 == 0 {
				from, to = b, a
			}
			if got, err := asked(t, from, to, "echo", data); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes come back as %d: %v", len(data), len(got), err)
			}
		})
	}
	all.Wait()
	got, err := asked(t, a, b, "fails", []byte("x"))
	if remote := new(RemoteError); !errors.As(err, &remote) || err.Error() != "no x for "+a.Self() || string(got) != "half" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err = asked(t, a, b, "nothing", nil); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("unknown: %v", err)
	}
	if _, err = asked(t, a, a, "echo", nil); !errors.Is(err, errGone) {
		t.Errorf("itself: %v", err)
	}
	mcptest.WaitFor(t, "no exchange is left", wait, func() bool { // the answerer ends a little after the asker
		return !slices.ContainsFunc([]*Cluster{a, b}, func(c *Cluster) bool {
			c.calls.mu.Lock()
			defer c.calls.mu.Unlock()
			return len(c.calls.open) > 0
		})
	})
}

// TestAsk_Ends: an exchange ends at both sides if the asker stops reading, the other replica ends, or NATS cannot be reached. An
// answerer does not write much more than the asker has read.
func TestAsk_Ends(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b, c := join(t, n.URL, "a"), join(t, n.URL, "b"), join(t, n.URL, "c")
	ended, wrote := make(chan error, 10), make(chan int, 1)
	for _, one := range []*Cluster{a, b, c} {
		one.Answer("endless", func(ctx context.Context, _ string, _ []byte, write func([]byte) error) error {
			err := error(nil)
			i := 0
			for ; err == nil; i++ {
				err = write([]byte("x"))
			}
			select {
			case wrote <- i:
			default:
			}
			ended <- err
			return err
		})
		one.Answer("silent", func(ctx context.Context, _ string, _ []byte, write func([]byte) error) error {
			_ = write([]byte("x"))
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
	}
	meet(t, a, b, c)
	for _, err := range a.Ask(t.Context(), b.Self(), "endless", nil) { // the asker leaves the loop after the first piece
		if err != nil {
			t.Error(err)
		}
		break
	}
	if err := <-ended; !errors.Is(err, errNoMore) {
		t.Errorf("the answerer ends with %v", err)
	}
	if n := <-wrote; n > 2*pieces {
		t.Errorf("%d pieces were written for one that was read", n)
	}
	ends := func(to *Cluster, kind string, begun func(), want error) {
		t.Helper()
		var err error
		for _, e := range a.Ask(t.Context(), to.Self(), kind, nil) {
			if err = e; err == nil {
				begun()
			}
		}
		if !errors.Is(err, want) {
			t.Errorf("%s ends with %v, want %v", kind, err, want)
		}
	}
	ends(c, "silent", func() { go c.Close() }, errGone)
	<-ended
	ends(c, "silent", func() {}, errGone)
	ends(b, "silent", func() { n.Kill() }, state.ErrAway)
	<-ended
	ends(b, "silent", func() {}, state.ErrAway)
	if err := a.Tell("word", nil); !errors.Is(err, state.ErrAway) {
		t.Errorf("telling without NATS: %v", err)
	}
	n.Start()
	mcptest.WaitFor(t, "NATS is back", wait, func() bool { return a.Connected() && b.Connected() && a.IsLive(b.Self()) })
	b.Answer("echo", echo)
	mcptest.WaitFor(t, "b answers", wait, func() bool { got, err := asked(t, a, b, "echo", []byte("x")); return err == nil && string(got) == "x" })
}

// TestHostile: a replica refuses and counts messages from another cluster, forged messages, and messages that were recorded and
// sent again.
func TestHostile(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	a, b := join(t, n.URL, "a"), join(t, n.URL, "b")
	stranger, err := nats.Connect(n.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	record := make(chan *nats.Msg, 1000)
	if _, err := stranger.ChanSubscribe("mcpx.test.>", record); err != nil || stranger.Flush() != nil {
		t.Fatal(err)
	}
	meet(t, a, b)
	var heard sync.Map
	var count, refused int
	b.Hear("word", func(_ string, data []byte) {
		n, _ := heard.LoadOrStore(string(data), 0)
		heard.Store(string(data), n.(int)+1)
	})
	times := func(word string) int { n, _ := heard.Load(word); count, _ := n.(int); return count }
	if err := a.Tell("word", []byte("one")); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "b hears it", wait, func() bool { return times("one") == 1 })
	expect := func(what string, n int) {
		t.Helper()
		refused += n
		mcptest.WaitFor(t, what+" is refused", wait, func() bool { return b.Refused() >= refused })
	}
	if err := stranger.Flush(); err != nil { // after this, the stranger has all messages that b has received
		t.Fatal(err)
	}
	var recorded []*nats.Msg
	for len(record) > 0 {
		if m := <-record; !strings.HasPrefix(m.Subject, "mcpx.test.inbox.") { // answers of NATS itself
			recorded = append(recorded, m)
		}
	}
	for _, m := range recorded {
		if m.Subject == "mcpx.test.all" {
			count++
			if err := stranger.Publish(m.Subject, m.Data); err != nil {
				t.Fatal(err)
			}
		}
		if bytes.Contains(m.Data, []byte("word")) || bytes.Contains(m.Data, []byte("one")) {
			t.Error("a message can be read")
		}
	}
	expect("a replay", count-1) // b ignores its own message, and does not count it as refused
	sent := recorded[0].Data
	foreign := newBox([]*state.Secret{other})
	late := newBox([]*state.Secret{secret})
	word := func(with *box, subject, text string, at time.Time) []byte {
		return with.seal(subject, fmt.Appendf(nil, `{"do":"tell","kind":"word","from":"x","at":%d,"later":{"y":1}}`+"\n%s", at.UnixMilli(), text))
	}
	now, subject := time.Now(), "message mcpx.test.all"
	for what, data := range map[string][]byte{
		"nothing": nil, "noise": []byte("hello"), "a newer version": append([]byte{9}, sent[1:]...), "a cut one": sent[:len(sent)-1],
		"a foreign key": word(foreign, subject, "foreign", now), "one for another subject": word(late, "message mcpx.test.to.x", "foreign", now),
		"a record": word(late, "record mcpx.test.all", "foreign", now), "an old one": word(late, subject, "stale", now.Add(-2*messageAge)),
		"one of tomorrow": word(late, subject, "stale", now.Add(24*time.Hour)),
	} {
		if err := stranger.Publish("mcpx.test.all", data); err != nil {
			t.Fatal(err)
		}
		expect(what, 1)
	}
	// The same bucket with another key.
	if _, err := tryJoin(t, n.URL, "foreigner", other); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("another cluster joins: %v", err)
	}
	expect("another cluster", 1)
	if len(a.Others()) != 1 || times("foreign") > 0 || times("stale") > 0 || times("one") != 1 {
		t.Error("something foreign was taken")
	}
	// What a later version adds is ignored.
	if err := stranger.Publish("mcpx.test.all", word(late, subject, "later", time.Now())); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "a later version is understood", wait, func() bool { return times("later") == 1 })
}

// TestKeys_Rotation: a key is replaced in three steps: all replicas learn the new key, encrypt with it, and forget the old one.
// In each step, replicas that have made the step and replicas that have not made it understand each other.
func TestKeys_Rotation(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	steps := [][]*state.Secret{{secret}, {secret, other}, {other, secret}, {other}}
	for i, keys := range steps[1:] {
		t.Run(fmt.Sprint("step ", i+1), func(t *testing.T) {
			before, after := join(t, n.URL, "before", steps[i]...), join(t, n.URL, "after", keys...)
			before.Answer("echo", echo)
			after.Answer("echo", echo)
			meet(t, before, after)
			for from, to := range map[*Cluster]*Cluster{before: after, after: before} {
				if got, err := asked(t, from, to, "echo", []byte("x")); err != nil || string(got) != "x" {
					t.Errorf("%s, %v", got, err)
				}
			}
		})
	}
}

func TestJoin_Faults(t *testing.T) {
	mcptest.NoLeaks(t)
	if _, err := Join(t.Context(), Options{}); err == nil {
		t.Error("a cluster of nothing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
	defer cancel()
	proxy := mcptest.NewProxy(t, "127.0.0.1:1")
	_, err := Join(ctx, Options{URLs: []string{"nats://" + proxy.Addr()}, Keys: []*state.Secret{secret}, Bucket: "test", Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "NATS cannot be reached") {
		t.Errorf("%v", err)
	}
}

func TestWindow(t *testing.T) {
	var w window
	for _, test := range []struct {
		number uint64
		want   bool
	}{
		{5, true}, {5, false}, {3, true}, {3, false}, {5 + windowSize, true}, {5, false}, {6, true}, {6, false}, {1 << 40, true},
		{1<<40 - windowSize + 1, true}, {1<<40 - windowSize, false}, {1 << 40, false}, {1<<40 + 1, true},
	} {
		if got := w.take(test.number); got != test.want {
			t.Errorf("%d: %t", test.number, got)
		}
	}
}
