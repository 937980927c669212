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

// The codes with which a helper ends.
const (
	exitOK     = 0  // stdin closed
	exitFatal  = 2  // the runtime's: a panic, out of memory, stack overflow
	exitSignal = -1 // package os has this for a process that a signal killed
	exitUsage  = 100
	exitMemory = 101
	exitTime   = 102
)

const (
	// gcPercent keeps a helper small; a job is done before it costs much.
	gcPercent = 60
	// maxStack is the size of a goroutine's stack at most: for values nested by the
	// million, which nothing could read. The runtime's own bound is 1 GB.
	maxStack = 64 << 20
	// trimAbove is the heap that a helper may keep between two jobs.
	trimAbove = 24 << 20
	// overtime is what a job gets beyond its time before the helper itself ends: normally
	// the parent is first.
	overtime = 500 * time.Millisecond
)

// Worker does the jobs of a role in the helper, one after another.
type Worker interface {
	// Do does a job and returns the answer.
	Do(*Job) []byte
	// Forget drops what Do keeps for later jobs, as the helper is too large.
	Forget()
}

// Serve makes this process a helper whose jobs a worker does. It returns when the parent
// closes stdin, and exits where a limit is exceeded. start gets the limits Time, Memory and
// Frame.
func Serve(start func(Limits) Worker) {
	role, limits, err := ownRole()
	if err != nil {
		os.Exit(exitUsage)
	}
	os.Clearenv()
	time.Local = time.UTC // what a job can see of it says nothing about this machine
	// They may be meant for everything that belongs to the parent. It decides when we end.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	bindProcess(processName(role), limits.Memory)
	runtime.GOMAXPROCS(2) // the job, and what watches it
	debug.SetGCPercent(gcPercent)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(limits.Memory - limits.Memory/8)
	p := &parent{w: os.Stdout, jobs: make(chan *Job), replies: make(map[uint64]chan<- []byte)}
	// It ends with the process. During a job it is the one that learns of the parent's
	// death, so it ends the process itself.
	go func() {
		p.receive(bufio.NewReader(os.Stdin), limits.Memory)
		os.Exit(exitOK)
	}()
	p.serve(start(limits), limits)
}

// parent is the helper's view of its parent.
type parent struct {
	jobs chan *Job // unbuffered

	// writing is held during a write to w, and while a job ends, so that no request follows
	// the answer of its job. It is locked before mu.
	writing sync.Mutex
	w       io.Writer

	mu      sync.Mutex
	last    uint64                   // guarded by mu: the number of the last request
	replies map[uint64]chan<- []byte // guarded by mu: of the requests under way, with room for one
}

// serve does jobs until the parent takes no answers any more.
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

// receive reads what the parent sends until there is no more. It goes on to read during a
// job: that is how it sees the end.
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
		reply := p.replies[f.number] // nil if its job is over
		delete(p.replies, f.number)
		p.mu.Unlock()
		if reply != nil {
			reply <- f.body
		}
	}
}

// finish ends a job and sends its answer.
func (p *parent) finish(job *Job, answer []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	close(job.over)
	return writeFrame(p.w, kindAnswer, job.number, answer)
}

// Job is a job under way, in the helper.
type Job struct {
	Body []byte

	parent *parent
	number uint64
	over   chan struct{} // closed when Do has returned
}

// ErrOver is what Ask returns when the worker has answered the job.
var ErrOver = errors.New("the job is over")

// Ask sends a request to the parent and returns its reply. It is safe for concurrent use. A
// request of a job that is over fails with ErrOver, also where it waits for its reply.
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
		return nil, ErrOver
	}
}

// request sends a request unless its job is over, and returns its number.
func (p *parent) request(j *Job, request []byte, reply chan<- []byte) (uint64, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	select {
	case <-j.over:
		return 0, ErrOver
	default:
	}
	p.mu.Lock()
	p.last++
	number := p.last
	p.replies[number] = reply
	p.mu.Unlock()
	return number, writeFrame(p.w, kindRequest, number, request)
}

// restrain ends the process when the job under way takes too much memory or, should the
// parent not do so, time. It holds until stop.
func restrain(limits Limits, used *heapMeter) (stop func()) {
	timeout := time.AfterFunc(limits.Time+overtime, func() { os.Exit(exitTime) })
	look := time.NewTicker(lookEvery)
	ending, ended := make(chan struct{}), make(chan struct{})
	// It ends at stop, which waits.
	go func() {
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

// heapMeter reads what the runtime holds of the machine's memory. An allocation is in it
// before its first byte is written. Only one goroutine at a time uses it.
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
