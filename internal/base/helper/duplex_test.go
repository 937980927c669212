package helper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAsk_Twice(t *testing.T) {
	p := newPool(t, patient)
	reply := func(_ context.Context, request []byte) []byte { return append(request, '!') }
	if got := do(t, p, reply, "twice a"); got != "a! a!!" {
		t.Errorf("got %q, want both replies", got)
	}
	h := warm(t, p)
	large := strings.Repeat("a", 1<<20)
	if got := do(t, p, reply, "twice "+large); got != large+"! "+large+"!!" {
		t.Errorf("got %d bytes, want both large replies", len(got))
	}
	if warm(t, p) != h {
		t.Error("the helper was not used again")
	}
}

// TestAsk_AtOnce: requests that are made at the same time each get their own reply, in any order. Not more than
// Limits.Requests are handled at the same time.
func TestAsk_AtOnce(t *testing.T) {
	p := newPool(t, patient)
	var (
		now     atomic.Int32
		tooMany = make(chan struct{}, 40)
		full    = make(chan struct{}) // closed when Limits.Requests requests are being handled and no more were started
		release = sync.OnceFunc(func() { close(full) })
		want    []string
	)
	reply := func(_ context.Context, request []byte) []byte {
		switch n := int(now.Add(1)); {
		case n > patient.Requests:
			tooMany <- struct{}{}
		case n == patient.Requests:
			select {
			case <-full:
			case <-tooMany:
				t.Errorf("more than %d requests are under way", patient.Requests)
			case <-time.After(50 * time.Millisecond):
			}
			release()
		}
		<-full
		now.Add(-1)
		return append([]byte("r"), request...)
	}
	for i := range 40 {
		want = append(want, fmt.Sprint("r", i))
	}
	if got := do(t, p, reply, "crowd 40"); got != strings.Join(want, " ") {
		t.Errorf("got %s", got)
	}
}

// TestAsk_Over: when a job has ended, its open requests fail with errOver, and so do requests that it sends later.
// None of them reaches the Reply of the next job.
func TestAsk_Over(t *testing.T) {
	p := newPool(t, patient)
	left := make(chan struct{})
	ended := make(chan error, 1)
	got := do(t, p, func(ctx context.Context, request []byte) []byte {
		if string(request) == "left" {
			close(left)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil
		}
		<-left
		return request
	}, "leave")
	if got != "seen" {
		t.Errorf("got %q", got)
	}
	select {
	case <-ended:
	default:
		t.Error("Do returned before a reply did")
	}
	got = do(t, p, func(_ context.Context, request []byte) []byte {
		t.Errorf("the request %q of the job before", request)
		return nil
	}, "left")
	if want := fmt.Sprint(errOver, ", ", errOver); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// endless returns a Reply that does not return before its job ends.
func endless(asked chan<- struct{}) Reply {
	return func(ctx context.Context, _ []byte) []byte {
		asked <- struct{}{}
		<-ctx.Done()
		return nil
	}
}

// TestAsk_Interrupted: when a job is interrupted, its helper is killed and the calls of its Reply end, even if further
// requests wait.
func TestAsk_Interrupted(t *testing.T) {
	for _, tt := range []struct {
		name string
		time time.Duration
		end  func(p *Pool, cancel context.CancelFunc)
		want error
	}{
		{"cancel", patient.Time, func(_ *Pool, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"close", patient.Time, func(p *Pool, _ context.CancelFunc) { p.Close() }, ErrClosed},
		{"time", 200 * time.Millisecond, func(*Pool, context.CancelFunc) {}, ErrTime},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := patient
			l.Time = tt.time
			p := newPool(t, l)
			h, err := p.acquire(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			p.release(h)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked, failed := make(chan struct{}, 100), make(chan error)
			go func() {
				_, err := p.Do(ctx, "", endless(asked), []byte("crowd 10"))
				failed <- err
			}()
			if tt.time == patient.Time {
				for range l.Requests {
					<-asked
				}
			}
			tt.end(p, cancel)
			if err := <-failed; !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			<-h.process.Done()
		})
	}
}

// TestPool_Garbage: a helper that sends invalid data is killed at once, and the error says what was invalid.
func TestPool_Garbage(t *testing.T) {
	l := patient
	l.Frame = 1000
	none := func(context.Context, []byte) []byte { return nil }
	header := func(kind byte, number uint64, size byte) string {
		return string(kind) + strings.Repeat("\x00", 7) + string(rune(number)) + strings.Repeat("\x00", 7) + string(rune(size))
	}
	for _, tt := range []struct {
		name, job string
		reply     Reply
		want      string
	}{
		{"text", "write hello, is this the right place?", none, `it sent "hello, is this th", which is not the start of an expected frame`},
		{"one byte", "write \n", none, `it sent "\n", which is not the start of an expected frame`},
		{"ready again", "write " + header(kindReady, 0, 0), none, `it sent "r\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", which is not the start of an expected frame`},
		{"a job", "write " + header(kindJob, 1, 0), none, `it sent "j\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", which is not the start of an expected frame`},
		{"text like a frame", "write answer: there is none", none, "it sent a frame of 7522544531253326624 bytes, over the limit of 1000"},
		{"long answer", "bytes 1001", none, "it sent a frame of 1001 bytes, over the limit of 1000"},
		{"long request", "ask " + strings.Repeat("a", 1001), none, "it sent a frame of 1001 bytes, over the limit of 1000"},
		{"request without replies", "ask a", nil, `it sent "q\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", which is not the start of an expected frame`},
		{"another job's answer", "write " + header(kindAnswer, 7, 0), none, "it sent an answer to job 7 during job 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPool(t, l)
			h, err := p.acquire(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			p.release(h)
			_, err = p.Do(t.Context(), "", tt.reply, []byte(tt.job))
			if want := "the test helper was ended: " + tt.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			<-h.process.Done()
			warm(t, p)
		})
	}
}
