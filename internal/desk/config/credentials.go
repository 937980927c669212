package config

import (
	"slices"
	"strings"
)

// notPassedOn are headers that mcpx or HTTP sets, or that are not a server's business.
var notPassedOn = []string{
	"host", "content-type", "content-length", "accept", "connection", "transfer-encoding", "upgrade", "last-event-id",
}

// CallerCredential is where a header of requests to a server comes from: one of these.
type CallerCredential struct {
	Header string // of the caller's request to mcpx
	Claim  string // of the caller's verified token, a JWT
	// Exchange: the authorization server of the server gives a token for the caller's.
	Exchange bool
}

// credentials reads which headers of requests to the server come from its caller. All its
// faults are of this server alone.
func (r *serverReader) credentials(n *node) {
	switch {
	case n.kind == objectKind && len(n.members) > 0:
	case n.off():
		return
	default:
		r.fail(n, `must be an object, such as {"X-Api-Key": "header:X-User-Key"}`)
		return
	}
	r.credentialsAt = n
	r.s.CallerCredentials = make(map[string]CallerCredential)
	seen := make(map[string]bool)
	for m := range r.l.named(n) {
		name := strings.ToLower(m.key)
		switch {
		case !headerKey.MatchString(m.key) || slices.Contains(notPassedOn, name) || strings.HasPrefix(name, "mcp-"):
			r.fail(m, "is not the name of a header for credentials")
		case seen[name]:
			r.fail(m, "is there twice; names of headers ignore case")
		default:
			r.credential(name, m)
		}
		seen[name] = true
	}
}

// credential reads where one header comes from; name is its name in small letters.
func (r *serverReader) credential(name string, m *node) {
	from, isHeader := strings.CutPrefix(m.text, "header:")
	claim, isClaim := strings.CutPrefix(m.text, "claim:")
	switch {
	case m.kind == stringKind && isClaim && strings.TrimSpace(claim) != "":
		r.s.CallerCredentials[m.key] = CallerCredential{Claim: claim}
	case m.kind == stringKind && m.text == "exchange" && name == "authorization":
		r.s.CallerCredentials[m.key] = CallerCredential{Exchange: true}
	case m.kind == stringKind && m.text == "exchange":
		r.fail(m, "an exchanged token is for the header Authorization")
	case m.kind != stringKind || !isHeader || !headerKey.MatchString(from):
		r.fail(m, `must be "header:NAME", a header of the caller's requests to mcpx, "claim:NAME", a claim of the caller's token, or "exchange"`)
	case strings.EqualFold(from, "Authorization"):
		r.fail(m, `Authorization of a request is for mcpx itself, and MCP forbids to pass it on; let callers send another header, or take "exchange"`)
	default:
		r.s.CallerCredentials[m.key] = CallerCredential{Header: from}
	}
}

// checkCredentials notes credentials that cannot be sent.
func (r *serverReader) checkCredentials() {
	for header, from := range r.s.CallerCredentials {
		if from.Exchange && (r.s.OAuth.Off || r.s.OAuth.ClientID == "") {
			r.fail(r.credentialsAt.child(header),
				"needs oauth with the client_id of a client that may exchange tokens, and its client_secret or key")
		}
	}
	if r.credentialsAt != nil && (r.s.Type == Stdio || r.s.Type == WebSocket && r.s.URL == "") {
		r.fail(r.credentialsAt, "is for remote servers with a url; a command gets its credentials in env")
	}
}
