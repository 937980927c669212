package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// A view of only one server passes on messages whose methods mcpx does not know. If the config restricts what
// may be done with the server, these messages are restricted too: no schema and no annotation says what such a
// method does.

const deleteAll, deleteParams = "vendor/deleteEverything", `{"where":"canary of the params"}`

// inboxOf returns the inbox of a client.
func inboxOf(c *client) *inbox {
	switch p := c.peer.(type) {
	case *httpPeer:
		return p.inbox
	case *stdioPeer:
		return p.inbox
	}
	return nil
}

// consenting sends a request. When the user is asked to confirm the request, consenting answers with this action. It returns the
// answer to the request, and the questions to the user.
func (c *client) consenting(t *testing.T, method, params, action string) (m message, questions []string) {
	t.Helper()
	if c.era == modern {
		return c.consentingModern(t, method, params, action)
	}
	box, before := inboxOf(c), make(map[string]bool) // ids of the questions that have been answered
	box.mu.Lock()
	for _, m := range box.all {
		before[string(m.ID)] = m.Method != ""
	}
	box.mu.Unlock()
	id := c.start(t, method, params, "")
	for done := false; !done; {
		var open []string
		mcptest.WaitFor(t, "an answer or a question", patience, func() bool {
			box.mu.Lock()
			defer box.mu.Unlock()
			_, done = box.byID[id]
			for _, m := range box.all {
				if m.Method == "elicitation/create" && !before[string(m.ID)] && len(m.ID) > 0 {
					before[string(m.ID)] = true
					open, questions = append(open, string(m.ID)), append(questions, string(m.Params))
				}
			}
			return done || len(open) > 0
		})
		for _, question := range open {
			c.send(t, `{"jsonrpc":"2.0","id":`+question+`,"result":`+string(consent(action))+`}`)
		}
	}
	return c.answer(t, id), questions
}

// inputRequired is the result by which mcpx asks a modern client.
type inputRequired struct {
	ResultType    string
	RequestState  json.RawMessage
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	}
}

// consent returns the answer to a confirmation question. The action "accept by itself" imitates a client that
// accepts without asking its user.
func consent(action string) json.RawMessage {
	switch action {
	case "accept":
		return json.RawMessage(`{"action":"accept","content":{"run":true}}`)
	case "accept by itself":
		return json.RawMessage(`{"action":"accept","content":{}}`)
	}
	return json.RawMessage(`{"action":"` + action + `"}`)
}

// with returns params with answers to these questions added.
func (asked inputRequired) with(params, action string) string {
	answers := make(map[string]any)
	for key := range asked.InputRequests {
		answers[key] = consent(action)
	}
	all, _ := json.Marshal(answers)
	more := `"inputResponses":` + string(all) + `,"requestState":` + string(asked.RequestState)
	if inner := strings.TrimSuffix(params, "}"); inner != "{" {
		return inner + "," + more + "}"
	}
	return "{" + more + "}"
}

func (c *client) consentingModern(t *testing.T, method, params, action string) (m message, questions []string) {
	t.Helper()
	m = c.request(t, method, params)
	var asked inputRequired
	if json.Unmarshal(m.Result, &asked) != nil || asked.ResultType != "input_required" {
		return m, nil
	}
	for _, key := range slices.Sorted(maps.Keys(asked.InputRequests)) {
		if question := asked.InputRequests[key]; question.Method == "elicitation/create" {
			questions = append(questions, string(question.Params))
		}
	}
	return c.request(t, method, asked.with(params, action)), questions
}

// eachEra runs a test in both eras, with a client that has these capabilities, at the endpoint for one server.
func (e *endpoint) eachEra(t *testing.T, who, view, caps string, test func(t *testing.T, c *client)) {
	for _, era := range []string{legacy, modern} {
		t.Run(strings.TrimPrefix(view, "/servers/")+" "+era, func(t *testing.T) {
			c := e.knocking(t, who, era, view)
			c.caps = caps
			c.open(t)
			test(t, c)
		})
	}
}

// withoutMethod fails the test if an unknown method exists for the client, or if a request or notification
// with such a method reaches the server.
func withoutMethod(t *testing.T, c *client, spec mcptest.Spec) {
	t.Helper()
	if m := c.request(t, deleteAll, deleteParams); !strings.Contains(string(m.Error), `"code":-32601`) {
		t.Errorf("%s gets %s %s", deleteAll, m.Result, m.Error)
	}
	c.tell(t, "nobody")
	// The server handles this call after the notification.
	if m := c.request(t, "tools/call", `{"name":"read_echo","arguments":{"text":"x"}}`); !strings.Contains(string(m.Result), `"text":"x"`) {
		t.Errorf("read_echo gets %s %s", m.Result, m.Error)
	}
	for _, method := range []string{deleteAll, vendorHello} {
		if seen := arrived(t, spec, method); seen != nil {
			t.Errorf("the server got %s %s", method, seen)
		}
	}
}

// TestUnknownMethods_Limited: if only a part of a server may be used, methods that mcpx does not know do not
// exist there, and no notification with such a method reaches the server. Allowed requests work, and other
// servers still get messages with unknown methods.
func TestUnknownMethods_Limited(t *testing.T) {
	mcptest.Parallel(t)
	servers, specs := make(map[string]server), make(map[string]mcptest.Spec)
	for name, keys := range map[string]map[string]any{
		"read_only": {"read_only": true}, "allow": {"tools": map[string]any{"allow": []string{"read_*"}}},
		"deny": {"tools": map[string]any{"deny": []string{"destroy_*"}}}, "open": nil,
	} {
		specs[name] = things(t)
		servers[name] = fake(t, specs[name])
		maps.Copy(servers[name], keys)
	}
	e := newHome(t).endpoint(t, servers, nil, "ann")
	for _, name := range []string{"read_only", "allow", "deny"} {
		e.eachEra(t, "ann", "/servers/"+name, `{"elicitation":{}}`, func(t *testing.T, c *client) {
			withoutMethod(t, c, specs[name])
			if read := string(c.result(t, "resources/read", uriIs("res://a"))); !strings.Contains(read, "fake has res://a") {
				t.Errorf("a resource is %s", read)
			}
		})
	}
	e.eachEra(t, "ann", "/servers/open", "", func(t *testing.T, c *client) {
		if gone := string(c.result(t, deleteAll, deleteParams)); !strings.Contains(gone, `"deleted":true`) {
			t.Errorf("of the server that is open: %s", gone)
		}
	})
	t.Run("stdio", func(t *testing.T) {
		spec := things(t)
		s := fake(t, spec)
		s["read_only"] = true
		c, _ := piped(t, s, "servers/s")
		withoutMethod(t, c, spec)
	})
}

// TestUnknownMethods_Rights: if a principal may use only a part of a server, methods that mcpx does not know
// do not exist for that principal. Another principal may use the same server without restriction.
func TestUnknownMethods_Rights(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	rights := []any{
		map[string]any{"principals": []string{"ann"}, "read_only": true},
		map[string]any{"principals": []string{"bob"}, "tools": map[string]any{"deny": []string{"s.destroy_*"}}},
		map[string]any{"principals": []string{"cat"}},
	}
	e := newHome(t).endpoint(t, map[string]server{"s": fake(t, spec)}, map[string]any{"rights": rights}, "ann", "bob", "cat")
	for _, who := range []string{"ann", "bob"} {
		e.eachEra(t, who, "/servers/s", `{"elicitation":{}}`, func(t *testing.T, c *client) { withoutMethod(t, c, spec) })
	}
	cat := e.client(t, "cat", legacy, "/servers/s")
	cat.result(t, deleteAll, deleteParams)
	cat.tell(t, "cat")
	cat.tool(t, "echo", `{"text":"x"}`)
	if requests, notes := arrived(t, spec, deleteAll), arrived(t, spec, vendorHello); len(requests) != 1 || len(notes) != 1 {
		t.Errorf("of cat the server got %s %s", requests, notes)
	}
}

// TestUnknownMethods_Confirm: if the user must confirm calls, this includes requests whose method mcpx does
// not know, since they may change something. The user sees what will be sent; without consent nothing is sent.
// For a notification mcpx cannot ask, so it is not sent.
func TestUnknownMethods_Confirm(t *testing.T) {
	mcptest.Parallel(t)
	servers, specs := make(map[string]server), make(map[string]mcptest.Spec)
	for name, confirm := range map[string]string{"all": "all", "destructive": "destructive", "of-file": "", "free": "off"} {
		specs[name] = things(t)
		if servers[name] = fake(t, specs[name]); confirm != "" {
			servers[name]["confirm"] = confirm
		}
	}
	e := newHome(t).endpoint(t, servers, map[string]any{"confirm": "destructive"}, "ann")
	const asked, silent = `{"elicitation":{}}`, `{}`
	for _, name := range []string{"all", "destructive", "of-file"} {
		sent := 0 // in both eras together
		e.eachEra(t, "ann", "/servers/"+name, asked, func(t *testing.T, c *client) {
			for _, one := range []struct{ action, want string }{{"decline", "declined"}, {"accept", `"deleted":true`}, {"cancel", "declined"}} {
				if one.action == "accept" {
					sent++
				}
				m, questions := c.consenting(t, deleteAll, deleteParams, one.action)
				if !strings.Contains(string(m.Result)+string(m.Error), one.want) || (m.Error == nil) != (one.action == "accept") {
					t.Errorf("%s: got %s %s", one.action, m.Result, m.Error)
				}
				if len(questions) != 1 || !strings.Contains(questions[0], name) || !strings.Contains(questions[0], deleteAll) || !strings.Contains(questions[0], "canary of the params") {
					t.Errorf("%s: asked %s", one.action, questions)
				}
				if seen := arrived(t, specs[name], deleteAll); len(seen) != sent {
					t.Errorf("%s: the server got %d requests, want %d: %s", one.action, len(seen), sent, seen)
				}
			}
		})
		e.eachEra(t, "ann", "/servers/"+name, silent, func(t *testing.T, c *client) {
			if m := c.request(t, deleteAll, deleteParams); !strings.Contains(string(m.Error), "confirm") || !strings.Contains(string(m.Error), deleteAll) {
				t.Errorf("nobody can be asked: got %s %s", m.Result, m.Error)
			}
			c.tell(t, "nobody")
			c.result(t, "resources/read", uriIs("res://a")) // the server handles this after the notification
			if requests, notes := arrived(t, specs[name], deleteAll), arrived(t, specs[name], vendorHello); len(requests) != sent || notes != nil {
				t.Errorf("the server got %d requests, want %d, and the notifications %s", len(requests), sent, notes)
			}
		})
	}
	e.eachEra(t, "ann", "/servers/free", silent, func(t *testing.T, c *client) {
		if m, questions := c.consenting(t, deleteAll, deleteParams, "decline"); !strings.Contains(string(m.Result), `"deleted":true`) || questions != nil {
			t.Errorf("without confirm: got %s %s, asked %s", m.Result, m.Error, questions)
		}
	})
}

// TestUnknownMethods_OtherParams: consent is valid only for the request that was shown to the user, and only once.
func TestUnknownMethods_OtherParams(t *testing.T) {
	mcptest.Parallel(t)
	spec := things(t)
	s := fake(t, spec)
	s["confirm"] = "all"
	e := newHome(t).endpoint(t, map[string]server{"s": s}, nil, "ann", "bob")
	clients := make(map[string]*client)
	for _, who := range []string{"ann", "bob"} {
		clients[who] = e.knocking(t, who, modern, "/servers/s")
		clients[who].caps = `{"elicitation":{}}`
		clients[who].open(t)
	}
	ask := func() (asked inputRequired) {
		t.Helper()
		m := clients["ann"].request(t, deleteAll, deleteParams)
		if err := json.Unmarshal(m.Result, &asked); err != nil || asked.ResultType != "input_required" || len(asked.InputRequests) != 1 {
			t.Fatalf("nobody is asked: %s %s", m.Result, m.Error)
		}
		return asked
	}
	for what, one := range map[string]struct{ who, method, params string }{
		"other params":      {"ann", deleteAll, `{"where":"somewhere else"}`},
		"another method":    {"ann", "vendor/look", deleteParams},
		"another principal": {"bob", deleteAll, deleteParams},
	} {
		if m := clients[one.who].request(t, one.method, ask().with(one.params, "accept")); m.Error == nil && !strings.Contains(string(m.Result), "input_required") {
			t.Errorf("%s with the consent of ann: %s", what, m.Result)
		}
	}
	asked := ask()
	if m := clients["ann"].request(t, deleteAll, asked.with(deleteParams, "accept")); !strings.Contains(string(m.Result), `"deleted":true`) {
		t.Errorf("what was confirmed: %s %s", m.Result, m.Error)
	}
	if m := clients["ann"].request(t, deleteAll, asked.with(deleteParams, "accept")); m.Error == nil && !strings.Contains(string(m.Result), "input_required") {
		t.Errorf("a second time: %s", m.Result)
	}
	if requests, others := arrived(t, spec, deleteAll), arrived(t, spec, "vendor/look"); len(requests) != 1 || others != nil || strings.Contains(fmt.Sprint(requests), "else") {
		t.Errorf("the server got %s %s", requests, others)
	}
}
