package main

import (
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// counting is a modern server that uses the second major version of the Python SDK.
const counting = `
from mcp.server.mcpserver import Context, MCPServer
server = MCPServer('counting')
count = 0

@server.resource('count://now')
def now() -> str:
    return str(count)

@server.resource('count://{name}/squared')
def squared(name: str) -> str:
    return f'{name} x {name}'

@server.prompt()
def ask(what: str) -> str:
    return f'How many {what}?'

@server.tool()
async def bump(ctx: Context) -> str:
    global count
    count += 1
    await ctx.notify_resource_updated('count://now')
    return 'bumped'

server.run()
`

// TestPyPI_Resources: clients of both eras use the resources and prompts of a legacy server on the first major version of the
// Python SDK, and of modern servers on the second.
func TestPyPI_Resources(t *testing.T) {
	mcptest.Parallel(t)
	bin, h := python(t), newHome(t)
	script := h.write(t, "counting.py", counting)
	modernServer := server{"command": filepath.Join(bin, "sdk2", "bin", "python"), "args": []string{script}, "protocol": "modern"}
	config := h.config(t, map[string]server{
		"sqlite": {"command": filepath.Join(bin, "sdk1", "bin", "mcp-server-sqlite"), "args": []string{"--db-path", filepath.Join(h.dir, "t.db")}},
		"one":    modernServer, "two": modernServer,
	}, patient)
	eachSlow(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
		c.open(t)
		has := func(method, params string, pieces ...string) {
			t.Helper()
			m := c.answer(t, c.start(t, method, params, ""))
			for _, piece := range pieces {
				if all := string(m.Result) + string(m.Error); !strings.Contains(all, piece) {
					t.Errorf("%s %s: no %s in %s", method, params, piece, all)
				}
			}
		}
		has("resources/list", `{}`, `"uri":"memo://insights"`, `"uri":"mcpx://one/count://now"`, `"uri":"mcpx://two/count://now"`)
		has("resources/templates/list", `{}`, `"uriTemplate":"mcpx://one/count://{name}/squared"`)
		has("resources/read", `{"uri":"memo://insights"}`, `"contents":[{"uri":"memo://insights"`)
		has("resources/read", `{"uri":"mcpx://two/count://seven/squared"}`, `"text":"seven x seven"`, `"uri":"mcpx://two/count://seven/squared"`)
		code := `"code":-32002`
		if c.era == modern {
			code = `"code":-32602`
		}
		has("resources/read", `{"uri":"mcpx://two/none://x"}`, code, `Unknown resource`)
		has("prompts/list", `{}`, `"sqlite__mcp-demo"`, `"one__ask"`)
		has("prompts/get", `{"name":"two__ask","arguments":{"what":"apples"}}`, `How many apples?`)
		has("prompts/get", `{"name":"sqlite__mcp-demo","arguments":{"topic":"apples"}}`, `apples`)

		if c.era == legacy {
			c.listen(t)
			has("resources/subscribe", `{"uri":"memo://insights"}`, `does not report changes`)
			has("resources/subscribe", `{"uri":"mcpx://one/count://now"}`, `{}`)
		} else {
			c.start(t, "subscriptions/listen", `{"notifications":{"resourceSubscriptions":["mcpx://one/count://now","memo://insights"]}}`, "")
			mcptest.WaitFor(t, "the acknowledgement", patience, func() bool {
				return len(c.notes("notifications/subscriptions/acknowledged")) == 1
			})
		}
		mcptest.WaitFor(t, "the update", patience, func() bool {
			c.exec(t, "one", "bump", `{}`)
			notes := c.notes("notifications/resources/updated")
			return len(notes) > 0 && strings.Contains(string(notes[0].Params), `"uri":"mcpx://one/count://now"`)
		})
	})
}
