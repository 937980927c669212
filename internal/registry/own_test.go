package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// choosy is a server that lists an additional tool to clients with elicitation. After a call of the tool grow, it lists another
// additional tool, and a resource.
func choosy(_ context.Context, in io.Reader, out io.Writer) error {
	tools := `{"name":"plain","inputSchema":{}},{"name":"grow","inputSchema":{}}`
	resources := `{"uri":"x://1","name":"1"}`
	for decoder := json.NewDecoder(in); ; {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name         string
				Capabilities map[string]json.RawMessage
			}
		}
		if err := decoder.Decode(&m); err != nil {
			return err
		}
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		switch m.Method {
		case "initialize":
			if m.Params.Capabilities["elicitation"] != nil {
				tools += `,{"name":"asks","inputSchema":{}}`
			}
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true}},"serverInfo":{"name":"x"}}`
		case "tools/list":
			answer = `"result":{"tools":[` + tools + `]}`
		case "resources/list":
			answer = `"result":{"resources":[` + resources + `]}`
		case "resources/templates/list":
			answer = `"result":{"resourceTemplates":[]}`
		case "tools/call":
			answer = `"result":{"content":[]}`
			if m.Params.Name == "grow" {
				tools += `,{"name":"grown","inputSchema":{}}`
				resources += `,{"uri":"x://grown","name":"grown"}`
				answer += `}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"`
			}
		}
		if m.ID == nil {
			continue
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer); err != nil {
			return err
		}
	}
}

// TestOwnCatalogue: a client with its own session sees what the server lists in it, and is notified when that changes. Other
// clients are not affected.
func TestOwnCatalogue(t *testing.T) {
	mcptest.NoLeaks(t)
	server := Server{Definition: "x", PerClient: true, Spec: upstream.Spec{Options: transport.Options{Name: "x", Type: transport.InProcess, Serve: choosy}}}
	r := start(t, Options{}, server)
	tried(t, r)
	names := func(client *caller.Client) []string {
		s, ok := r.SnapshotOf(client).Server("x")
		if !ok {
			t.Fatal("no server")
		}
		return s.ToolNames()
	}
	var told, toldResources [3]atomic.Int32
	resources := func(client *caller.Client) int {
		s, _ := r.SnapshotOf(client).Server("x")
		return len(s.Items.Of(catalog.Resources))
	}
	r.WaitListed(t.Context(), nil)
	clients := make([]*caller.Client, 3)
	for i, capabilities := range []string{`{}`, `{"elicitation":{}}`, `{"elicitation":{}}`} {
		clients[i] = &caller.Client{
			ID: fmt.Sprint(i), Capabilities: json.RawMessage(capabilities),
			Notify: func(method string, _ json.RawMessage) {
				if method == "notifications/tools/list_changed" {
					told[i].Add(1)
				}
				if method == "notifications/resources/list_changed" {
					toldResources[i].Add(1)
				}
			},
		}
	}
	all, few := []string{"plain", "grow", "asks"}, []string{"plain", "grow"}
	if got := names(clients[0]); !slices.Equal(got, all) {
		t.Errorf("before the first call: %v", got)
	}
	var calls sync.WaitGroup
	for _, client := range clients {
		calls.Go(func() {
			if _, err := r.Send(t.Context(), &request.Request{To: first(r), From: request.From{Client: client}, Method: "tools/call", Params: request.ToolParams("plain", nil)}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	want := func(when string, lists ...[]string) {
		t.Helper()
		for i, list := range lists {
			mcptest.WaitFor(t, when, patience, func() bool { return slices.Equal(names(clients[i]), list) })
		}
		if got := names(nil); !slices.Equal(got, all) {
			t.Errorf("%s: all see %v", when, got)
		}
	}
	want("with sessions", few, all, all)
	if told[0].Load() != 1 || told[1].Load() != 0 {
		t.Errorf("told %d and %d times", told[0].Load(), told[1].Load())
	}
	if r.SnapshotOf(clients[1]) != r.Snapshot() {
		t.Error("a client that sees the same has a snapshot of its own")
	}
	if once := r.SnapshotOf(clients[0]); once != r.SnapshotOf(clients[0]) {
		t.Error("a snapshot is made with each look")
	}
	if _, err := r.Send(t.Context(), &request.Request{To: first(r), From: request.From{Client: clients[1]}, Method: "tools/call", Params: request.ToolParams("grow", nil)}); err != nil {
		t.Error(err)
	}
	want("after a change", few, append(slices.Clone(all), "grown"), all)
	mcptest.WaitFor(t, "the announcements", patience, func() bool { return told[1].Load() == 1 && toldResources[1].Load() == 1 })
	if resources(clients[1]) != 2 || resources(clients[0]) != 1 || resources(nil) != 1 || toldResources[0].Load()+toldResources[2].Load() > 0 {
		t.Errorf("resources: %d, %d, %d; told %d, %d", resources(clients[1]), resources(clients[0]), resources(nil), toldResources[0].Load(), toldResources[2].Load())
	}
	if told[0].Load() != 1 || told[2].Load() != 0 {
		t.Errorf("others were told: %d, %d", told[0].Load(), told[2].Load())
	}
	r.ForgetClient("0")
	r.ForgetClient("1")
	want("after the end of clients", few, all, all) // the other clients' tools depend on their capabilities
}

func first(r *Registry) *catalog.Server { return &r.Snapshot().Servers[0] }
