package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// dial opens a session with s and initializes it.
func dial(t *testing.T, s Server, options ...client.ClientOption) *client.Client {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { // ends when the client closes its end of the pipe
		served <- s.Serve(t.Context(), toServer, fromServer)
		fromServer.Close()
	}()
	c := client.NewClient(transport.NewIO(toClient, fromClient, nil), options...)
	t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("serving %s: %v", s.Name, err)
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}}); err != nil {
		t.Fatalf("initializing %s: %v", s.Name, err)
	}
	return c
}

// call calls a tool and returns the text of the result.
func call(t *testing.T, c *client.Client, name, args string) (text string, isError bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)}})
	if err != nil {
		t.Fatalf("calling %s(%s): %v", name, args, err)
	}
	return result.Content[0].(mcp.TextContent).Text, result.IsError
}

func find(t *testing.T, name string) Server {
	t.Helper()
	all := Servers()
	i := slices.IndexFunc(all, func(s Server) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no server %s", name)
	}
	return all[i]
}

func TestServers_bothEras(t *testing.T) {
	tools := 0
	for _, s := range Servers() {
		//lint:ignore SA1019 the legacy era is what is tested here
		for era, options := range map[string][]client.ClientOption{"modern": nil, "legacy": {client.WithLegacyProtocolOnly()}} {
			c := dial(t, s, options...)
			list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
			if err != nil {
				t.Fatalf("%s, %s: %v", s.Name, era, err)
			}
			if era == "modern" {
				tools += len(list.Tools)
			}
			if got := c.GetServerCapabilities().Tools; got == nil {
				t.Errorf("%s, %s: no tools capability", s.Name, era)
			}
		}
	}
	if tools != 30 {
		t.Errorf("%d tools, want 30", tools)
	}
}

// exchange sends lines in a new session, and returns all answers by id after the session has ended.
func exchange(t *testing.T, s Server, lines ...string) map[string]string {
	t.Helper()
	var out strings.Builder
	if err := s.Serve(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for line := range strings.Lines(out.String()) {
		var head struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		answers[string(head.ID)] = strings.TrimSpace(line)
	}
	return answers
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func callLine(id int, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

// TestServe_answersAllAtTheEnd: when the input ends, all requests before are still answered, even if the last line does not
// end with a line break.
func TestServe_answersAllAtTheEnd(t *testing.T) {
	lines := []string{hello, "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `not json`}
	for i := range 100 {
		lines = append(lines, callLine(i+1, "top_cities", `{"limit":100}`))
	}
	answers := exchange(t, find(t, "cities"), lines...)
	if len(answers) != 102 { // 100 calls, initialize, and the parse error, whose id is null
		t.Errorf("%d answers: %v", len(answers), slices.Sorted(maps.Keys(answers)))
	}
	for id, a := range answers {
		if id != "null" && !strings.Contains(a, `"result"`) {
			t.Errorf("id %s: %s", id, a)
		}
	}
}

// TestServe_methods: the answers to single messages, in both eras.
func TestServe_methods(t *testing.T) {
	const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	tests := []struct {
		line string
		want string // a regular expression; empty if there is no answer
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `^{"jsonrpc":"2.0","id":1,"result":{}}$`},
		{`{"jsonrpc":"2.0","id":1,"method":"nope"}`, `"code":-32601`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`, `"code":-32602,"message":"no tool nope"`},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, ``},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `^{"jsonrpc":"2.0","id":1,"result":{"tools":.*]}}$`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modern + `}}`, `"cacheScope":"private","resultType":"complete","tools":.*"ttlMs":0`},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modern + `}}`, `"cacheScope":"private".*"resultType":"complete".*"2026-07-28".*"ttlMs":0`},
	}
	for _, tt := range tests {
		var got string
		for _, got = range exchange(t, find(t, "cities"), "", tt.line) {
		}
		if matches, err := regexp.MatchString(tt.want, got); err != nil || !matches || (got == "") != (tt.want == "") {
			t.Errorf("%s: %.500s", tt.line, got)
		}
	}
}

func TestServe_endsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- find(t, "notes").Serve(ctx, in, out) }()
	if _, err := io.WriteString(toServer, hello+"\n"+callLine(1, "list_notes", "{}")+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(fromServer).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel() // while Serve is blocked because the second answer is not read
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("still serving")
	}
}

func TestServe_listenEndsWithTheInput(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	exchange(t, find(t, "notes"), listen, callLine(2, "list_tags", "{}"))
}

func TestServe_concurrentSessionsShareState(t *testing.T) {
	s := find(t, "notes")
	//lint:ignore SA1019 the legacy era is what is tested here
	clients := []*client.Client{dial(t, s), dial(t, s, client.WithLegacyProtocolOnly()), dial(t, s)}
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			if text, isError := call(t, clients[i%3], "create_note", fmt.Sprintf(`{"title":"n%d","tags":["Made","made"]}`, i)); isError {
				t.Errorf("create_note: %s", text)
			}
		})
	}
	wg.Wait()
	text, _ := call(t, clients[0], "list_notes", `{"tag":"made","limit":200}`)
	var rows []any
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(rows) != 60 {
		t.Errorf("%d notes, %v", len(rows), err)
	}
	if text, _ := call(t, dial(t, find(t, "notes")), "list_notes", `{"tag":"made"}`); text != "[]" {
		t.Errorf("another set of servers has the notes too: %s", text)
	}
}

// TestTools_schemas: every schema compiles, and a call of every read-only tool with its required arguments succeeds. A
// second call returns the same result.
func TestTools_schemas(t *testing.T) {
	least := map[string]string{
		"get_city": `{"name":"Lisbon"}`, "nearby_cities": `{"city":"Lisbon"}`, "city_distance": `{"from":"Lisbon","to":"tokyo"}`,
		"read_note": `{"id":2}`, "search_notes": `{"query":"work"}`, "get_task": `{"number":3}`, "search_tasks": `{"query":"the"}`,
		"convert_unit": `{"value":1,"from":"mi","to":"km"}`, "convert_base": `{"number":"255"}`, "convert_time": `{"time":0}`,
		"current_weather": `{"latitude":38.72,"longitude":-9.14}`, "forecast": `{"latitude":38.72,"longitude":-9.14}`, "climate": `{"latitude":38.72,"longitude":-9.14}`,
		"compare_weather": `{"places":[{"name":"a","latitude":1,"longitude":2},{"name":"b","latitude":3,"longitude":4}]}`,
	}
	for _, s := range Servers() {
		answers := exchange(t, s, hello, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		var list struct {
			Result struct {
				Tools []struct {
					Name, Description         string
					InputSchema, OutputSchema json.RawMessage
					Annotations               struct {
						Title        string
						ReadOnlyHint *bool
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(answers["1"]), &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Result.Tools {
			input := compile(t, tool.Name, tool.InputSchema)
			if len(tool.Description) < 40 || tool.Annotations.Title == "" || tool.Annotations.ReadOnlyHint == nil {
				t.Errorf("%s: incomplete: %+v", tool.Name, tool.Annotations)
			}
			if !*tool.Annotations.ReadOnlyHint {
				continue
			}
			args := least[tool.Name]
			if args == "" {
				args = "{}"
			}
			if err := input.Validate(value(t, args)); err != nil {
				t.Errorf("%s(%s): %v", tool.Name, args, err)
			}
			first, second := exchange(t, s, hello, callLine(1, tool.Name, args))["1"], exchange(t, s, hello, callLine(1, tool.Name, args))["1"]
			if first != second {
				t.Errorf("%s: two answers to the same call:\n%s\n%s", tool.Name, first, second)
			}
			checkResult(t, tool.Name, first, tool.OutputSchema)
		}
	}
}

func checkResult(t *testing.T, name, answer string, output json.RawMessage) {
	t.Helper()
	var a struct {
		Result struct {
			Content           []struct{ Text string }
			IsError           bool
			StructuredContent json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatal(err)
	}
	if a.Result.IsError || len(a.Result.Content) != 1 {
		t.Errorf("%s: %s", name, answer)
		return
	}
	text := a.Result.Content[0].Text
	if name != "read_note" && !(json.Valid([]byte(text)) && strings.Contains(text, "\n  ")) {
		t.Errorf("%s: no pretty-printed JSON: %s", name, text)
	}
	if output == nil {
		return
	}
	if err := compile(t, name, output).Validate(value(t, string(a.Result.StructuredContent))); err != nil {
		t.Errorf("%s: %v in %s", name, err, answer)
	}
}

func compile(t *testing.T, name string, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///"+name, value(t, string(schema))); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///" + name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

func value(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestTools_answers(t *testing.T) {
	for _, c := range []struct {
		server, tool, args string
		want               string // must be part of the text of the result
		isError            bool
	}{
		{"cities", "search_cities", `{"query":"san jo"}`, `"total": 2`, false},
		{"cities", "get_city", `{"name":"san jose"}`, "give the country", true},
		{"cities", "get_city", `{"name":"San Jose","country":"cr"}`, `"currency": "CRC"`, false},
		{"cities", "get_city", `{"name":"Atlantis"}`, `no city named "Atlantis"`, true},
		{"cities", "top_cities", `{"continent":"Oceania","limit":1}`, `"name": "Melbourne"`, false},
		{"cities", "nearby_cities", `{"location":{"latitude":0,"longitude":-150},"radius_km":10}`, `"cities": []`, false},
		{"cities", "city_distance", `{"from":"Paris","to":"London"}`, `"distance_km": 343.5`, false},
		{"cities", "city_statistics", `{"group_by":"country","continent":"Europe","limit":1}`, `"group": "Russia"`, false},
		{"notes", "search_notes", `{"query":"BREAD"}`, `"id": 2`, false},
		{"notes", "update_note", `{"id":2,"body":"more","mode":"append"}`, `closed pot.\nmore"`, false},
		{"notes", "tag_note", `{"id":2,"add":["New"],"remove":["recipe"]}`, `"tags": "kitchen new"`, false},
		{"notes", "delete_note", `{"id":99}`, "no note with id 99", true},
		{"tasks", "list_tasks", `{"filter":{"labels":["feature"],"assignee":"mei"}}`, `"login": "mei"`, false},
		{"tasks", "create_task", `{"title":"New","assignee":"mei","estimate_hours":2}`, `"number": 23`, false},
		{"tasks", "update_task", `{"number":1,"assignee":null,"state":"closed"}`, `"assignee": null`, false},
		{"tasks", "update_task", `{"number":1,"assignee":"nobody"}`, `nobody has the login "nobody"`, true},
		{"tasks", "update_task", `{"number":2,"title":"New"}`, `"priority": "urgent"`, false},
		{"tasks", "comment_task", `{"number":3,"body":"Yes."}`, `"id": 4032`, false},
		{"tasks", "get_task", `{"number":23}`, "no task with number 23", true},
		{"tasks", "board_report", `{"milestone":"1.9"}`, `"unassigned": [`, false},
		{"tasks", "delete_comment", `{"number":2,"comment_id":4001}`, "Deleted comment 4001 of task 2.", false},
		{"units", "convert_unit", `{"value":100,"from":"C","to":"F"}`, `"result": 212,`, false},
		{"units", "convert_unit", `{"value":26.2,"from":"mi","to":"km","precision":2}`, `"result": 42.16,`, false},
		{"units", "convert_unit", `{"value":1,"from":"kg","to":"km"}`, "kg is a unit of mass, km of length", true},
		{"units", "convert_base", `{"number":"0xffffffffffffffffff","from_base":16,"to_base":10}`, "4722366482869645213695", false},
		{"units", "convert_time", `{"time":"2026-01-15T09:00:00Z","offset_minutes":60}`, "2026-01-15T10:00:00+01:00", false},
		{"weather", "forecast", `{"latitude":60,"longitude":25,"units":"imperial","days":2}`, `"units": "imperial"`, false},
		{"weather", "forecast", `{"latitude":1,"longitude":25,"start_date":"tomorrow"}`, `"tomorrow" is not a date`, true},
	} {
		answer := exchange(t, find(t, c.server), hello, callLine(1, c.tool, c.args))["1"]
		var a struct {
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
		}
		if err := json.Unmarshal([]byte(answer), &a); err != nil || len(a.Result.Content) == 0 {
			t.Errorf("%s(%s): %v in %s", c.tool, c.args, err, answer)
			continue
		}
		if text := a.Result.Content[0].Text; !strings.Contains(text, c.want) || a.Result.IsError != c.isError {
			t.Errorf("%s(%s): isError %v, want %q in:\n%.600s", c.tool, c.args, a.Result.IsError, c.want, text)
		}
	}
}

func TestCities_table(t *testing.T) {
	var c answers
	c.name = "cities"
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c.state)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name, Country, Timezone string
		CountryCode             string `json:"country_code"`
		Population              int
		Latitude, Longitude     float64
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	seen, last := map[string]bool{}, all[0].Population
	for _, one := range all {
		if one.Country == "" || one.Population < 10000 || one.Population > last || one.Latitude == 0 || one.Longitude == 0 || !strings.Contains(one.Timezone, "/") {
			t.Errorf("incomplete, or not sorted: %+v", one)
		}
		last = one.Population
		key := one.Name + one.CountryCode
		if seen[key] {
			t.Errorf("%s twice", key)
		}
		seen[key] = true
		if _, err := time.LoadLocation(one.Timezone); err != nil {
			t.Errorf("%s: %v", one.Name, err)
		}
	}
	if len(all) != 365 { // the number in the description of the server
		t.Errorf("%d cities", len(all))
	}
}
