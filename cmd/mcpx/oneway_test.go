package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// Every message from a client to a server, whatever its method, passes the same guards: the record and the
// audit trail, the rights, the limits, the credentials, the pins and the confirmation. The files
// oneway_*_test.go test this from outside: they check the answers of a whole mcpx, the messages that its
// server gets, and the lines of the trail.

// endpoint is a whole mcpx over HTTP with an audit trail. Each caller has its own token.
type endpoint struct {
	*hosted
	home *home
	path string // the path of the audit trail's file
}

// tokenOf returns the token of a caller.
func tokenOf(who string) string { return "mcpx_token_of_" + who }

// endpoint starts mcpx with these servers, global config keys, and callers. It returns when all servers are
// ready.
func (h *home) endpoint(t *testing.T, servers map[string]server, global map[string]any, callers ...string) *endpoint {
	t.Helper()
	tokens := make(map[string]any)
	for _, who := range callers {
		tokens[who] = map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(tokenOf(who))))}
	}
	all := map[string]any{"audit": map[string]any{"file": "audit.jsonl", "required": true}, "auth": map[string]any{"tokens": tokens}}
	for key, value := range global {
		if key == "rights" {
			all["auth"].(map[string]any)["rights"] = value
		} else {
			all[key] = value
		}
	}
	e := &endpoint{home: h, path: filepath.Join(h.dir, "audit.jsonl")}
	e.hosted = h.serveHTTP(t, "--config", h.config(t, servers, all))
	e.client(t, callers[0], modern, "").awaitReady(t, slices.Collect(maps.Keys(servers))...)
	return e
}

// client returns a client for a caller at a view, such as "/servers/s". An empty view means the default view
// with the two tools.
func (e *endpoint) client(t *testing.T, who, era, view string) *client {
	t.Helper()
	c := e.knocking(t, who, era, view)
	c.open(t)
	return c
}

// knocking returns a client that has not opened its session yet.
func (e *endpoint) knocking(t *testing.T, who, era, view string) *client {
	t.Helper()
	p := e.peer(t)
	p.url += view
	p.header.Set("Authorization", "Bearer "+tokenOf(who))
	return &client{peer: p, era: era, name: "e2e"}
}

// end stops mcpx and returns the lines of the audit trail for which keep returns true. n is how many lines the
// test expects.
func (e *endpoint) end(t *testing.T, n int, keep func(auditLine) bool) (lines []auditLine) {
	t.Helper()
	read := func() []auditLine {
		return slices.DeleteFunc(linesOf[auditLine](t, e.path), func(l auditLine) bool { return !keep(l) })
	}
	if runtime.GOOS == "windows" { // on Windows mcpx is killed, so lines that it has not written yet are lost
		mcptest.WaitFor(t, "the trail", patience, func() bool { return len(read()) >= n })
	}
	terminate(e.cmd)
	e.wait(t)
	if lines = read(); len(lines) != n {
		t.Errorf("the trail has %d such lines, want %d:\n%s", len(lines), n, readFile(t, e.path))
	}
	return lines
}

// piped returns a client of an mcpx over stdio with one server, s. end stops mcpx and returns the lines of its
// audit trail for which keep returns true.
func piped(t *testing.T, s server, view string) (c *client, end func(keep func(auditLine) bool) []auditLine) {
	t.Helper()
	h := newHome(t)
	config := h.config(t, map[string]server{"s": s}, map[string]any{"audit": map[string]any{"file": "audit.jsonl", "required": true}})
	p := h.serveStdio(t, "--config", config, "--log-level", "info", "serve", "--view", view)
	c = &client{peer: p, era: legacy, name: "e2e"}
	c.open(t)
	mcptest.WaitFor(t, "the server", patience, func() bool { return p.logged("msg=connected") > 0 })
	return c, func(keep func(auditLine) bool) []auditLine {
		p.stdin.Close()
		p.wait(t)
		lines := linesOf[auditLine](t, filepath.Join(h.dir, "audit.jsonl"))
		return slices.DeleteFunc(lines, func(l auditLine) bool { return !keep(l) })
	}
}

// endsOf returns a filter for trail lines: it keeps the lines for ended requests of a caller with these
// methods.
func endsOf(who string, methods ...string) func(auditLine) bool {
	return func(l auditLine) bool {
		return l.Event == "call_ended" && l.Principal == who && slices.Contains(methods, l.Method)
	}
}

// things returns a fake server with the default tools, resources, a template and a prompt, and with methods that mcpx does not
// know.
func things(t *testing.T) mcptest.Spec {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	return mcptest.Spec{
		Resources: raw(`[{"uri":"res://a","name":"a"},{"uri":"res://b","name":"b"},{"uri":"res://c","name":"c"},{"uri":"res://d","name":"d"},{"uri":"res://e","name":"e"}]`),
		Templates: raw(`[{"uriTemplate":"res://x/{id}","name":"x"}]`), Prompts: raw(`[{"name":"hello","arguments":[{"name":"who"}]}]`),
		MethodResults: map[string]json.RawMessage{"vendor/look": raw(`{"seen":true}`), "vendor/deleteEverything": raw(`{"deleted":true}`)},
	}.WithFiles(t)
}

// arrived returns the params of all messages of a method that a fake server got, in order.
func arrived(t *testing.T, spec mcptest.Spec, method string) (params []string) {
	t.Helper()
	for _, entry := range spec.Log(t).Method(method) {
		var m struct{ Params json.RawMessage }
		if err := json.Unmarshal(entry.Message, &m); err != nil {
			t.Fatal(err)
		}
		params = append(params, string(m.Params))
	}
	return params
}

// callsAMinute returns a config with this limit for each principal, and with no limit on requests per second.
func callsAMinute(n int) map[string]any {
	return map[string]any{"limits": map[string]any{"principal": map[string]any{"calls_per_minute": n, "requests_per_second": 0}}}
}

// overTheLimit fails the test unless the request was refused because of a limit.
func overTheLimit(t *testing.T, what string, m message) {
	t.Helper()
	if said := string(m.Error) + string(m.Result); !strings.Contains(said, "over the limit of") || !strings.Contains(said, "RATE_LIMITED") {
		t.Errorf("%s is not refused for the limit: %s %s", what, m.Result, m.Error)
	}
}

func uriIs(uri string) string { return `{"uri":"` + uri + `"}` }

// TestSubscribe_Limits: a subscription counts as a request of its principal to the server. One over the limit
// is refused, does not reach the server, and is in the trail. Another principal can still subscribe, and is
// notified of updates.
func TestSubscribe_Limits(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	e := newHome(t).endpoint(t, map[string]server{"s": fake(t, spec)}, callsAMinute(2), "ann", "bob", "cat")
	ann, bob, cat := e.client(t, "ann", legacy, ""), e.client(t, "bob", legacy, ""), e.client(t, "cat", legacy, "")
	ann.result(t, "resources/subscribe", uriIs("res://a"))
	ann.result(t, "resources/subscribe", uriIs("res://b"))
	overTheLimit(t, "a third subscription", ann.request(t, "resources/subscribe", uriIs("res://c")))
	overTheLimit(t, "a call behind them", ann.request(t, "tools/call", `{"name":"exec","arguments":`+execArgs("s", "echo", `{"text":"x"}`)+`}`))

	bob.listen(t)
	bob.result(t, "resources/subscribe", uriIs("res://d"))
	bob.exec(t, "s", "notify", `{"method":"notifications/resources/updated","params":{"uri":"res://d"}}`)
	mcptest.WaitFor(t, "the news for bob", patience, func() bool { return len(bob.notes("notifications/resources/updated")) == 1 })

	for range 2 {
		cat.result(t, "resources/read", uriIs("res://e"))
	}
	for range 4 {
		overTheLimit(t, "a subscription behind reads", cat.request(t, "resources/subscribe", uriIs("res://e")))
		cat.request(t, "resources/unsubscribe", uriIs("res://e"))
	}
	all := strings.Join(arrived(t, spec, "resources/subscribe"), " ")
	if want := uriIs("res://a") + " " + uriIs("res://b") + " " + uriIs("res://d"); all != want {
		t.Errorf("the server got the subscriptions %s, want %s", all, want)
	}
	if others := arrived(t, spec, "resources/unsubscribe"); others != nil {
		t.Errorf("the server got the ends of subscriptions %s", others)
	}
	for _, l := range e.end(t, 4, endsOf("cat", "resources/subscribe")) {
		if l.Outcome == "" || l.Outcome == "RESULT" || l.Server != "s" || l.Item != "res://e" {
			t.Errorf("the trail of a refused subscription: %+v", l)
		}
	}
}

// TestSubscribe_Again: a principal that has reached its limit keeps the subscriptions that the server has
// accepted: after a lost session, mcpx subscribes again.
func TestSubscribe_Again(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	spec.PidFile, spec.LogFile = "", ""
	web := spec.HTTP(t)
	e := newHome(t).endpoint(t, map[string]server{"s": {"url": web.URL}}, callsAMinute(1), "ann", "bob")
	ann, bob := e.client(t, "ann", legacy, ""), e.client(t, "bob", legacy, "")
	ann.listen(t)
	ann.result(t, "resources/subscribe", uriIs("res://a"))
	web.KillSessions()
	bob.exec(t, "s", "echo", `{"text":"x"}`)
	mcptest.WaitFor(t, "the subscription in the next session", patience, func() bool { return web.Count("resources/subscribe") == 2 })
	mcptest.WaitFor(t, "the news for ann", patience, func() bool {
		web.Notify("notifications/resources/updated", uriIs("res://a"))
		return len(ann.notes("notifications/resources/updated")) > 1 // one notification is about the lost session
	})
}

// TestSubscribe_Audit: the beginning and the end of a subscription are in the trail, with its server and its
// resource, over each transport.
func TestSubscribe_Audit(t *testing.T) {
	mcptest.Parallel(t)
	subscribe := func(c *client, spec mcptest.Spec) {
		c.result(t, "resources/subscribe", uriIs("res://a"))
		c.result(t, "resources/unsubscribe", uriIs("res://a"))
		mcptest.WaitFor(t, "the end of the subscription", patience, func() bool { return len(arrived(t, spec, "resources/unsubscribe")) > 0 })
	}
	check := func(over, who string, lines []auditLine) {
		var events []string
		for _, l := range lines {
			events = append(events, l.Event+" "+l.Method)
			if l.Server != "s" || l.Item != "res://a" || l.Principal != who || l.Client != "e2e" || l.Event == "call_ended" && l.Outcome != "RESULT" {
				t.Errorf("%s: the trail has %+v", over, l)
			}
		}
		slices.Sort(events) // one subscription's end may be recorded after the next one's beginning
		if want := "call_began resources/subscribe,call_began resources/unsubscribe,call_ended resources/subscribe,call_ended resources/unsubscribe"; strings.Join(events, ",") != want {
			t.Errorf("%s: the trail has %s, want %s", over, events, want)
		}
	}
	about := func(l auditLine) bool { return strings.HasSuffix(l.Method, "subscribe") }
	spec := things(t)
	e := newHome(t).endpoint(t, map[string]server{"s": fake(t, spec)}, nil, "ann")
	subscribe(e.client(t, "ann", legacy, ""), spec)
	check("http", "ann", e.end(t, 4, about))

	spec = things(t)
	c, end := piped(t, fake(t, spec), "two_tools")
	subscribe(c, spec)
	check("stdio", "", end(about))
}

// TestListen_Limits: a modern client subscribes to several resources in one stream. For each resource this is
// a request to a server, which must be within the limit, and is in the trail.
func TestListen_Limits(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	e := newHome(t).endpoint(t, map[string]server{"s": fake(t, spec)}, callsAMinute(2), "ann", "bob")
	listen := func(who string, uris ...string) *client {
		c := e.client(t, who, modern, "")
		all, _ := json.Marshal(uris)
		c.start(t, "subscriptions/listen", `{"notifications":{"resourceSubscriptions":`+string(all)+`}}`, "")
		mcptest.WaitFor(t, "the acknowledgement", patience, func() bool { return len(c.notes("notifications/subscriptions/acknowledged")) > 0 })
		return c
	}
	listen("ann", "res://a", "res://b", "res://c", "res://d")
	bob := listen("bob", "res://e")
	mcptest.WaitFor(t, "the subscription of bob", patience, func() bool { return strings.Contains(fmt.Sprint(arrived(t, spec, "resources/subscribe")), "res://e") })
	bob.exec(t, "s", "notify", `{"method":"notifications/resources/updated","params":{"uri":"res://e"}}`)
	mcptest.WaitFor(t, "the news for bob", patience, func() bool { return len(bob.notes("notifications/resources/updated")) == 1 })
	overTheLimit(t, "a call beside them", e.client(t, "ann", modern, "").request(t, "resources/read", uriIs("res://e")))

	seen := arrived(t, spec, "resources/subscribe")
	if of := slices.DeleteFunc(slices.Clone(seen), func(params string) bool { return strings.Contains(params, "res://e") }); len(of) > 2 {
		t.Errorf("ann may have 2 calls a minute, and the server got %s", of)
	}
	outcomes := make(map[string]string) // by resource
	for _, l := range e.end(t, 5, func(l auditLine) bool {
		return l.Event == "call_ended" && strings.HasPrefix(l.Item, "res://") && l.Method != "resources/read"
	}) {
		if l.Server != "s" || l.Principal != "ann" && l.Item != "res://e" || l.Method != "subscriptions/listen" && l.Method != "resources/subscribe" {
			t.Errorf("the trail has %+v", l)
		}
		outcomes[l.Item] = l.Outcome
	}
	for _, uri := range []string{"res://a", "res://b", "res://c", "res://d", "res://e"} {
		if reached := strings.Contains(fmt.Sprint(seen), uri); outcomes[uri] == "" || reached != (outcomes[uri] == outcomes["res://e"]) {
			t.Errorf("%s reached the server: %t; by the trail its outcome is %q, and %q of res://e, which did", uri, reached, outcomes[uri], outcomes["res://e"])
		}
	}
}

const vendorHello = "notifications/vendor/hello"

// tell sends a notification with the method vendorHello.
func (c *client) tell(t *testing.T, from string) {
	t.Helper()
	c.send(t, `{"jsonrpc":"2.0","method":"`+vendorHello+`","params":`+c.params(`{"from":"`+from+`"}`, "")+`}`)
}

// TestUnknownNotifications: a notification whose method mcpx does not know counts as a call. One over the
// limit is dropped, because a notification cannot be answered. Each is in the trail.
func TestUnknownNotifications(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	e := newHome(t).endpoint(t, map[string]server{"s": fake(t, spec)}, callsAMinute(2), "ann", "bob")
	ann, bob := e.client(t, "ann", legacy, "/servers/s"), e.client(t, "bob", legacy, "/servers/s")
	for range 5 {
		ann.tell(t, "ann")
	}
	bob.tell(t, "bob")
	overTheLimit(t, "a call behind the notifications", ann.request(t, "tools/call", `{"name":"echo","arguments":{"text":"x"}}`))
	// The server handles this call after the notifications.
	if r := bob.tool(t, "echo", `{"text":"x"}`); r.IsError || r.text(t) != "x" {
		t.Errorf("bob gets %s", r.Content)
	}
	all := strings.Join(arrived(t, spec, vendorHello), " ")
	if n := strings.Count(all, "ann"); n != 2 || strings.Count(all, "bob") != 1 {
		t.Errorf("the server got %s, want 2 of ann and that of bob", all)
	}
	outcomes, passed := make(map[string]int), "" // the outcomes of ann's notifications; the outcome of bob's
	for _, l := range e.end(t, 6, func(l auditLine) bool { return l.Event == "call_ended" && l.Method == vendorHello }) {
		if l.Server != "s" || l.Client != "e2e" || l.Outcome == "" {
			t.Errorf("the trail has %+v", l)
		}
		if l.Principal == "bob" {
			passed = l.Outcome
		} else {
			outcomes[l.Outcome]++
		}
	}
	if outcomes[passed] != 2 {
		t.Errorf("that of bob has the outcome %q in the trail, as should 2 of ann: %v", passed, outcomes)
	}
	for _, line := range linesOf[auditLine](t, e.path) {
		if line.Event == "request_refused" && line.Status != http.StatusUnauthorized {
			t.Errorf("a notification got an answer: %+v", line)
		}
	}

	spec = things(t)
	c, end := piped(t, fake(t, spec), "servers/s")
	c.tell(t, "over stdio")
	if r := c.tool(t, "echo", `{"text":"x"}`); r.IsError || strings.Join(arrived(t, spec, vendorHello), " ") != `{"from":"over stdio"}` {
		t.Errorf("over stdio the server got %s", arrived(t, spec, vendorHello))
	}
	if lines := end(func(l auditLine) bool { return l.Event == "call_ended" && l.Method == vendorHello }); len(lines) != 1 || lines[0].Server != "s" {
		t.Errorf("over stdio the trail has %+v", lines)
	}
}
