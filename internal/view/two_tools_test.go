package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/desk/demo"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

var update = flag.Bool("update", false, "write the golden files anew")

// patience is a timeout that is only reached if a test fails.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// chained returns an executor whose messages pass through its middleware chain, without audit trail and limits.
func chained(r *registry.Registry, options executor.Options) *executor.Executor {
	e := executor.New(r, options)
	r.Use(e.Chain(nil, nil)...)
	return e
}

// idle returns a view of these servers. The caller must start the registry. View and registry are closed at the end of the
// test.
func idle(t *testing.T, options Options, servers ...registry.Server) (*TwoTools, *registry.Registry) {
	t.Helper()
	r := registry.New(servers, registry.Options{})
	v := NewTwoTools(r, chained(r, executor.Options{TOON: true, TypeScript: true}), options)
	t.Cleanup(func() {
		v.Close()
		r.Close(time.Second)
	})
	return v, r
}

// started is like idle, but also starts the registry.
func started(t *testing.T, options Options, servers ...registry.Server) (*TwoTools, *registry.Registry) {
	t.Helper()
	v, r := idle(t, options, servers...)
	r.Start()
	return v, r
}

// listen calls changed with each kind that clients should list again, until the end of the test.
func listen(t *testing.T, v View, changed func(catalog.Kind)) {
	t.Helper()
	t.Cleanup(v.Attach(&caller.Client{ID: "all"}, Attachment{Changed: changed}))
}

// changing is like started. The func set changes the options of the view, as a reload of the config does.
func changing(t *testing.T, servers ...registry.Server) (v *TwoTools, r *registry.Registry, set func(Options)) {
	t.Helper()
	var settings atomic.Pointer[Settings]
	settings.Store(NewSettings(Options{}))
	v, r = started(t, Options{Current: settings.Load}, servers...)
	return v, r, func(options Options) {
		settings.Store(NewSettings(options))
		r.Refresh()
	}
}

func remote(name string, fake *mcptest.HTTPServer) registry.Server {
	return registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}}
}

// TestTwoTools_Golden: tools/list and the instructions, for two clients and with the servers of the demo, are as in the golden
// files.
func TestTwoTools_Golden(t *testing.T) {
	var servers []registry.Server
	for _, sample := range demo.Servers() {
		servers = append(servers, registry.Server{
			Description: sample.Description,
			Spec:        upstream.Spec{Options: transport.Options{Name: sample.Name, Type: transport.InProcess, Serve: sample.Serve}},
		})
	}
	for _, client := range []string{"some-agent", "claude-code"} {
		t.Run(client, func(t *testing.T) {
			v, r := started(t, Options{}, servers...)
			r.WaitTried(t.Context())
			c := &caller.Client{Name: client}
			listed := v.Tools(t.Context(), c)
			if again := v.Tools(t.Context(), c); !bytes.Equal(again, listed) {
				t.Error("the second tools/list is other bytes")
			}
			var tools []map[string]json.RawMessage
			if err := json.Unmarshal(listed, &tools); err != nil {
				t.Fatal(err)
			}
			archive := &txtar.Archive{Comment: []byte("What the model of " + client + " sees of mcpx with the servers of the demo.\n\n")}
			add := func(name, text string) {
				archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(strings.TrimRight(text, "\n") + "\n")})
			}
			for _, tool := range tools {
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
			add("instructions.txt", v.Instructions(c))
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

// TestTwoTools_Restless: if a catalogue changes all the time, clients are notified only maxAnnouncements times per minute.
func TestTwoTools_Restless(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, testRestless)
}

func testRestless(t *testing.T) {
	v, r, set := changing(t)
	r.WaitTried(t.Context())
	var announced atomic.Int32
	listen(t, v, func(catalog.Kind) { announced.Add(1) })
	flip := 0
	change := func() {
		flip++
		set(Options{Forms: conf.FormJSON << (flip % 2)})
	}
	mcptest.WaitFor(t, "the last of a minute", patience, func() bool {
		change()
		return announced.Load() == maxAnnouncements
	})
	for range 5 {
		change()
		if !v.pause(announceAfter) || announced.Load() > maxAnnouncements {
			t.Fatalf("%d announcements", announced.Load())
		}
	}
}

// TestTwoTools_Current: new options take effect immediately. Clients are notified if the new options change what they see.
func TestTwoTools_Current(t *testing.T) {
	mcptest.NoLeaks(t)
	v, r, set := changing(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	r.WaitTried(t.Context())
	var announced atomic.Int32
	listen(t, v, func(catalog.Kind) { announced.Add(1) })
	agent := &caller.Client{Name: "agent"}
	before := announced.Load()
	change := func(what string, options Options, want func(listed string) bool) {
		t.Helper()
		set(options)
		mcptest.WaitFor(t, "list_changed after "+what, patience, func() bool { return announced.Load() > before })
		before = announced.Load()
		if listed := string(v.Tools(t.Context(), agent)); !want(listed) {
			t.Errorf("after %s: %s", what, listed)
		}
	}
	mcptest.WaitFor(t, "the tools", patience, func() bool { return strings.Contains(v.Description(), "echo(text)") })
	shows := func(listed string) bool { return strings.Contains(listed, "echo(text)") }
	hides := func(listed string) bool { return !shows(listed) }
	change("a budget", Options{BudgetTokens: 60}, hides)
	change("no budget", Options{}, shows)
	change("no TOON", Options{Forms: conf.FormJSON}, func(listed string) bool { return !strings.Contains(listed, "may be TOON") })
	change("no TypeScript", Options{JSONSchema: true}, func(listed string) bool {
		return !strings.Contains(listed, "exact TypeScript") && strings.Contains(listed, "may be TOON")
	})
	change("a rule", Options{Clients: []ClientRule{{Name: "agent", DescriptionChars: 300}}}, hides)
	if got := v.form(Call{From: request.From{Client: agent}}).Structured; got != results.StructuredOwn {
		t.Errorf("structuredContent before: %d", got)
	}
	set(Options{Structured: StructuredNever})
	if got := v.form(Call{From: request.From{Client: agent}}).Structured; got != results.StructuredNone {
		t.Errorf("structuredContent after: %d", got)
	}
}

// TestTwoTools_Arguments: inspect and exec accept their arguments in the various forms that models send.
func TestTwoTools_Arguments(t *testing.T) {
	v, r := started(t, Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	r.WaitTried(t.Context())
	for _, test := range []struct {
		name, tool, arguments string
		want                  string
	}{
		{"nothing", InspectTool, ``, " tools"},
		{"null", InspectTool, `null`, " tools"},
		{"a string", InspectTool, `"{\"server_name\":\"fake\",\"tool_name\":\"echo\"}"`, "What to answer."},
		{"nulls", InspectTool, `{"server_name":"fake","tool_name":null,"query":null}`, "destroy_echo"},
		{"a list", InspectTool, `[]`, "must be an object"},
		{"a number", InspectTool, `{"query":5}`, "/query: must be a string"},
		{"no server", ExecTool, `{"tool_name":"echo"}`, "/server_name: is missing"},
		{"no tool", ExecTool, `{"server_name":"fake"}`, "/tool_name: is missing"},
		{"a dotted tool and no server", ExecTool, `{"tool_name":"fake.echo","arguments":{"text":"hi"}}`, `"text":"hi"`},
		{"a tool after two underscores", ExecTool, `{"tool_name":"fake__echo","arguments":{"text":"hi"}}`, `"text":"hi"`},
		{"a dotted server and no tool", ExecTool, `{"server_name":"fake.echo","arguments":{"text":"hi"}}`, `"text":"hi"`},
		{"a dotted tool on its server", ExecTool, `{"server_name":"fake","tool_name":"fake__echo","arguments":{"text":"hi"}}`, `"text":"hi"`},
		{"a dotted tool on another server", ExecTool, `{"server_name":"other","tool_name":"fake.echo","arguments":{"text":"hi"}}`, "SERVER_NOT_FOUND"},
		{"arguments beside arguments", ExecTool, `{"server_name":"fake","tool_name":"echo","text":"hi"}`, `"text":"hi"`},
		{"one more beside arguments", ExecTool, `{"server_name":"fake","tool_name":"add","arguments":{"a":1},"b":2}`, `sum`},
		{"another value beside arguments", ExecTool, `{"server_name":"fake","tool_name":"echo","arguments":{"text":"hi"},"text":"ho"}`, "/text: is unknown; exec takes"},
		{"beside arguments what no tool has", ExecTool, `{"server_name":"fake","tool_name":"echo","text":"hi","force":true}`, "/text: is unknown; exec takes"},
		{"an unknown dotted server and no tool", ExecTool, `{"server_name":"fake.nothing"}`, "/tool_name: is missing; exec takes"},
		{"a dotted tool to inspect", InspectTool, `{"tool_name":"fake.echo"}`, "What to answer."},
		{"two tools and no server", InspectTool, `{"tool_name":"echo, slow"}`, "\\nslow("},
		{"tools after their server", InspectTool, `{"server_name":"fake","tool_name":"fake.echo,fake__slow"}`, "\\nslow("},
		{"one tool of three is none", InspectTool, `{"server_name":"fake","tool_name":"echo,slow,nope"}`, "\\n// TOOL_NOT_FOUND: no tool \\\"nope\\\""},
		{"arguments beside those of inspect", InspectTool, `{"server_name":"fake","text":"hi"}`, "/text: is unknown"},
		{"a dotted server to inspect", InspectTool, `{"server_name":"fake.echo"}`, "Server fake has echo."},
		{"other names", ExecTool, `{"server":"fake","tool":"echo","args":{"text":"hi"}}`, `"text":"hi"`},
		{"other names of inspect", InspectTool, `{"server":"fake","tool":"echo"}`, "What to answer."},
		{"both names", ExecTool, `{"server":"fake","server_name":"fake","tool":null,"tool_name":"echo","args":{"text":"hi"},"arguments":null}`, `"text":"hi"`},
		{"both names with two values", ExecTool, `{"server":"fake","server_name":"other","tool":"echo"}`, "/server_name: is given as server as well"},
		{"an unknown name", ExecTool, `{"server":"fake","tool":"echo","argumants":{}}`, "/argumants: is unknown; did you mean arguments?"},
		{"exec in a string", ExecTool, `"{\"server_name\":\"fake\",\"tool_name\":\"echo\",\"arguments\":{\"text\":\"hi\"}}"`, `"text":"hi"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := v.Call(t.Context(), Call{Name: test.tool, Arguments: json.RawMessage(test.arguments), Structured: StructuredAlways})
			if err != nil {
				t.Fatal(err)
			}
			if text := string(bytes.Join(raws(result.Content), nil)); !strings.Contains(text, test.want) {
				t.Errorf("no %q in %s", test.want, text)
			}
		})
	}
}

// TestTwoTools_ShortNames: with short_argument_names, the short names of arguments are listed and used in all texts. Both sets
// of names are accepted with either setting.
func TestTwoTools_ShortNames(t *testing.T) {
	for _, short := range []bool{false, true} {
		v, r := started(t, Options{ShortNames: short}, remote("fake", mcptest.Spec{}.HTTP(t)))
		r.WaitTried(t.Context())
		c := &caller.Client{Name: "agent"}
		shown := string(v.Tools(t.Context(), c)) + v.Instructions(c)
		call := func(tool, arguments string) string {
			result, err := v.Call(t.Context(), Call{Name: tool, Arguments: json.RawMessage(arguments)})
			if err != nil {
				return err.Error()
			}
			return string(bytes.Join(raws(result.Content), nil))
		}
		said := shown + call(ExecTool, `{}`) + call(ExecTool, `{"tool":"echo","server":""}`) + call(InspectTool, `{"tool":"x"}`) + call(InspectTool, `{"query":"echo a text"}`) + call("echo", `{}`)
		for _, name := range []string{"server_name", "tool_name", `"arguments"`} {
			if strings.Contains(said, name) == short {
				t.Errorf("short names are %t, and %s is there: %t: %s", short, name, !short, said)
			}
		}
		for _, arguments := range []string{`{"server_name":"fake","tool_name":"echo","arguments":{"text":"hi"}}`, `{"server":"fake","tool":"echo","args":{"text":"hi"}}`} {
			if got := call(ExecTool, arguments); !strings.Contains(got, `"text":"hi"`) {
				t.Errorf("short names are %t: %s: %s", short, arguments, got)
			}
			if got := call(InspectTool, arguments[:strings.Index(arguments, `,"arg`)]+"}"); !strings.Contains(got, "What to answer.") {
				t.Errorf("short names are %t: inspect: %s", short, got)
			}
		}
	}
}

func raws(blocks []json.RawMessage) [][]byte {
	out := make([][]byte, len(blocks))
	for i := range blocks {
		out[i] = blocks[i]
	}
	return out
}

// TestTwoTools_Panic: a panic ends only its call. The answer is the failure EXECUTION_ERROR.
func TestTwoTools_Panic(t *testing.T) {
	v := &TwoTools{}
	v.init(registry.New(nil, registry.Options{}), nil, Options{})
	result, err := v.Call(t.Context(), Call{Name: ExecTool, Arguments: json.RawMessage(`{"server_name":"a","tool_name":"b"}`)})
	if err != nil || !result.IsError || !strings.Contains(string(result.Content[0]), "EXECUTION_ERROR: internal error of mcpx") {
		t.Errorf("got %+v, %v", result, err)
	}
}

// TestTwoTools_SameToolTwice: if a request names the same tool many times, the answer describes it once. Otherwise a short
// request could cause an extremely long answer.
func TestTwoTools_SameToolTwice(t *testing.T) {
	v, r := started(t, Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	r.WaitTried(t.Context())
	length := func(names string) int {
		result, err := v.Call(t.Context(), Call{From: request.From{Client: &caller.Client{}}, Name: InspectTool, Arguments: json.RawMessage(`{"server_name":"fake","tool_name":"` + names + `"}`)})
		if err != nil || result.IsError {
			t.Fatal(result, err)
		}
		return len(result.Content[0])
	}
	if one, many := length("echo,"), length(strings.Repeat("echo,", 1000)); many != one {
		t.Errorf("a tool a thousand times has %d bytes, once %d", many, one)
	}
}

// TestSaves_Annotations: if exec can also save results as files, its annotations do not promise that it only reads. Otherwise they
// promise what all the servers' tools declare.
func TestSaves_Annotations(t *testing.T) {
	snap := catalog.NewSnapshot([]catalog.Server{{Name: "a", Known: true, Tools: []catalog.Tool{{Name: "t", Hints: catalog.Hints{ReadOnly: new(true)}}}}})
	for _, saves := range []bool{false, true} {
		tools := string(encodeTools(snap, "", "", shown{saves: saves}))
		if got := strings.Count(tools, `"readOnlyHint":true`); got != 2 && !saves || got != 1 && saves {
			t.Errorf("saves %t: %s", saves, tools)
		}
	}
}
