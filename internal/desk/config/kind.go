package config

import (
	"net/url"
	"slices"
	"strings"

	"mcpx/internal/base/sanitize"
)

// kinds maps the names that config files use for transports, in lower case and without separators, to values of
// [Server.Type]. "" means that mcpx finds the type as if the file had none.
var kinds = map[string]string{
	"stdio":          Stdio,
	"local":          Stdio,
	"http":           HTTP,
	"streamablehttp": HTTP,
	"sse":            SSE,
	"websocket":      WebSocket,
	"ws":             WebSocket,
	"remote":         "",
}

const kindSchema = `{"anyOf": [{"enum": ["stdio", "http", "sse", "websocket"]}, {"type": "string"}]}`

func (r *serverReader) kind(n *node) {
	if !r.l.expectKind(stringKind, n) {
		return
	}
	known, ok := kinds[sanitize.Bare(n.text)]
	r.s.Type, r.unknownType = known, nil
	if !ok {
		r.unknownType = n
	}
}

// infer determines the type of the server, if the file does not set it. Then it removes the values of keys that are for other
// types, and checks that the server has the keys that its type needs.
func (r *serverReader) infer(n *node) {
	hasCommand, hasURL := r.commandAt != nil, r.urlAt != nil
	if hasCommand && hasURL { // some programs write both, and leave one empty
		hasCommand, hasURL = !r.commandAt.blank(), !r.urlAt.blank()
	}
	switch {
	case r.unknownType != nil:
		r.fail(r.unknownType, "unknown type %s, must be stdio, http, sse or websocket", quote(r.unknownType.text))
		return
	case r.s.Type != "":
	case hasCommand && hasURL:
		r.fail(n, "has both command and url; set type to choose one")
		return
	case hasURL && r.httpURL:
		r.s.Type = HTTP
	case hasURL:
		r.s.Type = kindOfURL(r.s.URL)
	case hasCommand:
		r.s.Type = Stdio
	default:
		r.fail(n, "needs a command or a url")
		return
	}
	if r.s.Type == Stdio {
		r.s.URL, r.s.Headers = "", nil
		r.need("command", r.commandAt, r.s.Command, n)
		return
	}
	r.s.Command, r.s.Args, r.commandArgs, r.s.Env, r.s.Cwd = "", nil, nil, nil, ""
	// A WebSocket server without a URL has a fault, too. Package app adds this fault, because its text must explain that a server
	// which dials in (connects to mcpx itself) has no entry in the file.
	if (r.s.Type != WebSocket || hasURL) && r.need("url", r.urlAt, r.s.URL, n) {
		r.checkURL(r.urlAt, r.s.URL)
	}
}

// blank reports whether the value is a string without text.
func (n *node) blank() bool { return n.kind == stringKind && strings.TrimSpace(n.text) == "" }

// kindOfURL infers the type from the URL. The paths of servers with the older transport HTTP+SSE end in /sse.
func kindOfURL(text string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(text), ":")
	if scheme == "ws" || scheme == "wss" {
		return WebSocket
	}
	if u, err := url.Parse(text); err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse") {
		return SSE
	}
	return HTTP
}

// need reports whether the server n has a key that it needs, with a value that is not empty and has no fault. It adds a fault
// if the key is missing or empty. valueNode is the node of the key's value, or nil if the server does not have the key.
func (r *serverReader) need(key string, valueNode *node, value string, n *node) bool {
	switch {
	case valueNode == nil:
		r.fail(n.child(key), "is missing, type %s needs it", r.s.Type)
		return false
	case strings.TrimSpace(value) == "" && !r.failedAt(valueNode):
		r.fail(valueNode, "must not be empty")
	}
	return !r.failedAt(valueNode)
}

// failedAt reports whether the server already has a fault at the path of n. Faults of structure do not count.
func (r *serverReader) failedAt(n *node) bool {
	return slices.ContainsFunc(r.faults, func(f Fault) bool { return f.Path == n.path() })
}

// checkURL checks a URL in which references are expanded. Its faults do not quote the URL, because it may contain a
// secret from a variable.
func (r *serverReader) checkURL(valueNode *node, text string) {
	schemes := []string{"http://", "https://"}
	if r.s.Type == WebSocket {
		schemes = []string{"ws://", "wss://"}
	}
	lower := strings.ToLower(text)
	if !strings.HasPrefix(lower, schemes[0]) && !strings.HasPrefix(lower, schemes[1]) {
		r.fail(valueNode, "must start with %s or %s", schemes[0], schemes[1])
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		r.fail(valueNode, "is not a valid URL")
	case u.Hostname() == "":
		r.fail(valueNode, "has no host")
	}
}
