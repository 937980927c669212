package helper

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/mcptest"
)

// patient are limits so high that they are not exceeded on a busy machine.
var patient = Limits{Time: 5 * time.Minute, Memory: 256 << 20, Frame: 8 << 20, Requests: 4, Helpers: 2, Idle: 5 * time.Minute}

// unwatched starts a process that no reaper kills.
func unwatched(s proc.Spec) (*proc.Process, error) { return proc.Start(s, nil) }

func newPool(t testing.TB, l Limits) *Pool {
	t.Helper()
	p := New(testRole, l, unwatched)
	t.Cleanup(p.Close)
	return p
}

// do executes a job and returns the answer. The test fails if there is an error.
func do(t testing.TB, p *Pool, reply Reply, job string) string {
	t.Helper()
	answer, err := p.Do(context.Background(), "", reply, []byte(job))
	if err != nil {
		t.Fatalf("the job %.40q: %v", job, err)
	}
	return string(answer)
}

// warm makes the pool start a helper, which is then idle, and returns it.
func warm(t testing.TB, p *Pool) *helper {
	t.Helper()
	if got := do(t, p, nil, "echo 42"); got != "42" {
		t.Fatalf("an echo is %q, want 42", got)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle[len(p.idle)-1]
}

// untilTaken returns when no helper of the pool is idle, because a job uses h. The test fails if h ends.
func untilTaken(t *testing.T, p *Pool, h *helper) {
	t.Helper()
	for {
		p.mu.Lock()
		taken := len(p.idle) == 0
		p.mu.Unlock()
		if taken {
			return
		}
		if h.process.ExitReason() != "" {
			t.Fatal("the helper ended")
		}
	}
}

func TestPool_Do(t *testing.T) {
	p := newPool(t, patient)
	for _, size := range []int{0, 1, smallFrame - headerSize - 5, smallFrame - headerSize - 4, smallFrame, 1 << 20} {
		want := strings.Repeat("a", size)
		for name, job := range map[string][][]byte{
			"whole":          {[]byte("echo " + want)},
			"large last":     {[]byte("echo"), []byte(" "), nil, []byte(want)},
			"small between":  {[]byte("echo "), []byte(want[:size/2]), []byte(want[size/2:])},
			"nothing behind": {[]byte("echo "), []byte(want), nil},
		} {
			got, err := p.Do(t.Context(), "", nil, job...)
			if err != nil || string(got) != want {
				t.Errorf("%d bytes, %s: got %d bytes, %v", size, name, len(got), err)
			}
		}
	}
	if n := len(p.idle); n != 1 {
		t.Errorf("%d helpers are warm, want the one that did all", n)
	}
}

func TestPool_Concurrent(t *testing.T) {
	p := newPool(t, patient)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 10 {
				want := strings.Repeat("x", i)
				if got, err := p.Do(t.Context(), "", nil, []byte("echo "+want)); err != nil || string(got) != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
	if n := len(p.idle); n < 1 || n > 2 {
		t.Errorf("%d helpers are warm, want 1 or 2", n)
	}
}

func TestPool_Cancel(t *testing.T) {
	l := patient
	l.Helpers = 1
	p := newPool(t, l)
	h := warm(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spin := make(chan error)
	go func() {
		_, err := p.Do(ctx, "", nil, []byte("spin"))
		spin <- err
	}()
	untilTaken(t, p, h)
	waiting, stopWaiting := context.WithTimeout(t.Context(), time.Millisecond)
	defer stopWaiting()
	if _, err := p.Do(waiting, "", nil, []byte("echo")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a helper: got %v, want %v", err, context.DeadlineExceeded)
	}
	cancel()
	if err := <-spin; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	<-h.process.Done()
	warm(t, p)
	if _, err := p.Do(ctx, "", nil, []byte("echo")); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: got %v, want %v", err, context.Canceled)
	}
}

// TestPool_Fair: a principal whose jobs do not end does not delay the jobs of another principal, and does not use the
// other's helper.
func TestPool_Fair(t *testing.T) {
	l := patient
	l.Helpers = 2
	p := newPool(t, l)
	bob := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err := p.Do(ctx, "bob", nil, []byte("echo x")); err != nil || string(got) != "x" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	bob()
	own := p.idle[0]
	ctx, cancel := context.WithCancel(t.Context())
	var hostile sync.WaitGroup
	for range 64 {
		hostile.Go(func() {
			if _, err := p.Do(ctx, "alice", nil, []byte("spin")); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
	}
	for open, waiting := p.slots.Use(); open+waiting < 64; open, waiting = p.slots.Use() {
		runtime.Gosched()
	}
	for range 3 {
		bob()
	}
	if p.mu.Lock(); len(p.idle) != 1 || p.idle[0] != own {
		t.Errorf("the helper of the other was used up")
	}
	p.mu.Unlock()
	cancel()
	hostile.Wait()
}

func TestPool_Close(t *testing.T) {
	p := New(testRole, patient, unwatched)
	h := warm(t, p)
	spin := make(chan error)
	go func() {
		_, err := p.Do(context.Background(), "", nil, []byte("spin"))
		spin <- err
	}()
	untilTaken(t, p, h)
	p.Close()
	if err := <-spin; !errors.Is(err, ErrClosed) {
		t.Errorf("interrupted by Close: got %v, want %v", err, ErrClosed)
	}
	if h.process.ExitReason() == "" {
		t.Error("a helper lives after Close")
	}
	if _, err := p.Do(context.Background(), "", nil, []byte("echo")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v, want %v", err, ErrClosed)
	}
	p.Close()
	New(testRole, patient, unwatched).Close()
}

func TestPool_Idle(t *testing.T) {
	l := patient
	l.Idle = time.Millisecond
	p := newPool(t, l)
	do(t, p, nil, "echo")
	p.helpers.Wait() // the idle helper ends only because Limits.Idle is over
	p.mu.Lock()
	n := len(p.idle)
	p.mu.Unlock()
	if n != 0 {
		t.Errorf("%d helpers are kept after their idleness", n)
	}
	do(t, p, nil, "echo")
}

func TestPool_HelperDied(t *testing.T) {
	p := newPool(t, patient)
	h := warm(t, p)
	h.kill()
	<-h.process.Done()
	if warm(t, p) == h {
		t.Error("a dead helper was used")
	}
}

func TestPool_Time(t *testing.T) {
	for _, job := range []string{"spin", "match"} {
		l := patient
		l.Time = 200 * time.Millisecond
		p := newPool(t, l)
		if _, err := p.Do(t.Context(), "", nil, []byte(job)); !errors.Is(err, ErrTime) {
			t.Errorf("%s: got %v, want %v", job, err, ErrTime)
		}
	}
}

// TestPool_Memory: however a job uses up memory, a guard ends it soon. The jobs run one after the other, since a guard
// that gets no CPU time reacts late.
func TestPool_Memory(t *testing.T) {
	p := newPool(t, patient)
	for _, job := range []string{"grow", "at-once", "recurse"} {
		h := warm(t, p)
		if _, err := p.Do(t.Context(), "", nil, []byte(job)); !errors.Is(err, ErrMemory) {
			t.Errorf("%s: got %v, want %v", job, err, ErrMemory)
		}
		<-h.process.Done()
		t.Log(job)
		mcptest.CheckHelperMemory(t, peak(h.process))
	}
}

// TestPool_Large: a job or a reply over the helper's memory limit fails with ErrMemory. Such a job is not sent to a
// helper; such a reply ends the helper.
func TestPool_Large(t *testing.T) {
	l := patient
	l.Memory = 128 << 20
	p := newPool(t, l)
	h := warm(t, p)
	large := make([]byte, l.Memory+1)
	if _, err := p.Do(t.Context(), "", nil, []byte("echo "), large); !errors.Is(err, ErrMemory) {
		t.Errorf("a large job: got %v, want %v", err, ErrMemory)
	}
	if warm(t, p) != h {
		t.Error("a job that was not sent ended a helper")
	}
	reply := func(context.Context, []byte) []byte { return large }
	if _, err := p.Do(t.Context(), "", reply, []byte("ask x")); !errors.Is(err, ErrMemory) {
		t.Errorf("a large reply: got %v, want %v", err, ErrMemory)
	}
	if warm(t, p) == h {
		t.Error("a dead helper was used")
	}
}

// TestPool_Forget: after a job that used much memory, the helper frees memory and calls the worker's Forget.
func TestPool_Forget(t *testing.T) {
	p := newPool(t, patient)
	if got := do(t, p, nil, "forgotten"); got != "0" {
		t.Errorf("forgotten %s times at the start", got)
	}
	do(t, p, nil, "use 40000000")
	if got := do(t, p, nil, "forgotten"); got == "0" {
		t.Error("nothing was forgotten after a large job")
	}
}

// TestPool_Broken: the error for a helper that crashed contains the crash message.
func TestPool_Broken(t *testing.T) {
	p := newPool(t, patient)
	for job, want := range map[string]string{
		"panic boom":        "the test helper broke: panic: boom",
		"panic-beside boom": "the test helper broke: panic: boom",
		"no such job":       "the test helper broke: panic: runtime error: invalid memory address or nil pointer dereference",
		"exit 3":            "the test helper ended with exit status 3: that was all",
	} {
		if _, err := p.Do(t.Context(), "", nil, []byte(job)); err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", job, err, want)
		}
	}
	warm(t, p)
}

func TestPool_NotStarted(t *testing.T) {
	for name, tt := range map[string]struct {
		role  string
		start Starter
		want  string
	}{
		"unknown role": {"nothing", unwatched, "starting the nothing helper: it ended with exit status 100: " +
			`mcpx: error: MCPX_ROLE asks for the role "nothing", which this program does not have`},
		"no process":   {testRole, func(proc.Spec) (*proc.Process, error) { return nil, io.ErrNoProgress }, "starting the test helper: " + io.ErrNoProgress.Error()},
		"other output": {"babbler", unwatched, `starting the babbler helper: it sent "hello", which is not the start of an expected frame`},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(tt.role, patient, tt.start)
			defer p.Close()
			_, err := p.Do(t.Context(), "", nil, []byte("echo"))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestPool_NoPlay: a program whose main does not call Play does not start itself again and again.
func TestPool_NoPlay(t *testing.T) {
	t.Setenv(proc.RoleVar, testRole+" 1 1 1")
	p := newPool(t, patient)
	_, err := p.Do(t.Context(), "", nil, []byte("echo"))
	want := `starting the test helper: this process was started in the role "test", but its main does not know that role`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestRoles_Unknown(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), proc.RoleVar+"=other 1 2")
	out, _ := cmd.CombinedOutput()
	want := "mcpx: error: MCPX_ROLE asks for the role \"other\", which this program does not have\n"
	if cmd.ProcessState.ExitCode() != exitUsage || string(out) != want {
		t.Errorf("it ended with %v: %s", cmd.ProcessState, out)
	}
}

// begin gives a job to a new helper, without the guard of the parent.
func begin(t *testing.T, p *Pool, job string) *helper {
	t.Helper()
	h, err := p.acquire(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.kill)
	if err := h.write(kindJob, 1, []byte(job)); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHelper_StdinClosed: a helper exits when its stdin is closed, even during a job.
func TestHelper_StdinClosed(t *testing.T) {
	p := newPool(t, patient)
	h := begin(t, p, "spin")
	h.process.Stdin().Close()
	<-h.process.Done()
	if state := h.process.State(); !state.Exited() || state.ExitCode() != exitOK {
		t.Errorf("the helper ended with %v, want by itself", state)
	}
}

// TestHelper_Overtime: a helper exits itself if its parent does not check the time.
func TestHelper_Overtime(t *testing.T) {
	l := patient
	l.Time = time.Millisecond
	p := newPool(t, l)
	h := begin(t, p, "spin")
	<-h.process.Done()
	if err := h.explain(io.EOF); h.process.State().ExitCode() != exitTime || !errors.Is(err, ErrTime) {
		t.Errorf("the helper ended with %v: %v", h.process.State(), err)
	}
}
