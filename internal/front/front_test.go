package front

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// patience is the longest time that a test waits for something. Only a failing test waits that long.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	mcptest.Main()
	mcptest.AtOnce(6)
	os.Exit(m.Run())
}

// shown is a front whose view shows the two tools of mcpx instead of the tools of its servers.
type shown struct {
	*Front
	two      *view.TwoTools
	registry *registry.Registry
}

// connect starts these servers and makes a front for them. Both end with the test.
func connect(t *testing.T, options view.Options, servers ...registry.Server) shown {
	t.Helper()
	return connectWith(t, Options{Version: "1"}, options, servers...)
}

func connectWith(t *testing.T, options Options, shows view.Options, servers ...registry.Server) shown {
	t.Helper()
	return connectTo(t, options, shows, executor.Options{TOON: true, TypeScript: true}, servers...)
}

func connectTo(t *testing.T, options Options, shows view.Options, calls executor.Options, servers ...registry.Server) shown {
	t.Helper()
	r := registry.New(servers, registry.Options{})
	calls.Journal = options.Journal
	e := executor.New(r, calls)
	r.Use(e.Chain(nil, nil)...)
	two := view.NewTwoTools(r, e, shows)
	f := New(two, options)
	r.Start()
	t.Cleanup(func() {
		f.Close()
		two.Close()
		r.Close(time.Second)
	})
	return shown{f, two, r}
}

func remote(name string, fake *mcptest.HTTPServer) registry.Server {
	return registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}}
}

func hello(client string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"` + client + `","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
}

// pipe is one client over in-memory pipes. It is closed when the test ends.
type pipe struct {
	in io.WriteCloser

	mu    sync.Mutex
	lines []string
}

func dial(t *testing.T, f shown, client string) *pipe {
	t.Helper()
	return dialWith(t, f, client, StdioOptions{})
}

func dialWith(t *testing.T, f shown, client string, options StdioOptions) *pipe {
	t.Helper()
	p := dialSilent(t, f, options)
	p.send(t, hello(client))
	return p
}

// dialSilent returns a connected client that has not sent anything.
func dialSilent(t *testing.T, f shown, options StdioOptions) *pipe {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	p := &pipe{in: inWrite}
	served, read := make(chan struct{}), make(chan struct{})
	go func() { // the goroutine ends with the input
		defer close(served)
		if err := f.ServeStdio(context.Background(), inRead, outWrite, options); err != nil {
			t.Errorf("serving: %v", err)
		}
		outWrite.Close()
	}()
	go func() { // the goroutine ends with the output
		defer close(read)
		lines := bufio.NewScanner(outRead)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		inWrite.Close()
		<-served
		<-read
	})
	return p
}

func (p *pipe) send(t *testing.T, lines string) {
	t.Helper()
	if _, err := io.WriteString(p.in, lines); err != nil {
		t.Fatal(err)
	}
}

// with counts the received lines that contain piece.
func (p *pipe) with(piece string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, line := range p.lines {
		if strings.Contains(line, piece) {
			n++
		}
	}
	return n
}

// request sends a request and waits for its answer.
func (p *pipe) request(t *testing.T, id, method string) string {
	t.Helper()
	p.send(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{}}`+"\n")
	return p.answer(t, id)
}

// answer waits for the answer to the request with this id.
func (p *pipe) answer(t *testing.T, id string) string {
	t.Helper()
	prefix, answer := `{"jsonrpc":"2.0","id":`+id+`,`, ""
	mcptest.WaitFor(t, "the answer to "+id, patience, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, line := range p.lines {
			if strings.HasPrefix(line, prefix) {
				answer = line
			}
		}
		return answer != ""
	})
	return answer
}

// piped returns a fake server in this process. It can be used in a synctest bubble.
func piped(t *testing.T, name string, fake mcptest.Spec) registry.Server {
	t.Helper()
	return registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.InProcess, Serve: fake.Serve(t, nil)}}}
}

// TestFront_StartupWait: initialize never waits. tools/list waits for servers whose start has not been tried
// yet, until at most StartupWait after the start of mcpx, and names them.
func TestFront_StartupWait(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		const wait = 400 * time.Millisecond
		began := time.Now()
		f := connect(t, view.Options{StartupWait: wait}, piped(t, "good", mcptest.Spec{}), piped(t, "hung", mcptest.Spec{NeverInit: true, Era: mcptest.EraLegacy}))
		p := dial(t, f, "agent")
		mcptest.WaitFor(t, "initialize", patience, func() bool { return p.with(`"id":0,`) == 1 })
		if took := time.Since(began); took >= wait {
			t.Errorf("initialize took %v", took)
		}
		listed := p.request(t, "1", "tools/list")
		if took := time.Since(began); took < wait {
			t.Errorf("tools/list took %v: it did not wait", took)
		}
		if !strings.Contains(listed, "Server: hung") || !strings.Contains(listed, "echo(text)") {
			t.Errorf("got %s", listed)
		}
		// StartupWait is over: no later request waits.
		again := time.Now()
		p.request(t, "2", "tools/list")
		if took := time.Since(again); took >= wait {
			t.Errorf("the second tools/list took %v", took)
		}
	})
}

// TestFront_ListChanged: clients get tools/list_changed when the description of inspect or exec changes, and not when a server
// announces the same tools again or is gone for a moment.
func TestFront_ListChanged(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tools")
		write := func(tools string) {
			if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		const tools = `{"name":"notify"},{"name":"crash"}`
		write(`[` + tools + `]`)
		f := connect(t, view.Options{}, piped(t, "fake", mcptest.Spec{ToolsFile: file}))
		p := dial(t, f, "agent")
		const note = `"notifications/tools/list_changed"`
		// after calls a tool, waits until nothing more happens, and returns how many notifications the client has.
		after := func(tool string) int {
			server, _ := f.registry.Snapshot().Server("fake")
			called, _ := server.Tool(tool)
			_, _ = f.registry.Send(t.Context(), &request.Request{
				To: server, Tool: called, Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(`{}`)), Times: request.Times{Wait: time.Minute},
			})
			time.Sleep(time.Minute)
			return p.with(note)
		}
		before := after("notify")
		// A server announces the same tools again, and a server is gone for a moment: the client is not notified.
		for _, tool := range []string{"notify", "crash"} {
			if got := after(tool); got != before {
				t.Errorf("%s: %d notifications about nothing", tool, got-before)
			}
		}
		if server, _ := f.registry.Snapshot().Server("fake"); server.State != catalog.Ready {
			t.Errorf("%s: %s", server.State, server.Reason)
		}
		write(`[` + tools + `,{"name":"fresh","inputSchema":{"type":"object"}}]`)
		if got := after("notify"); got != before+1 {
			t.Errorf("%d notifications about a change", got-before)
		}
		if listed := p.request(t, "5", "tools/list"); !strings.Contains(listed, "fresh") {
			t.Errorf("got %s", listed)
		}
	})
}

// TestFront_InstructionsByClient: the instructions in the answer to initialize depend on the client's name.
func TestFront_InstructionsByClient(t *testing.T) {
	mcptest.NoLeaks(t)
	good := mcptest.Spec{}.HTTP(t)
	var servers []registry.Server
	for i := range 180 { // so many that the limit on instructions for claude-code leaves no space to say what each server is for
		servers = append(servers, remote(fmt.Sprintf("server-%03d", i), good))
	}
	servers[179].Description = "What the config says of it."
	f := connect(t, view.Options{BudgetTokens: 2000}, servers...)
	for client, want := range map[string]string{"agent": "Also: server-", "claude-code": "server-179 - What the config says of it."} {
		p := dial(t, f, client)
		mcptest.WaitFor(t, "initialize", patience, func() bool { return p.with(`"id":0,`) == 1 })
		if p.with(want) != 1 {
			t.Errorf("%s: no %q in %q", client, want, p.lines)
		}
	}
}
