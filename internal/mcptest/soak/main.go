// Command soak runs mcpx for a long time between fakes that crash, hang, flood
// and storm and clients that come and go, and says whether anything grows.
//
//	go run ./internal/mcptest/soak -for 1h
//
// It exits with 1 if memory, goroutines or descriptors grow faster than their
// bound, or do not come back when the clients are gone. It is for Linux: other
// systems have no figures of processes and descriptors here.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/httpd"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/proc"
	"mcpx/internal/registry"
)

// options are the flags.
type options struct {
	length, every time.Duration
	clients       int
	pause         time.Duration // of a client between two calls
	long          int           // one in so many calls has a result over the limit
	heapSlope     float64       // MB a minute
	countSlope    float64       // goroutines, descriptors a minute
	heapFile      string
}

func readOptions() options {
	var o options
	short := flag.Bool("short", false, "three minutes, measured every ten seconds")
	flag.DurationVar(&o.length, "for", time.Hour, "how long the clients call")
	flag.DurationVar(&o.every, "every", time.Minute, "between two measurements")
	flag.IntVar(&o.clients, "clients", 6, "clients over HTTP at once; one over stdio comes on top")
	flag.DurationVar(&o.pause, "pause", 100*time.Millisecond, "of a client between two calls")
	flag.IntVar(&o.long, "long", 400, "one in so many calls has a result over the limit, which is kept for read_result")
	flag.Float64Var(&o.heapSlope, "heap-slope", 1, "most MB a minute by which the heap may grow")
	flag.Float64Var(&o.countSlope, "count-slope", 3, "most goroutines, and descriptors, a minute")
	flag.StringVar(&o.heapFile, "heap-profile", "", "where the heap profile goes that is taken when the clients are gone")
	flag.Parse()
	if *short {
		o.length, o.every = 3*time.Minute, 10*time.Second
	}
	return o
}

func main() {
	if os.Getenv(fakesVar) == "" {
		runtime.MemProfileRate = 16 << 10 // fine enough for what leaks in minutes
	}
	jq.Main()
	proc.ReaperMain()
	mcptest.Main()
	if os.Getenv(fakesVar) != "" {
		serveFakes()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx, readOptions())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak: error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run is the whole soak; ok says that nothing grew.
func run(ctx context.Context, o options) (ok bool, err error) {
	h := newHost()
	defer h.close()
	atStart := measure()
	a, err := assemble(h, o)
	if err != nil {
		return false, err
	}
	wait(ctx, 5*time.Second)
	idle := measure()
	fmt.Println(header)
	fmt.Println(idle.line("idle", nil))

	tally := newTally()
	calling, cancel := context.WithTimeout(ctx, o.length)
	clients := startClients(calling, a, o, tally)
	var samples []sample
	ticker := time.NewTicker(o.every)
	for calling.Err() == nil {
		select {
		case <-ticker.C:
			s := measure()
			samples = append(samples, s)
			fmt.Println(s.line(s.at.Sub(idle.at).Round(time.Second).String(), tally))
		case <-calling.Done():
		}
	}
	ticker.Stop()
	cancel()
	clients.Wait()
	// What belonged to the clients has its idle times to go.
	wait(ctx, 20*time.Second)
	after := measure()
	fmt.Println(after.line("after", tally))
	if err := writeHeap(o.heapFile); err != nil {
		return false, err
	}
	a.close()
	h.close()
	wait(ctx, time.Second)
	atEnd := measure()
	fmt.Println(atEnd.line("closed", tally))
	return report(o, samples, idle, after, atStart, atEnd, tally), nil
}

// writeHeap writes the heap profile, where one is wanted.
func writeHeap(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.Lookup("heap").WriteTo(f, 0)
}

// wait waits, less when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// assembly is mcpx in this process.
type assembly struct {
	front *front.Front
	url   string
	close func()
}

func assemble(h *host, o options) (*assembly, error) {
	reaper := proc.NewReaper()
	servers, err := h.servers(reaper)
	if err != nil {
		return nil, err
	}
	filters := jq.New(jq.Limits{Idle: 5 * time.Second})
	r := registry.New(servers, registry.Options{CacheDir: h.TempDir()})
	e := executor.New(r, executor.Options{TOON: true, TypeScript: true, ResultTokens: 20_000, Filter: filters, ExecWait: 2 * time.Second})
	f := front.New(r, e, front.Options{Version: "soak", StartupWait: time.Second})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	r.Start()
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { // ends with stop
		served <- httpd.Serve(serving, listener, httpd.Options{Endpoint: f.HTTP(), Grace: time.Second})
	}()
	return &assembly{front: f, url: "http://" + listener.Addr().String() + "/mcp", close: func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			fmt.Fprintln(os.Stderr, "soak: serving:", err)
		}
		f.Close()
		r.Close(5 * time.Second)
		filters.Close()
		_ = reaper.Close()
	}}, nil
}
