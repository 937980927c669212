package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestRecord_Beside: a request that is not a tool call is recorded in the trail and in the log with its
// server, what it was for, the bytes sent and received, and how long the server took.
func TestRecord_Beside(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	e := newHome(t).endpoint(t, map[string]server{"s": fake(t, spec)}, nil, "ann")
	const argument = `,"argument":{"name":"who","value":"x"}}`
	ways := []struct {
		view, method, params string
		items                []string // any one of these names is expected
		failed               bool
	}{
		{"/servers/s", "resources/read", uriIs("res://a"), []string{"res://a"}, false},
		{"", "resources/read", uriIs("res://b"), []string{"res://b"}, false},
		{"", "resources/read", uriIs("res://x/9"), []string{"res://x/9"}, true}, // a URI that the server does not have
		{"/servers/s", "prompts/get", `{"name":"hello"}`, []string{"hello"}, false},
		{"", "prompts/get", `{"name":"s__hello"}`, []string{"hello", "s__hello"}, false},
		{"/servers/s", "completion/complete", `{"ref":{"type":"ref/prompt","name":"hello"}` + argument, []string{"hello"}, false},
		{"/servers/s", "completion/complete", `{"ref":{"type":"ref/resource","uri":"res://x/{id}"}` + argument, []string{"res://x/{id}"}, false},
		{"/servers/s", "vendor/look", `{"x":1}`, []string{""}, false},
	}
	for _, era := range []string{legacy, modern} {
		clients := map[string]*client{"": e.client(t, "ann", era, ""), "/servers/s": e.client(t, "ann", era, "/servers/s")}
		for _, way := range ways {
			if m := clients[way.view].request(t, way.method, way.params); (m.Error != nil) != way.failed {
				t.Errorf("%s %s: %s %s", way.method, way.params, m.Result, m.Error)
			}
		}
	}
	lines := e.end(t, 2*len(ways), func(l auditLine) bool { return l.Event == "call_ended" })
	for _, way := range ways {
		of := func(l auditLine) bool { return l.Method == way.method && slices.Contains(way.items, l.Item) }
		at := slices.IndexFunc(lines, of)
		if at < 0 {
			t.Errorf("the trail has no %s with an item of %q", way.method, way.items)
			continue
		}
		for _, l := range lines {
			if of(l) && (l.Server != "s" || l.Upstream <= 0 || !way.failed && (l.Received == 0 || l.Sent == 0) || (l.Outcome == "RESULT") == way.failed) {
				t.Errorf("the trail has %+v", l)
			}
		}
		texts := []string{"msg=call", "method=" + way.method, "server=s ", lines[at].Item}
		if runtime.GOOS == "windows" {
			continue // on this system the end of the log is lost
		}
		if n := e.logged(texts...); n < 2 || e.logged(append(texts, "upstream=0s")...) > 0 || !way.failed && e.logged(append(texts, "bytes_received=0 ")...) > 0 {
			t.Errorf("the log has %d lines of %s %s with their server, item, bytes and time", n, way.method, way.items)
		}
	}
}

var notThere = regexp.MustCompile(`mcpx_calls_total\{mcpx_server="[^"]*",outcome="TOOL_NOT_FOUND"\} (\d+)`)

// TestRecord_Hidden: a call of a tool that does not exist for its caller is in the trail, with the name that the caller gave,
// and is counted in the metrics. This holds for calls through the views /tools and /servers/s, as it does for calls through
// exec.
func TestRecord_Hidden(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	s := fake(t, spec)
	s["tools"] = map[string]any{"deny": []string{"destroy_*"}}
	rights := []any{
		map[string]any{"principals": []string{"ann", "root"}, "admin": true},
		map[string]any{"principals": []string{"bob"}, "tools": map[string]any{"deny": []string{"s.add"}}},
	}
	e := newHome(t).endpoint(t, map[string]server{"s": s}, map[string]any{"rights": rights}, "ann", "bob", "root")
	var want []string
	calls := 0
	for _, one := range []struct{ who, view, name string }{
		{"ann", "/tools", "s__destroy_echo"}, {"ann", "/tools", "s__never"}, {"bob", "/tools", "s__add"},
		{"ann", "/servers/s", "destroy_echo"}, {"ann", "/servers/s", "never"}, {"bob", "/servers/s", "add"},
	} {
		for _, era := range []string{legacy, modern} {
			m := e.client(t, one.who, era, one.view).request(t, "tools/call", `{"name":"`+one.name+`","arguments":{"text":"x","a":1,"b":2}}`)
			if !strings.Contains(string(m.Error), `"code":-32602,"message":"unknown tool \"`+one.name) {
				t.Errorf("%+v: got %s %s", one, m.Result, m.Error)
			}
			server := ""
			if one.view != "/tools" {
				server = "s"
			}
			want = append(want, one.who+" "+server+" "+one.name)
			calls++
		}
	}
	for who, tool := range map[string]string{"ann": "destroy_echo", "bob": "add"} {
		checkFault(t, "through exec", e.client(t, who, legacy, "").exec(t, "s", tool, `{"text":"x","a":1,"b":2}`), "TOOL_NOT_FOUND", tool)
		want = append(want, who+" s "+tool)
		calls++
	}
	e.client(t, "bob", legacy, "/servers/s").tool(t, "echo", `{"text":"x"}`)
	counted := 0
	for late := time.Now().Add(patience); counted != calls && time.Now().Before(late); { // calls are counted after the answer
		_, metrics := e.get(t, "/metrics", tokenOf("root"))
		counted = 0
		for _, found := range notThere.FindAllStringSubmatch(metrics, -1) {
			n, _ := strconv.Atoi(found[1])
			counted += n
		}
	}
	if counted != calls {
		t.Errorf("the metrics have %d calls of tools that are not there, want %d", counted, calls)
	}
	var lines []string
	for _, l := range e.end(t, calls, func(l auditLine) bool { return l.Tool != "echo" && strings.HasPrefix(l.Event, "call_") }) {
		if l.Event != "call_ended" || l.Outcome != "TOOL_NOT_FOUND" || l.Known || l.ReadOnly || l.Client != "e2e" {
			t.Errorf("the trail has %+v", l)
		}
		if strings.HasPrefix(l.Tool, "s__") {
			l.Server = "" // the name contains the server
		}
		lines = append(lines, l.Principal+" "+l.Server+" "+l.Tool)
	}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("the trail has\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if calls := spec.Log(t).Calls(""); len(calls) != 1 {
		t.Errorf("the server got %v", calls)
	}
}

// TestRecord_Tasks: a request about a task is in the trail with the server that runs the task.
func TestRecord_Tasks(t *testing.T) {
	mcptest.Parallel(t)
	const working = `"taskId":"1","status":"working","createdAt":"2026-11-21T10:00:00Z","lastUpdatedAt":"2026-11-21T10:00:00Z","ttlMs":60000}`
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	spec := mcptest.Spec{
		Era:   mcptest.EraModern,
		Tools: raw(`[{"name":"t","inputSchema":{"type":"object"}}]`), Results: map[string]json.RawMessage{"t": raw(`{"resultType":"task",` + working)},
		MethodResults: map[string]json.RawMessage{
			"server/discover": raw(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`),
			"tasks/get":       raw(`{"resultType":"complete",` + working), "tasks/update": raw(`{"resultType":"complete"}`), "tasks/cancel": raw(`{"resultType":"complete"}`),
		},
	}.WithFiles(t)
	e := newHome(t).endpoint(t, map[string]server{"s": fake(t, spec), "other": fake(t, things(t))}, nil, "ann")
	c := e.knocking(t, "ann", modern, "")
	c.caps = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	c.open(t)
	found := regexp.MustCompile(`"taskId":"([^"]*)"`).FindSubmatch(c.result(t, "tools/call", `{"name":"exec","arguments":`+execArgs("s", "t", `{}`)+`}`))
	if found == nil {
		t.Fatal("the call has no task")
	}
	methods := []string{"tasks/get", "tasks/update", "tasks/cancel"}
	for _, method := range methods {
		c.result(t, method, `{"taskId":"`+string(found[1])+`","inputResponses":{}}`)
		if seen := arrived(t, spec, method); len(seen) != 1 {
			t.Errorf("the server got %s %s", method, seen)
		}
	}
	var lines []string
	for _, l := range e.end(t, 3, endsOf("ann", methods...)) {
		if l.Server != "s" || l.Outcome != "RESULT" || l.Upstream <= 0 || l.Client != "e2e" {
			t.Errorf("the trail has %+v", l)
		}
		lines = append(lines, l.Method)
	}
	slices.Sort(lines)
	if fmt.Sprint(lines) != "[tasks/cancel tasks/get tasks/update]" {
		t.Errorf("the trail has %s", lines)
	}
}
