package config

import (
	"path"
	"strings"

	"mcpx/internal/base/netguard"
)

// AuthServer is the authorization server in front of mcpx, for clients that bring no token.
type AuthServer struct {
	// Issuer is the OpenID issuer that people log in at, which knows mcpx by ClientID and
	// ClientSecret.
	Issuer, ClientID string
	ClientSecret     string `json:"-"`
	// Scopes are asked of the issuer; nil = openid, profile, email.
	Scopes []string
	// GroupsClaim names the claim with the groups of a user; empty = groups.
	GroupsClaim string
	// AllowPrivate: the issuer may have an address that is not public.
	AllowPrivate bool
	// Key seals what mcpx gives out; empty: mcpx makes one, and keeps it.
	Key string `json:"-"`
	// NoDocuments: a client ID is never the URL of a document about the client.
	NoDocuments bool
	// Redirects are globs of addresses that people may be sent back to, and the word
	// loopback; nil = those of well-known clients.
	Redirects []string
	// Emails (globs), Groups and Subjects are who may log in; all nil = everybody whom the
	// issuer knows.
	Emails, Groups, Subjects []string
}

// leastAuthServerKey is the length of the shortest auth.front.key, in bytes.
const leastAuthServerKey = 32

// authServer reads the authorization server. Its unknown keys are faults: each may be meant to
// keep somebody out.
func (l *loader) authServer(path string, n *node) {
	if n.off() || !l.is(objectKind, path, n) {
		return
	}
	f := &AuthServer{}
	l.authServerAt = place{path, n.offset}
	secret := func(into *string) reader {
		return func(path string, n *node) {
			*into, _ = l.expanded(path, n)
			if *into = strings.TrimSpace(*into); *into != "" {
				l.cfg.Secrets = append(l.cfg.Secrets, *into)
			}
		}
	}
	l.only(path, n, map[string]reader{
		"enabled":       func(string, *node) {}, // off says so otherwise
		"issuer":        l.authServerIssuer(&f.Issuer),
		"client_id":     func(path string, n *node) { f.ClientID, _ = l.expanded(path, n) },
		"client_secret": secret(&f.ClientSecret),
		"scopes":        l.names(&f.Scopes),
		"groups_claim":  l.str(&f.GroupsClaim),
		"allow_private": l.boolean(&f.AllowPrivate),
		"key": func(path string, n *node) {
			secret(&f.Key)(path, n)
			if f.Key != "" && len(f.Key) < leastAuthServerKey {
				l.fault(path, n.offset, "must have at least %d characters: who guesses it can forge tokens", leastAuthServerKey)
			}
		},
		"redirects": l.redirects(&f.Redirects),
		"documents": func(path string, n *node) {
			documents := true
			l.boolean(&documents)(path, n)
			f.NoDocuments = !documents
		},
		"allow": func(path string, n *node) {
			if l.is(objectKind, path, n) {
				l.only(path, n, map[string]reader{
					"emails":   l.some(l.globs(&f.Emails)),
					"groups":   l.some(l.names(&f.Groups)),
					"subjects": l.some(l.names(&f.Subjects)),
				})
				if f.Emails == nil && f.Groups == nil && f.Subjects == nil {
					l.fault(path, n.offset, "needs emails, groups or subjects")
				}
			}
		},
	})
	if f.Issuer == "" || f.ClientID == "" && len(l.faults) == 0 {
		l.fault(path, n.offset, "needs issuer and client_id, by which the issuer knows mcpx")
	}
	l.authorization().Front = f
}

func (l *loader) authServerIssuer(into *string) reader {
	return func(path string, n *node) {
		if !l.is(stringKind, path, n) {
			return
		}
		if !isIssuer(n.text) {
			l.fault(path, n.offset, "must be the https:// URL of an OpenID issuer, as its metadata has it")
			return
		}
		*into = n.text
	}
}

// redirects reads globs of addresses. Each part of an address is matched by itself, so
// that the pattern must have a scheme and a host.
func (l *loader) redirects(into *[]string) reader {
	return func(at string, n *node) {
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
	}
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
