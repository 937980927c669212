package caller

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestRelayed: mcpx declares to a server only the capabilities of the client that mcpx can relay, and only the extensions
// that work through mcpx.
func TestRelayed(t *testing.T) {
	const all = `{"elicitation":{},"roots":{"listChanged":true},"sampling":7,"tasks":{"list":{}},"experimental":{"x":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]},"io.modelcontextprotocol/tasks":{"a":1},"x/y":{}}}`
	for _, test := range []struct {
		name   string
		client *Client
		want   string
	}{
		{"nobody", nil, `{}`},
		{"nothing declared", &Client{}, `{}`},
		{"questions and tasks", &Client{Capabilities: json.RawMessage(all)}, `{"elicitation":{},"roots":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
		{"apps", &Client{Apps: true, Capabilities: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]}}}`)}, `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]}}}`},
		{"apps that the view does not list", &Client{Capabilities: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]}}}`)}, `{}`},
		{"transparent", &Client{Transparent: true, Capabilities: json.RawMessage(all)},
			`{"elicitation":{},"roots":{"listChanged":true},"experimental":{"x":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]},"io.modelcontextprotocol/tasks":{"a":1},"x/y":{}}}`},
	} {
		if got := string(test.client.Relayed()); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestAskCapabilities: mcpx does not pass a server's question to a client that has not declared the capability for it. The
// error for the server names this capability.
func TestAskCapabilities(t *testing.T) {
	tests := []struct{ capabilities, method, params, missing string }{
		{`{"elicitation":{}}`, "elicitation/create", `{"message":"x"}`, ""},
		{`{"elicitation":{}}`, "elicitation/create", `{"mode":"url"}`, "elicitation.url"},
		{`{"elicitation":{"url":{}}}`, "elicitation/create", `{"mode":"form"}`, "elicitation.form"},
		{`{"elicitation":{"url":{}}}`, "elicitation/create", `{"mode":"url"}`, ""},
		{`{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{}`, ""},
		{`{"sampling":{}}`, "sampling/createMessage", `{"messages":[]}`, ""},
		{`{"sampling":{}}`, "sampling/createMessage", `{"tools":[]}`, "sampling.tools"},
		{`{"sampling":{"tools":{}}}`, "sampling/createMessage", `{"tools":[]}`, ""},
		{`{}`, "roots/list", ``, "roots"},
		{`{"roots":{"listChanged":true}}`, "roots/list", ``, ""},
		{``, "roots/list", ``, "roots"},
	}
	for _, tt := range tests {
		if got := Lacks(json.RawMessage(tt.capabilities), tt.method, json.RawMessage(tt.params)); got != tt.missing {
			t.Errorf("%s %s %s: lacks %q, want %q", tt.capabilities, tt.method, tt.params, got, tt.missing)
		}
	}
	var nobody *Client
	for _, c := range []*Client{nobody, {Capabilities: json.RawMessage(`{"roots":{}}`)}, {}} {
		if _, err := c.Ask(context.Background(), "roots/list", nil); err == nil || !strings.HasPrefix(err.Error(), "roots/list ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	able := &Client{Request: func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return nil, nil
	}}
	if _, err := able.Ask(context.Background(), "tools/call", nil); err == nil {
		t.Error("a client was asked to call a tool")
	}
}

// TestPeer: two principals count as two clients even if they share one connection, as behind a proxy.
func TestPeer(t *testing.T) {
	alice, bob := &Principal{ID: "a"}, &Principal{ID: "b"}
	one := &Client{ID: "1", Peer: "connection", Principal: alice}
	for other, same := range map[*Client]bool{
		{ID: "2", Peer: "connection", Principal: alice}: true,
		{ID: "2", Peer: "connection", Principal: bob}:   false,
		{ID: "2", Peer: "connection"}:                   false,
		{ID: "2", Principal: alice}:                     false,
	} {
		if got := one.Program() == other.Program(); got != same {
			t.Errorf("%+v: %t", other, got)
		}
	}
}
