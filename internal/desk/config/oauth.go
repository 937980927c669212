package config

import (
	"math"
	"net/url"
	"strings"
)

// OAuth says how mcpx logs in to a server. All may be empty: most servers need nothing.
type OAuth struct {
	// Off: mcpx puts no token on requests to this server.
	Off bool
	// Grant is authorization_code, client_credentials or private_key_jwt.
	Grant string
	// ClientID and ClientSecret are of a client that was registered beforehand.
	ClientID, ClientSecret string
	// ClientMetadataURL is where the document of a client ID lies, over https.
	ClientMetadataURL string
	Scopes            []string
	// Issuer is the authorization server, in place of the one that the server names.
	Issuer string
	// Audience goes into requests for tokens, beside the resource.
	Audience string
	// RedirectPort is where the browser comes back to on loopback; 0 is any.
	RedirectPort int
	// Key is what private_key_jwt signs with: PEM, or the path of a file.
	Key string
	// AllowPrivate: the login may lead to addresses that are not public.
	AllowPrivate bool
}

// oauth reads our object, or that of Claude Code and Gemini CLI.
func (r *serverReader) oauth(path string, n *node) {
	o := &r.s.OAuth
	if n.kind == boolKind {
		o.Off = n.text == "false"
		return
	}
	if !r.l.is(objectKind, path, n) {
		return
	}
	secret := func(into *string) reader {
		return func(path string, n *node) {
			r.string(into)(path, n)
			r.secret(*into, true)
		}
	}
	enabled := true
	id, key, port := r.string(&o.ClientID), secret(&o.ClientSecret), whole(r.l, &o.RedirectPort, 1, math.MaxUint16)
	r.l.members(path, n, map[string]reader{
		"client_id": id, "clientId": id,
		"client_secret": key, "clientSecret": key,
		"client_metadata_url": r.string(&o.ClientMetadataURL),
		"redirect_port":       port, "callbackPort": port,
		"issuer":        r.string(&o.Issuer),
		"audience":      r.string(&o.Audience),
		"grant":         r.l.oneOf(&o.Grant, "authorization_code", "client_credentials", "private_key_jwt"),
		"key":           secret(&o.Key),
		"allow_private": r.l.boolean(&o.AllowPrivate),
		"enabled":       r.l.boolean(&enabled),
		"scopes": func(path string, n *node) {
			if scopes, ok := r.l.strings(path, n); ok {
				o.Scopes = scopes
			}
		},
	}, nil)
	o.Off = !enabled
	r.oauthAt = place{path, n.offset}
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
