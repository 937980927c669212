package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/proc"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
)

// fakesVar makes this program the process of the fakes over HTTP: what they keep
// is not mcpx's.
const fakesVar = "MCPX_SOAK_FAKES"

// maxLife is longer than any soak.
const maxLife = 48 * time.Hour

// host is what the fakes want of a test: folders, an end, a way to fail.
type host struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
	fakes    *exec.Cmd
	input    io.Closer
}

func newHost() *host { return &host{} }

// Helper implements testing.TB.
func (h *host) Helper() {}

// Fatal implements testing.TB.
func (h *host) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf implements testing.TB.
func (h *host) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Cleanup implements testing.TB.
func (h *host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanups = append(h.cleanups, f)
}

// TempDir implements testing.TB.
func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "mcpx-soak-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// close ends the fakes and removes what they left. Idempotent.
func (h *host) close() {
	if h.input != nil {
		h.input.Close()
		_ = h.fakes.Wait()
		h.input = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.cleanups) - 1; i >= 0; i-- {
		h.cleanups[i]()
	}
	h.cleanups = nil
}

// children are the fakes that are processes of mcpx, each with its fault.
var children = map[string]mcptest.Spec{
	"steady":     {},
	"modern":     {Era: mcptest.EraModern},
	"own":        {},
	"crashes":    {ExitAfterCalls: 15, ExitCode: 3},
	"hangs":      {HangAfterCalls: 20},
	"floods":     {StderrFlood: 1 << 20, Noise: true, BOM: true},
	"storms":     {ListChangedStorm: 100, ProgressStorm: 50, LateProgress: true},
	"odd":        {UnknownIDs: true, DuplicateAnswers: true, StringIDs: true, OddTools: true},
	"stubborn":   {ForkGrandchild: true, IgnoreTERM: true, IgnoreEOF: true, ExitAfterCalls: 40},
	"never":      {ExitAtOnce: true, ExitCode: 2},
	"half-reads": {StopReadingAfter: "tools/call"},
}

// remote are the fakes over HTTP: how each is served.
var remote = []struct {
	name, kind string
	spec       mcptest.Spec
}{
	{"http", upstream.HTTP, mcptest.Spec{}},
	{"http-own", upstream.HTTP, mcptest.Spec{AnswerSSE: true}},
	{"http-modern", upstream.HTTP, mcptest.Spec{Era: mcptest.EraModern, AnswerSSE: true}},
	{"sse", upstream.SSE, mcptest.Spec{}},
}

// servers are all upstreams.
func (h *host) servers(reaper *proc.Reaper) ([]registry.Server, error) {
	var servers []registry.Server
	add := func(spec upstream.Spec) {
		spec.CallTimeout, spec.ConnectTimeout = 4*time.Second, 5*time.Second
		spec.Health = upstream.Health{Interval: 2 * time.Second, Timeout: time.Second}
		spec.Reaper = reaper
		servers = append(servers, registry.Server{
			Spec: spec, Definition: spec.Name, Key: registry.Key(spec.Name),
			PerClient: strings.HasSuffix(spec.Name, "own"), SessionIdle: 5 * time.Second,
		})
	}
	for name, fake := range children {
		fake.MaxLife = maxLife
		command, args, env := fake.Stdio(h)
		spec := upstream.Spec{Name: name, Type: upstream.Stdio, Command: command, Args: args}
		for key, value := range env {
			spec.Env = append(spec.Env, key+"="+value)
		}
		add(spec)
	}
	urls, err := h.startRemote()
	if err != nil {
		return nil, err
	}
	for i, one := range remote {
		add(upstream.Spec{Name: one.name, Type: one.kind, URL: urls[i]})
	}
	return servers, nil
}

// startRemote starts the process of the fakes over HTTP, which ends with its
// input.
func (h *host) startRemote() (urls []string, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h.fakes = exec.Command(program)
	h.fakes.Env = append(os.Environ(), fakesVar+"=1")
	h.fakes.Stderr = os.Stderr
	input, err := h.fakes.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := h.fakes.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.fakes.Start(); err != nil {
		return nil, fmt.Errorf("starting the fakes: %w", err)
	}
	h.input = input
	lines := bufio.NewScanner(output)
	for len(urls) < len(remote) && lines.Scan() {
		urls = append(urls, lines.Text())
	}
	if len(urls) < len(remote) {
		return nil, fmt.Errorf("starting the fakes: %d of %d came up", len(urls), len(remote))
	}
	return urls, nil
}

// serveFakes is the process of the fakes over HTTP. Every few seconds something
// happens to one of them. It ends with stdin.
func serveFakes() {
	h := newHost()
	defer h.close()
	var fakes []*mcptest.HTTPServer
	for _, one := range remote {
		fake := one.spec.HTTP
		if one.kind == upstream.SSE {
			fake = one.spec.SSE
		}
		server := fake(h)
		fakes = append(fakes, server)
		fmt.Println(server.URL)
	}
	ended := make(chan struct{})
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	ticker := time.NewTicker(3 * time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
			for _, fake := range fakes {
				fake.Up()
			}
			upset(fakes[rand.IntN(len(fakes))], n)
		case <-ended:
			return
		}
	}
}

// upset does the next bad thing to a fake.
func upset(fake *mcptest.HTTPServer, n int) {
	switch n % 8 {
	case 0:
		fake.KillSessions()
	case 1:
		fake.CutConnections()
	case 2:
		fake.Restart()
	case 3:
		fake.Down()
	case 4:
		fake.Script(mcptest.Reset().On("tools/call"), mcptest.BadGateway().On("tools/call"))
	case 5:
		fake.Script(mcptest.StallAfter().On("tools/call"), mcptest.TooMany(time.Second).On("tools/call"))
	case 6:
		fake.Notify("notifications/tools/list_changed", `{}`)
	}
}
