package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// piped starts the fake in the test process and does the handshake.
func piped(t *testing.T, s Spec) (*lineClient, func() Log) {
	t.Helper()
	in, out, log := s.Pipe(t)
	c := newLineClient(t, in, out)
	c.handshake()
	return c, log
}

func (c *lineClient) list(id int, params string) reply {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":%s}`, id, params)
	return c.answer(fmt.Sprint(id))
}

// names returns the tool names in a tools/list result, and the next cursor.
func names(t *testing.T, r reply) (names []string, cursor string) {
	t.Helper()
	var res struct {
		Tools      []json.RawMessage
		NextCursor string
	}
	if err := json.Unmarshal(r.Result, &res); err != nil {
		t.Fatalf("decoding %.200s: %v", r.raw, err)
	}
	for _, raw := range res.Tools {
		var tool struct{ Name any }
		json.Unmarshal(raw, &tool)
		name, _ := tool.Name.(string)
		names = append(names, name)
	}
	return names, res.NextCursor
}

func TestTools_Defaults(t *testing.T) {
	NoLeaks(t)
	c, log := piped(t, Spec{})
	for i, tc := range []struct{ tool, args, want string }{
		{"echo", `{"text":"<é\u2028>"}`, `{"content":[{"type":"text","text":"<é\u2028>"}]}`},
		{"read_echo", `{"text":"r"}`, `{"content":[{"type":"text","text":"r"}]}`},
		{"add", `{"a":9007199254740993,"b":1}`, `{"content":[{"type":"text","text":"{\"sum\":9007199254740994}"}]}`},
		{"add", `{"a":0.5,"b":1}`, `{"content":[{"type":"text","text":"{\"sum\":1.5}"}]}`},
		{"slow", `{"ms":1}`, `{"content":[{"type":"text","text":"slept 1 ms"}]}`},
		{"fail", `{}`, `{"content":[{"type":"text","text":"this tool always fails"}],"isError":true}`},
		{"content", `{}`, ContentResult},
		{"content", `{"known":true}`, KnownContentResult},
		{"bare", `{}`, `{"structuredContent":{"id":9007199254740993,"rate":1.10}}`},
		{"table", `{"rows":1}`, `{"content":[{"type":"text","text":"[\n  {\n    \"id\": 9007199254740993,\n    \"name\": \"row 0\",\n    \"price\": 0.10,\n    \"active\": true\n  }\n]"}]}`},
		{"big", `{"bytes":3}`, `{"content":[{"type":"text","text":"xxx"}]}`},
		{"progress", `{"steps":2}`, `{"content":[{"type":"text","text":"did 2 steps"}]}`},
		{"pid", `{}`, fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, os.Getpid())},
		{"notify", `{"times":2}`, `{"content":[{"type":"text","text":"sent 2"}]}`},
		{"raw", `{"result":"{\"a\" : 1.10,\n \"isError\":true}"}`, `{"a":1.10,"isError":true}`},
	} {
		c.call(i+1, tc.tool, tc.args)
		r := c.answer(fmt.Sprint(i + 1))
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i+1, tc.want); r.raw != want {
			t.Errorf("%s %s:\n got %s\nwant %s", tc.tool, tc.args, r.raw, want)
		}
	}
	if !json.Valid([]byte(ContentResult)) || !json.Valid([]byte(TableText(3))) {
		t.Error("ContentResult or TableText is no JSON")
	}
	if got := len(log().Calls("add")); got != 2 {
		t.Errorf("%d calls of add in the log, want 2", got)
	}
}

func TestTools_Errors(t *testing.T) {
	NoLeaks(t)
	c, log := piped(t, Spec{FailMethods: []string{"ping"}})
	for i, tc := range []struct {
		method, params string
		code           int
	}{
		{"tools/call", `{"name":"rpc_error"}`, -32050},
		{"tools/call", `{"name":"nope"}`, -32602},
		{"tools/call", `{"name":"echo","arguments":{}}`, -32602},
		{"tools/call", `{"name":"echo","arguments":{"text":1}}`, -32602},
		{"tools/list", `{"cursor":"page-1"}`, 0},
		{"ping", `{}`, -32603},
		{"server/discover", `{}`, -32601},
		{"nope", `{}`, -32601},
	} {
		c.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i+1, tc.method, tc.params)
		r := c.answer(fmt.Sprint(i + 1))
		switch {
		case tc.code == 0 && r.Error != nil, tc.code != 0 && (r.Error == nil || r.Error.Code != tc.code):
			t.Errorf("%s %s: got %s, want code %d", tc.method, tc.params, r.raw, tc.code)
		case tc.code == -32050 && string(r.Error.Data) != `{"reason":"test","limit":9007199254740993}`:
			t.Errorf("data is %s", r.Error.Data)
		}
	}
	if got := len(log().Calls("nope")); got != 0 {
		t.Errorf("an unknown tool was executed %d times", got)
	}
}

func TestLegacy_NeedsHandshake(t *testing.T) {
	NoLeaks(t)
	in, out, _ := Spec{}.Pipe(t)
	c := newLineClient(t, in, out)
	if r := c.list(1, `{}`); r.Error == nil || r.Error.Code != -32600 {
		t.Errorf("tools/list before initialize: %s", r.raw)
	}
}

func TestList_Pages(t *testing.T) {
	NoLeaks(t)
	c, _ := piped(t, Spec{Pages: 4, ExtraTools: 10})
	var all []string
	cursor := ""
	for page := 1; ; page++ {
		got, next := names(t, c.list(page, `{"cursor":"`+cursor+`"}`))
		all = append(all, got...)
		if cursor = next; cursor == "" {
			if page != 4 {
				t.Errorf("%d pages, want 4", page)
			}
			break
		}
	}
	if len(all) != 28 || all[27] != "extra_0009" {
		t.Errorf("%d tools: %v", len(all), all)
	}
	if r := c.list(9, `{"cursor":"page-4"}`); r.Error == nil {
		t.Errorf("a bad cursor got %s", r.raw)
	}

	c, _ = piped(t, Spec{CursorLoop: true})
	_, a := names(t, c.list(1, `{}`))
	_, b := names(t, c.list(2, `{"cursor":"`+a+`"}`))
	if a == "" || a != b {
		t.Errorf("cursors %q, %q", a, b)
	}
	c, _ = piped(t, Spec{EndlessPages: true})
	n1, a := names(t, c.list(1, `{}`))
	n2, b := names(t, c.list(2, `{"cursor":"`+a+`"}`))
	if a == "" || b == "" || a == b || n1[0] == n2[0] {
		t.Errorf("cursors %q, %q", a, b)
	}
}

func TestList_ToolsFile(t *testing.T) {
	NoLeaks(t)
	file := filepath.Join(t.TempDir(), "tools.json")
	c, _ := piped(t, Spec{ToolsFile: file, Tools: json.RawMessage(`[{"name":"a"}]`)})
	if got, _ := names(t, c.list(1, `{}`)); len(got) != 1 || got[0] != "a" {
		t.Errorf("tools %v", got)
	}
	if err := os.WriteFile(file, []byte("[\n{\"name\":\"b\"},{\"name\":\"c\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := names(t, c.list(2, `{}`)); strings.Join(got, " ") != "b c" {
		t.Errorf("tools %v", got)
	}
	c.call(3, "b", `{"x":1.10}`)
	if got := textOf(t, c.answer("3")); got != `{"x":1.10}` {
		t.Errorf("an unknown tool answered %s", got)
	}
}

func TestOddTools(t *testing.T) {
	NoLeaks(t)
	c, _ := piped(t, Spec{OddTools: true})
	r := c.list(1, `{}`)
	got, _ := names(t, r)
	odd := OddTools()
	if len(got) != 18+len(odd) {
		t.Fatalf("%d tools, want %d", len(got), 18+len(odd))
	}
	for i, o := range odd {
		if got[18+i] != o.Name || !strings.Contains(r.raw, string(o.Raw)) || o.Why == "" {
			t.Errorf("tool %d: got %q, want %+v", 18+i, got[18+i], o)
		}
		if o.Usable {
			c.call(2, o.Name, `{"k":1}`)
			if got := textOf(t, c.answer("2")); got != `{"k":1}` {
				t.Errorf("%s answered %s", o.Name, got)
			}
		}
	}
}

func TestHangs(t *testing.T) {
	NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			name string
			spec Spec
			send string // this request, with the ID 5, is never answered
			init bool
		}{
			{"init", Spec{NeverInit: true}, `"method":"initialize","params":` + initParams, false},
			{"list", Spec{NeverList: true}, `"method":"tools/list"`, true},
			{"method", Spec{HangMethods: []string{"ping"}}, `"method":"ping"`, true},
			{"tool", Spec{HangTools: []string{"echo"}}, `"method":"tools/call","params":{"name":"echo","arguments":{"text":""}}`, true},
			{"silent", Spec{SilentUnknown: true}, `"method":"server/discover"`, false},
		} {
			in, out, _ := tc.spec.Pipe(t)
			c := newLineClient(t, in, out)
			if tc.init {
				c.handshake()
			}
			c.send(`{"jsonrpc":"2.0","id":5,%s}`, tc.send)
			select {
			case line := <-c.lines:
				t.Errorf("%s: answered %s", tc.name, line)
			case <-time.After(time.Hour):
			}
			in.Close()
			<-c.done
		}
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		in, out, _ := Spec{InitDelay: 5 * time.Second, ListDelay: time.Minute}.Pipe(t)
		c := newLineClient(t, in, out)
		c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`, initParams)
		<-c.lines
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("initialize took %v", got)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		<-c.lines
		if got := time.Since(start); got != 65*time.Second {
			t.Errorf("tools/list was there after %v", got)
		}
	})
}

func TestWedgeFile(t *testing.T) {
	NoLeaks(t)
	file := filepath.Join(t.TempDir(), "wedge")
	c, log := piped(t, Spec{WedgeFile: file})
	c.call(1, "pid", `{}`)
	c.answer("1")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.call(2, "pid", `{}`) // never answered
	c.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	WaitFor(t, "the ping to arrive", patience, func() bool { return len(log().Method("ping")) == 1 })
	// The fake must read both cancellations before the file is removed. Then only goroutines that serve the cancelled
	// requests are still running, and the next answer must be to request 4.
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	WaitFor(t, "the cancels", patience, func() bool { return len(log().Event(EventCancel)) == 2 })
	os.Remove(file)
	c.call(4, "pid", `{}`)
	if r := c.next(); string(r.ID) != "4" {
		t.Errorf("got %s, want the answer to 4", r.raw)
	}
	if got := len(log().Calls("pid")); got != 2 {
		t.Errorf("%d calls were executed, want 2", got)
	}
}

func TestCancel(t *testing.T) {
	NoLeaks(t)
	for _, late := range []bool{false, true} {
		c, log := piped(t, Spec{AnswerAfterCancel: late})
		c.call(1, "slow", `{"ms":3600000}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"test"}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`)
		WaitFor(t, "the cancel", patience, func() bool { return len(log().Event(EventCancel)) == 1 })
		if e := log().Event(EventCancel)[0]; e.Tool != "slow" || string(e.ID) != "1" || e.Text != "notification" {
			t.Errorf("cancel: %+v", e)
		}
		if late {
			c.answer("1")
			continue
		}
		c.call(2, "pid", `{}`)
		if r := c.next(); string(r.ID) != "2" {
			t.Errorf("got %s after the cancel", r.raw)
		}
	}
}

func TestPipe_Exit(t *testing.T) {
	NoLeaks(t)
	c, log := piped(t, Spec{ExitAfterCalls: 1})
	c.call(1, "pid", `{}`)
	c.answer("1")
	<-c.done
	if _, err := c.in.Write([]byte("x\n")); err == nil {
		t.Error("stdin is still open")
	}
	if len(log().Event(EventExit)) != 1 {
		t.Errorf("log: %+v", log())
	}
	_, out, _ := Spec{ExitAtOnce: true}.Pipe(t)
	if data, err := io.ReadAll(out); len(data) > 0 || err != nil {
		t.Errorf("read %q, %v", data, err)
	}
}
