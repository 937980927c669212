package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// script is a raw client that writes down what it gets, without what differs from process to process.
type script struct {
	*visitor
	at    *hosted // whose url is the endpoint
	lines []string
}

var (
	scriptHandle   = regexp.MustCompile(`\br[a-z0-9]{8}r[a-z2-7]{20}\b|\br[a-z2-7]{20}\b`)
	scriptTask     = regexp.MustCompile(`"taskId":"([a-z]+)/[^"]*"`)
	scriptQuestion = regexp.MustCompile(`"id":(?:"q-[^"]+"|\d+),("method":)`)
	scriptState    = regexp.MustCompile(`"requestState":"[^"]+"`)
)

// note writes down what came. Events of a stream are one line each.
func (s *script) note(what, said string) string {
	plain := scriptHandle.ReplaceAllString(said, "HANDLE")
	plain = scriptTask.ReplaceAllString(plain, `"taskId":"$1/TASK"`)
	plain = scriptQuestion.ReplaceAllString(plain, `"id":QUESTION,$1`)
	plain = scriptState.ReplaceAllString(plain, `"requestState":"STATE"`)
	for line := range strings.Lines(plain) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "data: ")); line != "" && line != "event: message" {
			s.lines = append(s.lines, what+": "+line)
		}
	}
	return said
}

// found returns what the expression finds in the text.
func (s *script) found(expression, text string) string {
	s.t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(text)
	if found == nil {
		s.t.Fatalf("no %s in %.2000s", expression, text)
	}
	return found[len(found)-1]
}

// opens begins a session of a revision.
func (s *script) opens(revision string) {
	s.t.Helper()
	s.session = ""
	response := s.post(s.at, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+revision+`","capabilities":{"elicitation":{}},"clientInfo":{"name":"script","version":"1"}}}`)
	response.Body.Close()
	if s.session = response.Header.Get("Mcp-Session-Id"); s.session == "" {
		s.t.Fatalf("no session: %s", response.Status)
	}
	s.ask(s.at, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// batch sends a batch, and notes its answers, its progress and its errors.
func (s *script) batch() {
	s.opens("2025-03-26")
	progress := strings.Replace(execute(2, "fake", "progress", `{"steps":2}`), `"params":{`, `"params":{"_meta":{"progressToken":"p"},`, 1)
	s.note("batch", s.ask(s.at, "["+strings.Join([]string{
		execute(1, "fake", "echo", `{"text":"first"}`), `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, progress,
		`{"jsonrpc":"2.0","id":3,"method":"no/such"}`, `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":5,"method":"ping"}`,
		execute(6, "nobody", "echo", `{}`), execute(7, "fake", "echo", `{"text":"last"}`),
	}, ",")+"]"))
	response := s.post(s.at, `[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`)
	response.Body.Close()
	s.note("batch of notifications", response.Status)
}

// long gets a result that is cut, and notes what can be read of it.
func (s *script) long() {
	s.opens("2025-06-18")
	cut := s.note("cut", s.ask(s.at, execute(1, "fake", "table", `{"rows":1000}`)))
	handle := s.found(`handle\\*":\\*"([a-z0-9]+)`, cut)
	for i, more := range []string{`"offset":100,"limit":2`, `"offset":998`, `"select":".[500].name"`, `"grep":"row 5.3\""`, `"offset":100000`} {
		s.note("read", s.ask(s.at, execute(i, "mcpx", "read_result", `{"handle":"`+handle+`",`+more+`}`)))
	}
	s.note("grep", s.ask(s.at, `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"table","arguments":{"rows":1000},"grep":"row 5.3\""}}}`))
	for range 3 {
		s.note("reference", s.ask(s.at, execute(9, "fake", "echo", `{"text":{"$result":"`+handle+`","select":".[7].name"}}`)))
	}
	for range 3 {
		s.note("unknown", s.ask(s.at, execute(9, "mcpx", "read_result", `{"handle":"`+handle[:len(handle)-1]+`"}`)))
	}
}

// tasks starts tasks, asks for their state and ends them. It does so in both eras (2026-07-28 and 2025-11-25), because the
// messages of tasks differ between them.
func (s *script) tasks() {
	const headers = `Mcp-Protocol-Version 2026-07-28 Mcp-Method`
	modernly := func(method, name, params string) string {
		s.session = ""
		more := append(strings.Fields(headers), method)
		if name != "" {
			more = append(more, "Mcp-Name", name)
		}
		return s.note("modern "+method, s.ask(s.at, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"script","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}},`+params+`}}`, more...))
	}
	id := s.found(`"taskId":"([^"]+)"`, modernly("tools/call", "exec", `"name":"exec","arguments":`+execArgs("tasks", "t", `{}`)))
	for _, method := range []string{"tasks/get", "tasks/get", "tasks/get", "tasks/update", "tasks/update", "tasks/cancel"} {
		modernly(method, id, `"taskId":"`+id+`","inputResponses":{}`)
	}
	modernly("tasks/get", "tasks/unknown", `"taskId":"tasks/unknown"`)

	s.opens("2025-11-25")
	s.note("a task in a call", s.ask(s.at, execute(1, "old", "t", `{}`)))
	own := &script{visitor: &visitor{t: s.t}, at: &hosted{url: s.at.url + "/servers/old"}}
	own.opens("2025-11-25")
	id = own.found(`"taskId":"([^"]+)"`, own.note("legacy call", own.ask(own.at, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"task":{"ttl":60000}}}`)))
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/get", "tasks/result", "tasks/cancel"} {
		own.note("legacy "+method, own.ask(own.at, `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{"taskId":"`+id+`"}}`))
	}
	s.lines = append(s.lines, own.lines...)
}

// stream uses the transport of 2024-11-05, for a call that asks the client a question.
func (s *script) stream() {
	site, view, _ := strings.Cut(s.at.url, "/mcp")
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, site+"/mcp"+view+"/sse", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	in := bufio.NewReader(response.Body)
	next := func(text string) string {
		s.t.Helper()
		for {
			line, err := in.ReadString('\n')
			if strings.HasPrefix(line, "data: ") && !strings.Contains(line, "list_changed") {
				if !strings.Contains(line, text) {
					s.t.Errorf("want %s, got %s", text, line)
				}
				return line
			}
			if err != nil {
				s.t.Fatalf("%v before %s", err, text)
			}
		}
	}
	messages := &hosted{url: site + strings.TrimSpace(strings.TrimPrefix(next("sessionId="), "data: "))}
	s.session = ""
	say := func(message string) { s.note("stream post", s.ask(messages, message)) }
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"elicitation":{}},"clientInfo":{"name":"script","version":"1"}}}`)
	s.note("stream", next(`"id":0`))
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for id := 1; id < 4; id++ {
		say(execute(id, "fake", "echo", `{"text":"over a stream"}`))
		s.note("stream", next(fmt.Sprintf(`"id":%d`, id)))
	}
	for id := 4; id < 7; id++ {
		say(execute(id, "fake", "ask", `{}`))
		asked := s.note("stream", next("elicitation/create"))
		say(`{"jsonrpc":"2.0","id":` + s.found(`"id":("q-[^"]+"|\d+),"method"`, asked) + `,"result":{"action":"accept","content":{"word":"mellon"}}}`)
		s.note("stream", next("mellon"))
	}
	say("[" + execute(7, "fake", "echo", `{"text":"in a batch"}`) + "]")
	s.note("stream", next("in a batch"))
}

// play plays the whole script at an endpoint.
func play(t *testing.T, url string) []string {
	s := &script{visitor: &visitor{t: t}, at: &hosted{url: url}}
	for _, part := range []func(){s.batch, s.long, s.tasks, s.stream} {
		part()
	}
	return s.lines
}

// TestReplicas_Same: a client gets the same from three replicas, each of which gets every third request, as from one mcpx:
// batches, long results, tasks, and the transport of 2024-11-05. The test runs with servers that all clients share, and with a
// session for each client, which is in one replica.
func TestReplicas_Same(t *testing.T) {
	mcptest.Parallel(t)
	for _, session := range []string{"shared", "per_client"} {
		t.Run(session, func(t *testing.T) { sameAsOne(t, session, threeReplicas) })
	}
}

func sameAsOne(t *testing.T, session string, start func(testing.TB, map[string]server, map[string]any) *fleet) {
	servers := map[string]server{}
	for name, spec := range map[string]mcptest.Spec{"fake": {}, "tasks": taskExtension, "old": oldTasks} {
		servers[name] = server{"url": spec.HTTP(t).URL, "type": "http", "session": session}
	}
	global := map[string]any{"sse": true}
	h := newHome(t)
	want := play(t, h.serveHTTP(t, "--config", h.config(t, servers, global)).url)
	got := play(t, start(t, servers, global).url)
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Errorf("line %d\none mcpx: %.1500s\nreplicas: %.1500s", i, want[i], got[i])
		}
	}
	if len(want) != len(got) {
		t.Errorf("one mcpx: %d lines, replicas: %d", len(want), len(got))
	}
}

const workingTask = `"taskId":"a/b","status":"working","createdAt":"2026-11-21T10:00:00Z","lastUpdatedAt":"2026-11-21T10:00:00Z","ttlMs":60000}`

// taskExtension is a server of the modern era whose tool t answers with a task. oldTasks is such a server of the revision
// 2025-11-25.
var (
	taskExtension = mcptest.Spec{
		Era:     mcptest.EraModern,
		Tools:   json.RawMessage(`[{"name":"t","inputSchema":{"type":"object"}}]`),
		Results: map[string]json.RawMessage{"t": json.RawMessage(`{"resultType":"task",` + workingTask)},
		MethodResults: map[string]json.RawMessage{
			"server/discover": json.RawMessage(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`),
			"tasks/get":       json.RawMessage(`{"resultType":"complete",` + workingTask),
			"tasks/update":    json.RawMessage(`{"resultType":"complete"}`), "tasks/cancel": json.RawMessage(`{"resultType":"complete"}`),
		},
	}
	oldTasks = mcptest.Spec{
		Version: "2025-11-25",
		Tools:   json.RawMessage(`[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]`),
		Results: map[string]json.RawMessage{"t": json.RawMessage(`{"task":{"taskId":"a","status":"working","pollInterval":1,"ttl":60000}}`)},
		MethodResults: map[string]json.RawMessage{
			"tasks/get":    json.RawMessage(`{"taskId":"a","status":"completed","pollInterval":1}`),
			"tasks/result": json.RawMessage(`{"content":[{"type":"text","text":"the result"}]}`), "tasks/cancel": json.RawMessage(`{}`),
		},
	}
)
