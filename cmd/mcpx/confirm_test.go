package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestNPM_Confirm: before a call that may change something, a real client asks the user and shows what will
// run. If the user declines, or the client cannot ask, the call is not made. Calls that only read need no
// question.
func TestNPM_Confirm(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	servers, folder := p.real(t, h)
	config := h.config(t, map[string]server{"filesystem": servers["filesystem"]}, map[string]any{"startup_wait": 60, "exec_wait": 60, "confirm": "destructive"})
	url := h.serveHTTP(t, "--config", config).url
	for name, test := range map[string]struct {
		args   []string
		want   string
		asked  bool
		exists bool
	}{
		"accept over stdio": {[]string{"--elicit=accept", "stdio", binary(t), "--config", config, "serve"}, "Successfully wrote", true, true},
		"accept over http":  {[]string{"--elicit=accept", "http", url}, "Successfully wrote", true, true},
		"decline":           {[]string{"--elicit=decline", "http", url}, "the user declined the call of filesystem.write_file", true, false},
		"cancel":            {[]string{"--elicit=cancel", "http", url + "/tools"}, "the user declined the call of filesystem.write_file", true, false},
		"cannot be asked":   {[]string{"stdio", binary(t), "--config", config, "serve"}, "filesystem.write_file needs the user's confirmation", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := startSDK(t, p, h, test.args...)
			c.ask(t, "", "")
			file := filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".txt")
			quoted, _ := json.Marshal(file)
			write, read := "exec", "exec"
			writeArgs, readArgs := execArgs("filesystem", "write_file", `{"path":`+string(quoted)+`,"content":"x <y>"}`), execArgs("filesystem", "list_allowed_directories", `{}`)
			if strings.HasSuffix(url+"/tools", test.args[len(test.args)-1]) {
				write, read = "filesystem__write_file", "filesystem__list_allowed_directories"
				writeArgs, readArgs = `{"path":`+string(quoted)+`,"content":"x <y>"}`, `{}`
			}
			if a := c.call(t, read, readArgs); !strings.Contains(string(a.Result), folder) {
				t.Errorf("a call that only reads got %s %s", a.Result, a.Error)
			}
			a := c.call(t, write, writeArgs)
			if !strings.Contains(string(a.Result), test.want) {
				t.Errorf("got %s %s", a.Result, a.Error)
			}
			questions := 0
			c.mu.Lock()
			for _, note := range c.notes {
				if strings.HasPrefix(note, "elicitation/create") {
					questions++
					if !strings.Contains(note, "Run filesystem.write_file?") || !strings.Contains(note, file) || !strings.Contains(note, "x <y>") {
						t.Errorf("asked %s", note)
					}
				}
			}
			c.mu.Unlock()
			if asked := questions == 1; asked != test.asked || questions > 1 {
				t.Errorf("asked %d times", questions)
			}
			if _, err := os.Stat(file); (err == nil) != test.exists {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

// TestConfirm_Levels: the setting confirm of a server replaces the global one. The setting of a group can only
// require more questions.
func TestConfirm_Levels(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	asking, free := fake(t, mcptest.Spec{}), fake(t, mcptest.Spec{})
	free["confirm"] = "off"
	config := h.config(t, map[string]server{"asking": asking, "free": free}, map[string]any{
		"confirm": "all", "exec_wait": 60,
		"groups": map[string]any{"loose": map[string]any{"confirm": "off"}, "strict": map[string]any{"confirm": "destructive"}},
	})
	const needs = "needs the user's confirmation"
	for view, refused := range map[string]map[string]bool{
		"two_tools": {"asking": true, "free": false}, "groups/loose": {"asking": true, "free": false}, "groups/strict": {"asking": true, "free": true},
	} {
		onViews(t, h, config, view, func(t *testing.T, c *client) {
			for server, want := range refused {
				for way, arguments := range waysToExec {
					r := c.tool(t, "exec", arguments(server, "echo", `{"text":"hello"}`))
					if got := strings.Contains(string(r.Content[0]), needs); got != want || r.IsError != want {
						t.Errorf("%s %s: %s", server, way, r.Content)
					}
				}
			}
		})
	}
	out, stderr, code := h.run(t, "", "--config", config, "exec", "asking", "echo", `{"text":"hello"}`)
	if code != 0 || out != "hello\n" {
		t.Errorf("the user's own call: exit %d, %s%s", code, out, stderr)
	}
}

// TestConfirm_Modern: a modern client gets the question as an input_required result. Its next request, with
// the answer, makes the call.
func TestConfirm_Modern(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{})}, map[string]any{"confirm": "all", "exec_wait": 60})
	c := &client{peer: h.serveStdio(t, "--config", config), era: modern, name: "e2e"}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	call := `"method":"tools/call","params":{` + meta + `,"name":"exec","arguments":` + execArgs("alpha", "echo", `{"text":"hello"}`)
	for action, want := range map[string]string{"accept": `"text":"hello"`, "accept by itself": "without the user's answer", "decline": "the user declined"} {
		c.send(t, `{"jsonrpc":"2.0","id":"`+action+`",`+call+`}}`)
		var asked struct {
			ResultType    string
			RequestState  json.RawMessage
			InputRequests map[string]struct {
				Method string
				Params struct{ Message string }
			}
		}
		m := c.answer(t, `"`+action+`"`)
		if err := json.Unmarshal(m.Result, &asked); err != nil || asked.ResultType != "input_required" || len(asked.InputRequests) != 1 {
			t.Fatalf("got %s %s", m.Result, m.Error)
		}
		for key, question := range asked.InputRequests {
			if question.Method != "elicitation/create" || !strings.Contains(question.Params.Message, "Run alpha.echo?") {
				t.Errorf("asked %+v", question)
			}
			c.send(t, `{"jsonrpc":"2.0","id":"again `+action+`",`+call+`,"requestState":`+string(asked.RequestState)+`,"inputResponses":{"`+key+`":`+string(consent(action))+`}}}`)
		}
		if m := c.answer(t, `"again `+action+`"`); !strings.Contains(string(m.Result), want) {
			t.Errorf("%s: got %s %s", action, m.Result, m.Error)
		}
	}
}

// TestConfirm_Padded: a long first argument does not hide the other arguments from the user, in either era. A
// call with too many arguments to show is refused; calls by another client still work.
func TestConfirm_Padded(t *testing.T) {
	mcptest.Parallel(t)
	spec := mcptest.Spec{Tools: json.RawMessage(`[{"name":"send","inputSchema":{"type":"object"}}]`)}
	s := fake(t, spec)
	s["confirm"] = "all"
	e := newHome(t).endpoint(t, map[string]server{"s": s}, nil, "ann", "bob")
	for way, arguments := range waysToExec {
		for _, era := range []string{legacy, modern} {
			t.Run(way+" "+era, func(t *testing.T) { confirmPadded(t, e, era, arguments) })
		}
	}
}

func confirmPadded(t *testing.T, e *endpoint, era string, arguments func(server, tool, arguments string) string) {
	padded := `{"name":"exec","arguments":` + arguments("s", "send", `{"pad":"`+strings.Repeat("x", 9000)+`","text":"hidden"}`) + `}`
	var names strings.Builder
	for i := range 2000 { // different ones: a program's object has each name once
		fmt.Fprintf(&names, `"pad%d":"x",`, i)
	}
	many := `{"name":"exec","arguments":` + arguments("s", "send", `{`+names.String()+`"text":"hidden"}`) + `}`
	ann, bob := e.knocking(t, "ann", era, ""), e.knocking(t, "bob", era, "")
	for _, c := range []*client{ann, bob} {
		c.caps = `{"elicitation":{}}`
		c.open(t)
	}
	for action, want := range map[string]string{"accept": `hidden`, "accept by itself": "without the user's answer"} {
		m, questions := ann.consenting(t, "tools/call", padded, action)
		if len(questions) != 1 || !strings.Contains(questions[0], `\"text\": \"hidden\"`) || !strings.Contains(questions[0], "more characters; SHA-256 of all ") ||
			!strings.Contains(questions[0], `"required":["run"]`) || strings.Contains(questions[0], `"default"`) {
			t.Errorf("%s: asked %s", era, questions)
		}
		if !strings.Contains(string(m.Result), want) {
			t.Errorf("%s, %s: %s %s", era, action, m.Result, m.Error)
		}
	}
	if m, questions := ann.consenting(t, "tools/call", many, "accept"); questions != nil || !strings.Contains(string(m.Result), "there are too many") {
		t.Errorf("%s: %s %s, asked %s", era, m.Result, m.Error, questions)
	}
	if m, questions := bob.consenting(t, "tools/call", strings.Replace(padded, "hidden", "of bob", 1), "accept"); len(questions) != 1 || !strings.Contains(string(m.Result), "of bob") {
		t.Errorf("%s: %s %s, asked %s", era, m.Result, m.Error, questions)
	}
}

// TestReadDoor: exec_read calls tools that only read, and refuses others. Without the config key the tool
// exec_read does not exist.
func TestReadDoor(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	servers := map[string]server{"alpha": fake(t, mcptest.Spec{Tools: json.RawMessage(`[
		{"name":"get","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
		{"name":"put","inputSchema":{"type":"object"}}]`)})}
	servers["alpha"]["overrides"] = map[string]any{"put": map[string]any{"description": "Puts."}}
	config := h.config(t, servers, map[string]any{"read_door": true, "exec_wait": 60})
	each(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
		c.open(t)
		tools := c.list(t)
		if len(tools) != 3 || tools[2].Name != "exec_read" || tools[2].Annotations["readOnlyHint"] != true || tools[1].Annotations["readOnlyHint"] != false {
			t.Fatalf("tools are %+v", tools)
		}
		for way, arguments := range waysToExec {
			if r := c.tool(t, "exec_read", arguments("alpha", "get", `{"a":1}`)); r.IsError || strings.TrimPrefix(r.text(t), "#1 ") != `{"a":1}` {
				t.Errorf("%s: got %s", way, r.Content)
			}
			if r := c.tool(t, "exec_read", arguments("alpha", "put", `{"a":1}`)); !r.IsError || !strings.Contains(r.text(t), "alpha.put is not declared read-only; call it with exec") {
				t.Errorf("%s: got %s", way, r.Content)
			}
		}
		if r := c.exec(t, "alpha", "put", `{"a":1}`); r.IsError {
			t.Errorf("got %s", r.Content)
		}
	})
	c := &client{peer: h.serveStdio(t, "--config", h.config(t, servers, nil)), era: legacy, name: "e2e"}
	c.open(t)
	if m := c.request(t, "tools/call", `{"name":"exec_read","arguments":{}}`); m.Error == nil || len(c.list(t)) != 2 {
		t.Errorf("without the key: %s", m.Result)
	}
}
