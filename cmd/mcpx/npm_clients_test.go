package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// sdkClient is the client of the official TypeScript SDK (testdata/npm/sdk-client.mjs).
type sdkClient struct {
	in   io.WriteCloser
	last int

	mu      sync.Mutex
	answers map[int]sdkAnswer
	notes   []string
	ended   bool
}

type sdkAnswer struct {
	ID       *int
	Note     string
	Params   json.RawMessage
	Result   json.RawMessage
	Error    string
	Progress []json.RawMessage
}

// harmless are complaints of the client that are no faults of mcpx: the client handles notifications after
// responses that arrived later; it requires an answer to a POST that it has cancelled; and it aborts its own
// streams at the end.
var harmless = []string{"progress notification for an unknown token", "response for an unknown message ID", "AbortError"}

func startSDK(t *testing.T, p peers, h *home, args ...string) *sdkClient {
	t.Helper()
	cmd := exec.Command(p.node, append([]string{filepath.Join(p.dir, "sdk-client.mjs")}, args...)...)
	cmd.Env = h.env()
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	in, out := start(t, cmd)
	c := &sdkClient{in: in, answers: make(map[int]sdkAnswer)}
	done := make(chan struct{})
	go func() { // the goroutine ends with the process
		defer close(done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var a sdkAnswer
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
				a.Note = "not JSON: " + lines.Text()
			}
			c.mu.Lock()
			if a.ID != nil {
				c.answers[*a.ID] = a
			} else {
				c.notes = append(c.notes, strings.TrimSpace(a.Note+" "+string(a.Params)))
			}
			c.mu.Unlock()
		}
		err := cmd.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
		if err != nil {
			c.notes = append(c.notes, "error: "+err.Error())
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-done
		for _, note := range c.notes {
			if strings.Contains(note, "error") && !slices.ContainsFunc(harmless, func(part string) bool { return strings.Contains(note, part) }) {
				t.Errorf("the client says: %s", note)
			}
		}
		if t.Failed() {
			t.Logf("stderr:\n%.4000s", stderr.String())
		}
	})
	return c
}

// noted returns how many notifications with this method and without params have arrived. For updates of resources, note is a
// part of the params.
func (c *sdkClient) noted(note string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, got := range c.notes {
		if got == note || strings.HasPrefix(got, "notifications/resources/updated ") && strings.Contains(got, note) {
			n++
		}
	}
	return n
}

// ask sends a command and waits for its answer. If op is empty, it sends nothing and waits for the first message,
// which says whether the client has connected.
func (c *sdkClient) ask(t *testing.T, op, params string) sdkAnswer {
	t.Helper()
	id := 0
	if op != "" {
		c.last++
		id = c.last
		if _, err := fmt.Fprintf(c.in, `{"id":%d,"op":%q%s}`+"\n", id, op, params); err != nil {
			t.Fatal(err)
		}
	}
	var a sdkAnswer
	mcptest.WaitFor(t, op+params, patience, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		var ok bool
		a, ok = c.answers[id]
		if !ok && c.ended {
			t.Fatalf("the client ended: %q", c.notes)
		}
		return ok
	})
	return a
}

func (c *sdkClient) call(t *testing.T, name, arguments string) sdkAnswer {
	t.Helper()
	return c.ask(t, "call", `,"params":{"name":"`+name+`","arguments":`+arguments+`}`)
}

// TestNPM_SDKClient: the official client connects, lists and calls tools, gets progress, cancels a call, and
// is notified of changes, over both transports.
func TestNPM_SDKClient(t *testing.T) {
	mcptest.Parallel(t)
	p := findPeers(t)
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			h := newHome(t)
			servers, _ := p.real(t, h)
			spec := mcptest.Spec{}.WithFiles(t)
			upstream := mcptest.Spec{}.HTTP(t)
			servers["fake"], servers["changing"] = fake(t, spec), server{"url": upstream.URL}
			config := h.config(t, servers, patient)
			args := []string{"stdio", binary(t), "serve", "--config", config}
			if over == "http" {
				args = []string{"http", h.serveHTTP(t, "--config", config).url}
			}
			c := startSDK(t, p, h, args...)
			if hello := string(c.ask(t, "", "").Result); !strings.Contains(hello, `"name":"mcpx"`) || !strings.Contains(hello, "filesystem") {
				t.Errorf("connected to %s", hello)
			}
			if list := string(c.ask(t, "list", "").Result); !strings.Contains(list, `"inspect"`) || !strings.Contains(list, `"exec"`) || !strings.Contains(list, "read_text_file") {
				t.Errorf("tools are %.2000s", list)
			}
			for _, test := range []struct{ tool, arguments, want string }{
				{"inspect", `{"server_name":"everything","tool_name":"get-sum"}`, `get-sum`},
				{"exec", execArgs("everything", "get-sum", `{"a":1,"b":2}`), `The sum of 1 and 2 is 3.`},
				{"exec", execArgs("everything", "get-tiny-image", `{}`), `"type":"image"`},
				{"exec", execArgs("everything", "get-resource-links", `{"count":2}`), `"type":"resource_link"`},
				{"exec", execArgs("everything", "get-structured-content", `{"location":"Chicago"}`), `"structuredContent":{"temperature":`},
				{"exec", execArgs("fake", "content", `{"known":true}`), `"type":"audio"`},
				{"exec", execArgs("memory", "read_graph", `{}`), `"structuredContent":{"entities":[`},
				{"exec", execArgs("fake", "nonsense", `{}`), `TOOL_NOT_FOUND: `},
			} {
				if a := c.call(t, test.tool, test.arguments); !strings.Contains(string(a.Result), test.want) {
					t.Errorf("%s %s: no %s in %.2000s %s", test.tool, test.arguments, test.want, a.Result, a.Error)
				}
			}
			// The SDK loses progress that it reads together with the result.
			if a := c.call(t, "exec", execArgs("everything", "trigger-long-running-operation", `{"duration":0.4,"steps":4}`)); len(a.Progress) == 0 {
				t.Errorf("progress: %s %s", a.Progress, a.Error)
			}
			cancelled := c.ask(t, "cancel", `,"ms":2000,"params":{"name":"exec","arguments":`+execArgs("fake", "slow", `{"ms":600000}`)+`}`)
			if cancelled.Error == "" {
				t.Errorf("a cancelled call got %s", cancelled.Result)
			}
			mcptest.WaitFor(t, "the cancellation upstream", patience, func() bool {
				return len(spec.Log(t).Event(mcptest.EventCancel)) > 0
			})
			// All servers are connected now, so only this change can be announced.
			known := c.noted("notifications/tools/list_changed")
			upstream.SetTools(json.RawMessage(`[{"name":"brand_new","inputSchema":{"type":"object"}}]`))
			mcptest.WaitFor(t, "the new tool", patience, func() bool {
				return strings.Contains(string(c.ask(t, "list", "").Result), "brand_new")
			})
			mcptest.WaitFor(t, "list_changed", patience, func() bool {
				return c.noted("notifications/tools/list_changed") > known
			})
		})
	}
}

// TestNPM_Questions: in the middle of calls, a real server sends real clients every kind of request: elicitation, sampling,
// roots. Two clients that call at the same time each get their own requests and results. A third client supports no such
// requests, and does not get the tools that need them. Each client has its own session with the server.
func TestNPM_Questions(t *testing.T) {
	mcptest.Parallel(t)
	p := findPeers(t)
	asks := []struct{ tool, arguments, want string }{
		{"trigger-elicitation-request", `{}`, "- Name: %s"},
		{"trigger-url-elicitation", `{"url":"https://x.example/","message":"go"}`, "User completed the URL elicitation flow"},
		{"trigger-sampling-request", `{"prompt":"x"}`, "sampled by %s"},
		{"get-roots-list", `{}`, "file:///home/%s"},
	}
	check := func(t *testing.T, c *sdkClient, name string) {
		t.Helper()
		for _, ask := range asks {
			want := strings.ReplaceAll(ask.want, "%s", name)
			if a := c.call(t, "exec", execArgs("everything", ask.tool, ask.arguments)); !strings.Contains(string(a.Result), want) {
				t.Errorf("%s: no %s in %.2000s %s", ask.tool, want, a.Result, a.Error)
			}
		}
	}
	t.Run("stdio", func(t *testing.T) {
		h := newHome(t)
		config := h.config(t, map[string]server{"everything": p.server("everything", nil)}, patient)
		check(t, startSDK(t, p, h, "--able=ada", "stdio", binary(t), "serve", "--config", config), "ada")
		bare := startSDK(t, p, h, "stdio", binary(t), "serve", "--config", config)
		mcptest.WaitFor(t, "the list of a client that cannot be asked", patience, func() bool {
			return strings.Contains(string(bare.call(t, "exec", execArgs("everything", "get-roots-list", `{}`)).Result), "TOOL_NOT_FOUND")
		})
	})
	t.Run("http", func(t *testing.T) {
		h := newHome(t)
		everything := p.server("everything", nil)
		everything["session"] = "per_client"
		url := h.serveHTTP(t, "--config", h.config(t, map[string]server{"everything": everything}, patient)).url
		clients := map[string]*sdkClient{}
		for _, name := range []string{"ada", "bob"} {
			clients[name] = startSDK(t, p, h, "--able="+name, "http", url)
		}
		var asking sync.WaitGroup
		for name, c := range clients {
			asking.Go(func() { check(t, c, name) })
		}
		bare := startSDK(t, p, h, "http", url)
		if a := bare.call(t, "exec", execArgs("everything", "echo", `{"message":"x"}`)); !strings.Contains(string(a.Result), "Echo: x") {
			t.Errorf("got %s %s", a.Result, a.Error)
		}
		if a := bare.call(t, "exec", execArgs("everything", "get-roots-list", `{}`)); !strings.Contains(string(a.Result), "TOOL_NOT_FOUND") {
			t.Errorf("got %s %s", a.Result, a.Error)
		}
		mcptest.WaitFor(t, "list_changed for the client whose session has fewer tools", patience, func() bool {
			return bare.noted("notifications/tools/list_changed") > 0
		})
		asking.Wait()
	})
}

// TestNPM_TaskStream: the SDK's callToolStream calls a tool that must run as a task. Two clients do so at the
// same time, and each gets the answers to its own questions. A task id that no client owns is unknown.
func TestNPM_TaskStream(t *testing.T) {
	p := findPeers(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"everything": p.server("everything", nil)}, map[string]any{"view": "tools"})
	url := h.serveHTTP(t, "--config", config).url
	var streaming sync.WaitGroup
	for _, name := range []string{"ada", "bob"} {
		c := startSDK(t, p, h, "--able="+name, "http", url)
		streaming.Go(func() {
			if list := c.ask(t, "list", ""); !strings.Contains(string(list.Result), `"taskSupport":"required"`) {
				t.Errorf("no tool that must run as a task in %.300s %s", list.Result, list.Error)
			}
			a := c.ask(t, "stream", `,"params":{"name":"everything__simulate-research-query","arguments":{"topic":"the topic of `+name+`"}}`)
			for _, want := range []string{`"type":"taskCreated","task":{"taskId":"everything/`, `"type":"taskStatus"`, `"type":"result"`, `"topic of ` + name} {
				if want = strings.ReplaceAll(want, `"topic`, `topic`); !strings.Contains(string(a.Result), want) {
					t.Errorf("%s: no %s in %.3000s %s", name, want, a.Result, a.Error)
				}
			}
			for _, id := range []string{"everything/0", "0", "nobody/0", ""} {
				if a := c.ask(t, "getTask", `,"params":{"taskId":"`+id+`"}`); a.Error == "" {
					t.Errorf("task %q: %s", id, a.Result)
				}
			}
		})
	}
	streaming.Wait()
}

// TestNPM_Inspector: the command line of the MCP Inspector lists and calls tools through mcpx.
func TestNPM_Inspector(t *testing.T) {
	mcptest.Parallel(t)
	p := findPeers(t)
	h := newHome(t)
	servers, _ := p.real(t, h)
	config := h.config(t, servers, patient)
	over := map[string][]string{
		"stdio": {"--config", h.write(t, "inspector.json", inspectorConfig(t, h, binary(t), "serve", "--config", config)), "--server", "mcpx"},
		"http":  {h.serveHTTP(t, "--config", config).url},
	}
	for name, target := range over {
		t.Run(name, func(t *testing.T) {
			script := filepath.Join(p.dir, "node_modules", "@modelcontextprotocol", "inspector-cli", "build", "cli.js")
			type run struct {
				args []string
				want string
			}
			for _, test := range mcptest.Part(t, []run{
				{[]string{"--method", "tools/list"}, "read_text_file"},
				{[]string{"--method", "tools/call", "--tool-name", "inspect", "--tool-arg", "server_name=memory"}, "create_entities"},
				{[]string{"--method", "tools/call", "--tool-name", "exec", "--tool-arg", "server_name=everything", "tool_name=echo", `arguments={"message":"inspected"}`}, "Echo: inspected"},
				{[]string{"--method", "resources/list"}, `"memory://knowledge-graph"`},
				{[]string{"--method", "resources/templates/list"}, "demo://resource/dynamic/text/{resourceId}"},
				{[]string{"--method", "resources/read", "--uri", "demo://resource/dynamic/text/4"}, "Resource 4: This is a plaintext resource"},
				{[]string{"--method", "prompts/list"}, "everything__args-prompt"},
				{[]string{"--method", "prompts/get", "--prompt-name", "everything__args-prompt", "--prompt-args", "city=Bonn"}, "weather in Bonn"},
			}, 2) {
				args := append(append([]string{script, "--cli"}, target...), test.args...)
				cmd := exec.Command(p.node, args...)
				cmd.Env, cmd.Dir = h.env(), p.dir
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), test.want) {
					t.Errorf("%q: %v, no %q in\n%.3000s", test.args, err, test.want, out)
				}
			}
		})
	}
}

// inspectorConfig writes a config for the Inspector that has mcpx as a server.
func inspectorConfig(t *testing.T, h *home, command string, args ...string) string {
	t.Helper()
	env := make(map[string]string)
	for _, pair := range h.env() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"mcpx": map[string]any{"command": command, "args": args, "env": env},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
