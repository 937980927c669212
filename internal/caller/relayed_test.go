package caller

import (
	"encoding/json"
	"testing"
)

// TestRelayed: mcpx declares to a server those of the client's capabilities that mcpx can relay, and only those
// extensions that work through mcpx.
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
