package front

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

// offering is a fake server with resources and prompts. Every such server has the resource shared://x.
func offering(name, era string) mcptest.Spec {
	return mcptest.Spec{
		Name: name, Era: era,
		Resources: json.RawMessage(`[{"uri":"` + name + `://1","name":"one","size":9007199254740993,"z":1.10,"a":{"b":null}},{"uri":"shared://x","name":"x","_meta":{"kept":true}}]`),
		Templates: json.RawMessage(`[{"uriTemplate":"` + name + `://{n}?q","name":"t"},{"uriTemplate":"shared://{n}?q","name":"s"}]`),
		Prompts:   json.RawMessage(`[{"name":"greet","title":"Greet","arguments":[{"name":"who"}]}]`),
	}
}

// resourcesClient is a client of one of the eras over one of the transports.
type resourcesClient struct {
	era  string
	last int
	// send sends a request and returns its answer. For a subscription it returns nothing; heard counts the
	// messages of the subscription.
	send  func(t *testing.T, method, id, message string) string
	heard func(piece string) int // counts the received messages that contain piece
}

func (c *resourcesClient) ask(t *testing.T, method, params string) string {
	t.Helper()
	c.last++
	id := fmt.Sprint(c.last)
	if c.era == modernEra {
		params = strings.Replace(strings.TrimSuffix(params, "}")+","+modernMeta+"}", "{,", "{", 1)
	}
	return c.send(t, method, id, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+`}`)
}

// has sends a request and checks that the answer contains all the pieces.
func (c *resourcesClient) has(t *testing.T, method, params string, pieces ...string) {
	t.Helper()
	answer := c.ask(t, method, params)
	for _, piece := range pieces {
		if !strings.Contains(answer, piece) {
			t.Errorf("%s %s: no %s in\n%s", method, params, piece, answer)
		}
	}
}

// listen subscribes to all list changes and to updates of these resources.
func (c *resourcesClient) listen(t *testing.T, uris ...string) {
	t.Helper()
	if c.era == legacyEra {
		for _, uri := range uris {
			c.has(t, "resources/subscribe", `{"uri":"`+uri+`"}`, `"result":{}`)
		}
		return
	}
	c.ask(t, "subscriptions/listen", `{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":`+string(wire.Encode(append(uris, "gone://nowhere")))+`}}`)
	mcptest.WaitFor(t, "the acknowledgement", patience, func() bool {
		return c.heard(`"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":`+string(wire.Encode(uris))+`}`) == 1
	})
}

func resourcesOverStdio(t *testing.T, era string, servers []registry.Server) *resourcesClient {
	t.Helper()
	p := dialSilent(t, connect(t, view.Options{}, servers...), StdioOptions{})
	if era == legacyEra {
		p.send(t, hello("x"))
	}
	return &resourcesClient{era: era, heard: p.with, send: func(t *testing.T, method, id, message string) string {
		p.send(t, message+"\n")
		if method == "subscriptions/listen" {
			return ""
		}
		mcptest.WaitFor(t, method, patience, func() bool { return len(p.answers(id)) == 1 })
		return p.answers(id)[0]
	}}
}

func resourcesOverHTTP(t *testing.T, era string, servers []registry.Server) *resourcesClient {
	t.Helper()
	_, web := site(t, servers...)
	client := newWebClient(t, web, era)
	var mu sync.Mutex
	var lines []string
	read := func(method, message string) {
		stream, done := client.stream(t, method, message), make(chan struct{})
		t.Cleanup(func() {
			client.http.CloseIdleConnections()
			web.CloseClientConnections()
			<-done
		})
		go func() { // the goroutine ends with the stream
			defer close(done)
			for scan := bufio.NewScanner(stream.body.Body); scan.Scan(); {
				mu.Lock()
				lines = append(lines, scan.Text())
				mu.Unlock()
			}
		}()
	}
	if era == legacyEra {
		read("", "")
	}
	c := &resourcesClient{era: era}
	c.heard = func(piece string) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, piece) {
				n++
			}
		}
		return n
	}
	c.send = func(t *testing.T, method, id, message string) string {
		if method == "subscriptions/listen" {
			read(method, message)
			return ""
		}
		_, raw := client.stream(t, method, message).next(t)
		return raw
	}
	return c
}

// eachResources runs a test for each era and transport of the client and each era and transport of the two
// servers.
func eachResources(t *testing.T, test func(t *testing.T, c *resourcesClient)) {
	for _, upstreamEra := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		for _, over := range []string{"stdio", "http"} {
			for _, era := range []string{legacyEra, modernEra} {
				for clientOver, connect := range map[string]func(*testing.T, string, []registry.Server) *resourcesClient{"stdio": resourcesOverStdio, "http": resourcesOverHTTP} {
					t.Run(fmt.Sprintf("client %s %s, servers %s %s", era, clientOver, upstreamEra, over), func(t *testing.T) {
						mcptest.NoLeaks(t)
						var servers []registry.Server
						for _, name := range []string{"left", "right"} {
							fake := offering(name, upstreamEra)
							if over == "stdio" {
								servers = append(servers, stdio(t, name, fake))
							} else {
								servers = append(servers, remote(name, fake.HTTP(t)))
							}
						}
						test(t, connect(t, era, servers))
					})
				}
			}
		}
	}
}

// TestResources: a client sees the resources, prompts and completions of two servers as if one server had them
// all, in all combinations of eras and transports.
func TestResources(t *testing.T) {
	eachResources(t, func(t *testing.T, c *resourcesClient) {
		modern := c.era == modernEra
		if modern {
			c.has(t, "server/discover", `{}`, `"resources":{`, `"subscribe":true`, `"prompts":{`, `"completions":{}`)
		}
		c.has(t, "resources/list", `{}`,
			`{"uri":"left://1","name":"one","size":9007199254740993,"z":1.10,"a":{"b":null},"_meta":{"mcpx/origin":{"server":"left","uri":"left://1"}}}`,
			`{"uri":"mcpx://left/shared://x","name":"x","_meta":{"kept":true,"mcpx/origin":{"server":"left","uri":"shared://x"}}}`,
			`"uri":"right://1"`, `"uri":"mcpx://right/shared://x"`)
		c.has(t, "resources/templates/list", `{}`, `"uriTemplate":"left://{n}?q"`, `"uriTemplate":"mcpx://right/shared://{n}?q"`, `"resourceTemplates":[`)
		c.has(t, "prompts/list", `{}`, `{"name":"left__greet","title":"Greet","arguments":[{"name":"who"}],"_meta":{"mcpx/origin":{"server":"left","name":"greet"}}}`, `"right__greet"`)

		for uri, text := range map[string]string{
			"left://1": "left has left://1", "mcpx://right/shared://x": "right has shared://x", "mcpx://left/left://1": "left has left://1",
			"right://7?q": "right has right://7?q", "mcpx://left/shared://7?q": "left has shared://7?q", "mcpx://right/else://where?": "right has else://where?",
		} {
			c.has(t, "resources/read", `{"uri":"`+uri+`"}`, `"text":"`+text+`"`, `"x-big":9007199254740993`)
		}
		c.has(t, "resources/read", `{"uri":"mcpx://right/shared://x"}`, `"contents":[{"uri":"mcpx://right/shared://x"`)
		c.has(t, "resources/read", `{"uri":"mcpx://left/left://1"}`, `"contents":[{"uri":"left://1"`)
		code := `"code":-32002`
		if modern {
			code = `"code":-32602`
			c.has(t, "resources/list", `{}`, `"ttlMs":0,"cacheScope":"private"`, `"resultType":"complete"`)
			c.has(t, "resources/read", `{"uri":"left://1"}`, `"cacheScope":"private"`, `"ttlMs":`, `"resultType":"complete"`)
		}
		c.has(t, "resources/read", `{"uri":"shared://x"}`, code, `mcpx://left/shared://x, mcpx://right/shared://x`, `"data":{"uri":"shared://x"}`)
		c.has(t, "resources/read", `{"uri":"none://x"}`, code, `no server lists`)
		c.has(t, "resources/read", `{"uri":"mcpx://left/none://x"}`, code, `Resource not found: none://x`)
		c.has(t, "resources/read", `{}`, `"error":{`)

		c.has(t, "prompts/get", `{"name":"right__greet","arguments":{"who":"you"}}`, `right prompts greet {\"who\":\"you\"}`, `"description":"a prompt"`)
		c.has(t, "prompts/get", `{"name":"greet"}`, `"code":-32602`, `there is no prompt \"greet\"; did you mean left__greet?`)
		c.has(t, "completion/complete", `{"ref":{"type":"ref/prompt","name":"right__greet"},"argument":{"name":"who","value":"y"}}`,
			`"values":["right","{\"type\":\"ref/prompt\",\"name\":\"greet\"}"]`, `"hasMore":false`)
		c.has(t, "completion/complete", `{"ref":{"type":"ref/resource","uri":"mcpx://left/shared://{n}?q"},"argument":{"name":"n","value":""}}`,
			`"values":["left","{\"type\":\"ref/resource\",\"uri\":\"shared://{n}?q\"}"]`)
		c.has(t, "resources/list", `{"cursor":"x"}`, `"code":-32602`)

		// Clients that support neither resources nor prompts can use the built-in tools instead.
		builtin := func(tool, arguments string) string {
			return `{"name":"exec","arguments":{"server_name":"mcpx","tool_name":"` + tool + `","arguments":` + arguments + `}}`
		}
		c.has(t, "tools/list", `{}`, `Server: mcpx`, `list_resources(server_name?)`)
		c.has(t, "tools/call", builtin("list_resources", `{}`), `left://1`, `mcpx://right/shared://{n}?q`, `left__greet`, `who?`)
		c.has(t, "tools/call", builtin("list_resources", `{"server_name":"none"}`), `SERVER_NOT_FOUND`)
		c.has(t, "tools/call", builtin("read_resource", `{"uri":"mcpx://right/shared://x"}`), `"text":"right has shared://x"`)
		c.has(t, "tools/call", builtin("read_resource", `{"uri":"shared://x"}`), `VALIDATION_ERROR`, `mcpx://left/shared://x`)
		c.has(t, "tools/call", builtin("get_prompt", `{"name":"right__greet","arguments":{"who":"you"}}`), `right prompts greet {\"who\":\"you\"}`)
		c.has(t, "tools/call", builtin("get_prompt", `{"name":"greet"}`), `VALIDATION_ERROR: /name: there is no prompt \"greet\"; did you mean left__greet?\n`)
		c.has(t, "tools/call", builtin("get_prompt", `{"name":"zzz"}`), `VALIDATION_ERROR: /name: there is no prompt \"zzz\"; list_resources has their names`)

		// A client can read a resource by the URI in a tool's result, which mcpx has rewritten.
		raw := `{"content":[{"type":"resource_link","uri":"shared://x","name":"n"},{"type":"resource","resource":{"uri":"unheard://of?","text":"t"}},{"type":"resource_link","uri":"left://1","name":"n"},{"type":"resource_link","uri":"https://a.example/","name":"n"}]}`
		c.has(t, "tools/call", `{"name":"exec","arguments":{"server_name":"left","tool_name":"raw","arguments":{"result":`+string(wire.Encode(raw))+`}}}`,
			`{"type":"resource_link","uri":"mcpx://left/shared://x","name":"n"}`, `{"type":"resource","resource":{"uri":"mcpx://left/unheard://of?","text":"t"}}`,
			`"uri":"left://1"`, `"uri":"https://a.example/"`)
		c.has(t, "resources/read", `{"uri":"mcpx://left/unheard://of?"}`, `left has unheard://of?`)
	})
}

// TestResources_Changes: a client is notified when a resource that it subscribes to has changed, or a list.
// The notification has the URI that mcpx gave the client, and a single _meta with what the server has put into it.
func TestResources_Changes(t *testing.T) {
	eachResources(t, func(t *testing.T, c *resourcesClient) {
		c.has(t, "resources/list", `{}`, `left://1`, `right://1`)
		c.listen(t, "left://1", "mcpx://right/shared://x")
		tag := ""
		if c.era == modernEra {
			tag = fmt.Sprintf(`,"io.modelcontextprotocol/subscriptionId":%d`, c.last)
		}
		notify := func(server, method, params string) {
			c.has(t, "tools/call", `{"name":"exec","arguments":{"server_name":"`+server+`","tool_name":"notify","arguments":{"method":"notifications/`+method+`","params":`+params+`}}}`, `"content"`)
		}
		if c.era == legacyEra {
			for _, uri := range []string{"none://x", "shared://x"} {
				c.has(t, "resources/subscribe", `{"uri":"`+uri+`"}`, `"code":-32002`)
			}
		}
		// A subscription in the modern era gets no answer, so the test repeats the notification until the client has
		// it.
		mcptest.WaitFor(t, "the first update", patience, func() bool {
			notify("left", "resources/updated", `{"uri":"left://1","_meta":{"own":1.0},"title":"t"}`)
			return c.heard(`"method":"notifications/resources/updated","params":{"uri":"left://1","title":"t","_meta":{"own":1.0,"mcpx/origin":"left"`+tag+`}}}`) > 0
		})
		mcptest.WaitFor(t, "an update of what two have", patience, func() bool {
			notify("right", "resources/updated", `{"uri":"shared://x"}`)
			return c.heard(`"method":"notifications/resources/updated","params":{"uri":"mcpx://right/shared://x"`) > 0
		})
		notify("left", "resources/updated", `{"uri":"shared://x"}`)
		if n := c.heard(`"mcpx://left/shared://x"`); n > 1 { // one is the URI in the list
			t.Errorf("heard of what was not followed: %d", n)
		}
		if c.era == legacyEra {
			c.has(t, "resources/unsubscribe", `{"uri":"left://1"}`, `"result":{}`)
			c.has(t, "resources/unsubscribe", `{"uri":"never://followed"}`, `"result":{}`)
		}
	})
}

// TestResources_Off: kinds that the config turns off are neither declared nor served. Completions are not
// declared if resources and prompts are both off.
func TestResources_Off(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := offering("left", mcptest.EraBoth).HTTP(t)
	for _, off := range []executor.OfferOptions{{NoResources: true}, {NoPrompts: true}, {NoResources: true, NoPrompts: true}} {
		r := registry.New([]registry.Server{remote("left", fake)}, registry.Options{})
		e := executor.New(r, executor.Options{OfferOptions: off})
		r.Use(e.Chain(nil, nil)...)
		two := view.NewTwoTools(r, e, view.Options{})
		f := New(two, Options{})
		r.Start()
		r.WaitListed(t.Context(), nil)
		p := dialSilent(t, shown{f, two, r}, StdioOptions{})
		p.send(t, hello("x"))
		mcptest.WaitFor(t, "initialize", patience, func() bool { return len(p.answers("0")) == 1 })
		declared := p.answers("0")[0]
		id := 0
		has := func(method string) bool {
			id++
			return !strings.Contains(p.request(t, fmt.Sprint(id), method), "-32601")
		}
		for method, want := range map[string]bool{
			"resources/list": !off.NoResources, "resources/templates/list": !off.NoResources, "resources/read": !off.NoResources, "resources/subscribe": !off.NoResources,
			"prompts/list": !off.NoPrompts, "prompts/get": !off.NoPrompts, "completion/complete": !off.NoResources || !off.NoPrompts, "tools/list": true,
		} {
			if has(method) != want {
				t.Errorf("%+v: %s is there: %t", off, method, !want)
			}
		}
		if strings.Contains(declared, `"resources"`) == off.NoResources || strings.Contains(declared, `"prompts"`) == off.NoPrompts {
			t.Errorf("%+v: declared %s", off, declared)
		}
		f.Close()
		two.Close()
		r.Close(time.Second)
	}
}

// TestAppendRelayed_Meta: a result has at most one _meta, and it is an object. SDKs of both eras refuse a _meta that is no object.
func TestAppendRelayed_Meta(t *testing.T) {
	const self = `"` + metaServer + `":{"name":"mcpx","version":"1"}`
	f := &Front{identity: selfDescription("mcpx", "1")}
	for _, tt := range []struct{ era, own, want string }{
		{modernEra, `"x"`, `{` + self + `}`},
		{modernEra, `null`, `{` + self + `}`},
		{modernEra, `{"a":1}`, `{"a":1,` + self + `}`},
		{legacyEra, `"x"`, ""},
		{legacyEra, `null`, ""},
		{legacyEra, `{"a":1}`, `{"a":1}`},
	} {
		want := `{"messages":[]`
		if tt.era == modernEra {
			want += `,"resultType":"complete"`
		}
		if tt.want != "" {
			want += `,"_meta":` + tt.want
		}
		r := &incoming{message: &message{Message: wire.Message{Method: "prompts/get"}, requestMeta: requestMeta{version: tt.era}}}
		got, err := f.appendRelayed(nil, json.RawMessage(`{"_meta":`+tt.own+`,"messages":[]}`), r)
		if want += "}"; err != nil || string(got) != want {
			t.Errorf("%s in era %s: got  %s, %v\nwant %s", tt.own, tt.era, got, err, want)
		}
	}
}
