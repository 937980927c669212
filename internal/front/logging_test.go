package front

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestLogLevel: mcpx sends the log level that a client wants to upstream servers of both eras. Their log
// messages of that level or above reach the client.
func TestLogLevel(t *testing.T) {
	mcptest.NoLeaks(t)
	old, modern := mcptest.Spec{}.HTTP(t), mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)
	p := dial(t, connect(t, view.Options{}, remote("old", old), remote("modern", modern)), "test")
	p.send(t, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}`+"\n")
	mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("1")) == 1 })
	say := func(id, server, level string) {
		t.Helper()
		p.send(t, execLine(id, server, "notify", `{"method":"notifications/message","params":{"level":"`+level+`","data":"`+level+` of `+server+`"},"mine":true}`))
		mcptest.WaitFor(t, "the answer of "+server, patience, func() bool { return len(p.answers(id)) == 1 })
	}
	say("2", "old", "info")
	say("3", "old", "error")
	say("4", "modern", "info")
	say("5", "modern", "error")
	for said, want := range map[string]int{"info of old": 0, "error of old": 1, "info of modern": 0, "error of modern": 1} {
		if n := p.with(`"data":"` + said + `"`); n != want {
			t.Errorf("%s came %d times, want %d", said, n, want)
		}
	}
	told := old.Log().Method("logging/setLevel")
	if len(told) != 1 || !strings.Contains(string(told[0].Message), `"level":"warning"`) {
		t.Errorf("told %d times", len(told))
	}
	for _, call := range modern.Log().Method("tools/call") {
		if !strings.Contains(string(call.Message), `"io.modelcontextprotocol/logLevel":"warning"`) {
			t.Errorf("called with %s", call.Message)
		}
	}
}

// TestLogs_NoLevel: a legacy client that has set no level gets the log messages that the server sends by itself, in the order of the
// server and before the answer. mcpx sets no level at the server. A level that the client sets holds from then on. A modern client
// without a level gets none.
func TestLogs_NoLevel(t *testing.T) {
	mcptest.NoLeaks(t)
	old, modern := mcptest.Spec{}.HTTP(t), mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)
	f := connect(t, view.Options{}, remote("old", old), remote("modern", modern))
	p := dial(t, f, "test")
	say := func(id, server, level string) {
		t.Helper()
		p.send(t, execLine(id, server, "notify", `{"method":"notifications/message","params":{"level":"`+level+`","data":"no `+id+`"},"mine":true,"times":3}`))
		mcptest.WaitFor(t, "the answer of "+server, patience, func() bool { return len(p.answers(id)) == 1 })
	}
	heard := func(id string, want int) {
		t.Helper()
		if n := p.with(`"data":"no ` + id + `"`); n != want {
			t.Errorf("the messages of call %s came %d times, want %d", id, n, want)
		}
	}
	say("2", "old", "debug")
	heard("2", 3)
	say("3", "modern", "debug")
	if told := old.Log().Method("logging/setLevel"); len(told) != 0 {
		t.Errorf("a level was set: %s", told[0].Message)
	}
	for _, call := range modern.Log().Method("tools/call") {
		if strings.Contains(string(call.Message), "logLevel") {
			t.Errorf("called with %s", call.Message)
		}
	}
	p.send(t, `{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"error"}}`+"\n")
	mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("4")) == 1 })
	say("5", "old", "warning")
	heard("5", 0)
	_, web := site(t, remote("fake", old))
	for era, want := range map[string]int{legacyEra: 4, modernEra: 1} {
		c := newWebClient(t, web, era)
		response, err := c.send(t.Context(), "POST", "tools/call", c.call("6", "notify", `{"method":"notifications/message","params":{"level":"debug","data":"x"},"mine":true,"times":3}`, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if got := readMessages(t, response); len(got) != want || got[len(got)-1].Method != "" {
			t.Errorf("over HTTP, %s: got %+v", era, got)
		}
	}
}

// TestLogs_Outside: a log message that belongs to no request reaches legacy clients over stdio, but only those that have sent
// initialize. It reaches no modern client.
func TestLogs_Outside(t *testing.T) {
	for said, want := range map[string]int{"": 0, "2025-11-25": 1} {
		out := &heard{}
		s := &session{streams: []sender{out}}
		s.record.Store(&Session{Said: caller.Said{Version: said}})
		s.notify("notifications/message", []byte(`{"level":"debug","data":"x"}`))
		if len(out.methods) != want {
			t.Errorf("version %q: got %q", said, out.methods)
		}
	}
}

// heard is a sender that records the methods of notifications.
type heard struct {
	sender
	methods []string
}

func (h *heard) notify(method string, _ json.RawMessage) { h.methods = append(h.methods, method) }

// TestLogs_Strangers: a server sends a log message on a stream that several clients share. As long as only one
// client has an open call, the message belongs to that call. Log levels of earlier clients do not suppress it.
func TestLogs_Strangers(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t, stdio(t, "fake", mcptest.Spec{}))
	one, other := newWebClient(t, web, modernEra), newWebClient(t, web, modernEra)
	say := func(c *webClient, id string) []webMessage {
		t.Helper()
		call := strings.Replace(c.call(id, "notify", `{"method":"notifications/message","params":{"level":"error","data":"of `+id+`"},"mine":true}`, ""),
			`"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"info",`, 1)
		response, err := c.send(t.Context(), "POST", "tools/call", call)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return readMessages(t, response)
	}
	for _, id := range []string{"1", "2", "3"} {
		if got := say(one, id); len(got) != 2 || got[0].Method != "notifications/message" || !strings.Contains(string(got[0].Params), "of "+id) {
			t.Errorf("call %s: got %+v", id, got)
		}
	}
	if got := say(other, "4"); len(got) != 2 || !strings.Contains(string(got[0].Params), "of 4") {
		t.Errorf("another connection: got %+v", got)
	}
}
