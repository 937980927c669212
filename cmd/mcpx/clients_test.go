package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
)

// TestServe_Clients: each client gets results in the form that it supports. The form depends on the client's name, on the
// client's rule in the config, and on a header of the request, in both eras, over HTTP and, for the most part in a full run
// only, over stdio.
func TestServe_Clients(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{
		"result_preview_tokens": 0, // a long text shows as much as the client takes
		"clients": map[string]any{
			"wants-all":    map[string]any{"structured_content": "always"},
			"wants-none":   map[string]any{"structured_content": "never"},
			"wants-json":   map[string]any{"text": "json"},
			"waits-little": map[string]any{"call_wait": 1.2},
			"reads-little": map[string]any{"result_chars": 2000},
		},
	})
	table, rows := mcptest.TableText(20), `{"rows":20}`
	compact, _ := wire.Compact(table)
	both := `{"result":` + strconv.Quote(`{"content":[{"type":"text","text":"found 1"}],"structuredContent":{"a":1}}`) + `}`
	for _, test := range []struct {
		client, header string
		// toon means that a table is encoded as TOON. own and made mean that the result has structuredContent from the upstream
		// server, or from mcpx.
		toon, own, made bool
	}{
		{"some-agent", "", true, true, false},
		{"claude-code", "", true, false, false},
		{"codex-mcp-client", "", true, false, false},
		{"mcp-inspector", "", false, true, false},
		{"wants-all", "", false, true, true},
		{"wants-none", "", true, false, false},
		{"wants-json", "", false, true, false},
		{"claude-code", "always", false, true, true},
		{"wants-all", "never", true, false, false},
	} {
		name := test.client + " " + test.header
		check := func(t *testing.T, c *client) {
			c.name = test.client
			if p, ok := c.peer.(*httpPeer); ok && test.header != "" {
				p.header.Set("Mcpx-Structured-Content", test.header)
			} else if test.header != "" {
				t.Skip("stdio has no headers")
			}
			c.open(t)
			text := c.exec(t, "fake", "table", rows)
			if got := text.text(t); strings.HasPrefix(got, "[20]{id") != test.toon || !test.toon && got != compact {
				t.Errorf("a table: TOON is %t: %.200s", !test.toon, got)
			}
			if want := `{"result":` + compact + `}`; (string(text.Structured) == want) != test.made || !test.made && text.Structured != nil {
				t.Errorf("made: %.200s", text.Structured)
			}
			got, want := c.tool(t, "exec", execArgs("fake", "raw", both)), 2
			if test.own {
				sameJSON(t, "structuredContent", got.Structured, json.RawMessage(`{"a":1}`))
				want = 1
			} else if got.Structured != nil || !strings.Contains(string(got.Content[len(got.Content)-1]), `"\n{\"a\":1}"`) {
				t.Errorf("not a text: %s, %s", got.Content, got.Structured)
			}
			if len(got.Content) != want {
				t.Errorf("blocks: %s", got.Content)
			}
			for what, r := range map[string]toolResult{
				"inspect": c.tool(t, "inspect", `{"server_name":"fake","tool_name":"echo"}`),
				"error":   c.exec(t, "fake", "nothing", `{}`),
			} {
				if (r.Structured != nil) != test.made {
					t.Errorf("%s: structuredContent %s", what, r.Structured)
				}
			}
		}
		t.Run(name, func(t *testing.T) { eachSlow(t, h, []string{"--config", config}, check) })
	}
	for name, most := range map[string]int{"reads-little": 2000, "some-agent": 38_000, "opencode": 48_000} {
		t.Run("length for "+name, func(t *testing.T) {
			eachSlow(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
				c.name = name
				c.open(t)
				text := c.exec(t, "fake", "big", `{"bytes":50000}`).text(t)
				if n := len(text); n > most || n < most/2 || !strings.Contains(text, "read_result") {
					t.Errorf("%d bytes: %.100s … %s", n, text, text[max(0, n-200):])
				}
				if first := strings.HasPrefix(text, "["); first != (name == "opencode") {
					t.Errorf("the line about the rest is first: %t", first)
				}
			})
		})
	}
	t.Run("time", func(t *testing.T) {
		each(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
			c.name = "waits-little"
			c.open(t)
			text := c.exec(t, "fake", "slow", `{"ms":1700}`).text(t)
			_, call, running := strings.Cut(text, "[still running after 1 s; do not repeat the call, wait for its result: exec ")
			for range 100 {
				if !running {
					break
				}
				text = c.tool(t, "exec", strings.TrimSuffix(call, "]")).text(t)
				_, call, running = strings.Cut(text, "wait for its result: exec ")
			}
			if call != "" || text != "slept 1700 ms" {
				t.Errorf("got %s", text)
			}
		})
	})
	t.Run("code", func(t *testing.T) {
		each(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
			c.name = "codex-mcp-client"
			c.open(t)
			for id, structured := range map[string]bool{"exec-1": true, "call_1": false} {
				params := `{"name":"exec","arguments":` + execArgs("fake", "table", rows) + `}`
				m := c.answer(t, c.start(t, "tools/call", params, `"callId":"`+id+`"`))
				var r toolResult
				if err := json.Unmarshal(m.Result, &r); err != nil || (r.text(t) == compact) != structured {
					t.Errorf("%s: %s, %v", id, r.Content, err)
				}
				params = `{"name":"exec","arguments":` + execArgs("fake", "raw", both) + `}`
				m = c.answer(t, c.start(t, "tools/call", params, `"callId":"`+id+`"`))
				r = toolResult{}
				if err := json.Unmarshal(m.Result, &r); err != nil || (string(r.Structured) == `{"a":1}`) != structured {
					t.Errorf("%s: %s, %v", id, r.Structured, err)
				}
			}
		})
	})
}
