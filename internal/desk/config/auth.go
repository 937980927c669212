package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/pattern"
)

// Auth says who may connect over HTTP.
type Auth struct {
	// Resource is the public URL of /mcp, which tokens of issuers are for; empty: on
	// loopback the address that a client has asked.
	Resource string
	// Audiences are what tokens of issuers may be for; nil = Resource, and what is below it.
	Audiences []string
	// Scopes are what every token of an issuer needs.
	Scopes []string
	// Tokens are sorted by name.
	Tokens []AuthToken
	// Rights say what each principal may see and do; nil = everybody who is known may use
	// everything.
	Rights []Right
	// Issuers are those of JWTs, in the order of the file.
	Issuers []AuthIssuer
	// Certificates: a certificate of a client says who it is.
	Certificates bool
	// Front is the authorization server in front of mcpx; nil = there is none.
	Front *AuthServer
}

// AuthIssuer gives out JWTs that count here.
type AuthIssuer struct {
	// Issuer is its URL as its tokens have it.
	Issuer string
	// Audiences are what its tokens may be for; nil: what Auth says.
	Audiences []string
	// GroupsClaim is the claim that names groups.
	GroupsClaim string
	// AllowPrivate: it may have an address that is not public.
	AllowPrivate bool
}

// AuthToken is a token that mcpx itself has given out; mcpx knows only its digest.
type AuthToken struct {
	Name           string
	SHA256         [sha256.Size]byte
	Groups, Scopes []string
}

// OldToken is the name of the token in the older key auth_token.
const OldToken = "auth_token"

// tokenName leaves out the characters that the names of principals of other kinds have.
var tokenName = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)

// authorization is the object auth, which is there if a key promises a check.
func (l *loader) authorization() *Auth {
	if l.cfg.Auth == nil {
		l.cfg.Auth = &Auth{}
	}
	return l.cfg.Auth
}

// auth reads who may connect. Its unknown keys are faults: each may be meant to keep
// somebody out.
func (l *loader) auth(path string, n *node) {
	turnedOff := slices.ContainsFunc(n.members, func(m member) bool { return m.key == "enabled" && m.value.off() })
	if turnedOff || n.kind != objectKind && n.off() || !l.is(objectKind, path, n) {
		return
	}
	a := l.authorization()
	l.authAt = place{path, n.offset}
	keys := map[string]reader{
		"enabled":      func(string, *node) {}, // off says so otherwise
		"resource":     l.resource,
		"audiences":    l.audiences(&a.Audiences),
		"scopes":       l.scopes(&a.Scopes),
		"tokens":       l.authTokens,
		"rights":       l.rights,
		"issuers":      l.issuers,
		"certificates": l.boolean(&a.Certificates),
		"front":        l.authServer,
	}
	l.only(path, n, keys)
}

// names reads strings that are not empty.
func (l *loader) names(into *[]string) reader {
	return func(path string, n *node) {
		list, ok := l.strings(path, n)
		if i := slices.Index(list, ""); ok && i >= 0 {
			l.fault(index(path, i), n.items[i].offset, "must not be empty")
		}
		*into = list
	}
}

// audiences reads what tokens may be for, which is never everything.
func (l *loader) audiences(into *[]string) reader {
	return func(path string, n *node) {
		l.names(into)(path, n)
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(path, n.offset, "must not be empty")
		}
	}
}

var scopeToken = pattern.New(`^[!#-\[\]-~]+$`) // RFC 6749, section 3.3

func (l *loader) scopes(into *[]string) reader {
	return func(path string, n *node) {
		l.names(into)(path, n)
		for i, item := range n.items {
			if item.kind == stringKind && item.text != "" && !scopeToken.MatchString(item.text) {
				l.fault(index(path, i), item.offset, "is no scope: %s", quote(item.text))
			}
			if item.text == "offline_access" { // clients ask for it themselves
				l.fault(index(path, i), item.offset, "is a scope of the authorization server, and none of mcpx")
			}
		}
	}
}

func (l *loader) resource(path string, n *node) {
	if !l.is(stringKind, path, n) {
		return
	}
	u, err := url.Parse(n.text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		l.fault(path, n.offset, "must be the public URL of mcpx, such as https://mcp.example.com/mcp")
		return
	}
	l.authorization().Resource = strings.TrimSuffix(n.text, "/")
}

func (l *loader) issuers(path string, n *node) {
	if !l.is(arrayKind, path, n) {
		return
	}
	a := l.authorization()
	for i, item := range n.items {
		at := index(path, i)
		if !l.is(objectKind, at, item) {
			continue
		}
		one := AuthIssuer{GroupsClaim: "groups"}
		l.only(at, item, map[string]reader{
			"issuer":        l.str(&one.Issuer),
			"audiences":     l.audiences(&one.Audiences),
			"groups_claim":  l.str(&one.GroupsClaim),
			"allow_private": l.boolean(&one.AllowPrivate),
		})
		switch {
		case !isIssuer(one.Issuer):
			l.fault(join(at, "issuer"), item.offset, "must be an https:// URL, as the tokens have it in iss, or one of this machine")
		case slices.ContainsFunc(a.Issuers, func(other AuthIssuer) bool { return other.Issuer == one.Issuer }):
			l.fault(at, item.offset, "is there twice")
		}
		a.Issuers = append(a.Issuers, one)
	}
}

// isIssuer reports whether text can be the identifier of an issuer: a URL over https, or of
// this machine (RFC 8414, section 2).
func isIssuer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" &&
		(u.Scheme == "https" || u.Scheme == "http") && netguard.Safe(text)
}

func (l *loader) authTokens(path string, n *node) {
	for at, m := range l.named(path, n) {
		switch {
		case !tokenName.MatchString(m.key) || m.key == OldToken:
			l.fault(at, m.offset, "must have a name of at most 64 letters (a-z), digits, '.', '_' and '-', and not %s", OldToken)
		case l.is(objectKind, at, m.value):
			l.authToken(m.key, at, m.value)
		}
	}
	slices.SortFunc(l.authorization().Tokens, func(a, b AuthToken) int { return strings.Compare(a.Name, b.Name) })
}

func (l *loader) authToken(name, path string, n *node) {
	t, given := AuthToken{Name: name}, false
	l.only(path, n, map[string]reader{
		"sha256": func(path string, n *node) {
			given = true
			digest, err := hex.DecodeString(n.text)
			if n.kind != stringKind || err != nil || len(digest) != sha256.Size {
				l.fault(path, n.offset, "must be the SHA-256 of the token, 64 hexadecimal digits; mcpx token new %s makes one", name)
				return
			}
			t.SHA256 = [sha256.Size]byte(digest)
		},
		"groups": l.names(&t.Groups),
		"scopes": l.scopes(&t.Scopes),
	})
	if !given {
		l.fault(path, n.offset, "needs sha256, the digest of the token; mcpx token new %s makes one", name)
	}
	a := l.authorization()
	if slices.ContainsFunc(a.Tokens, func(other AuthToken) bool { return other.SHA256 == t.SHA256 }) {
		l.fault(path, n.offset, "is the token of another name too")
	}
	a.Tokens = append(a.Tokens, t)
}

// leastOldToken is the length of the shortest auth_token without a warning.
const leastOldToken = 16

// oldAuthToken reads the key of the older mcpx: a token as it is, mostly a ${VAR}.
func (l *loader) oldAuthToken(path string, n *node) {
	if n.off() {
		return
	}
	token, known := l.expanded(path, n)
	switch token = strings.TrimSpace(token); {
	case !known:
	case token == "":
		l.fault(path, n.offset, "is empty")
	case len(token) < leastOldToken:
		l.warn("%s: is shorter than %d characters, and can be guessed; mcpx token new NAME makes a better one", path, leastOldToken)
	}
	t := AuthToken{Name: OldToken} // no token has the digest of one that is not known
	if known {
		t.SHA256 = sha256.Sum256([]byte(token))
	}
	a := l.authorization()
	a.Tokens = append(a.Tokens, t)
}

// finishAuth notes an auth that lets nobody in.
func (l *loader) finishAuth() {
	a := l.cfg.Auth
	switch {
	case a == nil:
	case a.Certificates && (l.cfg.TLS == nil || l.cfg.TLS.ClientCA == ""):
		l.fault(join(l.authAt.path, "certificates"), l.authAt.offset, "needs tls.client_ca, the authorities of the certificates")
	case len(a.Tokens) == 0 && len(a.Issuers) == 0 && !a.Certificates && a.Front == nil:
		l.fault(l.authAt.path, l.authAt.offset, "nobody could connect: it has no tokens and no issuers; mcpx token new NAME makes a token")
	}
}
