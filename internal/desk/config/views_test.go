package config

import (
	"fmt"
	"testing"
)

// TestViews_Faults: mistakes in the keys for views and groups are faults with the right path.
func TestViews_Faults(t *testing.T) {
	for _, test := range []struct{ keys, want string }{
		{`"view": "tools"`, ""},
		{`"view": "two_tools"`, ""},
		{`"view": "servers/git hub"`, ""},
		{`"view": "groups/g", "groups": {"g": []}`, ""},
		{`"view": "all"`, "c.json: view: must be two_tools, tools, servers/NAME or groups/NAME"},
		{`"view": "servers/gitub"`, `c.json: view: there is no server "gitub", did you mean "git_hub"?`},
		{`"view": "groups/h", "groups": {"g": []}`, `c.json: view: there is no group "h"`},
		{`"view": true`, "c.json: view: must be a string, not a boolean"},
		{`"groups": {"g": {"servers": ["git hub", "git"]}}`, `c.json: groups.g.servers[1]: there is no server "git"`},
		{`"groups": {"g": ["memroy"]}`, `c.json: groups.g[0]: there is no server "memroy", did you mean "memory"?`},
		{`"groups": {"g": "memory"}`, "c.json: groups.g: must be an object, not a string"},
		{`"groups": {"g": {"servers": "memory"}}`, "c.json: groups.g.servers: must be an array of strings, not a string"},
		{`"groups": {"a/b": []}`, `c.json: groups["a/b"]: must have a name of letters (a-z), digits, '.', '_' and '-', of at most 64 characters`},
		{`"groups": {"g": {"tools": {"allow": []}}}`, "c.json: groups.g.tools.allow: must not be empty; without it all tools are allowed"},
		{`"groups": {"g": {"tools": {"deny": ["x"]}}}`, `c.json: groups.g.tools.deny[0]: must be "SERVER.TOOL", not "x"`},
		{`"groups": {"g": {"view": "all"}}`, "c.json: groups.g.view: must be two_tools or tools"},
		{`"auth": {}, "groups": {"g": ["memroy"]}`, "c.json: auth: no client could connect: it has no tokens and no issuers; mcpx token new NAME makes a token\n" +
			`c.json: groups.g[0]: there is no server "memroy", did you mean "memory"?`},
		{`"separator": ":"`, `c.json: separator: must be 1 to 8 letters (a-z), digits, '_' or '-'`},
		{`"prefix": "some"`, "c.json: prefix: must be always, conflict or never"},
	} {
		_, err := Parse("c.json", fmt.Appendf(nil, `{%s, "mcpServers": {"git hub": {"command": "x"}, "memory": {"command": "y"}}}`, test.keys), Options{})
		if got := fmt.Sprint(err); got != test.want && (err != nil || test.want != "") {
			t.Errorf("%s\ngot  %s\nwant %s", test.keys, got, test.want)
		}
	}
}
