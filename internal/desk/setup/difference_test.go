package setup

import (
	"slices"
	"strings"
	"testing"
)

// TestDifference: each value that differs is named by its path, and no line contains a secret.
func TestDifference(t *testing.T) {
	const before = `{
		// a comment
		"mcpServers": {"a": {"command": "x", "args": ["--token", "hunter2-hunter2"], "env": {"TOKEN": "s3cret-one", "PATHS": "/a", "credentials": "header:s3cret"}}, "gone": {"url": "https://x.test"},
			"tool": {"overrides": {"get": {"arguments": {"session": "s3cret-five", "limit": 5}}}}},
		"audit": {"key": "0123456789abcdef0"}, "auth_token": "abc", "auth": {"front": {"client_secret": "x", "allow": {"groups": ["a"]}}}, "limits": {"calls_per_minute": 3, "sessions": 5}
	}`
	const after = `{"mcpServers": {"a": {"command": "y", "args": ["--token", "hunter3-hunter3"], "env": {"TOKEN": "s3cret-two", "PATHS": "${P}", "credentials": "claim:s3cret"}},
		"new": {"url": "https://y.test", "headers": {"Authorization": "Bearer s3cret-three", "session": "s3cret-four"}, "http_headers": {"session": "s3cret-eight"}, "session": "per_client",
				"credentials": {"X-Api-Key": "header:X-User-Key", "X-Tenant": "claim:tenant", "Authorization": "exchange", "X-Other": "s3cret-nine"}},
			"tool": {"overrides": {"get": {"arguments": {"session": "s3cret-six", "limit": 6, "in": {"auth": "s3cret-seven"}}}}}},
		"audit": {"key": ["${NEW}", "0123456789abcdef0"]}, "auth_token": "def", "auth": {"front": {"client_secret": "y", "allow": {"groups": ["b"]}}}, "limits": {"calls_per_minute": 30, "sessions": 50}}`
	got := Difference([]byte(before), []byte(after), strings.NewReplacer("hunter2-hunter2", "[secret]", "hunter3-hunter3", "[secret]").Replace)
	want := []string{
		`audit.key: "[secret]", now ["${NEW}","[secret]"]`,
		`auth.front.allow.groups: ["a"], now ["b"]`,
		`auth.front.client_secret: "[secret]", now "[secret]"`,
		`auth_token: "[secret]", now "[secret]"`,
		`limits.calls_per_minute: 3, now 30`,
		`limits.sessions: 5, now 50`,
		`mcpServers.a.args: ["--token","[secret]"], now ["--token","[secret]"]`,
		`mcpServers.a.command: "x", now "y"`,
		`mcpServers.a.env.PATHS: "[secret]", now "${P}"`,
		`mcpServers.a.env.TOKEN: "[secret]", now "[secret]"`,
		`mcpServers.a.env.credentials: "[secret]", now "[secret]"`,
		`mcpServers.gone: removed {"url":"https://x.test"}`,
		`mcpServers.new: added {"credentials":{"Authorization":"exchange","X-Api-Key":"header:X-User-Key","X-Other":"[secret]","X-Tenant":"claim:tenant"},"headers":{"Authorization":"[secret]","session":"[secret]"},"http_headers":{"session":"[secret]"},"session":"per_client","url":"https://y.test"}`,
		`mcpServers.tool.overrides.get.arguments.in: added {"auth":"[secret]"}`,
		`mcpServers.tool.overrides.get.arguments.limit: 5, now 6`,
		`mcpServers.tool.overrides.get.arguments.session: "[secret]", now "[secret]"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := Difference([]byte("{"), []byte("{}"), nil); got != nil {
		t.Errorf("got %q", got)
	}
}
