package config

import (
	"path"
	"strings"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
)

// leastAuthServerKey is the length of the shortest auth.front.key, in bytes.
const leastAuthServerKey = 32

// authServer reads the authorization server.
func (l *loader) authServer(path string, n *node) {
	if n.off() || !l.is(objectKind, path, n) {
		return
	}
	f := &conf.AuthServer{}
	l.authServerAt = place{path, n.offset}
	l.members(path, n, l.authServerObject(f), nil)
	if f.Issuer == "" || f.ClientID == "" && len(l.faults) == 0 {
		l.fault(path, n.offset, "needs issuer and client_id, by which the issuer knows mcpx")
	}
	l.authorization().Front = f
}

func (l *loader) authServerObject(f *conf.AuthServer) object {
	documents := true
	return object{name: "front", strict: true, keys: []key{
		enabled,
		{"issuer", l.authServerIssuer(&f.Issuer), "the OpenID issuer that people log in at, exactly as its metadata has it"},
		{"client_id", value{schema: text, read: func(path string, n *node) { f.ClientID, _ = l.expanded(path, n) }}, "what the issuer knows mcpx by"},
		{"client_secret", l.secret(&f.ClientSecret), "the secret of that; may be `${…}`"},
		{"scopes", l.names(&f.Scopes), "that the issuer is asked for; without it `openid`, `profile` and `email`"},
		{"groups_claim", l.str(&f.GroupsClaim), "the claim of the ID token, or of the userinfo endpoint, with the groups of a person"},
		{"allow", l.nested(func() object { return l.allowObject(&f.Allow) }).then(func(path string, n *node) {
			if n.kind == objectKind && f.Allow.Emails == nil && f.Allow.Groups == nil && f.Allow.Subjects == nil {
				l.fault(path, n.offset, "needs emails, groups or subjects")
			}
		}), "who may log in: who fits one of `emails` (globs), `groups`, `subjects`; without it everybody whom the issuer lets in"},
		{"redirects", l.redirects(&f.Redirects), redirectsHelp},
		{"documents", l.boolean(&documents).then(func(string, *node) { f.NoDocuments = !documents }), "whether a client may be the URL of a document about itself. Turn it off where mcpx cannot reach claude.ai and chatgpt.com: clients register then"},
		{"key", l.secret(&f.Key).then(func(path string, n *node) {
			if f.Key != "" && len(f.Key) < leastAuthServerKey {
				l.fault(path, n.offset, "must have at least %d characters: who guesses it can forge tokens", leastAuthServerKey)
			}
		}), "at least 32 characters: what mcpx gives out is sealed with it. Replicas need the same, and another key ends all logins. Without it mcpx makes one at the first start, in the user's config folder"},
		{"allow_private", l.boolean(&f.AllowPrivate), "the issuer may have an address that is not public"},
	}}
}

const redirectsHelp = "where clients may send people back to: addresses in which `*` stands for a part between two slashes, and `loopback`. It replaces the default: `[\"loopback\", \"https://claude.ai/api/mcp/auth_callback\", \"https://claude.com/api/mcp/auth_callback\", \"https://chatgpt.com/connector_platform_oauth_redirect\", \"https://chatgpt.com/connector/oauth/*\", \"https://vscode.dev/redirect\", \"https://insiders.vscode.dev/redirect\", \"cursor://anysphere.cursor-mcp/oauth/callback\"]`"

func (l *loader) allowObject(a *conf.Allow) object {
	return object{name: "allow", strict: true, keys: []key{
		{"emails", l.some(l.globs(&a.Emails)), "globs. An address is accepted unless the issuer says that it is not verified"},
		{"groups", l.some(l.names(&a.Groups)), "names of groups"},
		{"subjects", l.some(l.names(&a.Subjects)), "who it is at the issuer (`sub`)"},
	}}
}

func (l *loader) authServerIssuer(into *string) value {
	return value{schema: text, read: func(path string, n *node) {
		switch {
		case !l.is(stringKind, path, n):
		case !isIssuer(n.text):
			l.fault(path, n.offset, "must be the https:// URL of an OpenID issuer, as its metadata has it")
		default:
			*into = n.text
		}
	}}
}

// redirects reads globs of addresses. Each part of an address is matched by itself, so
// that the pattern must have a scheme and a host.
func (l *loader) redirects(into *[]string) value {
	return value{schema: someTexts, read: func(at string, n *node) {
		list, ok := l.strings(at, n)
		if !ok {
			return
		}
		if len(list) == 0 {
			l.fault(at, n.offset, "must not be empty")
		}
		for i, glob := range list {
			if glob != "loopback" && !isRedirect(glob) {
				l.fault(index(at, i), n.items[i].offset, `must be an address such as "https://claude.ai/api/mcp/auth_callback", in which * stands for any part between two slashes, or "loopback"`)
			}
		}
		*into = list
	}}
}

// isRedirect reports whether a glob of addresses has a scheme other than http, and a host.
func isRedirect(glob string) bool {
	scheme, rest, _ := strings.Cut(glob, "://")
	host, _, _ := strings.Cut(rest, "/")
	if scheme == "" || scheme == "http" || host == "" || strings.ContainsAny(rest, "#@\\ ") {
		return false
	}
	_, err := path.Match(glob, "")
	return err == nil && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") == ""
}

// finishAuthServer notes what an authorization server needs beside its own keys.
func (l *loader) finishAuthServer() {
	a := l.cfg.Auth
	if a == nil || a.Front == nil {
		return
	}
	switch {
	case a.Resource == "":
		l.fault(l.authServerAt.path, l.authServerAt.offset, "needs auth.resource, the public URL of mcpx")
	case !netguard.Safe(a.Resource):
		l.fault(l.authServerAt.path, l.authServerAt.offset, "needs an auth.resource with https://: people log in there")
	}
}
