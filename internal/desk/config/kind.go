package config

import (
	"net/url"
	"slices"
	"strings"

	"mcpx/internal/base/sanitize"
)

// kinds are the names of transports that are in use, without separators and in
// lower case. The empty one is "some URL": which kind, the URL tells.
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

// place is where a key of a server stands; the zero place: it is not there.
type place struct {
	path   string
	offset int
}

// kind reads the type of the connection.
func (r *serverReader) kind(path string, n *node) {
	if !r.l.is(stringKind, path, n) {
		return
	}
	known, ok := kinds[sanitize.Bare(n.text)]
	r.s.Type, r.unknownType = known, place{}
	if !ok {
		r.unknownType = place{path, n.offset}
		r.typeText = n.text
	}
}

// infer finds the type where the entry does not say it, and checks that the
// entry has what its type needs.
func (r *serverReader) infer(n *node) {
	hasCommand, hasURL := r.commandAt.path != "", r.urlAt.path != ""
	switch {
	case r.unknownType.path != "":
		r.fail(r.unknownType.path, r.unknownType.offset, "unknown type %s, must be stdio, http or sse", quote(r.typeText))
		return
	case r.s.Type != "":
	case hasCommand && hasURL:
		r.fail(r.path, n.offset, "has a command and a url, say with type which one counts")
		return
	case hasURL && r.httpURL:
		r.s.Type = HTTP
	case hasURL:
		r.s.Type = kindOfURL(r.s.URL)
	case hasCommand:
		r.s.Type = Stdio
	default:
		r.fail(r.path, n.offset, "needs a command or a url")
		return
	}
	if r.s.Type == Stdio {
		r.s.URL, r.s.Headers = "", nil
		r.need("command", r.commandAt, r.s.Command, n)
		return
	}
	r.s.Command, r.s.Args, r.commandArgs, r.s.Env, r.s.Cwd = "", nil, nil, nil, ""
	// A WebSocket server without a URL dials in.
	if (r.s.Type != WebSocket || hasURL) && r.need("url", r.urlAt, r.s.URL, n) {
		r.checkURL(r.urlAt, r.s.URL)
	}
}

// kindOfURL tells the kind of a server from its URL alone: the older SSE servers
// are found under a path that ends so.
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

// need notes a fault unless the key is there and not empty; true: all is well.
func (r *serverReader) need(key string, at place, value string, n *node) bool {
	switch {
	case at.path == "":
		r.fail(join(r.path, key), n.offset, "is missing, type %s needs it", r.s.Type)
		return false
	case strings.TrimSpace(value) == "" && !r.failedAt(at.path):
		r.fail(at.path, at.offset, "must not be empty")
	}
	return !r.failedAt(at.path)
}

// failedAt reports whether a fault of this place is noted already.
func (r *serverReader) failedAt(path string) bool {
	return slices.ContainsFunc(r.faults, func(f Fault) bool { return f.Path == path })
}

// checkURL looks at a URL after expansion. Its faults do not show it, since a variable may
// be in it.
func (r *serverReader) checkURL(at place, text string) {
	fail := func(text string) { r.fail(at.path, at.offset, "%s", text) }
	schemes := []string{"http://", "https://"}
	if r.s.Type == WebSocket {
		schemes = []string{"ws://", "wss://"}
	}
	lower := strings.ToLower(text)
	if !strings.HasPrefix(lower, schemes[0]) && !strings.HasPrefix(lower, schemes[1]) {
		fail("must start with " + schemes[0] + " or " + schemes[1])
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		fail("is not a valid URL")
	case u.Hostname() == "":
		fail("has no host")
	}
}
