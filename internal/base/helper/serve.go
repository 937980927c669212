package helper

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"
)

// These are the exit codes of helper processes.
const (
	exitOK     = 0  // stdin was closed, or the role is finished
	exitFatal  = 2  // set by the Go runtime: panic, out of memory, stack overflow
	exitSignal = -1 // what package os reports for a process killed by a signal
	exitUsage  = 100
	exitMemory = 101
	exitTime   = 102
)

const (
	// gcPercent is the value for debug.SetGCPercent. It keeps the heap of a helper small.
	gcPercent = 60
	// maxStack bounds a goroutine's stack, in bytes. A deeper recursion ends the helper, and Pool.Do returns ErrMemory. The Go
	// runtime's own bound is 1 GB.
	maxStack = 64 << 20
	// trimAbove is the heap size, in bytes, above which a helper frees memory between two jobs.
	trimAbove = 24 << 20
	// overtime is how long after Limits.Time the helper exits itself, if the parent has not killed it.
	overtime = 500 * time.Millisecond
)

// Worker executes the jobs of a role in the helper, one after another.
type Worker interface {
	// Do executes a job and returns the answer.
	Do(*Job) []byte
	// Forget frees what Do keeps from one job to the next. It is called when the helper has become too large.
	Forget()
}

// Serve makes this process a helper whose jobs a Worker executes. The process exits when the parent closes stdin or a limit is
// exceeded. Serve returns only if nothing can be sent to the parent any more. Serve calls start once. In its Limits, only Time,
// Memory and Frame are set.
func Serve(start func(Limits) Worker) {
	role, limits, err := ownRole()
	if err != nil {
		os.Exit(exitUsage)
	}
	os.Clearenv()
	time.Local = time.UTC // jobs must not see this machine's time zone
	// These signals may be sent to the parent and all its children. The parent decides when a helper ends.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	bindProcess(processName(role), limits.Memory)
	runtime.GOMAXPROCS(2) // one for the job, one for its guard
	debug.SetGCPercent(gcPercent)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(limits.Memory - limits.Memory/8)
	p := &parent{w: os.Stdout, jobs: make(chan *Job), replies: make(map[uint64]chan<- []byte)}
	// This goroutine lasts as long as the process. During a job only this goroutine notices that the parent has died,
	// so it exits the process.
	go func() {
		p.receive(bufio.NewReader(os.Stdin), limits.Memory)
		os.Exit(exitOK)
	}()
	p.serve(start(limits), limits)
}

type parent struct {
	jobs chan *Job // unbuffered

	// writing is held during a write to w, and when a job ends, so that no request is sent after the job's answer. It
	// is locked before mu.
	writing sync.Mutex
	w       io.Writer

	mu      sync.Mutex
	last    uint64                   // guarded by mu; number of the last request
	replies map[uint64]chan<- []byte // guarded by mu; one buffered channel for each request without a reply
}

// serve executes jobs until nothing can be sent to the parent any more.
func (p *parent) serve(worker Worker, limits Limits) {
	if writeFrame(p.w, kindReady, 0) != nil {
		return
	}
	used := newHeapMeter()
	for job := range p.jobs {
		stop := restrain(limits, used)
		answer := worker.Do(job)
		stop()
		if p.finish(job, answer) != nil {
			return
		}
		if used.read() > trimAbove {
			worker.Forget()
			debug.FreeOSMemory()
		}
	}
}

// receive reads jobs and replies from the parent until EOF. It runs during jobs too, so that EOF is noticed at once. If a job
// or reply has more than memory bytes, or the data is invalid, receive exits the process.
func (p *parent) receive(r io.Reader, memory int64) {
	for {
		f, err := readFrame(r, string(kindJob)+string(kindReply), memory)
		if _, long := errors.AsType[frameError](err); long {
			os.Exit(exitMemory)
		}
		if err != nil {
			return
		}
		if f.kind == kindJob {
			p.jobs <- &Job{Body: f.body, parent: p, number: f.number, over: make(chan struct{})}
			continue
		}
		p.mu.Lock()
		reply := p.replies[f.number] // nil if the job has ended
		delete(p.replies, f.number)
		p.mu.Unlock()
		if reply != nil {
			reply <- f.body
		}
	}
}

func (p *parent) finish(job *Job, answer []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	close(job.over)
	return writeFrame(p.w, kindAnswer, job.number, answer)
}

// Job is a job that is being executed, as its Worker sees it.
type Job struct {
	Body []byte

	parent *parent
	number uint64
	over   chan struct{} // closed when Do has returned
}

// errOver is the error of Ask after the Worker has returned the answer of the job.
var errOver = errors.New("the job is over")

// Ask sends a request to the parent and returns the reply. It is safe for concurrent use. When the job has ended, Ask
// fails with errOver, even if it is waiting for a reply.
func (j *Job) Ask(request []byte) ([]byte, error) {
	p := j.parent
	reply := make(chan []byte, 1)
	number, err := p.request(j, request, reply)
	if err != nil {
		return nil, err
	}
	select {
	case body := <-reply:
		return body, nil
	case <-j.over:
		p.mu.Lock()
		delete(p.replies, number)
		p.mu.Unlock()
		return nil, errOver
	}
}

// request sends a request unless the job has ended, and returns the number of the request.
func (p *parent) request(j *Job, request []byte, reply chan<- []byte) (uint64, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	select {
	case <-j.over:
		return 0, errOver
	default:
	}
	p.mu.Lock()
	p.last++
	number := p.last
	p.replies[number] = reply
	p.mu.Unlock()
	return number, writeFrame(p.w, kindRequest, number, request)
}

// restrain exits the process if the job uses too much memory, or if it takes too long and the parent does not kill the
// process. stop ends this watch.
func restrain(limits Limits, used *heapMeter) (stop func()) {
	timeout := time.AfterFunc(limits.Time+overtime, func() { os.Exit(exitTime) })
	look := time.NewTicker(lookEvery)
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends when stop is called, which waits for it
		defer close(ended)
		for {
			select {
			case <-ending:
				return
			case <-look.C:
				if used.read() > limits.Memory {
					os.Exit(exitMemory)
				}
			}
		}
	}()
	return func() {
		timeout.Stop()
		look.Stop()
		close(ending)
		<-ended
	}
}

// heapMeter measures how much memory the Go runtime has from the operating system. Memory that is allocated but not yet written to
// is included. Only one goroutine may use a heapMeter at a time.
type heapMeter struct{ samples []metrics.Sample }

func newHeapMeter() *heapMeter {
	return &heapMeter{[]metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}}
}

func (m *heapMeter) read() int64 {
	metrics.Read(m.samples)
	return int64(m.samples[0].Value.Uint64() - m.samples[1].Value.Uint64())
}
