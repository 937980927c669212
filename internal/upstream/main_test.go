package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	mcptest.AtOnce(16)
	os.Exit(m.Run())
}

// patience bounds how long a test waits for something. Only a failing test waits this long.
const patience = 2 * time.Minute

// silence and childSilence bound waits that must time out: of a call, and of an attempt to connect to a child process.
// Whatever must succeed before must be faster than that even on the slowest machine. Tests that wait this long run in
// parallel.
const (
	silence      = 2 * time.Second
	childSilence = 6 * time.Second
)

// over returns the options of a server that is reached over the network.
func over(kind, url string) transport.Options {
	return transport.Options{Name: "fake", Type: kind, Remote: transport.Remote{URL: url}}
}

// at returns the spec of a server that is reached over the network.
func at(kind, url string) Spec { return Spec{Options: over(kind, url)} }

// serving returns the spec of a server in this process.
func serving(serve func(ctx context.Context, in io.Reader, out io.Writer) error) Spec {
	return Spec{Options: transport.Options{Name: "fake", Type: transport.InProcess, Serve: serve}}
}

// stdio returns the spec of a fake server that runs as a child process.
func stdio(t testing.TB, fake mcptest.Spec) Spec {
	t.Helper()
	command, args, env := fake.Stdio(t)
	spec := Spec{Options: transport.Options{Name: "fake", Type: transport.Stdio, Launch: transport.Launch{Command: command, Args: args}}}
	for name, value := range env {
		spec.Launch.Env = append(spec.Launch.Env, name+"="+value)
	}
	return spec
}

// logs collects the logs of the fake servers of an in-process upstream, oldest first.
type logs struct {
	mu   sync.Mutex
	list []func() mcptest.Log
}

func (l *logs) all() mcptest.Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all mcptest.Log
	for _, one := range l.list {
		all = append(all, one()...)
	}
	return all
}

func (l *logs) starts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// inProcess returns the spec of a fake server in this process. It works in fake time (see bubble).
func inProcess(t testing.TB, fake mcptest.Spec) (Spec, *logs) {
	t.Helper()
	all := &logs{}
	return Spec{Options: transport.Options{Name: "fake", Type: transport.InProcess, Serve: fake.Serve(t, func(log func() mcptest.Log) {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.list = append(all.list, log)
	})}}, all
}

// connect starts an upstream that ends with the test.
func connect(t testing.TB, spec Spec) *Upstream {
	t.Helper()
	u := New(spec)
	u.Start()
	t.Cleanup(func() { u.Close(0) })
	return u
}

// ready starts an upstream and waits until it is ready.
func ready(t testing.TB, spec Spec) *Upstream {
	t.Helper()
	u := connect(t, spec)
	awaitState(t, u, catalog.Ready)
	return u
}

func awaitState(t testing.TB, u *Upstream, state catalog.State) Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		u.mu.Lock()
		status, changed := u.status, u.changed
		u.mu.Unlock()
		if status.State == state {
			return status
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("state %s (%s), want %s", status.State, status.Reason, state)
		}
	}
}

// text calls a tool and returns the text of its first block.
func text(u *Upstream, tool, arguments string) (string, error) {
	return textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(arguments))}))
}

func textOf(raw json.RawMessage, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	if result.IsError || len(result.Content) == 0 {
		return "", fmt.Errorf("result %s", raw)
	}
	return result.Content[0].Text, nil
}

// mustEcho fails the test unless the upstream answers a call.
func mustEcho(t testing.TB, u *Upstream) {
	t.Helper()
	if got, err := text(u, "echo", `{"text":"still here"}`); err != nil || got != "still here" {
		t.Errorf("echo: got %q, %v", got, err)
	}
}

// syncBuffer is a buffer for logs that tests can read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// logged gives spec a logger and returns the buffer that the logger writes to.
func logged(spec *Spec) *syncBuffer {
	var out syncBuffer
	spec.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return &out
}

// variant is a combination of transport and era.
type variant struct {
	name   string
	modern bool
	// start serves the fake server. The func log returns what the fake recorded.
	start func(t testing.TB, fake mcptest.Spec) (spec Spec, log func() mcptest.Log)
}

func overHTTP(modern bool) func(testing.TB, mcptest.Spec) (Spec, func() mcptest.Log) {
	return func(t testing.TB, fake mcptest.Spec) (Spec, func() mcptest.Log) {
		if modern {
			fake.Era = mcptest.EraModern
		}
		server := fake.HTTP(t)
		return at(transport.HTTP, server.URL), server.Log
	}
}

func overStdio(modern bool) func(testing.TB, mcptest.Spec) (Spec, func() mcptest.Log) {
	return func(t testing.TB, fake mcptest.Spec) (Spec, func() mcptest.Log) {
		if modern {
			fake.Era = mcptest.EraModern
		}
		fake = fake.WithFiles(t)
		return stdio(t, fake), func() mcptest.Log { return fake.Log(t) }
	}
}

var variants = []variant{
	{"stdio legacy", false, overStdio(false)},
	{"stdio modern", true, overStdio(true)},
	{"stdio headers", false, func(t testing.TB, fake mcptest.Spec) (Spec, func() mcptest.Log) {
		fake.ContentLength = true
		spec, log := overStdio(false)(t, fake)
		spec.Launch.ContentLength = true
		return spec, log
	}},
	{"http legacy", false, overHTTP(false)},
	{"http modern", true, overHTTP(true)},
	{"http legacy, event streams", false, func(t testing.TB, fake mcptest.Spec) (Spec, func() mcptest.Log) {
		fake.AnswerSSE = true
		return overHTTP(false)(t, fake)
	}},
	{"sse", false, func(t testing.TB, fake mcptest.Spec) (Spec, func() mcptest.Log) {
		server := fake.SSE(t)
		return at(transport.SSE, server.URL), server.Log
	}},
	{"in-process", false, func(t testing.TB, fake mcptest.Spec) (Spec, func() mcptest.Log) {
		spec, all := inProcess(t, fake)
		return spec, all.all
	}},
}

// eachVariant runs a test for each element of variants, and checks for leaked goroutines and processes.
func eachVariant(t *testing.T, fake mcptest.Spec, run func(t *testing.T, v variant, spec Spec, log func() mcptest.Log)) {
	t.Helper()
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			spec, log := v.start(t, fake)
			run(t, v, spec, log)
		})
	}
}

// variantsAtOnce is like eachVariant, for tests that wait a long time: the variants run at the same time. They
// begin when the test function that calls variantsAtOnce returns.
func variantsAtOnce(t *testing.T, fake mcptest.Spec, run func(t *testing.T, v variant, spec Spec, log func() mcptest.Log)) {
	t.Helper()
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			mcptest.Parallel(t)
			spec, log := v.start(t, fake)
			run(t, v, spec, log)
		})
	}
}

func contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: got %q, want %q in it", what, text, part)
		}
	}
}
