package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// rawTools returns the tool definitions in an answer to tools/list: the names in their order, and the
// definitions by name.
func (c *client) rawTools(t testing.TB) (names []string, byName map[string]json.RawMessage) {
	t.Helper()
	var list struct{ Tools []json.RawMessage }
	raw := c.result(t, "tools/list", `{}`)
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("reading tools/list: %v: %s", err, raw)
	}
	byName = make(map[string]json.RawMessage)
	for _, tool := range list.Tools {
		var it struct{ Name string }
		if err := json.Unmarshal(tool, &it); err != nil {
			t.Fatal(err)
		}
		names = append(names, it.Name)
		byName[it.Name] = tool
	}
	return names, byName
}

// onViews runs a test on a view, over HTTP in both eras, and over stdio in one era, or in both with MCPX_FULL=1.
func onViews(t *testing.T, h *home, config, view string, test func(t *testing.T, c *client)) {
	t.Helper()
	for _, era := range mcptest.Part(t, []string{legacy, modern}, 1) { // each era needs its own mcpx with its own servers
		t.Run(view+" stdio "+era, func(t *testing.T) {
			c := &client{peer: h.serveStdio(t, "--config", config, "serve", "--view", view), era: era, name: "some-agent"}
			c.open(t)
			test(t, c)
		})
	}
	t.Run(view+" http", func(t *testing.T) {
		d := h.serveHTTP(t, "--config", config)
		d.url += "/" + view
		for _, era := range []string{legacy, modern} {
			t.Run(era, func(t *testing.T) {
				c := &client{peer: d.peer(t), era: era, name: "some-agent"}
				c.open(t)
				test(t, c)
			})
		}
	})
}

// TestNPM_SDKViews: the official client lists and calls the tools of the views. It checks structuredContent
// against the output schemas.
func TestNPM_SDKViews(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	servers, _ := p.real(t, h)
	servers["odd"] = fake(t, mcptest.Spec{OddTools: true}) // SDKs refuse the definitions of this server's tools
	config := h.config(t, servers, map[string]any{"startup_wait": 60, "exec_wait": 60})
	url := h.serveHTTP(t, "--config", config).url
	for _, args := range [][]string{
		{"stdio", binary(t), "--config", config, "serve", "--view", "tools"}, {"http", url + "/tools"},
	} {
		t.Run(args[0], func(t *testing.T) {
			c := startSDK(t, p, h, args...)
			c.ask(t, "", "")
			if a := c.ask(t, "list", ""); a.Error != "" || !strings.Contains(string(a.Result), `"odd__odd_true"`) {
				t.Errorf("tools are %.2000s %s", a.Result, a.Error)
			}
			for _, test := range []struct{ tool, arguments, want string }{
				{"everything__get-sum", `{"a":1,"b":2}`, `The sum of 1 and 2 is 3.`},
				{"everything__get-tiny-image", `{}`, `"type":"image"`},
				{"everything__get-structured-content", `{"location":"Chicago"}`, `"structuredContent":{"temperature":`},
				{"memory__read_graph", `{}`, `"structuredContent":{"entities":[`},
				{"memory__open_nodes", `{"names":5}`, `VALIDATION_ERROR`},
			} {
				if a := c.call(t, test.tool, test.arguments); !strings.Contains(string(a.Result), test.want) {
					t.Errorf("%s %s: no %s in %.2000s %s", test.tool, test.arguments, test.want, a.Result, a.Error)
				}
			}
			if a := c.call(t, "memory__nonsense", `{}`); !strings.Contains(a.Error, "-32602") {
				t.Errorf("an unknown tool got %s %s", a.Result, a.Error)
			}
		})
	}
}

// TestViews_Groups: the view of a group has only the group's servers and tools, whether the view has the two
// tools of mcpx or lists all tools.
func TestViews_Groups(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{}), "beta": fake(t, mcptest.Spec{})}, map[string]any{
		"structured_content": "always",
		"groups": map[string]any{
			"all":  map[string]any{"servers": []string{"alpha"}, "tools": map[string]any{"deny": []string{"*.add"}}, "view": "tools"},
			"two":  map[string]any{"servers": []string{"alpha"}, "tools": map[string]any{"deny": []string{"*.add"}}},
			"read": map[string]any{"read_only": true, "view": "tools"},
			"only": map[string]any{"tools": map[string]any{"allow": []string{"beta.echo"}}, "view": "tools"},
		},
	})
	onViews(t, h, config, "groups/all", func(t *testing.T, c *client) {
		names, _ := c.rawTools(t)
		if !slices.Contains(names, "alpha__echo") || slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "beta") || name == "alpha__add" }) {
			t.Errorf("names are %q", names)
		}
		if m := c.request(t, "tools/call", `{"name":"alpha__add","arguments":{"a":1,"b":2}}`); m.Error == nil {
			t.Errorf("a hidden tool got %s", m.Result)
		}
		if m := c.request(t, "tools/call", `{"name":"alpha__rpc_error","arguments":{}}`); !strings.Contains(string(m.Error), "told to fail") {
			t.Errorf("an error of the upstream became %s %s", m.Result, m.Error)
		}
	})
	onViews(t, h, config, "groups/two", func(t *testing.T, c *client) {
		c.awaitReady(t, "alpha")
		if description := c.list(t)[0].Description; !strings.Contains(description, "alpha") || strings.Contains(description, "beta") || strings.Contains(description, "add(") {
			t.Errorf("the description is\n%s", description)
		}
		if r := c.exec(t, "alpha", "echo", `{"text":"hello"}`); r.IsError || r.text(t) != "hello" {
			t.Errorf("got %s", r.Content)
		}
		checkFault(t, "another server", c.exec(t, "beta", "echo", `{"text":"x"}`), "SERVER_NOT_FOUND", "alpha")
		checkFault(t, "a hidden tool", c.exec(t, "alpha", "add", `{}`), "TOOL_NOT_FOUND", "add")
		if text := c.tool(t, "inspect", `{"query":"add two numbers"}`).text(t); strings.Contains(text, "add(") {
			t.Errorf("a hidden tool is found: %s", text)
		}
	})
	onViews(t, h, config, "groups/read", func(t *testing.T, c *client) {
		if names, _ := c.rawTools(t); slices.Contains(names, "alpha__echo") {
			t.Errorf("names are %q", names)
		}
	})
	onViews(t, h, config, "groups/only", func(t *testing.T, c *client) {
		if names, _ := c.rawTools(t); !slices.Equal(names, []string{"beta__echo"}) {
			t.Errorf("names are %q", names)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		p := h.serveHTTP(t, "--config", config).peer(t)
		p.url += "/groups/none"
		if err := p.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("got %v", err)
		}
		_, stderr, code := h.run(t, "", "--config", config, "serve", "--view", "servers/alpah")
		if code != exitUsage || !strings.Contains(stderr, `there is no server "alpah", did you mean "alpha"?`) {
			t.Errorf("exit %d, %s", code, stderr)
		}
	})
}

// TestViews_Results: in a view that lists all tools, results are compressed or left unchanged, and are never
// shortened.
func TestViews_Results(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	var rows []string
	for i := range 5000 {
		rows = append(rows, fmt.Sprintf(`{"name": "a city %d", "population": %d}`, i, 7919*i%100000))
	}
	list := "[" + strings.Join(rows, ",") + "]"
	result, err := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": list}}})
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]server{"alpha": fake(t, mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"cities","inputSchema":{"type":"object"}}]`), Results: map[string]json.RawMessage{"cities": result},
	})}
	for compress, want := range map[bool]string{true: "[5000]{name,population}:\n", false: list} {
		config := h.config(t, servers, map[string]any{"compress": compress, "result_token_limit": 1000})
		onViews(t, h, config, "tools", func(t *testing.T, c *client) {
			if text := c.tool(t, "alpha__cities", `{}`).text(t); !strings.HasPrefix(text, want) || strings.Count(text, "a city") != 5000 {
				t.Errorf("compress %t: %d characters, %.200s", compress, len(text), text)
			}
		})
	}
}

// TestNPM_SSE: the official client uses the HTTP+SSE transport of 2024-11-05 with the default view and with others. It lists and
// calls tools, gets progress, answers the server's requests, and cancels calls.
func TestNPM_SSE(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	servers, _ := p.real(t, h)
	spec := mcptest.Spec{}.WithFiles(t)
	changing := mcptest.Spec{}.HTTP(t)
	config := h.config(t, map[string]server{"everything": servers["everything"], "fake": fake(t, spec), "changing": {"url": changing.URL}},
		map[string]any{"startup_wait": 60, "exec_wait": 60, "sse": true, "confirm": "all"})
	root := strings.TrimSuffix(h.serveHTTP(t, "--config", config).url, "/mcp")
	for _, path := range mcptest.Part(t, []string{"/sse", "/mcp/sse", "/mcp/tools/sse", "/mcp/servers/everything/sse"}, 2) {
		t.Run(path, func(t *testing.T) {
			c := startSDK(t, p, h, "--elicit=accept", "sse", root+path)
			c.ask(t, "", "")
			tool, sum := "exec", execArgs("everything", "get-sum", `{"a":1,"b":2}`)
			long := execArgs("everything", "trigger-long-running-operation", `{"duration":0.4,"steps":4}`)
			switch path {
			case "/mcp/tools/sse":
				tool, sum, long = "everything__get-sum", `{"a":1,"b":2}`, ""
			case "/mcp/servers/everything/sse":
				tool, sum, long = "get-sum", `{"a":1,"b":2}`, ""
			}
			if a := c.ask(t, "list", ""); !strings.Contains(string(a.Result), `"`+tool+`"`) {
				t.Errorf("tools are %.1000s %s", a.Result, a.Error)
			}
			if a := c.call(t, tool, sum); !strings.Contains(string(a.Result), "The sum of 1 and 2 is 3.") {
				t.Errorf("got %s %s", a.Result, a.Error)
			}
			c.mu.Lock()
			if !slices.ContainsFunc(c.notes, func(note string) bool { return strings.Contains(note, "Run everything.get-sum?") }) {
				t.Errorf("notes are %q", c.notes)
			}
			c.mu.Unlock()
			if long == "" {
				return
			}
			// The SDK loses progress that it reads together with the result.
			if a := c.call(t, "exec", long); len(a.Progress) == 0 {
				t.Errorf("progress: %s %s", a.Progress, a.Error)
			}
			cancelled := len(spec.Log(t).Event(mcptest.EventCancel))
			if a := c.ask(t, "cancel", `,"ms":2000,"params":{"name":"exec","arguments":`+execArgs("fake", "slow", `{"ms":600000}`)+`}`); a.Error == "" {
				t.Errorf("a cancelled call got %s", a.Result)
			}
			mcptest.WaitFor(t, "the cancellation upstream", patience, func() bool { return len(spec.Log(t).Event(mcptest.EventCancel)) > cancelled })
			if path != "/sse" {
				return
			}
			known := c.noted("notifications/tools/list_changed")
			changing.SetTools(json.RawMessage(`[{"name":"brand_new","inputSchema":{"type":"object"}}]`))
			mcptest.WaitFor(t, "list_changed", patience, func() bool { return c.noted("notifications/tools/list_changed") > known })
		})
	}
}

// TestSSE_Bytes: the first event has the URL to which the client posts messages. A message that is invalid, or
// for an unknown session, is refused. The caller's credentials are taken from the request that opens the
// stream. When the connection ends, open calls are cancelled.
func TestSSE_Bytes(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	web := mcptest.Spec{}.HTTP(t)
	servers := map[string]server{"fake": fake(t, spec), "web": {"url": web.URL, "credentials": map[string]string{"X-Key": "header:X-User-Key"}}}
	root := strings.TrimSuffix(h.serveHTTP(t, "--config", h.config(t, servers, map[string]any{"sse": true, "exec_wait": 60})).url, "/mcp")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ctx, hangUp := contextOf(t)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, root+"/mcp/tools/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-User-Key", "of the stream")
	stream, err := client.Do(request)
	if err != nil || stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %v, %v", stream, err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 4<<20)
	next := func() string {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && !strings.Contains(data, `"method":"notifications/`) {
				return data
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	messages := next()
	if !strings.HasPrefix(messages, "/mcp/tools/messages?sessionId=mcpx-") {
		t.Fatalf("messages go to %s", messages)
	}
	post := func(path, body string, want int) {
		t.Helper()
		response, err := client.Post(root+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s %.60s: %s, want %d", path, body, response.Status, want)
		}
	}
	post("/mcp/tools/messages?sessionId=none", `{}`, http.StatusNotFound)
	post("/mcp/messages"+messages[strings.IndexByte(messages, '?'):], `{}`, http.StatusNotFound) // the session belongs to another view
	post(messages, `hello`, http.StatusBadRequest)
	post(messages, ` `, http.StatusBadRequest)
	post(messages, "{\n\"jsonrpc\":\"2.0\",\r\n \"id\":\"one\",\"method\":\"ping\"}", http.StatusAccepted)
	if got := next(); got != `{"jsonrpc":"2.0","id":"one","result":{}}` {
		t.Errorf("got %s", got)
	}
	post(messages, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, http.StatusAccepted)
	if got := next(); !strings.Contains(got, `"protocolVersion":"2024-11-05"`) {
		t.Errorf("got %s", got)
	}
	large := strings.Repeat("x", 1<<20)
	post(messages, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fake__echo","arguments":{"text":"`+large+`"}}}`, http.StatusAccepted)
	if got := next(); !strings.Contains(got, large) {
		t.Errorf("got %.200s", got)
	}
	post(messages, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"web__echo","arguments":{"text":"x"}}}`, http.StatusAccepted)
	if got, all := next(), web.Log().Event(mcptest.EventHTTP); strings.Contains(got, "error") || all[len(all)-1].Header.Get("X-Key") != "of the stream" {
		t.Errorf("got %s with %v", got, all[len(all)-1].Header)
	}
	post(messages, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fake__slow","arguments":{"ms":600000}}}`, http.StatusAccepted)
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(spec.Log(t).Calls("slow")) > 0 })
	hangUp()
	mcptest.WaitFor(t, "the cancellation upstream", patience, func() bool { return len(spec.Log(t).Event(mcptest.EventCancel)) > 0 })
	mcptest.WaitFor(t, "the end of the session", patience, func() bool {
		response, err := client.Post(root+messages, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":4,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode == http.StatusNotFound
	})
	without := h.serveHTTP(t, "--config", h.config(t, servers, nil)).url
	for _, path := range []string{"/sse", "/tools/sse"} {
		if response, err := client.Get(without + path); err != nil || response.StatusCode != http.StatusNotFound {
			t.Errorf("without the key %s got %v, %v", path, response, err)
		} else {
			response.Body.Close()
		}
	}
}

// TestCheck_Groups: mcpx check prints a warning for each pattern of a group that matches no tool.
func TestCheck_Groups(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{})}, map[string]any{
		"groups": map[string]any{"g": map[string]any{"tools": map[string]any{"allow": []string{"alpha.*"}, "deny": []string{"alpha.ecko"}}}},
	})
	out, stderr, code := h.run(t, "", "--config", config, "check")
	if code != exitOK || !strings.Contains(out, `groups.g.tools.deny: "alpha.ecko" matches no tool; did you mean alpha.echo?`) || strings.Contains(out, "tools.allow") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}
