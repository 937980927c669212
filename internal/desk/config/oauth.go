package config

import (
	"math"
	"net/url"
	"strings"
)

// oauth reads our object, or that of Claude Code and Gemini CLI.
func (r *serverReader) oauth(path string, n *node) {
	if n.kind == boolKind {
		r.s.OAuth.Off = n.text == "false"
		return
	}
	if !r.l.is(objectKind, path, n) {
		return
	}
	enabled := true
	r.l.members(path, n, r.oauthObject(&enabled), nil)
	r.s.OAuth.Off = !enabled
	r.oauthAt = place{path, n.offset}
}

func (r *serverReader) oauthObject(enabled *bool) object {
	o := &r.s.OAuth
	secret := func(into *string) value {
		return r.string(into).then(func(string, *node) { r.secret(*into, true) })
	}
	id, password, port := r.string(&o.ClientID), secret(&o.ClientSecret), whole(r.l, &o.RedirectPort, 1, math.MaxUint16)
	return object{name: "oauth", keys: []key{
		{"client_id", id, "of an application that you registered there; it comes back to `http://127.0.0.1:PORT/callback`"},
		{"clientId", id, ""},
		{"client_secret", password, "the secret of that application"},
		{"clientSecret", password, ""},
		{"redirect_port", port, "that port, where the server must know it"},
		{"callbackPort", port, ""},
		{"client_metadata_url", r.string(&o.ClientMetadataURL), "an https document that says who the client is, for servers that read such"},
		{"scopes", value{schema: texts, read: func(path string, n *node) {
			if scopes, ok := r.l.strings(path, n); ok {
				o.Scopes = scopes
			}
		}}, "in place of those that the server asks for"},
		{"grant", oneOf(r.l, &o.Grant, "authorization_code", "client_credentials", "private_key_jwt"), "`client_credentials`, and `private_key_jwt` with `key`, need no person"},
		{"key", secret(&o.Key), "what `private_key_jwt` signs with: PEM, or the name of a file"},
		{"issuer", r.string(&o.Issuer), "the authorization server, in place of the one that the server names"},
		{"audience", r.string(&o.Audience), "goes into the requests for tokens, beside the resource, for authorization servers that want one"},
		{"allow_private", r.l.boolean(&o.AllowPrivate), "the login may lead to addresses that are not public"},
		{"enabled", r.l.boolean(enabled), "false turns the login off"},
	}}
}

// checkOAuth notes what an oauth object lacks, or has too much.
func (r *serverReader) checkOAuth() {
	o := r.s.OAuth
	if r.oauthAt.path == "" || o.Off {
		return
	}
	fail := func(key, text string) { r.fail(join(r.oauthAt.path, key), r.oauthAt.offset, "%s", text) }
	if r.s.Type == Stdio {
		r.fail(r.oauthAt.path, r.oauthAt.offset, "is for remote servers; a command gets its credentials in env")
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
	if o.ClientSecret != "" && o.ClientID == "" {
		fail("client_secret", "needs client_id")
	}
}
