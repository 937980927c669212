package config

import (
	"slices"
	"strings"
)

// notPassedOn are headers that mcpx or HTTP sets, or that are not a server's business.
var notPassedOn = []string{"host", "content-type", "content-length", "accept", "connection", "transfer-encoding", "upgrade", "last-event-id"}

// credentials reads which headers of requests to the server come from its caller. All its
// faults are of this server alone.
func (r *serverReader) credentials(path string, n *node) {
	switch {
	case n.kind == objectKind && len(n.members) > 0:
	case n.off():
		return
	default:
		r.fail(path, n.offset, `must be an object, such as {"X-Api-Key": "header:X-User-Key"}`)
		return
	}
	r.credentialsAt = place{path, n.offset}
	r.s.CallerHeaders = make(map[string]string)
	seen := make(map[string]bool)
	for _, m := range n.members {
		at, name := join(path, m.key), strings.ToLower(m.key)
		if m.value.kind == nullKind || isComment(m.key) {
			continue
		}
		from, isHeader := strings.CutPrefix(m.value.text, "header:")
		switch {
		case !headerKey.MatchString(m.key) || slices.Contains(notPassedOn, name) || strings.HasPrefix(name, "mcp-"):
			r.fail(at, m.offset, "is not the name of a header for credentials")
		case seen[name]:
			r.fail(at, m.offset, "is there twice; names of headers ignore case")
		case m.value.kind == stringKind && strings.HasPrefix(m.value.text, "claim:"):
			r.fail(at, m.value.offset, "claims of callers are not built yet; take a header of their requests, header:NAME")
		case m.value.kind != stringKind || !isHeader || !headerKey.MatchString(from):
			r.fail(at, m.value.offset, `must be "header:NAME", a header of the caller's requests to mcpx`)
		case strings.EqualFold(from, "Authorization"):
			r.fail(at, m.value.offset, "Authorization of a request is for mcpx itself, and MCP forbids to pass it on; let callers send another header")
		default:
			r.s.CallerHeaders[m.key] = from
		}
		seen[name] = true
	}
}

// checkCredentials notes credentials that cannot be sent.
func (r *serverReader) checkCredentials() {
	if r.credentialsAt.path != "" && (r.s.Type == Stdio || r.s.Type == WebSocket && r.s.URL == "") {
		r.fail(r.credentialsAt.path, r.credentialsAt.offset, "is for remote servers with a url; a command gets its credentials in env")
	}
}
