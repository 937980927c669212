package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// impatience is the timeout of calls to a server that does not answer.
const impatience = 400 * time.Millisecond

// ends says how calls to the bad server must end: soon after their timeout limit, and so that judge returns true. answer is the
// text that the caller got, want is the text that a good server returns.
type ends struct {
	limit time.Duration
	judge func(answer, want string, err error) bool
}

// answers is for a server that misbehaves but still answers. fails is for calls that get no answer; they must end with an error
// that says why. answersOrNot permits both. answersMarked is for an answer that has marks in place of invalid bytes. tooLarge
// is for an answer over the size limit.
var (
	answers       = ends{patience, answered}
	fails         = ends{impatience, failed}
	answersOrNot  = ends{impatience, func(a, w string, err error) bool { return answered(a, w, err) || failed(a, w, err) }}
	answersMarked = ends{patience, func(a, w string, err error) bool {
		return err == nil && a != w && strings.TrimLeft(a, "\ufffd") == w
	}}
	tooLarge = ends{patience, func(_, _ string, err error) bool {
		var large *request.TooLargeError
		return errors.As(err, &large)
	}}
)

func answered(answer, want string, err error) bool { return err == nil && answer == want }

func failed(_, _ string, err error) bool {
	var unavailable *request.UnavailableError
	var lost *request.LostError
	var timeout *request.TimeoutError
	return errors.As(err, &unavailable) || errors.As(err, &lost) || errors.As(err, &timeout)
}

// villain is a server that misbehaves.
type villain struct {
	name string
	// start creates the server. strike, if not nil, begins the misbehaviour after mcpx has connected to the server.
	start func(t *testing.T) (server Server, strike func())
	ends  ends
	// ask returns a call, with the answer that is expected for this text; nil means a call of the tool echo.
	ask func(text string) (tool, arguments, answer string)
}

func echo(text string) (string, string, string) { return "echo", `{"text":"` + text + `"}`, text }

func slow(string) (string, string, string) { return "slow", `{"ms":200}`, "slept 200 ms" }

// longEcho returns a call with arguments so long that writing them blocks if the server does not read its input.
func longEcho(text string) (string, string, string) {
	text = strings.Repeat("x", 200<<10) + text
	return "echo", `{"text":"` + text + `"}`, text
}

func asChild(fake mcptest.Spec) func(*testing.T) (Server, func()) {
	return func(t *testing.T) (Server, func()) { return child(t, "bad", fake), nil }
}

// onWeb serves a fake over HTTP, with these faults in its answers to calls.
func onWeb(fake mcptest.Spec, faults ...mcptest.Fault) func(*testing.T) (Server, func()) {
	return func(t *testing.T) (Server, func()) {
		server := fake.HTTP(t)
		server.Script(faults...)
		return Server{Spec: over(transport.HTTP, "bad", server.URL)}, nil
	}
}

func behindProxy(mode mcptest.ProxyMode) func(*testing.T) (Server, func()) {
	return func(t *testing.T) (Server, func()) {
		server := mcptest.Spec{}.HTTP(t)
		proxy := mcptest.NewProxy(t, server.URL)
		return Server{Spec: over(transport.HTTP, "bad", proxy.URL(server.URL))}, func() { proxy.Set(mode) }
	}
}

func onCalls(f mcptest.Fault) mcptest.Fault { return f.On("tools/call").Always() }

var villains = []villain{
	{"never initializes", asChild(mcptest.Spec{NeverInit: true}), fails, nil},
	{"exits at once", asChild(mcptest.Spec{ExitAtOnce: true, ExitCode: 1}), fails, nil},
	{"crash loop", asChild(mcptest.Spec{ExitAfterCalls: 1}), answersOrNot, nil},
	{"ignores TERM and EOF", asChild(mcptest.Spec{IgnoreTERM: true, IgnoreEOF: true, ForkGrandchild: true, GrandchildHoldsPipes: true}), answers, nil},
	{"stderr flood", asChild(mcptest.Spec{StderrFlood: -1}), answers, nil},
	{"a megabyte of stderr before all else", asChild(mcptest.Spec{StderrFlood: 1 << 20}), answers, nil},
	{"never reads stdin", asChild(mcptest.Spec{NeverReadStdin: true}), fails, longEcho},
	{"noise", asChild(mcptest.Spec{Noise: true, BOM: true, OneByteWrites: true}), answers, nil},
	{"a line of 200 MB", asChild(mcptest.Spec{HugeLine: 200 << 20}), tooLarge, func(string) (string, string, string) { return "big", `{}`, "" }},
	{"list_changed storm", asChild(mcptest.Spec{ListChangedStorm: 10000}), answers, nil},
	{"progress storm", asChild(mcptest.Spec{ProgressStorm: 10000, LateProgress: true}), answers, slow},
	{"endless pages", asChild(mcptest.Spec{EndlessPages: true}), answers, nil},
	{"cursor loop", asChild(mcptest.Spec{CursorLoop: true}), answers, nil},
	{"5,000 tools", asChild(mcptest.Spec{ExtraTools: 5000, ListChangedStorm: 10}), answers, nil},
	{"tools/list takes a minute", asChild(mcptest.Spec{ListDelay: time.Minute}), fails, nil},
	{"duplicate answers", asChild(mcptest.Spec{DuplicateAnswers: true}), answers, nil},
	{"unknown ids", asChild(mcptest.Spec{UnknownIDs: true}), answers, nil},
	{"answers before requests", asChild(mcptest.Spec{AnswerBeforeRequest: true}), answers, nil},
	{"invalid UTF-8", asChild(mcptest.Spec{InvalidUTF8: true}), answersMarked, nil},
	{"stall after the header", onWeb(mcptest.Spec{}, onCalls(mcptest.StallAfter())), fails, nil},
	{"stall in the handshake", onWeb(mcptest.Spec{}, mcptest.StallAfter().Always()), fails, nil},
	{"reset in the event stream", onWeb(mcptest.Spec{AnswerSSE: true}, onCalls(mcptest.Reset())), fails, nil},
	{"session forgotten", onWeb(mcptest.Spec{}, mcptest.LostSession().On("tools/call")), answers, nil},
	{"session forgotten at each call", onWeb(mcptest.Spec{}, onCalls(mcptest.LostSession())), fails, nil},
	{"unauthorized", onWeb(mcptest.Spec{}, onCalls(mcptest.Unauthorized())), fails, nil},
	{"too many requests", onWeb(mcptest.Spec{Era: mcptest.EraModern}, onCalls(mcptest.TooMany(time.Hour))), fails, nil},
	{"bad gateway", onWeb(mcptest.Spec{}, mcptest.BadGateway().Always()), fails, nil},
	{"half open", behindProxy(mcptest.ProxyHalfOpen), fails, nil},
	{"stalled connection", behindProxy(mcptest.ProxyStall), fails, nil},
	{"one byte at a time", behindProxy(mcptest.ProxyOneByte), answers, nil},
}

// neighbours are the names of the servers that work correctly.
var neighbours = []string{"child", "web", "pipe"}

// TestOneBadServer: a bad server does not affect the others. Calls to the other servers succeed without waiting for it. Each
// call to the bad server ends in time, exactly once. No process or goroutine of it is left over.
func TestOneBadServer(t *testing.T) {
	for _, v := range villains {
		t.Run(v.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			good := []Server{
				child(t, "child", mcptest.Spec{}),
				{Spec: over(transport.HTTP, "web", mcptest.Spec{}.HTTP(t).URL)},
				piped(t, "pipe", mcptest.Spec{}),
			}
			r := New(good, Options{})
			r.Start()
			defer r.Close(300 * time.Millisecond)
			before := tried(t, r)
			v.trouble(t, r, good)
			for _, name := range neighbours {
				was, _ := before.Server(name)
				is, _ := r.Snapshot().Server(name)
				if is.State != catalog.Ready || &is.Tools[0] != &was.Tools[0] {
					t.Errorf("%s is %s (%s)", name, is.State, is.Reason)
				}
			}
		})
	}
}

// trouble adds the bad server, and calls it and the good servers at the same time. If the bad server does not answer, the test
// cancels one call to it only after all calls to the good servers have ended. So if a good server had to wait for the bad one,
// the test would hang.
func (v villain) trouble(t *testing.T, r *Registry, good []Server) {
	t.Helper()
	bad, strike := v.start(t)
	r.Apply(append(slices.Clone(good), bad), Options{}, nil)
	if strike != nil {
		tried(t, r)
		strike()
	}
	var over atomic.Bool
	var callers sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	callers.Go(func() {
		tool, arguments, _ := v.asks("the call without end")
		_, _ = follow(ctx, r, "bad", request.Request{Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(arguments)), Times: request.Times{Timeout: time.Hour}})
	})
	for i := range v.callers() {
		callers.Go(func() {
			// At least one call, and more as long as the good servers are being called.
			for n := 0; n == 0 || n < 8 && !over.Load(); n++ {
				v.call(t, r, fmt.Sprintf("caller %d, call %d", i, n))
			}
		})
	}
	callNeighbours(t, r)
	over.Store(true)
	cancel()
	callers.Wait()
}

func (v villain) asks(text string) (tool, arguments, answer string) {
	if v.ask == nil {
		return echo(text)
	}
	return v.ask(text)
}

// callers returns how many goroutines call the bad server. For lines of 200 MB, one is enough.
func (v villain) callers() int {
	if v.name == "a line of 200 MB" {
		return 1
	}
	return 6
}

// call makes one call to the bad server and checks how it ends.
func (v villain) call(t *testing.T, r *Registry, text string) {
	tool, arguments, want := v.asks(text)
	var ended atomic.Bool
	began := time.Now()
	raw, err := follow(context.Background(), r, "bad", request.Request{From: request.From{Sink: request.Sink{Progress: func(json.RawMessage) {
		if ended.Load() {
			t.Errorf("%s: progress after the answer", text)
		}
	}}}, Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(arguments)), Times: request.Times{Timeout: v.ends.limit}})
	ended.Store(true)
	if took := time.Since(began); took > v.ends.limit+patience {
		t.Errorf("%s: ended after %v, the deadline was %v", text, took, v.ends.limit)
	}
	var result struct{ Content []struct{ Text string } }
	answer := ""
	if err == nil && json.Unmarshal(raw, &result) == nil && len(result.Content) == 1 {
		answer = result.Content[0].Text
	}
	if !v.ends.judge(answer, want, err) {
		t.Errorf("%s: got %.100q, %v", text, answer, err)
	}
}

// callNeighbours makes many concurrent calls to each of the good servers.
func callNeighbours(t *testing.T, r *Registry) {
	t.Helper()
	var callers sync.WaitGroup
	for i := range 2 * len(neighbours) {
		name := neighbours[i%len(neighbours)]
		callers.Go(func() {
			for n := range 8 {
				text := fmt.Sprintf("%s, caller %d, call %d", name, i, n)
				if got, err := call(r, name, nil, "slow", `{"ms":10}`); err != nil || got != "slept 10 ms" {
					t.Errorf("%s: got %q, %v", text, got, err)
				}
				if got, err := call(r, name, nil, "echo", `{"text":"`+text+`"}`); err != nil || got != text {
					t.Errorf("%s: got %q, %v", text, got, err)
				}
			}
		})
	}
	callers.Wait()
}
