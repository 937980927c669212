package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
)

// These are the transports between the client and a gateway. Gateways reach their servers over stdio, except if peer.remote is
// set.
const (
	overStdio = "stdio"
	overHTTP  = "http"
)

// placed is a server in the form that the config of a gateway needs.
type placed struct {
	Name, Command string
	Args          []string
	URL           string // the URL of a server that is running already; see peer.remote
}

// deployment is what the func launch of a peer needs to know.
type deployment struct {
	bin       string // folder of the installed peer
	dir       string // home folder; at a cold start, the gateway has not run in it before
	port      int    // free port for HTTP
	transport string
	servers   []placed
}

// launch says how a gateway is started.
type launch struct {
	argv  []string
	env   []string
	files map[string]string // files to write into the home folder first
	url   string            // URL of the endpoint, for HTTP; $SERVER in it is replaced if each server has an endpoint of its own
}

// peer is one of the compared gateways, or the peer called direct: a client without a gateway.
type peer struct {
	name, version string
	registry      string // npm, PyPI, Go, or another source
	pkg           string
	about         string
	transports    []string // transports that clients can use to reach it
	single        bool     // a process of the peer has only one server behind it
	remote        bool     // the peer reaches servers only over HTTP
	launch        func(deployment) launch
	// call returns the tool and the arguments that a client has to use to call a tool of a server.
	call func(server, tool string, args json.RawMessage) (name string, arguments string)
	// before returns the calls by which a model learns the arguments of a tool. The model knows only the tool's server and name.
	before func(server, tool string) []step
	search *search // nil: the peer has no search
}

// step is a call of one of the gateway's own tools.
type step struct{ tool, args string }

// search says how a peer searches for tools.
type search struct {
	tool string
	// hits reads the found tools from an answer, best first, in a form that sameTool knows.
	hits func(answer string) []string
}

func asIs(_, tool string, args json.RawMessage) (string, string) { return tool, string(args) }

func nothing(string, string) []step { return nil }

var both = []string{overStdio, overHTTP}

// allPeers returns all peers, in the order of the report.
func allPeers() []*peer {
	return []*peer{direct(), mcpx(), compressor(), fastmcp(), fastmcpGateway(), proxyPy(), proxyNpm()}
}

// missing are gateways that people ask for and that could not be installed from the registries on 2026-11-23, with the reason.
var missing = [][2]string{
	{"1mcp (npm @1mcp/agent)", "the registry answers 404: not found, or no permission"},
	{"TBXark/mcp-proxy (Go)", "the module proxy has no version of it"},
	{"smart-mcp-proxy/mcpproxy-go (Go)", "the module proxy has no version of it"},
	{"voicetreelab/lazy-mcp (Go)", "the module proxy has no version of it"},
	{"docker/mcp-gateway (Go)", "the module proxy has no version of it"},
	{"stacklok/toolhive (Go)", "the module proxy has it; it wants a newer Go, and a container runtime for its servers"},
	{"IBM ContextForge (PyPI mcp-contextforge-gateway)", "installs, and does not start within its own checks of secrets without " +
		"a database and a login"},
	{"magg (PyPI)", "pip finds no version of it for Python 3.11"},
	{"mcp-hub (npm)", "its endpoint speaks the HTTP+SSE transport of 2024-11-05 only, for which this bench has no client"},
	{"mcporter (npm)", "no gateway: a command line, to which no MCP client connects"},
}

// direct is no gateway: the client has a session with each server.
func direct() *peer {
	return &peer{name: "direct", registry: "none", about: "the client connected to each server", transports: both, single: true,
		call: asIs, before: nothing,
		launch: func(d deployment) launch {
			s := d.servers[0]
			if d.transport == overStdio {
				return launch{argv: append([]string{s.Command}, s.Args...)}
			}
			address := fmt.Sprintf("127.0.0.1:%d", d.port)
			return launch{argv: append(append([]string{s.Command}, s.Args...), address), url: "http://" + address + "/mcp"}
		}}
}

// config returns a config with the key mcpServers, which most gateways can read. extra has further members of the config.
func config(servers []placed, extra map[string]any) string {
	all := map[string]any{}
	for _, s := range servers {
		if s.URL != "" {
			all[s.Name] = map[string]any{"url": s.URL}
			continue
		}
		all[s.Name] = map[string]any{"command": s.Command, "args": s.Args}
	}
	out := map[string]any{"mcpServers": all}
	for key, value := range extra {
		out[key] = value
	}
	text, _ := json.MarshalIndent(out, "", "  ") // all values are strings, lists of them, or numbers, so there is no error
	return string(text)
}

func mcpx() *peer {
	return &peer{name: "mcpx", registry: "this repository", about: "as built from this folder; each session a process of its own " +
		"(`--no-daemon`); long results are not cut (`result_token_limit: 0`)",
		transports: both,
		launch: func(d deployment) launch {
			l := launch{files: map[string]string{"config.json": config(d.servers, map[string]any{"result_token_limit": 0})}}
			l.argv = []string{filepath.Join(d.bin, "mcpx"), "serve", "--no-daemon", "--config", filepath.Join(d.dir, "config.json")}
			if d.transport == overHTTP {
				address := fmt.Sprintf("127.0.0.1:%d", d.port)
				l.argv, l.url = append(l.argv, "--http", address), "http://"+address+"/mcp"
			}
			return l
		},
		call: func(server, tool string, args json.RawMessage) (string, string) {
			return "exec", fmt.Sprintf(`{"server_name":%q,"tool_name":%q,"arguments":%s}`, server, tool, args)
		},
		before: func(server, tool string) []step {
			return []step{{"inspect", fmt.Sprintf(`{"server_name":%q,"tool_name":%q}`, server, tool)}}
		},
		search: &search{tool: "inspect", hits: mcpxHits},
	}
}

// mcpxHits reads the found tools from an answer of inspect: signatures below a line with the name of their server, and lines
// "SERVER: TOOL, TOOL" with less likely tools.
func mcpxHits(answer string) (found []string) {
	server := ""
	add := func(tool string) { // a tool may have several signatures
		if name := server + "." + tool; !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "// server_name: "); ok {
			server = name
		} else if m := mcpxSignature.FindStringSubmatch(line); m != nil {
			add(m[1])
		} else if m := mcpxNames.FindStringSubmatch(line); m != nil {
			server = m[1]
			for name := range strings.SplitSeq(m[2], ", ") {
				add(name)
			}
		}
	}
	return found
}

var (
	mcpxSignature = regexp.MustCompile(`^([\w-]+)\(`)
	mcpxNames     = regexp.MustCompile(`^([\w-]+): ([\w-]+(?:, [\w-]+)*)$`)
)

func fastmcp() *peer {
	return &peer{name: "fastmcp", version: "4.1.2", registry: "PyPI", pkg: "fastmcp", transports: both,
		about: "a proxy for all servers, with its search by BM25",
		launch: func(d deployment) launch {
			return launch{
				argv:  []string{filepath.Join(d.bin, "bin", "python"), filepath.Join(d.dir, "gateway.py"), d.transport, fmt.Sprint(d.port)},
				env:   []string{"FASTMCP_CHECK_FOR_UPDATES=off", "FASTMCP_LOG_LEVEL=WARNING"},
				files: map[string]string{"config.json": config(d.servers, nil), "gateway.py": fastmcpScript},
				url:   fmt.Sprintf("http://127.0.0.1:%d/mcp", d.port),
			}
		},
		call: func(server, tool string, args json.RawMessage) (string, string) {
			return "call_tool", fmt.Sprintf(`{"name":%q,"arguments":%s}`, server+"_"+tool, args)
		},
		before: func(_, tool string) []step { return []step{{"search_tools", query(tool)}} },
		search: &search{tool: "search_tools", hits: matches(`"name":\s*"([^"]+)"`)},
	}
}

const fastmcpScript = `import json, os, sys
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform

with open(os.path.join(os.path.dirname(__file__), "config.json")) as f:
    gateway = create_proxy(json.load(f), name="gateway")
gateway.add_transform(BM25SearchTransform())
if sys.argv[1] == "stdio":
    gateway.run(transport="stdio", show_banner=False)
else:
    gateway.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
`

func fastmcpGateway() *peer {
	return &peer{name: "fastmcp-gateway", version: "0.35.0", registry: "PyPI", pkg: "fastmcp-gateway", remote: true,
		about: "meta tools; reaches its servers over HTTP only", transports: []string{overHTTP},
		launch: func(d deployment) launch {
			servers := map[string]string{}
			for _, s := range d.servers {
				servers[s.Name] = s.URL
			}
			list, _ := json.Marshal(servers) // all values are strings, so there is no error
			return launch{
				argv: []string{filepath.Join(d.bin, "bin", "fastmcp-gateway")},
				env:  []string{"GATEWAY_UPSTREAMS=" + string(list), "GATEWAY_HOST=127.0.0.1", fmt.Sprintf("GATEWAY_PORT=%d", d.port)},
				url:  fmt.Sprintf("http://127.0.0.1:%d/mcp", d.port),
			}
		},
		call: func(server, tool string, args json.RawMessage) (string, string) {
			return "execute_tool", fmt.Sprintf(`{"tool_name":%q,"arguments":%s}`, gatewayName(server, tool), args)
		},
		before: func(server, tool string) []step {
			return []step{{"get_tool_schema", fmt.Sprintf(`{"tool_name":%q}`, gatewayName(server, tool))}}
		},
		search: &search{tool: "discover_tools", hits: matches(`(?m)^([\w.-]+)\(`)},
	}
}

// gatewayName returns the name of a tool behind fastmcp-gateway. If several servers have a tool with the same name, fastmcp-gateway
// puts the server's name before it. Among the tools of the bench, that happens only to the four tools named here.
func gatewayName(server, tool string) string {
	if slices.Contains([]string{"echo", "pid", "json_mb", "text_mb"}, tool) {
		return server + "_" + tool
	}
	return tool
}

func compressor() *peer {
	return &peer{name: "mcp-compressor", version: "0.38.2", registry: "PyPI", pkg: "mcp-compressor", transports: both,
		about: "two tools for each server, the list of tools in their description; its level medium, which is the default",
		launch: func(d deployment) launch {
			l := launch{
				argv:  []string{filepath.Join(d.bin, "bin", "mcp-compressor"), "--config", filepath.Join(d.dir, "config.json")},
				files: map[string]string{"config.json": config(d.servers, nil)},
			}
			if d.transport == overHTTP {
				l.argv = append(l.argv, "--transport", "streamable-http", "--port", fmt.Sprint(d.port))
				l.url = fmt.Sprintf("http://127.0.0.1:%d/mcp", d.port)
			}
			return l
		},
		call: func(server, tool string, args json.RawMessage) (string, string) {
			return server + "_invoke_tool", fmt.Sprintf(`{"tool_name":%q,"tool_input":%s}`, tool, args)
		},
		before: func(server, tool string) []step {
			return []step{{server + "_get_tool_schema", fmt.Sprintf(`{"tool_name":%q}`, tool)}}
		},
	}
}

func proxyPy() *peer {
	return &peer{name: "mcp-proxy (PyPI)", version: "0.13.0", registry: "PyPI", pkg: "mcp-proxy", transports: []string{overHTTP},
		about: "stdio servers over HTTP, an endpoint for each", call: asIs, before: nothing,
		launch: func(d deployment) launch {
			return launch{
				argv: []string{filepath.Join(d.bin, "bin", "mcp-proxy"), "--host", "127.0.0.1", "--port", fmt.Sprint(d.port),
					"--named-server-config", filepath.Join(d.dir, "config.json")},
				files: map[string]string{"config.json": config(d.servers, nil)},
				url:   fmt.Sprintf("http://127.0.0.1:%d/servers/$SERVER/mcp", d.port),
			}
		}}
}

func proxyNpm() *peer {
	return &peer{name: "mcp-proxy (npm)", version: "6.7.19", registry: "npm", pkg: "mcp-proxy", transports: []string{overHTTP},
		single: true,
		about:  "one stdio server over HTTP; a process for each server", call: asIs, before: nothing,
		launch: func(d deployment) launch {
			s := d.servers[0]
			return launch{
				argv: append([]string{"node", filepath.Join(d.bin, "node_modules", "mcp-proxy", "dist", "bin", "mcp-proxy.mjs"),
					"--host", "127.0.0.1", "--port", fmt.Sprint(d.port), "--server", "stream", "--", s.Command}, s.Args...),
				url: fmt.Sprintf("http://127.0.0.1:%d/mcp", d.port),
			}
		}}
}

// query returns the arguments of a search tool. All peers have the same.
func query(text string) string { return string(wire.Encode(map[string]string{"query": text})) }

func peerNames(peers []*peer) string {
	var names []string
	for _, p := range peers {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}
