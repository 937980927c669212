package front

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"mcpx/internal/demo"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/upstream"
)

var update = flag.Bool("update", false, "write the golden files anew")

// patience passes only where a test fails anyway.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// connect makes a front of these servers, started, that ends with the test.
func connect(t *testing.T, options Options, servers ...registry.Server) *Front {
	t.Helper()
	r := registry.New(servers, registry.Options{})
	f := New(r, executor.New(r, executor.Options{TOON: true, TypeScript: true}), options)
	r.Start()
	t.Cleanup(func() {
		f.Close()
		r.Close(time.Second)
	})
	return f
}

func remote(name string, fake *mcptest.HTTPServer) registry.Server {
	return registry.Server{Spec: upstream.Spec{Name: name, Type: upstream.HTTP, URL: fake.URL}}
}

func hello(client string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"` + client + `","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
}

// pipe is one client over in-memory pipes. The test's end closes it.
type pipe struct {
	in io.WriteCloser

	mu    sync.Mutex
	lines []string
}

func dial(t *testing.T, f *Front, client string) *pipe {
	t.Helper()
	return dialWith(t, f, client, StdioOptions{})
}

func dialWith(t *testing.T, f *Front, client string, options StdioOptions) *pipe {
	t.Helper()
	p := dialSilent(t, f, options)
	p.send(t, hello(client))
	return p
}

// dialSilent is a client that has said nothing yet.
func dialSilent(t *testing.T, f *Front, options StdioOptions) *pipe {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	p := &pipe{in: inWrite}
	served, read := make(chan struct{}), make(chan struct{})
	go func() { // ends with the input
		defer close(served)
		if err := f.ServeStdio(context.Background(), inRead, outWrite, options); err != nil {
			t.Errorf("serving: %v", err)
		}
		outWrite.Close()
	}()
	go func() { // ends with the output
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

// with counts the lines that have a piece of text.
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

// request waits for the answer of a request.
func (p *pipe) request(t *testing.T, id, method string) string {
	t.Helper()
	p.send(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{}}`+"\n")
	prefix, answer := `{"jsonrpc":"2.0","id":`+id+`,`, ""
	mcptest.WaitFor(t, method, patience, func() bool {
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

// TestFront_Golden: tools/list and the instructions, as models of two clients
// see them with the demo's servers.
func TestFront_Golden(t *testing.T) {
	var servers []registry.Server
	for _, sample := range demo.Servers() {
		servers = append(servers, registry.Server{
			Description: sample.Description,
			Spec:        upstream.Spec{Name: sample.Name, Type: upstream.InProcess, Serve: sample.Serve},
		})
	}
	for _, client := range []string{"some-agent", "claude-code"} {
		t.Run(client, func(t *testing.T) {
			f := connect(t, Options{Version: "1.2.3"}, servers...)
			f.registry.WaitTried(t.Context())
			p := dial(t, f, client)
			listed := p.request(t, "1", "tools/list")
			if again := p.request(t, "2", "tools/list"); strings.Replace(again, `"id":2`, `"id":1`, 1) != listed {
				t.Error("the second tools/list is other bytes")
			}
			var list struct {
				Result struct{ Tools []map[string]json.RawMessage }
			}
			if err := json.Unmarshal([]byte(listed), &list); err != nil {
				t.Fatal(err)
			}
			archive := &txtar.Archive{Comment: []byte("What the model of " + client + " sees of mcpx with the servers of the demo.\n\n")}
			add := func(name, text string) {
				archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(strings.TrimRight(text, "\n") + "\n")})
			}
			for _, tool := range list.Result.Tools {
				var name, description string
				if json.Unmarshal(tool["name"], &name) != nil || json.Unmarshal(tool["description"], &description) != nil {
					t.Fatalf("reading %s", tool)
				}
				delete(tool, "description")
				rest, err := json.MarshalIndent(tool, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				add(name+".json", string(rest))
				add(name+".txt", description)
			}
			p.mu.Lock()
			first := p.lines[0]
			p.mu.Unlock()
			var opened struct{ Result struct{ Instructions string } }
			if err := json.Unmarshal([]byte(first), &opened); err != nil {
				t.Fatal(err)
			}
			add("instructions.txt", opened.Result.Instructions)
			golden(t, filepath.Join("testdata", "surface-"+client+".txtar"), txtar.Format(archive))
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestFront_StartupWait: initialize never waits; tools/list waits for servers
// that were never tried, at most StartupWait after the start, and names them.
func TestFront_StartupWait(t *testing.T) {
	mcptest.NoLeaks(t)
	hung := mcptest.Spec{NeverInit: true, Era: mcptest.EraLegacy}.HTTP(t)
	good := mcptest.Spec{}.HTTP(t)
	const wait = 400 * time.Millisecond
	began := time.Now()
	f := connect(t, Options{StartupWait: wait}, remote("good", good), remote("hung", hung))
	p := dial(t, f, "agent")
	mcptest.WaitFor(t, "initialize", patience, func() bool { return p.with(`"id":0,`) == 1 })
	if took := time.Since(began); took > wait {
		t.Errorf("initialize took %v", took)
	}
	listed := p.request(t, "1", "tools/list")
	if took := time.Since(began); took < wait {
		t.Errorf("tools/list took %v: it did not wait", took)
	}
	if !strings.Contains(listed, "Server: hung") || !strings.Contains(listed, "echo(text)") {
		t.Errorf("got %s", listed)
	}
	// The time is over for good: nobody waits again.
	again := time.Now()
	p.request(t, "2", "tools/list")
	if took := time.Since(again); took > wait {
		t.Errorf("the second tools/list took %v", took)
	}
}

// TestFront_ListChanged: clients hear of a change of the texts, and of nothing
// else.
func TestFront_ListChanged(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	f := connect(t, Options{}, remote("fake", fake))
	f.registry.WaitTried(t.Context())
	p := dial(t, f, "agent")
	const note = `"notifications/tools/list_changed"`
	settled := func() { // two quiet looks at what announce gathers, one after another
		before := -1
		mcptest.WaitFor(t, "quiet", patience, func() bool {
			now := p.with(note)
			timer := time.NewTimer(3 * announceAfter)
			defer timer.Stop()
			<-timer.C
			quiet := now == before
			before = now
			return quiet
		})
	}
	settled()
	before := p.with(note)
	// The same tools again, and a server that is gone for a moment: no change.
	fake.SetTools(mcptest.DefaultTools())
	fake.Restart()
	settled()
	if got := p.with(note); got != before {
		t.Errorf("%d notifications about nothing", got-before)
	}
	mcptest.WaitFor(t, "list_changed", patience, func() bool {
		fake.SetTools(json.RawMessage(`[{"name":"fresh","inputSchema":{"type":"object"}}]`))
		return p.with(note) > before
	})
	if listed := p.request(t, "5", "tools/list"); !strings.Contains(listed, "fresh") {
		t.Errorf("got %s", listed)
	}
}

// TestFront_Restless: a catalogue that never stays the same is told of so many
// times a minute, and no more.
func TestFront_Restless(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connect(t, Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	f.registry.WaitTried(t.Context())
	p := dial(t, f, "agent")
	const note = `"notifications/tools/list_changed"`
	flip := 0
	change := func() {
		flip++
		f.SetOptions(Options{NoTOON: flip%2 == 0})
	}
	mcptest.WaitFor(t, "the last of a minute", patience, func() bool {
		change()
		return p.with(note) == announceMost
	})
	for range 5 {
		change()
		if !f.pause(announceAfter) || p.with(note) > announceMost {
			t.Fatalf("%d notifications", p.with(note))
		}
	}
}

// TestFront_SetOptions: new options count at once, and clients hear of those that
// change what they see.
func TestFront_SetOptions(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connect(t, Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	f.registry.WaitTried(t.Context())
	p := dial(t, f, "agent")
	const note = `"notifications/tools/list_changed"`
	told := 0
	change := func(what string, options Options, want func(listed string) bool) {
		t.Helper()
		f.SetOptions(options)
		mcptest.WaitFor(t, "list_changed after "+what, patience, func() bool { return p.with(note) > told })
		told = p.with(note)
		if listed := p.request(t, `"`+what+`"`, "tools/list"); !want(listed) {
			t.Errorf("after %s: %s", what, listed)
		}
	}
	mcptest.WaitFor(t, "the tools", patience, func() bool { return strings.Contains(f.Description(), "echo(text)") })
	shows := func(listed string) bool { return strings.Contains(listed, "echo(text)") }
	hides := func(listed string) bool { return !shows(listed) }
	change("a budget", Options{BudgetTokens: 60}, hides)
	change("no budget", Options{}, shows)
	change("no TOON", Options{NoTOON: true}, func(listed string) bool { return !strings.Contains(listed, "may be TOON") })
	change("no TypeScript", Options{JSONSchema: true}, func(listed string) bool {
		return !strings.Contains(listed, "exact TypeScript") && strings.Contains(listed, "may be TOON")
	})
	change("a rule", Options{Clients: []ClientRule{{Name: "agent", DescriptionChars: 300}}}, hides)
	if !f.structured("agent", nil) {
		t.Error("no structuredContent before")
	}
	f.SetOptions(Options{Structured: StructuredNever})
	if f.structured("agent", nil) {
		t.Error("structuredContent after")
	}
}

// TestFront_Unpack: arguments of the two tools in the shapes that models send.
func TestFront_Unpack(t *testing.T) {
	f := connect(t, Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	f.registry.WaitTried(t.Context())
	for _, test := range []struct {
		name, tool, arguments string
		want                  string
	}{
		{"nothing", InspectTool, ``, "fake: ready"},
		{"null", InspectTool, `null`, "fake: ready"},
		{"a string", InspectTool, `"{\"server_name\":\"fake\",\"tool_name\":\"echo\"}"`, "What to answer."},
		{"nulls", InspectTool, `{"server_name":"fake","tool_name":null,"query":null}`, "destroy_echo"},
		{"a list", InspectTool, `[]`, "must be an object"},
		{"a number", InspectTool, `{"query":5}`, "/query: must be a string"},
		{"no server", ExecTool, `{"tool_name":"echo"}`, "/server_name: is missing"},
		{"no tool", ExecTool, `{"server_name":"fake"}`, "/tool_name: is missing"},
		{"exec in a string", ExecTool, `"{\"server_name\":\"fake\",\"tool_name\":\"echo\",\"arguments\":{\"text\":\"hi\"}}"`, `"text":"hi"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, ok, err := f.call(t.Context(), caller{structured: true}, test.tool, json.RawMessage(test.arguments))
			if err != nil || !ok {
				t.Fatalf("%v, %t", err, ok)
			}
			if text := string(bytes.Join(raws(result.Content), nil)); !strings.Contains(text, test.want) {
				t.Errorf("no %q in %s", test.want, text)
			}
		})
	}
}

func raws(blocks []json.RawMessage) [][]byte {
	out := make([][]byte, len(blocks))
	for i := range blocks {
		out[i] = blocks[i]
	}
	return out
}
