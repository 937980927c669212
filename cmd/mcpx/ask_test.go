package main

import "testing"

// TestCached: a program that npx or uvx runs from its cache is recognised, and an installed one is not.
func TestCached(t *testing.T) {
	for path, want := range map[string]string{
		"/home/a/.npm/_npx/5f0/node_modules/mcpx-gateway-linux-x64/bin/mcpx":      "npm install --global mcpx-gateway",
		"C:/Users/a/AppData/Local/npm-cache/_npx/1/node_modules/x/bin/mcpx.exe":   "npm install --global mcpx-gateway",
		"/home/a/.cache/uv/archive-v0/Xy/bin/mcpx":                                "uv tool install mcpx-gateway",
		"/usr/lib/node_modules/mcpx-gateway/node_modules/mcpx-gateway-x/bin/mcpx": "",
		"/home/a/.local/share/uv/tools/mcpx-gateway/bin/mcpx":                     "",
		"/home/a/go/bin/mcpx": "",
	} {
		if got := cached(path); got != want {
			t.Errorf("%s: got %q", path, got)
		}
	}
}
