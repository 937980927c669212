package config

import (
	"fmt"
	"testing"
)

// TestSelf: an entry that starts mcpx to serve is skipped with a warning, also if a launcher runs its package, and if a string has the
// whole command line. Entries that start other commands of mcpx, or other programs, stay.
func TestSelf(t *testing.T) {
	for entry, self := range map[string]bool{
		`"command": "mcpx"`:                                                                            true,
		`"command": "mcpx --config /x"`:                                                                true,
		`"command": ["mcpx", "serve"]`:                                                                 true,
		`"command": ["mcpx", "demo"]`:                                                                  false,
		`"command": "npx", "args": ["-y", "mcpx-gateway"]`:                                             true,
		`"command": "npx", "args": ["-y", "mcpx-gateway@0.2.0", "--config", "/x"]`:                     true,
		`"command": "npx", "args": ["--yes", "--package=mcpx-gateway", "mcpx", "serve"]`:               true,
		`"command": "npx -y mcpx-gateway", "args": ["--view", "tools"]`:                                true,
		`"command": ["npx", "-y", "mcpx-gateway"]`:                                                     true,
		`"command": "cmd", "args": ["/c", "npx.cmd", "-y", "mcpx-gateway@latest"]`:                     true,
		`"command": "cmd.exe", "args": ["/C", "mcpx", "--config", "x"]`:                                true,
		`"command": "uvx", "args": ["--from", "mcpx-gateway==0.2.0", "mcpx"]`:                          true,
		`"command": "/usr/bin/uv", "args": ["tool", "run", "--from", "mcpx-gateway", "mcpx", "serve"]`: true,
		`"command": "pipx", "args": ["run", "--spec", "mcpx-gateway", "mcpx"]`:                         true,
		`"command": "pnpm", "args": ["dlx", "mcpx-gateway"]`:                                           true,
		`"command": "bunx", "args": ["--bun", "mcpx-gateway"]`:                                         true,
		`"command": "uvx", "args": ["--python", "3.12", "mcpx-gateway"]`:                               true,
		`"command": "uv", "args": ["tool", "run", "-p", "3.12", "--from", "mcpx-gateway", "mcpx"]`:     true,
		`"command": "pipx", "args": ["run", "--python", "3.12", "mcpx-gateway", "serve"]`:              true,
		`"command": "npx", "args": ["--registry", "https://r.example.com", "-y", "mcpx-gateway"]`:      true,
		`"command": "npx", "args": ["-y", "--package", "mcpx-gateway", "--", "mcpx"]`:                  true,
		`"command": "uvx", "args": ["--python", "3.12", "server-git", "mcpx-gateway"]`:                 false,
		`"command": "npx", "args": ["-y", "mcpx-gateway", "dial", "wss://h/dial/n"]`:                   false,
		`"command": "npx", "args": ["--package=mcpx-gateway", "--", "mcpx", "dial", "wss://h/dial/n"]`: false,
		`"command": "npx", "args": ["--package=mcpx-gateway", "-y", "--", "mcpx", "demo"]`:             false,
		`"command": "npx", "args": ["--package=mcpx-gateway", "-y", "--", "mcpx", "--config", "/x"]`:   true,
		`"command": "uvx", "args": ["--from", "mcpx-gateway", "mcpx", "demo"]`:                         false,
		`"command": "uvx", "args": ["mcpx"]`:                                                           false, // somebody else's package
		`"command": "npx", "args": ["-y", "server-git", "mcpx-gateway"]`:                               false,
		`"command": "npx", "args": ["-y", "mcpx-gateway-tools"]`:                                       false,
		`"command": "node", "args": ["mcpx-gateway"]`:                                                  false,
		`"command": "npx"`: false,
	} {
		c, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {"gateway": {%s}}}`, entry), Options{})
		if err != nil || len(c.Servers) == 0 != self {
			t.Errorf("%s: %v, %+v", entry, err, c)
		}
	}
}
