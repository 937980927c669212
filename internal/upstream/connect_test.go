package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// TestEra: the handshake finds out the era of the server, however the server answers unknown methods.
func TestEra(t *testing.T) {
	const probe = 50 * time.Millisecond
	tests := []struct {
		name   string
		fake   mcptest.Spec
		modern bool
	}{
		{"legacy", mcptest.Spec{}, false},
		{"modern only", mcptest.Spec{Era: mcptest.EraModern}, true},
		{"both", mcptest.Spec{Era: mcptest.EraBoth}, true},
		{"unknown methods are ignored", mcptest.Spec{SilentUnknown: true}, false},
		{"exits at an unknown method before initialize", mcptest.Spec{ExitOnDiscover: true}, false},
		{"slow, legacy", mcptest.Spec{InitDelay: 6 * probe}, false},
		{"slow, modern only", mcptest.Spec{Era: mcptest.EraModern, InitDelay: 6 * probe}, true},
		{"slow, both", mcptest.Spec{Era: mcptest.EraBoth, InitDelay: 6 * probe}, true},
		{"an older revision", mcptest.Spec{Version: "2024-11-05"}, false},
		{"a revision that nobody knows", mcptest.Spec{Version: "2099-01-01"}, false},
	}
	for _, tt := range tests {
		for _, kind := range []string{transport.Stdio, transport.HTTP} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				mcptest.Parallel(t)
				var spec Spec
				if kind == transport.Stdio {
					spec = stdio(t, tt.fake)
				} else {
					spec = at(transport.HTTP, tt.fake.HTTP(t).URL)
				}
				spec.Timeouts.Probe = probe
				u := ready(t, spec)
				status := u.Status()
				// Over HTTP, a server of both eras may end up in either, if it answers the probe late.
				if status.Modern != tt.modern && !(kind == transport.HTTP && strings.HasSuffix(tt.name, "both")) {
					t.Errorf("modern is %t", status.Modern)
				}
				if late := tt.name == "slow, both" && !status.Modern; late && !status.Unprobed || status.Modern && status.Unprobed {
					t.Errorf("modern is %t, unprobed %t", status.Modern, status.Unprobed)
				}
				if tt.fake.Version != "" && status.Protocol != tt.fake.Version {
					t.Errorf("protocol %q, want %q", status.Protocol, tt.fake.Version)
				}
				mustEcho(t, u)
			})
		}
	}
}

// TestEra_SlowStart: a server of both eras starts so slowly that it answers the probe too late. mcpx starts it once more, and uses
// the modern era. At later starts mcpx waits for the answer to the probe as long as necessary. A server that ignores the probe is
// used in the legacy era, and is not probed again.
func TestEra_SlowStart(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		start := func(fake mcptest.Spec) (u *Upstream, crash func(), probes, begun *atomic.Int32) {
			var starts atomic.Int32
			probes = &atomic.Int32{}
			var end atomic.Value // the func that ends the current session
			u = connect(t, Spec{Options: transport.Options{Name: "one", Type: transport.InProcess, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
				if n := starts.Add(1); n == 1 || n == 3 {
					<-time.After(3 * time.Second) // longer than the probe waits
				}
				ctx, cancel := context.WithCancel(ctx)
				end.Store(cancel)
				counted := writerFunc(func(p []byte) (int, error) {
					probes.Add(int32(bytes.Count(p, []byte(`"server/discover"`))))
					return len(p), nil
				})
				return fake.Serve(t, nil)(ctx, io.TeeReader(in, counted), out)
			}}})
			return u, func() { end.Load().(context.CancelFunc)() }, probes, &starts
		}
		slow, crash, _, starts := start(mcptest.Spec{Era: mcptest.EraBoth})
		deaf, crashDeaf, probes, _ := start(mcptest.Spec{SilentUnknown: true})
		<-time.After(20 * time.Second)
		if first := slow.Status(); first.State != catalog.Ready || !first.Modern || first.Restarts != 0 {
			t.Errorf("a slow start: %+v", first.Agreement)
		}
		if first := deaf.Status(); first.State != catalog.Ready || first.Modern || first.Unprobed {
			t.Errorf("one that ignores the probe: %+v", first.Agreement)
		}
		crash()
		crashDeaf()
		<-time.After(20 * time.Second)
		if next := slow.Status(); next.State != catalog.Ready || !next.Modern || next.Restarts != 1 || starts.Load() != 3 {
			t.Errorf("the next start: %s %+v, %d restarts, %d starts", next.State, next.Agreement, next.Restarts, starts.Load())
		}
		if next := deaf.Status(); next.State != catalog.Ready || next.Modern || next.Restarts != 1 || probes.Load() != 1 {
			t.Errorf("the next start of the other: %s %+v, %d restarts, %d probes", next.State, next.Agreement, next.Restarts, probes.Load())
		}
		slow.Close(0)
		deaf.Close(0)
	})
}

// TestEra_SlowHTTP: a server over HTTP that does not answer the probe in time is asked once more. If it was only slow to start, its
// session is modern. Otherwise it is legacy, and only if the server accepts initialize slowly, the next session sends the probe again.
func TestEra_SlowHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		probe      func(n int) time.Duration // how long the nth answer to server/discover takes
		initialize time.Duration
		want       string // the methods of the requests, until the handshake has ended
		modern     bool
		unprobed   bool
	}{
		"woken":             {probe: func(n int) time.Duration { return time.Duration(2-n) * 10 * time.Second }, modern: true, want: "server/discover initialize DELETE server/discover"},
		"ignores the probe": {probe: func(int) time.Duration { return time.Hour }, want: "server/discover initialize DELETE server/discover initialize"},
		"always slow": {probe: func(int) time.Duration { return 5 * time.Second }, initialize: 5 * time.Second, unprobed: true,
			want: "server/discover initialize DELETE server/discover initialize"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var asked []string
				probes := 0
				spec := at(transport.HTTP, "http://server.test/mcp")
				spec.Remote.Transport = roundTripper(func(method string, id json.RawMessage, r *http.Request) *http.Response {
					mu.Lock()
					if method = cmp.Or(method, r.Method); method == "server/discover" {
						probes++
					}
					asked = append(asked, method)
					n := probes
					mu.Unlock()
					answer := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {"s"}}}
					result := `{"tools":[]}`
					switch method {
					case "server/discover":
						sleep(r.Context(), tt.probe(n))
						result = `{"supportedVersions":["` + modernVersion + `"]}`
					case "initialize":
						sleep(r.Context(), tt.initialize)
						result = `{"protocolVersion":"2025-06-18"}`
					case http.MethodGet:
						answer.StatusCode = 405
					}
					answer.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`))
					return answer
				})
				u := connect(t, spec)
				pause(time.Minute)
				status := u.Status()
				if status.State != catalog.Ready || status.Modern != tt.modern || status.Unprobed != tt.unprobed {
					t.Errorf("%s, modern is %t, unprobed %t: %s", status.State, status.Modern, status.Unprobed, status.Reason)
				}
				mu.Lock()
				defer mu.Unlock()
				got := slices.DeleteFunc(asked, func(method string) bool {
					return method != "DELETE" && method != "initialize" && method != "server/discover"
				})
				if strings.Join(got, " ") != tt.want {
					t.Errorf("requests: %q", got)
				}
			})
		})
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// TestKnownLegacyIsNotProbed: mcpx does not probe a server that it knows as legacy, but sends initialize first.
func TestKnownLegacyIsNotProbed(t *testing.T) {
	server := mcptest.Spec{}.HTTP(t)
	ready(t, Spec{Options: over(transport.HTTP, server.URL), Era: EraLegacy})
	if n := server.Count("server/discover"); n != 0 {
		t.Errorf("%d probes", n)
	}
}

// TestOwnersEraRefused: if a server refuses the legacy handshake of a session that belongs to a legacy client,
// mcpx tries the modern handshake, even if the refusal is no JSON-RPC error.
func TestOwnersEraRefused(t *testing.T) {
	owner := &caller.Client{ID: "only", Version: mcptest.LegacyVersion}
	for _, code := range []int{0, 400, 404, 405} {
		server := mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)
		if code != 0 {
			fault := says(code, "text/plain", "No.").On("initialize")
			fault.Times = -1
			server.Script(fault)
		}
		u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Introduction: Introduction{Owner: func() *caller.Client { return owner }}})
		if !u.Status().Modern || server.Count("initialize") == 0 {
			t.Errorf("%d: modern is %t after %d initialize", code, u.Status().Modern, server.Count("initialize"))
		}
	}
}

// TestProtocolIsPinned: if the era is pinned, mcpx tries no other, and that attempt may take the whole time for
// connecting.
func TestProtocolIsPinned(t *testing.T) {
	const probe = 50 * time.Millisecond
	late := mcptest.Spec{Era: mcptest.EraModern, InitDelay: 6 * probe, SilentUnknown: true}
	tests := []struct {
		fake     mcptest.Spec
		protocol string
		modern   bool
		unasked  string // a method that mcpx must not call
	}{
		{mcptest.Spec{Era: mcptest.EraBoth}, EraLegacy, false, "server/discover"},
		{mcptest.Spec{Era: mcptest.EraBoth}, EraModern, true, "initialize"},
		{late, EraModern, true, "initialize"},
	}
	for _, tt := range tests {
		server := tt.fake.HTTP(t)
		u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Protocol: tt.protocol, Era: map[bool]string{true: EraLegacy}[tt.modern], Timeouts: Timeouts{Probe: probe}})
		if modern := u.Status().Modern; modern != tt.modern || server.Count(tt.unasked) != 0 {
			t.Errorf("%s: modern is %t, %d %s", tt.protocol, modern, server.Count(tt.unasked), tt.unasked)
		}
	}
	server := mcptest.Spec{}.HTTP(t)
	awaitState(t, connect(t, Spec{Options: over(transport.HTTP, server.URL), Protocol: EraModern}), catalog.Unavailable)
	if n := server.Count("initialize"); n != 0 {
		t.Errorf("%d initialize", n)
	}
}

// TestListedRevisions: if a server lists its revisions when it refuses a request, mcpx requests the newest legacy one that it
// knows.
func TestListedRevisions(t *testing.T) {
	const refusal = `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2025-03-26","2025-06-18","1999-01-01"]}}`
	for _, atProbe := range []bool{true, false} {
		t.Run(fmt.Sprintf("told to the probe %t", atProbe), func(t *testing.T) {
			mcptest.NoLeaks(t)
			var asked []string
			u := ready(t, serving(answering(func(m sent, _ io.Writer) (string, error) {
				switch {
				case m.Method == "tools/list":
					return `"result":{"tools":[]}`, nil
				case m.Method == "initialize" && m.Params.ProtocolVersion == "2025-06-18":
					asked = append(asked, m.Params.ProtocolVersion)
					return `"result":{"protocolVersion":"2025-06-18"}`, nil
				case m.Method == "initialize":
					asked = append(asked, m.Params.ProtocolVersion)
					return refusal, nil
				case atProbe:
					return refusal, nil
				}
				return unknownMethod, nil
			})))
			want := []string{legacyVersion, "2025-06-18"}
			if atProbe {
				want = want[1:]
			}
			if status := u.Status(); status.Protocol != "2025-06-18" || !slices.Equal(asked, want) {
				t.Errorf("%q after %q", status.Protocol, asked)
			}
		})
	}
}

// TestRevisionRefusedLater: a server that refuses the negotiated revision in the middle of a session has executed
// nothing, so mcpx repeats the call in a fresh session.
func TestRevisionRefusedLater(t *testing.T) {
	for _, times := range []int{1, -1} {
		mcptest.NoLeaks(t)
		server := mcptest.Spec{Era: mcptest.EraBoth}.HTTP(t)
		u := ready(t, at(transport.HTTP, server.URL))
		fault := says(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2025-06-18"]}}}`).On("tools/call")
		fault.Times = times
		server.Script(fault)
		got, err := text(u, "destroy_echo", `{"text":"x"}`)
		var lost *request.LostError
		if times == 1 && (err != nil || got != "x") || times < 0 && (!errors.As(err, &lost) || lost.MayHaveRun || !strings.Contains(err.Error(), "Unsupported")) {
			t.Errorf("%d times: got %q, %v", times, got, err)
		}
		if n := len(server.Log().Calls("destroy_echo")); n != max(times, 0) {
			t.Errorf("%d times: executed %d times", times, n)
		}
	}
}

// TestRevisionRefusedBesideACall: a server refuses the negotiated revision for one call. It may have executed the
// other open calls of the session, so mcpx does not repeat them.
func TestRevisionRefusedBesideACall(t *testing.T) {
	mcptest.Parallel(t)
	var executed atomic.Int32
	u := ready(t, serving(answering(func(m sent, _ io.Writer) (string, error) {
		if m.Params.Name == "held" {
			executed.Add(1)
			return "", nil
		}
		return map[string]string{
			"server/discover": `"result":{"supportedVersions":["` + modernVersion + `"]}`,
			"tools/list":      `"result":{"tools":[]}`,
			"tools/call":      `"error":{"code":-32022,"message":"Unsupported protocol version"}`,
		}[m.Method], nil
	})))
	held := make(chan error, 1)
	go func() {
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("held", nil), Times: request.Times{Timeout: patience}})
		held <- err
	}()
	mcptest.WaitFor(t, "the held call", patience, func() bool { return executed.Load() == 1 })
	_, _ = u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("refused", nil), Times: request.Times{Timeout: patience}})
	var lost *request.LostError
	if err := <-held; !errors.As(err, &lost) || !lost.MayHaveRun || executed.Load() != 1 {
		t.Errorf("got %#v, executed %d times", err, executed.Load())
	}
}

func TestFraming(t *testing.T) {
	mcptest.Parallel(t)
	tests := []struct {
		name string
		fake mcptest.Spec
		set  func(*Spec)
	}{
		{"pinned headers", mcptest.Spec{ContentLength: true}, func(s *Spec) { s.Launch.ContentLength = true }},
		{"pinned lines", mcptest.Spec{}, func(s *Spec) { s.Launch.NewlineOnly = true }},
		{"answered in headers", mcptest.Spec{ContentLength: true, AnyFraming: true}, func(*Spec) {}},
		{"lines not understood", mcptest.Spec{ContentLength: true}, func(s *Spec) { s.Timeouts.Connect = childSilence }},
		{"noise between headers", mcptest.Spec{ContentLength: true, Noise: true, BOM: true}, func(s *Spec) { s.Launch.ContentLength = true }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Parallel(t)
			fake := tt.fake.WithFiles(t)
			spec := stdio(t, fake)
			tt.set(&spec)
			mustEcho(t, ready(t, spec))
			garbage := len(fake.Log(t).Event(mcptest.EventGarbage))
			if pinned := spec.Launch.ContentLength || spec.Launch.NewlineOnly; pinned && garbage > 0 {
				t.Errorf("%d messages in the wrong framing", garbage)
			}
		})
	}
}

// TestPinnedLines: a server pinned to line framing may write a line that looks like a Content-Length header. mcpx
// ignores that line, and still reads the answers after it.
func TestPinnedLines(t *testing.T) {
	mcptest.NoLeaks(t)
	serve := scripted(map[string]string{
		"initialize": `"result":{"protocolVersion":"2025-06-18"}`,
		"tools/list": `"result":{"tools":[{"name":"echo"}]}`,
		"tools/call": `"result":{"content":[{"type":"text","text":"here"}]}`,
	})
	u := ready(t, Spec{Options: transport.Options{Type: transport.InProcess, Launch: transport.Launch{NewlineOnly: true}, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		return serve(ctx, in, writerFunc(func(p []byte) (int, error) {
			if _, err := io.WriteString(out, "Content-Length: 100000\n\n"); err != nil {
				return 0, err
			}
			return out.Write(p)
		}))
	}}, Era: EraLegacy})
	if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Timeout: patience}})); err != nil || got != "here" {
		t.Errorf("got %q, %v", got, err)
	}
}

// wantsLogin is the HTTP 401 of a server that offers OAuth logins.
var wantsLogin = mcptest.Fault{Kind: mcptest.FaultStatus, Status: 401, Header: map[string]string{
	"WWW-Authenticate": `Bearer error="invalid_token", resource_metadata="https://example.com/.well-known/oauth-protected-resource"`}}

// The reason why a server cannot be used tells the user what to fix, quotes the last output of a child, and contains no secrets of
// the configuration.
func TestReasons(t *testing.T) {
	mcptest.Parallel(t)
	const secret = "hunter2-hunter2"
	web := func(t *testing.T, faults ...mcptest.Fault) Spec {
		server := mcptest.Spec{}.HTTP(t)
		server.Script(faults...)
		return at(transport.HTTP, server.URL)
	}
	child := func(fake mcptest.Spec) func(*testing.T) Spec {
		return func(t *testing.T) Spec { return stdio(t, fake) }
	}
	shell := func(script string) func(*testing.T) Spec {
		return func(*testing.T) Spec {
			return Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: "sh", Args: []string{"-c", script}, Env: os.Environ()}}}
		}
	}
	long := strings.Repeat("at frame ", 200)
	tests := []struct {
		name  string
		spec  func(t *testing.T) Spec
		parts []string
	}{
		{"a program that repeats what it reads", func(*testing.T) Spec {
			return Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: "cat", Env: []string{"PATH=" + os.Getenv("PATH")}}}}
		}, []string{"as cat does; it is no MCP server"}},
		{"missing uvx", func(*testing.T) Spec {
			return Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: "uvx", Env: []string{"PATH=/no/such/folder"}}}}
		}, []string{"not found in PATH; it comes with uv (https://", "PATH is /no/such/folder"}},
		{"a long PATH", func(*testing.T) Spec {
			folders := []string{"/no/1", "/no/2", "/no/3", "/no/4", "/no/5"}
			return Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: "uvx", Env: []string{"PATH=" + strings.Join(folders, string(os.PathListSeparator))}}}}
		}, []string{"/no/3 and 2 more"}},
		{"missing binary", func(*testing.T) Spec {
			return Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: "no-such-program-" + secret}}}
		}, []string{`starting "no-such-program-[secret]"`, "not found in PATH"}},
		{"no such file", func(t *testing.T) Spec {
			return Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: t.TempDir() + "/gone"}}}
		}, []string{"/gone", "no such file"}},
		{"exits at once", child(mcptest.Spec{ExitAtOnce: true, ExitCode: 3, StderrLines: []string{"one", "two", "Error: bad token " + secret, "\x1b[31mfour\x1b[0m"}}), []string{"Error: bad token [secret] (the process ended: exit status 3)"}},
		{"exits at once with its help", child(mcptest.Spec{ExitAtOnce: true, ExitCode: 1, StderrLines: []string{"npm warn deprecated x", "Error: no current-context is set", "Usage:", "  server [flags]", "Flags:", "  --help   help", ""}}), []string{"Error: no current-context is set (the process ended: exit status 1)"}},
		{"exits at once, nothing called an error", child(mcptest.Spec{ExitAtOnce: true, ExitCode: 1, StderrLines: []string{"npm warn deprecated x", "one", "\x1b[31mtwo\x1b[0m"}}), []string{"the process ended: exit status 1; stderr: one two"}},
		{"login", func(t *testing.T) Spec {
			spec := web(t, wantsLogin.Always())
			spec.Name, spec.Remote.Authorize = "tracker", func(base http.RoundTripper) http.RoundTripper { return base }
			return spec
		}, []string{"needs mcpx login tracker (the server answered 401 Unauthorized"}},
		{"login, with a token", func(t *testing.T) Spec {
			spec := web(t, wantsLogin.Always())
			spec.Name, spec.Remote.Headers = "tracker", map[string]string{"authorization": "Bearer " + secret}
			return spec
		}, []string{"renew the token in headers of this server, or remove it and try mcpx login tracker"}},
		{"exits with half of npx's cache", child(mcptest.Spec{ExitAtOnce: true, ExitCode: 1, StderrLines: []string{
			"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /c/_npx/0123456789abcdef/node_modules/y/index.js", "1", "2", "3", "4", "5", "6", "7",
		}}), []string{"the cache of npx is half written, delete it: ", "/c/_npx/0123456789abcdef; Error [ERR_MODULE_NOT_FOUND]"}},
		{"exits after a long line", child(mcptest.Spec{ExitAtOnce: true, ExitCode: 3, StderrLines: []string{long, "FATAL: API key is missing"}}), []string{"FATAL: API key is missing (the process ended: exit status 3)"}},
		{"exits after long lines", child(mcptest.Spec{ExitAtOnce: true, ExitCode: 3, StderrLines: []string{long, long + "panic: missing token"}}), []string{"exit status 3; stderr: ...", "panic: missing token"}},
		{"text on stdout", shell("echo please log in first; cat >/dev/null"), []string{"no answer to initialize", "stdout has text instead of messages: please log in first"}},
		{"text on stdout, and exits", shell("echo no token, set TOKEN; exit 4"), []string{"exit status 4; stdout has text instead of messages: no token, set TOKEN"}},
		{"exits at once, silently", child(mcptest.Spec{ExitAtOnce: true}), []string{"the process ended: exit status 0"}},
		{"exits at initialize", child(mcptest.Spec{ExitOnDiscover: true, ExitCode: 2, StderrLines: []string{"what was that"}}), []string{"exit status 2", "what was that"}},
		{"never initializes", child(mcptest.Spec{NeverInit: true, StderrLines: []string{long, "waiting for " + secret}}), []string{"no answer to initialize within 6s", "waiting for [secret]"}},
		{"never lists", child(mcptest.Spec{NeverList: true}), []string{"no answer to tools/list within 6s"}},
		{"fails to list", child(mcptest.Spec{FailMethods: []string{"tools/list"}}), []string{"listing tools: told to fail (code -32603)"}},
		{"fails to initialize", child(mcptest.Spec{FailMethods: []string{"initialize", "server/discover"}}), []string{"told to fail"}},
		{"unauthorized", func(t *testing.T) Spec { return web(t, mcptest.Unauthorized().Always()) }, []string{"401 Unauthorized", "check the headers (token)"}},
		{"html", func(t *testing.T) Spec { return web(t, mcptest.HTML().Always()) }, []string{`content type "text/html"`, "is the URL right?"}},
		{"bad gateway", func(t *testing.T) Spec { return web(t, mcptest.BadGateway().Always()) }, []string{"502 Bad Gateway"}},
		{"too many", func(t *testing.T) Spec { return web(t, mcptest.TooMany(5*time.Minute).Always()) }, []string{"429 Too Many Requests", "retry after 300"}},
		{"redirect to another host", func(t *testing.T) Spec {
			return web(t, mcptest.Redirect("https://elsewhere.example/mcp?key="+secret).Always())
		}, []string{"307", "a redirect to https://elsewhere.example/mcp that is not followed"}},
		{"reset", func(t *testing.T) Spec { return web(t, mcptest.Drop().Always()) }, []string{"connection reset"}},
		{"stalls", func(t *testing.T) Spec { return web(t, mcptest.Stall().Always()) }, []string{"no answer to initialize within 6s"}},
		{"stalls after the header", func(t *testing.T) Spec { return web(t, mcptest.StallAfter().Always()) }, []string{"no answer to initialize within 6s"}},
		{"not found", func(t *testing.T) Spec {
			web := httptest.NewServer(nil)
			t.Cleanup(web.Close)
			return at(transport.HTTP, web.URL+"/mcp")
		}, []string{"404 Not Found"}},
		{"nobody listens", func(t *testing.T) Spec {
			web := httptest.NewServer(nil)
			web.Close()
			return at(transport.HTTP, web.URL)
		}, []string{"connection refused"}},
		{"sse: html", func(t *testing.T) Spec {
			server := mcptest.Spec{}.SSE(t)
			server.Script(mcptest.HTML().On("GET").Always())
			return at(transport.SSE, server.URL)
		}, []string{`content type "text/html", not with an event stream`}},
		{"sse: endpoint elsewhere", func(t *testing.T) Spec {
			return at(transport.SSE, mcptest.Spec{Endpoint: "https://elsewhere.example/messages"}.SSE(t).URL)
		}, []string{"an endpoint on another host"}},
		{"sse: no endpoint", func(t *testing.T) Spec {
			server := mcptest.Spec{}.SSE(t)
			server.Script(mcptest.StallAfter().On("GET").Always())
			return at(transport.SSE, server.URL)
		}, []string{"waiting for the event stream"}},
		{"unknown transport", func(*testing.T) Spec { return Spec{Options: transport.Options{Type: "pigeon"}} }, []string{`transport "pigeon" is not supported`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Parallel(t)
			spec := tt.spec(t)
			spec.Secrets = sanitize.NewSecrets([]string{"hunter2", secret}, nil)
			spec.Timeouts.Connect = patience
			if first := tt.parts[0]; strings.HasPrefix(first, "no answer ") || strings.HasPrefix(first, "waiting ") {
				spec.Timeouts.Connect, spec.Timeouts.Probe = childSilence, 100*time.Millisecond
			}
			log := logged(&spec)
			status := awaitState(t, connect(t, spec), catalog.Unavailable)
			contains(t, "reason", status.Reason, tt.parts...)
			if strings.Contains(status.Reason+log.String(), "hunter2") || strings.ContainsAny(status.Reason, "\x1b\n") {
				t.Errorf("reason %q, log %s", status.Reason, log)
			}
			if status.RetryAfter.IsZero() {
				t.Error("no time of the next attempt")
			}
			if tt.name == "too many" && time.Until(status.RetryAfter) < 5*time.Minute-patience {
				t.Errorf("tried again in %v, against Retry-After", time.Until(status.RetryAfter))
			}
		})
	}
}

// A call to a server whose last attempt failed is answered at once.
func TestCallOfUnavailable(t *testing.T) {
	mcptest.NoLeaks(t)
	u := connect(t, Spec{Options: transport.Options{Type: transport.Stdio, Launch: transport.Launch{Command: "no-such-program"}}})
	awaitState(t, u, catalog.Unavailable)
	_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Wait: time.Hour}})
	unavailable, ok := err.(*request.UnavailableError)
	if !ok || unavailable.State != catalog.Unavailable || !strings.Contains(unavailable.Reason, "not found in PATH") {
		t.Errorf("got %v", err)
	}
}

// TestCallWhileConnecting: a call during the first attempt to connect waits for that attempt, but not longer than
// its Wait.
func TestCallWhileConnecting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{InitDelay: 400 * time.Millisecond})
		u := connect(t, spec)
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Wait: time.Millisecond}})
		if unavailable, ok := err.(*request.UnavailableError); !ok || unavailable.State != catalog.Connecting {
			t.Errorf("got %v", err)
		}
		if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Wait: patience}})); err != nil || got != "x" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Close does not wait for a handshake that never ends.
func TestCloseWhileConnecting(t *testing.T) {
	eachVariant(t, mcptest.Spec{NeverInit: true}, func(t *testing.T, _ variant, spec Spec, log func() mcptest.Log) {
		spec.Timeouts.Connect = time.Hour
		u := New(spec)
		u.Start()
		mcptest.WaitFor(t, "a message", patience, func() bool { return len(log().Event(mcptest.EventMessage)) > 0 })
		began := time.Now()
		u.Close(0)
		if took := time.Since(began); took > patience {
			t.Errorf("took %v", took)
		}
	})
}

// TestRedirectKeepsHeaders: a server cannot redirect mcpx, and the headers that it sends, to another host.
func TestRedirectKeepsHeaders(t *testing.T) {
	elsewhere := mcptest.Spec{}.HTTP(t)
	server := mcptest.Spec{}.HTTP(t)
	// 127.0.0.1 and localhost are two hosts.
	server.Script(mcptest.Redirect(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)).Always())
	awaitState(t, connect(t, Spec{Options: transport.Options{Type: transport.HTTP, Remote: transport.Remote{URL: server.URL, Headers: map[string]string{"X-Api-Key": "secret"}}}}), catalog.Unavailable)
	if log := elsewhere.Log().Event(mcptest.EventHTTP); len(log) != 0 {
		t.Errorf("%d requests went elsewhere: %v", len(log), log[0].Header)
	}
}

func TestHeaders(t *testing.T) {
	for _, serve := range []func(mcptest.Spec, testing.TB) (string, *mcptest.HTTPServer){
		func(s mcptest.Spec, t testing.TB) (string, *mcptest.HTTPServer) { return transport.HTTP, s.HTTP(t) },
		func(s mcptest.Spec, t testing.TB) (string, *mcptest.HTTPServer) { return transport.SSE, s.SSE(t) },
	} {
		kind, server := serve(mcptest.Spec{Token: "t0ken"}, t)
		u := New(Spec{Options: transport.Options{Type: kind, Remote: transport.Remote{URL: server.URL, Headers: map[string]string{"Authorization": "Bearer t0ken"}}}})
		u.Start()
		awaitState(t, u, catalog.Ready)
		mustEcho(t, u)
		u.Close(0)
		for _, entry := range server.Log().Event(mcptest.EventHTTP) {
			if entry.Header.Get("Authorization") != "Bearer t0ken" {
				t.Errorf("%s without the header", entry.Text)
			}
		}
		mcptest.WaitFor(t, "the end of the session on the server, "+kind, patience, func() bool { return server.Sessions() == 0 })
	}
}

// TestHTTPFallsBackToSSE: mcpx notices that the server behind an HTTP URL speaks the old HTTP+SSE transport.
func TestHTTPFallsBackToSSE(t *testing.T) {
	mcptest.NoLeaks(t)
	u := ready(t, at(transport.HTTP, mcptest.Spec{}.SSE(t).URL))
	mustEcho(t, u)
}

func TestPages(t *testing.T) {
	eachVariant(t, mcptest.Spec{Pages: 5, ExtraTools: 100}, func(t *testing.T, _ variant, spec Spec, _ func() mcptest.Log) {
		status := ready(t, spec).Status()
		if len(status.Tools) != 118 || len(status.Faults) != 0 || status.Tools[0].Name != "echo" || status.Tools[117].Name != "extra_0099" {
			t.Errorf("%d tools, faults %v", len(status.Tools), status.Faults)
		}
	})
}

func TestOddCatalogues(t *testing.T) {
	usable, faulty := 0, 0
	for _, odd := range mcptest.OddTools() {
		if odd.Usable {
			usable++
		} else {
			faulty++
		}
	}
	tests := []struct {
		name          string
		fake          mcptest.Spec
		tools, faults int
		fault         string
	}{
		{"cursor loop", mcptest.Spec{CursorLoop: true}, 18, 19, "repeats a cursor"},
		{"endless pages", mcptest.Spec{EndlessPages: true}, maxPages, 1, "does not end; the first 1000 tools are kept"},
		{"odd tools", mcptest.Spec{OddTools: true}, 18 + usable, faulty, `tool "echo": the name occurs twice`},
		{"5,000 tools", mcptest.Spec{ExtraTools: 5000}, 5018, 0, ""},
		{"none", mcptest.Spec{Tools: json.RawMessage(`[]`)}, 0, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			spec, _ := inProcess(t, tt.fake)
			u := ready(t, spec)
			status := u.Status()
			if len(status.Tools) != tt.tools || len(status.Faults) != tt.faults || !status.Known {
				t.Errorf("%d tools, %d faults %.3v, want %d, %d", len(status.Tools), len(status.Faults), status.Faults, tt.tools, tt.faults)
			}
			contains(t, "faults", strings.Join(status.Faults, "\n"), tt.fault)
			if tt.name == "odd tools" {
				if got, err := text(u, "odd_type_array", `{"id":1.10}`); err != nil || got != `{"id":1.10}` {
					t.Errorf("an odd tool: got %q, %v", got, err)
				}
				if got, err := text(u, "echo", `{"text":"first"}`); err != nil || got != "first" {
					t.Errorf("the first echo: got %q, %v", got, err)
				}
			}
		})
	}
}

// TestServerWithoutTools: a server that does not know tools/list is ready, and has no tools.
func TestServerWithoutTools(t *testing.T) {
	mcptest.NoLeaks(t)
	u := ready(t, serving(scripted(map[string]string{
		"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}`,
	})))
	if status := u.Status(); !status.Known || len(status.Tools) != 0 {
		t.Errorf("%+v", status)
	}
}

// TestServerRequests: mcpx answers requests of the server: ping with a result, all others with an error.
func TestServerRequests(t *testing.T) {
	mcptest.NoLeaks(t)
	answers := make(chan string, 100)
	serve := scripted(map[string]string{
		"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}`,
		"tools/list": `"result":{"tools":[]}}` + "\n" + `{"jsonrpc":"2.0","id":"p/1","method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"roots/list"`,
		"":           "",
	})
	ready(t, serving(func(ctx context.Context, in io.Reader, out io.Writer) error {
		return serve(ctx, io.TeeReader(in, writerFunc(func(p []byte) (int, error) {
			for line := range strings.Lines(string(p)) {
				if !strings.Contains(line, `"method"`) {
					answers <- line
				}
			}
			return len(p), nil
		})), out)
	}))
	got := map[string]bool{}
	for range 2 {
		select {
		case answer := <-answers:
			got[strings.TrimSpace(answer)] = true
		case <-time.After(patience):
			t.Fatal("no answer")
		}
	}
	for _, want := range []string{`{"jsonrpc":"2.0","id":"p/1","result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no call is open that could ask a client; session: per_client gives each client a session of its own"}}`} {
		if !got[want] {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// sent is a message that mcpx has sent.
type sent struct {
	ID     json.RawMessage // nil for a notification
	Method string          // empty for a response
	Params struct{ ProtocolVersion, Cursor, Name string }
	Error  struct{ Code int } // of a response
}

// answering is a server in this process. It passes each message to answer, which returns the member of the
// response, such as `"result":{}`; an empty string means no response. An error of answer ends the server.
func answering(answer func(m sent, out io.Writer) (string, error)) func(context.Context, io.Reader, io.Writer) error {
	return func(_ context.Context, in io.Reader, out io.Writer) error {
		for decoder := json.NewDecoder(in); ; {
			var m sent
			if err := decoder.Decode(&m); err != nil {
				return err
			}
			member, err := answer(m, out)
			if err == nil && member != "" && m.ID != nil && m.Method != "" {
				_, err = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, member)
			}
			if err != nil {
				return err
			}
		}
	}
}

const unknownMethod = `"error":{"code":-32601,"message":"Method not found"}`

// scripted is a server that answers each method with the member given in answers, and unknown methods with an
// error.
func scripted(answers map[string]string) func(context.Context, io.Reader, io.Writer) error {
	return answering(func(m sent, _ io.Writer) (string, error) { return cmp.Or(answers[m.Method], unknownMethod), nil })
}

// TestAdmit_Reason: if a list is refused, and the connection ends because of that, the reason of the server is the refusal.
func TestAdmit_Reason(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refused := make(chan struct{})
		refuse := sync.OnceFunc(func() { close(refused) })
		spec := serving(func(ctx context.Context, in io.Reader, out io.Writer) error {
			go scripted(map[string]string{ // ends with in
				"initialize": `"result":{"protocolVersion":"2025-06-18"}`, "tools/list": `"result":{"tools":[]}`,
			})(ctx, in, out)
			<-refused
			return errors.New("closed")
		})
		spec.Catalogue.Admit = func(catalog.Kind, int, int) error {
			refuse()
			time.Sleep(time.Millisecond) // in fake time, so the session knows of the end
			return errors.New("too many tools")
		}
		u := connect(t, spec)
		pause(10 * time.Millisecond)
		if reason := u.Status().Reason; reason != "too many tools" {
			t.Errorf("the reason is %q", reason)
		}
	})
}

// TestOddErrors: mcpx passes on to the caller also errors that are not valid JSON-RPC errors.
func TestOddErrors(t *testing.T) {
	mcptest.NoLeaks(t)
	tests := []struct{ answer, want, data string }{
		{`"error":"just text"`, "an error that is not JSON-RPC's", `"just text"`},
		{`"error":{"code":"E42","message":"m"}`, "m (code E42)", ``},
		{`"error":{"code":"-32001","message":"m"}`, "m (code -32001)", ``},
		{`"error":{"code":-32000.0,"message":"m"}`, "m (code -32000)", ``},
		{`"error":{"code":1.5,"message":"m"}`, "m (code 1.5)", ``},
		{`"error":{"code":1e400,"message":"m"}`, "m (code 1e400)", ``},
		{`"error":{"message":"m"}`, "m", ``},
		{`"error":{"code":-32000,"message":""}`, "an error without a message (code -32000)", ``},
		{`"error":{"code":-32000,"message":{"de":"nein"}}`, "an error without a message (code -32000)", `{"code":-32000,"message":{"de":"nein"}}`},
		{`"error":{"code":"x"}`, "an error without a message (code x)", ``},
		{`"odd":1`, "the answer has neither result nor error", ``},
		{`"error":{"code":-1,"message":"m` + "\xff" + `","data":"d` + "\xff" + `"}`, "m\ufffd (code -1)", `"d` + "\ufffd" + `"`},
		{`"error":{nonsense}`, "an error that is not JSON-RPC's", ``},
		{`"result":{nonsense}`, "the result is not valid JSON: {nonsense}", ``},
	}
	for _, tt := range tests {
		u := ready(t, serving(scripted(map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-06-18"}`, "tools/list": `"result":{}`, "tools/call": tt.answer,
		})))
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("x", nil), Times: request.Times{Timeout: patience}})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.answer, err, tt.want)
			continue
		}
		if rpc, ok := err.(*wire.RPCError); ok && string(rpc.Data) != tt.data {
			t.Errorf("%s: got data %s", tt.answer, rpc.Data)
		}
	}
}
