package config

import (
	"math"
	"net/url"
	"slices"
	"strings"
)

// notPassedOn are headers that mcpx or the HTTP client sets itself, so that a caller cannot provide them. The same is true of
// all headers that begin with mcp-.
var notPassedOn = []string{
	"host", "content-type", "content-length", "accept", "connection", "transfer-encoding", "upgrade", "last-event-id",
}

// CallerCredential says where mcpx finds the value of a header that it sends to a server. The value comes from the caller's request
// to mcpx. Exactly one of the fields is set.
type CallerCredential struct {
	Header string // the name of a header of the caller's request to mcpx
	Claim  string // the name of a claim of the caller's verified token, which is a JWT
	// Exchange means that the server's authorization server exchanges the caller's token for another one (RFC 8693).
	Exchange bool
}

// credentials reads the key credentials, which says which headers of requests to the server get their values from the caller. A
// fault in it makes only this server unavailable.
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

// credential reads where the value of one header comes from. name is the name of the header in lower case.
func (r *serverReader) credential(name string, m *node) {
	from, isHeader := strings.CutPrefix(m.text, "header:")
	claim, isClaim := strings.CutPrefix(m.text, "claim:")
	switch {
	case m.kind == stringKind && isClaim && strings.TrimSpace(claim) != "":
		r.s.CallerCredentials[m.key] = CallerCredential{Claim: claim}
	case m.kind == stringKind && m.text == "exchange" && name == "authorization":
		r.s.CallerCredentials[m.key] = CallerCredential{Exchange: true}
	case m.kind == stringKind && m.text == "exchange":
		r.fail(m, "exchange is only for the header Authorization")
	case m.kind != stringKind || !isHeader || !headerKey.MatchString(from):
		r.fail(m, `must be "header:NAME", a header of the caller's requests to mcpx, "claim:NAME", a claim of the caller's token, or "exchange"`)
	case strings.EqualFold(from, "Authorization"):
		r.fail(m, `the header Authorization of a request is for mcpx itself, and MCP forbids passing it on; let callers send another header, or use "exchange"`)
	default:
		r.s.CallerCredentials[m.key] = CallerCredential{Header: from}
	}
}

func (r *serverReader) checkCredentials() {
	for header, from := range r.s.CallerCredentials {
		if from.Exchange && (r.s.OAuth.Off || r.s.OAuth.ClientID == "") {
			r.fail(r.credentialsAt.child(header),
				"needs oauth with the client_id of a client that may exchange tokens, and its client_secret or key")
		}
	}
	if r.credentialsAt != nil && (r.s.Type == Stdio || r.s.Type == WebSocket && r.s.URL == "") {
		r.fail(r.credentialsAt, "is for remote servers with a url; set the credentials of a local command in env")
	}
}

// oauth reads the key oauth. If the value is an object, it may have mcpx's own keys, or the keys in files of Claude Code and Gemini
// CLI.
func (r *serverReader) oauth(n *node) {
	if n.kind == boolKind {
		r.s.OAuth.Off = n.text == "false"
		return
	}
	if !r.l.expectKind(objectKind, n) {
		return
	}
	enabled := true
	r.l.members(n, r.oauthObject(&enabled), nil)
	r.s.OAuth.Off = !enabled
	r.oauthAt = n
}

func (r *serverReader) oauthObject(enabled *bool) object {
	o := &r.s.OAuth
	secret := func(into *string) value {
		return r.string(into).andThen(func(*node) { r.secret(*into, true) })
	}
	id, password, port := r.string(&o.ClientID), secret(&o.ClientSecret), whole(r.l, &o.RedirectPort, 1, math.MaxUint16)
	return object{name: "oauth", keys: []key{
		{"client_id", id, "the ID of an application that you registered at the authorization server, with the redirect URI `http://127.0.0.1:PORT/callback`"},
		{"clientId", id, ""},
		{"client_secret", password, "the secret of that application"},
		{"clientSecret", password, ""},
		{"redirect_port", port, "PORT, if the authorization server needs a fixed one"},
		{"callbackPort", port, ""},
		{"client_metadata_url", r.string(&o.ClientMetadataURL), "the https URL of a document about the client, for authorization servers that support client ID metadata documents"},
		{"scopes", value{schema: texts, read: func(n *node) {
			if scopes, ok := r.l.strings(n); ok {
				o.Scopes = scopes
			}
		}}, "the scopes to ask for, in place of the server's choice"},
		{"grant", oneOf(r.l, &o.Grant, "authorization_code", "client_credentials", "private_key_jwt"), "`client_credentials`, and `private_key_jwt` with `key`, need no user to log in"},
		{"key", secret(&o.Key), "what `private_key_jwt` signs with: PEM, or the name of a file"},
		{"issuer", r.string(&o.Issuer), "the authorization server, in place of the one that the server names. With it, `client_secret` goes to no other one. Without it, a server may name any one at the first login, and at each start of mcpx if no user logs in"},
		{"audience", r.string(&o.Audience), "sent in requests for tokens, beside the resource, for authorization servers that need it"},
		{"allow_private", r.l.boolean(&o.AllowPrivate), "the login may lead to addresses that are not public"},
		{"per", oneOf(r.l, &r.per, "shared", "principal"), "`principal`: each principal logs in for itself; the first call answers with a link. Needs `auth.resource` ([Logins of single people](docs/logins.md#logins-of-single-people))"},
		{"enabled", r.l.boolean(enabled), "false turns the login off"},
	}}
}

// checkOAuth adds faults for keys of oauth that are invalid, missing, or contradict each other. It also sets PerPrincipal.
func (r *serverReader) checkOAuth() {
	o := r.s.OAuth
	if r.oauthAt == nil || o.Off {
		return
	}
	fail := func(key, text string) { r.fail(r.oauthAt.child(key), "%s", text) }
	if r.s.Type == Stdio {
		r.fail(r.oauthAt, "is for remote servers; set the credentials of a local command in env")
		return
	}
	document, err := url.Parse(o.ClientMetadataURL)
	if o.ClientMetadataURL != "" && (err != nil || document.Scheme != "https" || strings.Trim(document.Path, "/") == "") {
		fail("client_metadata_url", "must be the https:// URL of a document")
	}
	if u, err := url.Parse(o.Issuer); o.Issuer != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		fail("issuer", "must be the https:// URL of an authorization server")
	}
	if o.Grant == "client_credentials" && (o.ClientID == "" || o.ClientSecret == "") {
		fail("grant", "client_credentials needs client_id and client_secret")
	}
	if o.Grant == "private_key_jwt" && (o.ClientID == "" || o.Key == "") {
		fail("grant", "private_key_jwt needs client_id and key")
	}
	if r.s.OAuth.PerPrincipal = r.per == "principal"; r.s.OAuth.PerPrincipal {
		r.checkPerPrincipal(fail)
	}
	if o.ClientSecret != "" && o.ClientID == "" {
		fail("client_secret", "needs client_id")
	}
}

// checkPerPrincipal adds faults for keys that contradict "per": "principal" in oauth, by which each principal logs in to the
// server. It also changes the key session from shared, which is the default, to per_principal, so that each principal gets a
// session of its own with the server.
func (r *serverReader) checkPerPrincipal(fail func(key, text string)) {
	switch {
	case r.s.OAuth.Grant != "" && r.s.OAuth.Grant != "authorization_code":
		fail("per", "principal needs people who log in: the grant authorization_code")
	case len(r.s.CallerCredentials) > 0:
		fail("per", "principal is there beside credentials; each says for itself as whom a caller calls")
	case slices.ContainsFunc(sortedKeys(r.s.Headers), func(name string) bool { return strings.EqualFold(name, "Authorization") }):
		fail("per", "principal is there beside the header Authorization, which all principals would send")
	case r.s.Session == "shared": // the default
		r.s.Session = "per_principal"
	}
}

// urls reads the URLs of several instances of one server.
func (r *serverReader) urls(n *node) {
	list, ok := r.l.strings(n)
	if !ok {
		return
	}
	if len(list) == 0 {
		r.fail(n, "must have an address")
		return
	}
	r.urlsAt = n
	for i := range list {
		list[i] = r.expand(n.items[i])
		r.urlSecrets(list[i])
		if slices.Contains(list[:i], list[i]) {
			r.fail(n.items[i], "is there twice")
		}
	}
	r.s.URL, r.s.URLs = list[0], list
	if r.urlAt == nil {
		r.urlAt, r.httpURL = n.items[0], false
	}
}

// checkInstances checks the URLs of all instances except the first one, which is checked as the field URL. If there is only one
// URL, or the server is a local command, checkInstances sets URLs to nil. It adds a fault if the server has the key url, too.
func (r *serverReader) checkInstances() {
	switch {
	case r.urlsAt == nil:
		return
	case r.urlAt != r.urlsAt.items[0]:
		r.fail(r.urlsAt, "is there beside url; put all addresses into urls")
	case r.s.Type == Stdio || len(r.s.URLs) == 1:
		r.s.URLs = nil
	}
	for i := 1; i < len(r.s.URLs); i++ {
		r.checkURL(r.urlsAt.items[i], r.s.URLs[i])
	}
}
