package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// listedTool is an entry of tools/list.
type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations map[string]any  `json:"annotations"`
	Meta        json.RawMessage `json:"_meta"`
}

func (c *client) list(t testing.TB) []listedTool {
	t.Helper()
	var list struct{ Tools []listedTool }
	raw := c.result(t, "tools/list", `{}`)
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("reading tools/list: %v: %s", err, raw)
	}
	return list.Tools
}

// awaitReady waits until mcpx has sessions with the named upstream servers: if their catalogues are on disk,
// mcpx answers before it has sessions.
func (c *client) awaitReady(t testing.TB, names ...string) {
	t.Helper()
	c.awaitServers(t, everyDaemon, names)
}

// awaitTried is awaitReady for sessions in the daemon, where a server that sessions do not share starts at its first use, and so
// may still be idle.
func (c *client) awaitTried(t testing.TB, names ...string) {
	t.Helper()
	c.awaitServers(t, true, names)
}

func (c *client) awaitServers(t testing.TB, orIdle bool, names []string) {
	t.Helper()
	mcptest.WaitFor(t, "the upstreams", patience, func() bool {
		data := string(c.tool(t, "inspect", `{}`).Structured)
		for _, name := range names {
			idle := orIdle && strings.Contains(data, `"name":"`+name+`","state":"idle"`)
			if !idle && !strings.Contains(data, `"name":"`+name+`","state":"ready"`) {
				return false
			}
		}
		return true
	})
}

func TestServe_Tools(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{
		"alpha":   fake(t, mcptest.Spec{Instructions: "First of the fakes."}),
		"beta":    {"url": mcptest.Spec{Era: mcptest.EraModern}.HTTP(t).URL},
		"missing": {"command": "mcpx-no-such-program"},
	}, nil)
	each(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
		var opened struct{ Instructions string }
		if raw := c.open(t); json.Unmarshal(raw, &opened) != nil || opened.Instructions == "" || len(opened.Instructions) > 2000 {
			t.Errorf("instructions in %s", raw)
		}
		c.awaitReady(t, "alpha", "beta")
		tools := c.list(t)
		if len(tools) != 2 || tools[0].Name != "inspect" || tools[1].Name != "exec" {
			t.Fatalf("want inspect and exec, got %+v", tools)
		}
		for _, tool := range tools {
			var meta map[string]json.RawMessage
			if json.Unmarshal(tool.Meta, &meta) != nil || string(meta["anthropic/alwaysLoad"]) != "true" || string(meta["anthropic/maxResultSizeChars"]) != "500000" {
				t.Errorf("%s: _meta is %s", tool.Name, tool.Meta)
			}
		}
		if hints := tools[1].Annotations; hints["readOnlyHint"] != false || hints["destructiveHint"] != true {
			t.Errorf("exec: annotations are %v", hints)
		}
		if hints := tools[0].Annotations; hints["readOnlyHint"] != true {
			t.Errorf("inspect: annotations are %v", hints)
		}
		for _, want := range []string{"Available tools:", "Server: alpha - First of the fakes.", "Server: beta", "Server: missing", "echo(text)"} {
			if !strings.Contains(tools[0].Description, want) {
				t.Errorf("no %q in the description:\n%s", want, tools[0].Description)
			}
		}
		testInspect(t, c)
		testExecFaults(t, c)
	})
}

// TestServe_MalformedSchemas: the provider of a model may refuse a whole request because of one invalid schema. mcpx lists no
// schemas of upstream servers, and their tools can be called.
func TestServe_MalformedSchemas(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	const malformed = `[
{"name":"lookup","inputSchema":{"type":"string","description":"the document title"}},
{"name":"nested","inputSchema":{"type":"object","properties":{"coin":{"type":"string"},"required":["coin"]}}},
{"name":"enum","inputSchema":{"type":"object","properties":{"a":{"enum":["A","B"],"type":"null"},"b":{"type":"array","enum":[0,1]}}}},
{"name":"union","inputSchema":{"anyOf":[{"type":"object"},7]}},
{"name":"nothing","inputSchema":null},
{"name":"list","inputSchema":[]},
{"name":"healthy","inputSchema":{"type":"object","properties":{"coin":{"type":"string"}}}}]`
	config := h.config(t, map[string]server{
		"bad": fake(t, mcptest.Spec{Tools: json.RawMessage(malformed), OddTools: true}),
	}, nil)
	each(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
		c.open(t)
		c.awaitReady(t, "bad")
		tools := c.list(t)
		if len(tools) != 2 {
			t.Errorf("%d tools, want inspect and exec", len(tools))
		}
		for _, tool := range tools {
			checkStrictSchema(t, tool.Name, tool.InputSchema)
		}
		for _, name := range []string{"lookup", "nested", "enum", "union", "nothing", "list", "healthy"} {
			if !strings.Contains(tools[0].Description, name) {
				t.Errorf("%s is not in the description:\n%s", name, tools[0].Description)
			}
			r := c.exec(t, "bad", name, `{"coin":"BTC"}`)
			if name == "enum" && len(r.Content) == 2 { // the second block says that the tool has no argument coin
				r.Content = r.Content[:1]
			}
			if name != "lookup" && (r.IsError || r.text(t) != `{"coin":"BTC"}`) {
				t.Errorf("%s: got %s", name, r.Content)
			}
		}
	})
}

// checkStrictSchema fails unless the schema is accepted by the strictest provider: an object of plain properties. The only
// other keywords allowed are additionalProperties: true of an object, without which some frameworks reduce it to an empty
// object, and items of an array of such objects.
func checkStrictSchema(t *testing.T, name string, raw json.RawMessage) {
	t.Helper()
	var schema struct {
		Type       string
		Properties map[string]struct {
			Type, Description    string
			AdditionalProperties bool
			Items                map[string]any
		}
		Required []string
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&schema); err != nil || schema.Type != "object" || len(schema.Properties) == 0 {
		t.Errorf("%s: %v in %s", name, err, raw)
	}
	for property, said := range schema.Properties {
		if items := said.Items; said.Type == "array" && items["type"] == "object" && items["additionalProperties"] == true {
			continue
		}
		if said.Type != "string" && said.Type != "object" || said.AdditionalProperties != (said.Type == "object") {
			t.Errorf("%s: %s is %+v", name, property, said)
		}
	}
	for _, property := range schema.Required {
		if _, ok := schema.Properties[property]; !ok {
			t.Errorf("%s: %s is required and no property", name, property)
		}
	}
}

// testInspect tests every kind of query to inspect.
func testInspect(t *testing.T, c *client) {
	t.Helper()
	for _, test := range []struct{ arguments, text, data string }{
		{`{}`, "alpha", `"state":"ready"`},
		{`{}`, "mcpx-no-such-program", `"state":"unavailable"`},
		{`{"server_name":"alpha"}`, "idempotent_echo(", `"server":"alpha"`},
		{`{"server_name":"beta","tool_name":"echo"}`, "What to answer.", `"inputSchema":{"type":"object","properties":{"text":{"type":"string"`},
		{`{"server_name":"alpha","tool_name":"echo, add"}`, "add(", `"name":"add"`},
		{`{"query":"add two numbers"}`, "// also on alpha", `"server":"beta"`},
		{`{"query":"add two numbers","server_name":"beta"}`, "add(", `"server":"beta"`},
		{`"{\"server_name\":\"alpha\"}"`, "echo(", `"server":"alpha"`},
	} {
		r := c.tool(t, "inspect", test.arguments)
		if r.IsError || !strings.Contains(r.text(t), test.text) || !strings.Contains(string(r.Structured), test.data) {
			t.Errorf("inspect %s: want %q and %q, got %s\n%s", test.arguments, test.text, test.data, r.Content, r.Structured)
		}
	}
	for _, test := range []struct{ arguments, code, text string }{
		{`{"server_name":"alfa"}`, "SERVER_NOT_FOUND", "alpha"},
		{`{"server_name":"alpha","tool_name":"ekko"}`, "TOOL_NOT_FOUND", "echo"},
		{`{"tool_name":"echo"}`, "VALIDATION_ERROR", "server_name"},
		{`{"server_name":5}`, "VALIDATION_ERROR", "server_name"},
	} {
		checkFault(t, "inspect "+test.arguments, c.tool(t, "inspect", test.arguments), test.code, test.text)
	}
}

func testExecFaults(t *testing.T, c *client) {
	t.Helper()
	for _, test := range []struct{ arguments, code, text string }{
		{execArgs("alfa", "echo", `{}`), "SERVER_NOT_FOUND", "alpha"},
		{execArgs("alpha", "ekko", `{}`), "TOOL_NOT_FOUND", "echo"},
		{execArgs("alpha", "echo", `{"text":5}`), "VALIDATION_ERROR", "/text"},
		{execArgs("alpha", "echo", `{}`), "VALIDATION_ERROR", "text"},
		{execArgs("alpha", "rpc_error", `{}`), "UPSTREAM_ERROR", "told to fail"},
		{execArgs("missing", "echo", `{}`), "SERVER_UNAVAILABLE", "mcpx-no-such-program"},
		{`{"server_name":"alpha"}`, "VALIDATION_ERROR", "tool_name"},
		{`[]`, "VALIDATION_ERROR", "object"},
	} {
		checkFault(t, "exec "+test.arguments, c.tool(t, "exec", test.arguments), test.code, test.text)
	}
	if r := c.exec(t, "alpha", "fail", `{"message":"no luck"}`); !r.IsError || r.text(t) != "no luck" {
		t.Errorf("a tool that fails: %+v", r)
	}
	if r := c.exec(t, "beta", "echo", `"{\"text\":\"stringified\"}"`); r.IsError || r.text(t) != "stringified" {
		t.Errorf("stringified arguments: %+v", r)
	}
	if m := c.request(t, "tools/call", `{"name":"nonsense","arguments":{}}`); m.Error == nil {
		t.Errorf("an unknown tool of mcpx got %s", m.Result)
	}
	if m := c.request(t, "no/such/method", `{}`); !strings.Contains(string(m.Error), "-32601") {
		t.Errorf("an unknown method got %s %s", m.Result, m.Error)
	}
}

func checkFault(t *testing.T, what string, r toolResult, code, text string) {
	t.Helper()
	var data struct {
		Error struct{ Code, Message string }
	}
	if !r.IsError || json.Unmarshal(r.Structured, &data) != nil || data.Error.Code != code || data.Error.Message == "" {
		t.Errorf("%s: want %s, got %s %s", what, code, r.Content, r.Structured)
		return
	}
	if !strings.Contains(r.text(t), text) {
		t.Errorf("%s: no %q in %q", what, text, r.text(t))
	}
}

// sameBlocks compares content blocks as JSON.
func sameBlocks(t *testing.T, got, want []json.RawMessage) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d blocks, want %d: %s", len(got), len(want), got)
		return
	}
	for i := range got {
		sameJSON(t, fmt.Sprintf("block %d", i), got[i], want[i])
	}
}

// sameJSON compares two JSON values. Their keys must have the same order, and their numbers must be written in the same way.
// Strings are decoded first. If a string contains JSON, this JSON is compared in the same way, because mcpx formats it
// differently for the model.
func sameJSON(t *testing.T, what string, got, want json.RawMessage) {
	t.Helper()
	if g, w := literal(t, got), literal(t, want); g != w {
		t.Errorf("%s differs\n got %.2000s\nwant %.2000s", what, g, w)
	}
}

// literal writes JSON as a list of its tokens, with each number as it was written.
func literal(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var out strings.Builder
	for decoder.More() || out.Len() == 0 {
		token, err := decoder.Token()
		if err != nil {
			return fmt.Sprintf("%s (%v in %.300s)", out.String(), err, raw)
		}
		for { // the token, and then the brackets that close after it
			if text, ok := token.(string); ok {
				if strings.ContainsAny(text[:min(1, len(text))], "{[") && json.Valid([]byte(text)) {
					text = literal(t, json.RawMessage(text))
				}
				fmt.Fprintf(&out, "%q ", text)
			} else {
				fmt.Fprintf(&out, "%v ", token)
			}
			if decoder.More() {
				break
			}
			if token, err = decoder.Token(); err != nil {
				return out.String()
			}
		}
	}
	return out.String()
}

// TestLiteral: sameJSON finds the differences that it must find.
func TestLiteral(t *testing.T) {
	mcptest.Parallel(t)
	base := literal(t, json.RawMessage(`{"a":[1.10,{"b":null}],"c":"x","d":"[1, 2]"}`))
	for _, same := range []string{` { "a" : [ 1.10, {"b":null} ], "c":"\u0078", "d":"[1,2]" } `} {
		if got := literal(t, json.RawMessage(same)); got != base {
			t.Errorf("%s became %s, not %s", same, got, base)
		}
	}
	for _, other := range []string{
		`{"a":[1.1,{"b":null}],"c":"x","d":"[1, 2]"}`, `{"c":"x","a":[1.10,{"b":null}],"d":"[1, 2]"}`,
		`{"a":[1.10,{"b":null},1],"c":"x","d":"[1, 2]"}`, `{"a":[1.10,{"b":null}],"c":"x","d":"[1, 2.0]"}`,
		`{"a":[1.10,{"b":null}],"c":"x"}`, `{"a":[1.10,{"b":"null"}],"c":"x","d":"[1, 2]"}`,
	} {
		if got := literal(t, json.RawMessage(other)); got == base {
			t.Errorf("%s counts as the same", other)
		}
	}
}

var profiledAt = regexp.MustCompile(`msg="serving profiles" url=(http://\S+)/debug/pprof/`)

// TestServe_Pprof: profiles are served on a separate port, which closes when mcpx ends. They are not served on
// the port for MCP.
func TestServe_Pprof(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	get := func(url, host string) (status int, body string, err error) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		return response.StatusCode, string(data), err
	}
	config := h.config(t, map[string]server{}, nil)
	d := h.serveHTTP(t, "--config", config, "--pprof", "127.0.0.1:0")
	found := profiledAt.FindStringSubmatch(d.stderr.String())
	if found == nil {
		t.Fatalf("no address of profiles in: %s", d.stderr.String())
	}
	profiles := found[1] + "/debug/pprof/"
	if status, body, err := get(profiles+"goroutine?debug=1", ""); status != http.StatusOK || !strings.Contains(body, "httpd.ServeProfiles") {
		t.Errorf("goroutines: %d, %v: %s", status, err, body)
	}
	if status, _, err := get(profiles, "example.com"); status != http.StatusForbidden {
		t.Errorf("another host: %d, %v", status, err)
	}
	if status, _, err := get(found[1]+"/mcp", ""); status != http.StatusNotFound {
		t.Errorf("MCP beside the profiles: %d, %v", status, err)
	}
	if status, _, err := get(strings.TrimSuffix(d.url, "/mcp")+"/debug/pprof/", ""); status != http.StatusNotFound {
		t.Errorf("profiles beside MCP: %d, %v", status, err)
	}
	terminate(d.cmd)
	<-d.exited
	if _, _, err := get(profiles, ""); err == nil {
		t.Error("profiles are served after the end")
	}
	if d := h.serveHTTP(t, "--config", config); profiledAt.MatchString(d.stderr.String()) {
		t.Error("profiles are served unasked")
	}
}
