package jq

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
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
	process *os.Process
	stdin   *os.File // our ends
	stdout  *os.File
	timer   *time.Timer // ends the idleness; set when idle

	done  chan struct{}    // closed when the process is reaped
	state *os.ProcessState // how it ended; to be read after done

	killOnce sync.Once
}

// startWorker starts a process and waits until it is ready. The caller has counted it
// in r.workers.
func startWorker(ctx context.Context, r *Runner) (*worker, error) {
	cmd, ours, err := command(r.limits)
	if err != nil {
		r.workers.Done()
		return nil, fmt.Errorf("starting a jq worker: %w", err)
	}
	w := &worker{runner: r, stdin: ours[0], stdout: ours[1], done: make(chan struct{})}
	started := make(chan error)
	// It ends after the process has. See Close for who waits.
	go func() {
		defer r.workers.Done()
		defer close(w.done)
		// The kernel's signal at the parent's death is in truth one at the death of the thread that
		// started the process. This thread sits in Wait as long as the process lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		cmd.Stdin.(*os.File).Close()
		cmd.Stdout.(*os.File).Close()
		w.process = cmd.Process
		started <- err
		if err == nil {
			cmd.Wait() // its error is in the state
			w.state = cmd.ProcessState
		}
	}()
	if err := <-started; err != nil {
		w.closePipes()
		return nil, fmt.Errorf("starting a jq worker: %w", err)
	}
	late := fmt.Errorf("starting a jq worker: it is not ready after %v", startLimit)
	g := w.guard(ctx, startLimit, late, 0)
	_, err = readFrame(w.stdout, 0)
	cause := g.end()
	if cause == nil && err == nil {
		return w, nil
	}
	w.kill()
	if cause != nil {
		return nil, cause
	}
	<-w.done
	return nil, fmt.Errorf("starting a jq worker: it ended with %v: %w", w.state, err)
}

// command prepares the start of a worker; ours are our ends of its stdin and stdout.
func command(l Limits) (cmd *exec.Cmd, ours [2]*os.File, err error) {
	if _, ok := os.LookupEnv(workerVar); ok {
		// Without this, a test binary that forgets Main would start itself without end.
		return nil, ours, errors.New("this process was started as one, but does not call Main")
	}
	exe, err := executable()
	if err != nil {
		return nil, ours, err
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, ours, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		inR.Close()
		inW.Close()
		return nil, ours, err
	}
	cmd = &exec.Cmd{
		Path:        exe,
		Args:        []string{"mcpx-jq"},
		Env:         []string{workerVar + "=" + l.encode()},
		Dir:         filepath.VolumeName(exe) + string(filepath.Separator),
		Stdin:       inR,
		Stdout:      outW,
		SysProcAttr: sysProcAttr(),
	}
	return cmd, [2]*os.File{inW, outR}, nil
}

// run sends a request and returns the answer. After an error the worker is of no use.
func (w *worker) run(ctx context.Context, filter string, input []byte) (answer, error) {
	l := w.runner.limits
	g := w.guard(ctx, l.Time, limitError("time", l), l.Memory)
	err := writeFrame(w.stdin, []byte(filter))
	if err == nil {
		err = writeFrame(w.stdin, input)
	}
	var data []byte
	if err == nil {
		data, err = readFrame(w.stdout, l.Output+maxMessage+1)
	}
	if cause := g.end(); cause != nil {
		return nil, cause
	}
	if err != nil {
		w.kill()
		<-w.done
		return nil, w.explain(err)
	}
	return data, nil
}

// explain says why a worker that nobody here killed has ended.
func (w *worker) explain(err error) error {
	l := w.runner.limits
	if status, ok := w.state.Sys().(syscall.WaitStatus); ok && signaled(status) {
		// By the kernel: it, or the runtime, found no memory.
		return limitError("memory", l)
	}
	switch w.state.ExitCode() {
	case exitTime:
		return limitError("time", l)
	case exitMemory, exitFatal:
		return limitError("memory", l)
	}
	return fmt.Errorf("running the filter: the jq worker ended with %v: %w", w.state, err)
}

// ended reports whether the process is no more.
func (w *worker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// kill ends the process, soon, and releases its pipes. Reaping is not waited for.
func (w *worker) kill() {
	w.killOnce.Do(func() {
		w.process.Kill()
		w.closePipes()
	})
}

func (w *worker) closePipes() {
	w.stdin.Close()
	w.stdout.Close()
}

// guard kills a worker that goes beyond a limit. There is one during each exchange
// with the worker.
type guard struct {
	stop  chan struct{}
	cause chan error
}

// guard starts to watch; end must be called. What kills the worker is the end of ctx,
// Close of the runner, the passing of limit, and a resident size over memory unless
// that is 0.
func (w *worker) guard(ctx context.Context, limit time.Duration, late error, memory int64) *guard {
	g := &guard{stop: make(chan struct{}), cause: make(chan error, 1)}
	// It ends at end, which waits for it.
	go func() {
		cause := w.watch(ctx, g.stop, limit, late, memory)
		if cause != nil {
			w.process.Kill() // the reads and writes of the exchange end with it
		}
		g.cause <- cause
	}()
	return g
}

// end stops the watch and returns why the worker was killed, nil if it was not.
func (g *guard) end() error {
	close(g.stop)
	return <-g.cause
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
			if memory > 0 && resident(w.process.Pid) > memory {
				return limitError("memory", w.runner.limits)
			}
		}
	}
}
