package jq

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// workerVar makes this executable a worker; its value are the limits.
const workerVar = "MCPX_JQ_WORKER"

// The codes with which a worker ends.
const (
	exitOrphan = 0  // stdin closed
	exitFatal  = 2  // the runtime's: out of memory, stack overflow
	exitSignal = -1 // package os has this for a process that a signal killed
	exitUsage  = 100
	exitMemory = 101
	exitTime   = 102
)

const (
	// gcPercent keeps a worker small; a filter is done before it costs much.
	gcPercent = 60
	// maxStack is the size of a goroutine's stack at most: for values nested by the
	// million, which nothing could read. The runtime's own bound is 1 GB.
	maxStack = 64 << 20
	// trimAbove is the heap that a worker may keep between two runs.
	trimAbove = 24 << 20
	// overtime is what a filter gets beyond its time before the worker itself ends:
	// normally the parent is first.
	overtime = 500 * time.Millisecond
)

func (l Limits) encode() string {
	return fmt.Sprintf("%d %d %d", l.Time, l.Memory, l.Output)
}

func decodeLimits(s string) (l Limits, err error) {
	_, err = fmt.Sscanf(s, "%d %d %d", &l.Time, &l.Memory, &l.Output)
	return l, err
}

// Main serves as a worker and exits if this process was started as one; otherwise it
// does nothing. Call it first thing in main, and in TestMain: whatever runs before it
// costs each worker time and memory.
func Main() {
	conf, ok := os.LookupEnv(workerVar)
	if !ok {
		return
	}
	limits, err := decodeLimits(conf)
	if err != nil {
		os.Exit(exitUsage)
	}
	os.Clearenv()
	time.Local = time.UTC // localtime and strflocaltime tell nothing about this machine
	// They may be meant for everything that belongs to the parent. It decides when we end.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	bindProcess(limits.Memory)
	runtime.GOMAXPROCS(2) // the filter, and what watches it
	debug.SetGCPercent(gcPercent)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(limits.Memory - limits.Memory/8)
	serve(limits, os.Stdin, os.Stdout)
	os.Exit(exitOrphan)
}

// request is a filter and its input.
type request struct{ filter, input []byte }

// serve answers requests until r closes, or w.
func serve(limits Limits, r io.Reader, w io.Writer) {
	requests := make(chan request)
	// It ends with the process. While a filter runs it is the one that learns of the
	// parent's death, so it ends the process itself.
	go func() {
		receive(limits, bufio.NewReader(r), requests)
		os.Exit(exitOrphan)
	}()
	if writeFrame(w, nil) != nil {
		return
	}
	e := &evaluator{maxOutput: limits.Output}
	used := newHeapMeter()
	for req := range requests {
		stop := restrain(limits, used)
		data := e.answer(string(req.filter), req.input)
		stop()
		if writeFrame(w, data) != nil {
			return
		}
		req, data = request{}, nil
		// Compiled filters keep their regular expressions, which are in the heap too.
		if used.read() > trimAbove {
			e.forget()
			debug.FreeOSMemory()
		}
	}
}

// receive reads requests until there are no more. It goes on to read while a filter
// runs: that is how it sees the end.
func receive(limits Limits, r io.Reader, requests chan<- request) {
	for {
		filter, err := readFrame(r, maxFilter)
		if err != nil {
			return
		}
		input, err := readFrame(r, limits.Memory)
		if errors.Is(err, errFrameSize) {
			os.Exit(exitMemory)
		}
		if err != nil {
			return
		}
		requests <- request{filter, input}
	}
}

// restrain ends the process when the filter under way takes too much memory or, should
// the parent not do so, time. It holds until stop.
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

// heapMeter reads what the runtime holds of the machine's memory. An allocation is in
// it before its first byte is written. Only one goroutine at a time uses it.
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
