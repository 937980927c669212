package helper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/proc"
)

const (
	// startLimit is how long a new helper may take until it is ready for a job.
	startLimit = 10 * time.Second
	// lookEvery is the time between two checks of a helper's memory. In this time a process can fill only a few
	// megabytes.
	lookEvery = 2 * time.Millisecond
)

// helper is a helper process as its parent sees it. It executes only one job at a time.
type helper struct {
	pool    *Pool
	process *proc.Process
	timer   *time.Timer // calls retire at the end of the idle time
	job     uint64      // the number of the last job
	owner   string      // owner of the last job

	writing sync.Mutex // held during a write to stdin
}

// startHelper starts a helper process and waits until it is ready. The caller has incremented p.helpers; when the
// process has ended, startHelper decrements it.
func startHelper(ctx context.Context, p *Pool) (*helper, error) {
	process, err := p.startProcess()
	if err != nil {
		p.helpers.Done()
		return nil, fmt.Errorf("starting the %s helper: %w", p.role, err)
	}
	h := &helper{pool: p, process: process}
	go func() { // ends after the process; Pool.Close waits for it
		defer p.helpers.Done()
		<-process.Done()
		_ = process.Close(context.Background(), proc.Grace{}) // the process has ended, so this returns soon
	}()
	late := fmt.Errorf("starting the %s helper: it is not ready after %v", p.role, startLimit)
	_, unguard := h.guard(ctx, bounds{time: startLimit, late: late})
	_, err = readFrame(process.Stdout(), string(kindReady), 0)
	cause := unguard()
	if cause == nil && err == nil {
		return h, nil
	}
	h.kill()
	if cause != nil {
		return nil, cause
	}
	if _, garbage := errors.AsType[frameError](err); garbage {
		return nil, fmt.Errorf("starting the %s helper: %w", p.role, err)
	}
	<-process.Done()
	return nil, fmt.Errorf("starting the %s helper: it ended with %s: %w", p.role, process.ExitReason(), h.lastWords(err))
}

func (p *Pool) startProcess() (*proc.Process, error) {
	exe, err := proc.Executable()
	if err != nil {
		return nil, err
	}
	env := []string{
		roleEnv(p.role, p.limits),
		"GOTRACEBACK=none", // keeps crash messages short, since explain uses their first line
	}
	if root, ok := os.LookupEnv("SYSTEMROOT"); ok { // Windows loads system libraries from this folder
		env = append(env, "SYSTEMROOT="+root)
	}
	return p.start(proc.Spec{
		Command:     exe,
		Name:        processName(p.role),
		Env:         env,
		Dir:         filepath.VolumeName(exe) + string(filepath.Separator),
		StderrBytes: 1 << 10, // for crash messages
	})
}

// processName returns the name that a helper has in ps.
func processName(role string) string { return "mcpx-" + role }

// do sends a job and returns the answer. After an error the helper must not be used again.
func (h *helper) do(ctx context.Context, reply Reply, job [][]byte) ([]byte, error) {
	l := h.pool.limits
	guarded, unguard := h.guard(ctx, bounds{time: l.Time, late: ErrTime, memory: l.Memory})
	h.job++
	answer, err := h.exchange(guarded, reply, job)
	if cause := unguard(); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, h.explain(err)
	}
	return answer, nil
}

// exchange sends a job, handles the helper's requests, and reads the answer. When the helper is killed, ctx ends, and
// reads and writes fail. When exchange returns, all calls of reply have returned.
func (h *helper) exchange(ctx context.Context, reply Reply, job [][]byte) ([]byte, error) {
	if err := h.write(kindJob, h.job, job...); err != nil {
		return nil, err
	}
	kinds := string(kindAnswer)
	if reply != nil {
		kinds += string(kindRequest)
	}
	var replies sync.WaitGroup
	defer replies.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	free := make(chan struct{}, h.pool.limits.Requests)
	for {
		f, err := readFrame(h.process.Stdout(), kinds, h.pool.limits.Frame)
		if err != nil {
			return nil, err
		}
		if f.kind == kindAnswer {
			if f.number != h.job {
				return nil, frameError(fmt.Sprintf("an answer to job %d during job %d", f.number, h.job))
			}
			return f.body, nil
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done(): // the helper was killed, so the next read fails
			continue
		}
		replies.Go(func() {
			defer func() { <-free }()
			body := reply(ctx, f.body)
			if ctx.Err() == nil {
				_ = h.write(kindReply, f.number, body) // if this fails, the next read fails too
			}
		})
	}
}

func (h *helper) write(kind byte, number uint64, parts ...[]byte) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	return writeFrame(h.process.Stdin(), kind, number, parts...)
}

// explain kills a helper, and returns an error that explains why an exchange with it failed. The caller has checked
// that guard did not kill the helper.
func (h *helper) explain(err error) error {
	h.kill()
	if _, garbage := errors.AsType[frameError](err); garbage {
		return fmt.Errorf("the %s helper was ended: %w", h.pool.role, err)
	}
	<-h.process.Done()
	words := h.lastWords(err)
	if state := h.process.State(); state != nil {
		switch code := state.ExitCode(); {
		case code == exitTime:
			return ErrTime
		case code == exitFatal && strings.HasPrefix(words.Error(), "panic: "):
			return fmt.Errorf("the %s helper broke: %w", h.pool.role, words)
		// exitFatal means that the Go runtime has found no memory, or that the stack is full. exitSignal means that a signal has
		// killed the process: the kernel sends KILL if it has no memory. If somebody else sends KILL, that looks the same.
		case code == exitMemory, code == exitFatal, code == exitSignal:
			return ErrMemory
		}
	}
	return fmt.Errorf("the %s helper ended with %s: %w", h.pool.role, h.process.ExitReason(), words)
}

// lastWords returns an error with the first line of the last kilobyte that the helper wrote to stderr. If the helper wrote nothing,
// lastWords returns err. The process must have ended.
func (h *helper) lastWords(err error) error {
	line, _, _ := strings.Cut(strings.TrimSpace(h.process.StderrTail()), "\n")
	if line == "" {
		return err
	}
	return errors.New(line)
}

// kill makes the process end. It returns at once, before the process has ended.
func (h *helper) kill() { h.process.Kill() }

// bounds are the limits of an exchange with a helper.
type bounds struct {
	time   time.Duration
	late   error // the error to return when time is over
	memory int64 // in bytes; 0 means no limit
}

// guard watches the helper during an exchange, until the caller calls unguard. It kills the helper when ctx ends, when the pool
// is closed, or when a bound is exceeded (the bound of the memory has an effect only on Linux). unguard returns the reason for
// the kill, or nil if the helper was not killed. The context guarded ends when the helper is killed or unguard is called.
func (h *helper) guard(ctx context.Context, b bounds) (guarded context.Context, unguard func() error) {
	guarded, cancel := context.WithCancel(ctx)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { // ends when unguard is called, which waits for it
		cause := h.watch(ctx, stop, b)
		if cause != nil {
			h.kill() // this also makes the reads and writes of the exchange fail
			cancel()
		}
		ended <- cause
	}()
	return guarded, func() error {
		close(stop)
		defer cancel()
		return <-ended
	}
}

func (h *helper) watch(ctx context.Context, stop chan struct{}, b bounds) error {
	timeout := time.NewTimer(b.time)
	defer timeout.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-h.pool.open.Done():
			return ErrClosed
		case <-timeout.C:
			return b.late
		case <-look.C:
			if b.memory > 0 && resident(h.process.PID()) > b.memory {
				return ErrMemory
			}
		}
	}
}
