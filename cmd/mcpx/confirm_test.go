package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestConfirm_Levels: the setting confirm of a server replaces the global one. The setting of a group can only make more calls
// need a confirmation.
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
	for i := range 2000 { // different names, because an object of a program has each name only once
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

// TestReadDoor: exec_read calls tools that only read, and refuses others. Without the config key read_door the tool exec_read
// does not exist.
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
