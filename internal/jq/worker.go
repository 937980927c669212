package jq

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mcpx/internal/base/proc"
)

const (
	// startLimit is how long a worker may take until it is ready. A machine that is
	// slower than this has other troubles.
	startLimit = 10 * time.Second
	// lookEvery is the time between two looks at the resident size of a worker. A
	// process can touch a few megabytes in that time.
	lookEvery = 2 * time.Millisecond
)

// worker is the parent's view of a worker process. Only one Run at a time uses it.
type worker struct {
	runner  *Runner
	process *proc.Process
	timer   *time.Timer // ends the idleness; set when idle
}

// startWorker starts a process and waits until it is ready. The caller has counted it
// in r.workers.
func startWorker(ctx context.Context, r *Runner) (*worker, error) {
	process, err := startProcess(r.limits, r.reaper)
	if err != nil {
		r.workers.Done()
		return nil, fmt.Errorf("starting a jq worker: %w", err)
	}
	w := &worker{runner: r, process: process}
	go func() { // ends after the process; Runner.Close waits for it
		defer r.workers.Done()
		<-process.Done()
		_ = process.Close(context.Background(), proc.Grace{}) // it has ended
	}()
	late := fmt.Errorf("starting a jq worker: it is not ready after %v", startLimit)
	unguard := w.guard(ctx, startLimit, late, 0)
	_, err = readFrame(process.Stdout(), 0)
	cause := unguard()
	if cause == nil && err == nil {
		return w, nil
	}
	w.kill()
	if cause != nil {
		return nil, cause
	}
	<-process.Done()
	return nil, fmt.Errorf("starting a jq worker: it ended with %s: %w", process.ExitReason(), err)
}

// startProcess starts this executable as a worker.
func startProcess(l Limits, reaper *proc.Reaper) (*proc.Process, error) {
	if _, ok := os.LookupEnv(workerVar); ok {
		// Without this, a test binary that forgets Main would start itself without end.
		return nil, errors.New("this process was started as one, but does not call Main")
	}
	exe, err := proc.Executable()
	if err != nil {
		return nil, err
	}
	env := []string{workerVar + "=" + l.encode()}
	if root, ok := os.LookupEnv("SYSTEMROOT"); ok { // Windows loads its libraries from there
		env = append(env, "SYSTEMROOT="+root)
	}
	return proc.Start(proc.Spec{
		Command:     exe,
		Name:        "mcpx-jq",
		Env:         env,
		Dir:         filepath.VolumeName(exe) + string(filepath.Separator),
		StderrBytes: 1 << 10, // the runtime's last words, which nobody reads
	}, reaper)
}

// run sends a request and returns the answer. After an error the worker is of no use.
func (w *worker) run(ctx context.Context, filter string, input []byte) (answer, error) {
	l := w.runner.limits
	unguard := w.guard(ctx, l.Time, limitError("time", l), l.Memory)
	err := writeFrame(w.process.Stdin(), []byte(filter))
	if err == nil {
		err = writeFrame(w.process.Stdin(), input)
	}
	var data []byte
	if err == nil {
		data, err = readFrame(w.process.Stdout(), l.Output+maxMessage+1)
	}
	if cause := unguard(); cause != nil {
		return nil, cause
	}
	if err != nil {
		w.kill()
		<-w.process.Done()
		return nil, w.explain(err)
	}
	return data, nil
}

// explain says why a worker that nobody here killed has ended.
func (w *worker) explain(err error) error {
	l := w.runner.limits
	if state := w.process.State(); state != nil {
		switch state.ExitCode() {
		case exitTime:
			return limitError("time", l)
		case exitMemory, exitFatal, exitSignal: // the kernel, or the runtime, found no memory
			return limitError("memory", l)
		}
	}
	return fmt.Errorf("running the filter: the jq worker ended with %s: %w", w.process.ExitReason(), err)
}

// ended reports whether the process is no more.
func (w *worker) ended() bool { return w.process.ExitReason() != "" }

// kill ends the process, soon. It does not wait.
func (w *worker) kill() { w.process.Kill() }

// guard watches the worker during an exchange with it, until the caller calls unguard,
// which returns why the worker was killed; nil: it was not. These kill it: the end of
// ctx, Close of the runner, the passing of limit, and a resident size over memory
// unless that is 0.
func (w *worker) guard(ctx context.Context, limit time.Duration, late error, memory int64) (unguard func() error) {
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { // ends with unguard, which waits for it
		cause := w.watch(ctx, stop, limit, late, memory)
		if cause != nil {
			w.kill() // the reads and writes of the exchange end with it
		}
		ended <- cause
	}()
	return func() error {
		close(stop)
		return <-ended
	}
}

func (w *worker) watch(ctx context.Context, stop chan struct{}, limit time.Duration, late error, memory int64) error {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-w.runner.closed:
			return ErrClosed
		case <-timeout.C:
			return late
		case <-look.C:
			if memory > 0 && resident(w.process.PID()) > memory {
				return limitError("memory", w.runner.limits)
			}
		}
	}
}
