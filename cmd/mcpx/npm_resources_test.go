package main

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestNPM_Resources: the official client gets the same resources and prompts of a real server through mcpx as
// directly, and is notified of changes.
func TestNPM_Resources(t *testing.T) {
	mcptest.Parallel(t)
	p := findPeers(t)
	h := newHome(t)
	everything := p.server("everything", nil)
	direct := startSDK(t, p, h, append([]string{"stdio", everything["command"].(string)}, everything["args"].([]string)...)...)
	servers := map[string]server{"everything": everything, "memory": p.server("memory", nil), "twin": p.server("memory", nil)}
	config := h.config(t, servers, patient)
	out, stderr, code := h.run(t, "", "--config", config, "exec", "mcpx", "read_resource", `{"uri":"demo://resource/dynamic/text/7"}`)
	if code != 0 || !strings.Contains(out, "Resource 7: This is a plaintext resource") {
		t.Errorf("from the command line: exit %d, %s %s", code, out, stderr)
	}
	for over, args := range map[string][]string{
		"stdio": {"stdio", binary(t), "serve", "--config", config},
		"http":  {"http", h.serveHTTP(t, "--config", config).url},
	} {
		t.Run(over, func(t *testing.T) {
			c := startSDK(t, p, h, args...)
			list := func(c *sdkClient, op, kind, of string) (all []json.RawMessage) {
				answer := c.ask(t, op, "")
				var r map[string]json.RawMessage
				if err := json.Unmarshal(answer.Result, &r); err != nil {
					t.Fatalf("%s: %v %s", op, err, answer.Error)
				}
				var items []map[string]json.RawMessage
				if err := json.Unmarshal(r[kind], &items); err != nil {
					t.Fatal(err)
				}
				for _, item := range items {
					if of != "" && !strings.Contains(string(item["_meta"]), `"server":"`+of+`"`) {
						continue
					}
					delete(item, "_meta")
					var name string
					_ = json.Unmarshal(item["name"], &name) // only the names of prompts have the server as a prefix
					if rest, ok := strings.CutPrefix(name, of+"__"); ok {
						item["name"], _ = json.Marshal(rest)
					}
					raw, _ := json.Marshal(item)
					all = append(all, raw)
				}
				return all
			}
			for op, kind := range map[string]string{"listResources": "resources", "listResourceTemplates": "resourceTemplates", "listPrompts": "prompts"} {
				want, got := list(direct, op, kind, ""), list(c, op, kind, "everything")
				if len(want) == 0 || len(got) != len(want) {
					t.Fatalf("%s: %d through mcpx, %d directly", op, len(got), len(want))
				}
				for i := range want {
					sameJSON(t, op, got[i], want[i])
				}
			}
			for _, call := range []struct{ op, params, through string }{
				{"readResource", `{"uri":"demo://resource/static/document/features.md"}`, ""},
				{"readResource", `{"uri":"demo://resource/dynamic/text/7"}`, ""},
				{"readResource", `{"uri":"demo://resource/dynamic/text/7"}`, `{"uri":"mcpx://everything/demo://resource/dynamic/text/7"}`},
				{"getPrompt", `{"name":"simple-prompt"}`, `{"name":"everything__simple-prompt"}`},
				{"getPrompt", `{"name":"args-prompt","arguments":{"city":"Bonn"}}`, `{"name":"everything__args-prompt","arguments":{"city":"Bonn"}}`},
				{"getPrompt", `{"name":"resource-prompt","arguments":{"resourceType":"Text","resourceId":"2"}}`, `{"name":"everything__resource-prompt","arguments":{"resourceType":"Text","resourceId":"2"}}`},
				{"complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}`, `{"ref":{"type":"ref/prompt","name":"everything__completable-prompt"},"argument":{"name":"department","value":"E"}}`},
				{"complete", `{"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"3"}}`, ""},
			} {
				if call.through == "" {
					call.through = call.params
				}
				want, got := direct.ask(t, call.op, `,"params":`+call.params), c.ask(t, call.op, `,"params":`+call.through)
				if want.Error != "" || got.Error != "" {
					t.Errorf("%s %s: %s, directly %s", call.op, call.through, got.Error, want.Error)
					continue
				}
				now := func(raw json.RawMessage) json.RawMessage { return clock.ReplaceAll(raw, []byte("created at noon")) }
				sameJSON(t, call.op, now(got.Result), now(want.Result))
			}
			// A URI that two servers have, and a URI that no server has.
			if a := c.ask(t, "readResource", `,"params":{"uri":"mcpx://twin/memory://knowledge-graph"}`); !strings.Contains(string(a.Result), `"uri":"mcpx://twin/memory://knowledge-graph"`) {
				t.Errorf("twin: %s %s", a.Result, a.Error)
			}
			for _, uri := range []string{"memory://knowledge-graph", "none://x", "demo://resource/dynamic/text/none"} {
				if a := c.ask(t, "readResource", `,"params":{"uri":"`+uri+`"}`); a.Error == "" {
					t.Errorf("%s: %s", uri, a.Result)
				}
			}
			// The client can read a resource link in a tool's result by its URI.
			links := c.call(t, "exec", execArgs("everything", "get-resource-links", `{"count":2}`))
			var result struct{ Content []struct{ Type, URI string } }
			if err := json.Unmarshal(links.Result, &result); err != nil || len(result.Content) < 2 {
				t.Fatalf("%v: %s", err, links.Result)
			}
			if a := c.ask(t, "readResource", `,"params":{"uri":"`+result.Content[1].URI+`"}`); !strings.Contains(string(a.Result), "contents") {
				t.Errorf("%s: %s", result.Content[1].URI, a.Error)
			}
			if a := c.ask(t, "subscribeResource", `,"params":{"uri":"demo://resource/dynamic/text/1"}`); a.Error != "" {
				t.Errorf("subscribing: %s", a.Error)
			}
			c.call(t, "exec", execArgs("everything", "toggle-subscriber-updates", `{}`))
			mcptest.WaitFor(t, "an update", patience, func() bool {
				return c.noted(`"uri":"demo://resource/dynamic/text/1"`) > 0
			})
			c.call(t, "exec", execArgs("everything", "toggle-subscriber-updates", `{}`))
			if a := c.ask(t, "unsubscribeResource", `,"params":{"uri":"demo://resource/dynamic/text/1"}`); a.Error != "" {
				t.Errorf("unsubscribing: %s", a.Error)
			}
		})
	}
}
