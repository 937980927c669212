package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestRestricting: a key that resembles one by which other clients turn a server off, or hide its tools, is a fault, because
// without it mcpx would allow more than the user wants. Other unknown keys that resemble keys of other clients are ignored with a
// warning. Notes for human readers are ignored without a warning.
func TestRestricting(t *testing.T) {
	for _, test := range [][2]string{
		{`"disable": true`, `disable: unknown key "disable", did you mean "disabled"?`},
		{`"exclude_tools": ["x"]`, `exclude_tools: unknown key "exclude_tools", did you mean "excludeTools"?`},
		{`"includeTool": ["x"]`, `includeTool: unknown key "includeTool", did you mean "includeTools"?`},
		{`"enabledTools": ["x"]`, `enabledTools: unknown key "enabledTools", did you mean "enabled_tools"?`},
		{`"disabled-tools": ["x"]`, `disabled-tools: unknown key "disabled-tools", did you mean "disabled_tools"?`},
		{`"exposedTools": ["x"]`, `exposedTools: unknown key "exposedTools", did you mean "exposed_tools"?`},
		{`"sandbox_enabled": true`, `sandbox_enabled: unknown key "sandbox_enabled", did you mean "sandboxEnabled"?`},
		{`"enable": false`, `enable: unknown key "enable", did you mean "enabled"?`},
	} {
		want := "c.json: mcpServers.a." + test[1]
		if _, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {"a": {"command": "x", %s}}}`, test[0]), Options{}); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", test[0], err, want)
		}
	}
	c, err := Parse("c.json", []byte(`{"mcpServers": {"a": {"command": "x", "timeoutMs": 5, "http_url": "y", "sources": [],
		"_disabled": true, "//excludeTools": ["x"], "#sandbox": {}}}}`), Options{})
	if err != nil || len(c.Warnings) != 1 || strings.Contains(c.Warnings[0], "disabled") {
		t.Errorf("%v, %+v", err, c)
	}
}
