package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/pattern"
)

// Auth says who may connect over HTTP.
type Auth struct {
	Resource     string   // empty = on loopback the address that a client has asked
	Audiences    []string // nil = Resource, and what is below it
	Scopes       []string
	Tokens       []conf.Token // sorted by name
	Rights       []conf.Right // nil = everybody who is known may use everything
	Issuers      []conf.Issuer
	Certificates bool
	Front        *conf.AuthServer // nil = none
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

// auth reads who may connect.
func (l *loader) auth(path string, n *node) {
	turnedOff := slices.ContainsFunc(n.members, func(m member) bool { return m.key == "enabled" && m.value.off() })
	if turnedOff || n.kind != objectKind && n.off() || !l.is(objectKind, path, n) {
		return
	}
	a := l.authorization()
	l.authAt = place{path, n.offset}
	l.members(path, n, l.authObject(a), nil)
}

func (l *loader) authObject(a *Auth) object {
	return object{name: "auth", strict: true, keys: []key{
		enabled,
		{"resource", value{into: &a.Resource, schema: text, read: l.resource}, "the public URL of `/mcp`, which tokens of `issuers` are made for; without it, on loopback, the address that a client has asked"},
		{"tokens", value{into: &a.Tokens, named: true, read: l.authTokens, of: func() object { return l.tokenObject(&conf.Token{}, new(bool)) }}, "by name: the tokens that `mcpx token new` has made"},
		{"issuers", value{into: &a.Issuers, schema: `{"type": "array", "items": {"$ref": "#/$defs/issuer"}}`, read: l.issuers, of: func() object { return l.issuerObject(&conf.Issuer{GroupsClaim: groupsClaim}) }}, "authorization servers whose JWTs prove who somebody is"},
		{"audiences", l.audiences(&a.Audiences), "what tokens of `issuers` may be for, in place of `resource`"},
		{"scopes", l.scopes(&a.Scopes), "what every token of an issuer needs"},
		{"front", value{into: &a.Front, off: "off", read: l.authServer, of: func() object { return l.authServerObject(&conf.AuthServer{GroupsClaim: groupsClaim}) }}, "an authorization server in front of mcpx ([logins](docs/hosting.md#logins-for-claudeai-chatgpt-and-other-clients-without-a-token))"},
		{"certificates", l.boolean(&a.Certificates).takes(atStart), "a certificate of a client proves who it is; needs `tls.client_ca`"},
		{"rights", value{into: &a.Rights, schema: `{"type": "array", "items": {"$ref": "#/$defs/right"}}`, read: l.rights, of: func() object { return l.rightObject(&conf.Right{}) }}, "[what each may do](docs/hosting.md#what-each-may-do); without it everybody who is known may use everything"},
	}}
}

// groupsClaim is the claim of a token that names groups, unless the file names another.
const groupsClaim = "groups"

// audiences reads what tokens may be for, which is never everything.
func (l *loader) audiences(into *[]string) value {
	v := l.names(into).then(func(path string, n *node) {
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(path, n.offset, "must not be empty")
		}
	})
	v.schema = someTexts
	return v
}

var scopeToken = pattern.New(`^[!#-\[\]-~]+$`) // RFC 6749, section 3.3

func (l *loader) scopes(into *[]string) value {
	return l.names(into).then(func(path string, n *node) {
		for i, item := range n.items {
			if item.kind == stringKind && item.text != "" && !scopeToken.MatchString(item.text) {
				l.fault(index(path, i), item.offset, "is no scope: %s", quote(item.text))
			}
			if item.text == "offline_access" { // clients ask for it themselves
				l.fault(index(path, i), item.offset, "is a scope of the authorization server, and none of mcpx")
			}
		}
	})
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
		one := conf.Issuer{GroupsClaim: groupsClaim}
		l.members(at, item, l.issuerObject(&one), nil)
		switch {
		case !isIssuer(one.URL):
			l.fault(join(at, "issuer"), item.offset, "must be an https:// URL, as the tokens have it in iss, or one of this machine")
		case slices.ContainsFunc(a.Issuers, func(other conf.Issuer) bool { return other.URL == one.URL }):
			l.fault(at, item.offset, "is there twice")
		}
		a.Issuers = append(a.Issuers, one)
	}
}

func (l *loader) issuerObject(i *conf.Issuer) object {
	return object{name: "issuer", strict: true, keys: []key{
		{"issuer", l.str(&i.URL), "its URL, as its tokens have it in `iss`"},
		{"audiences", l.audiences(&i.Audiences), "what its tokens may be for, in place of what the file says for all"},
		{"groups_claim", l.str(&i.GroupsClaim), "the claim that names groups"},
		{"allow_private", l.boolean(&i.AllowPrivate), "it may have an address that is not public"},
	}}
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
	slices.SortFunc(l.authorization().Tokens, func(a, b conf.Token) int { return strings.Compare(a.Name, b.Name) })
}

func (l *loader) authToken(name, path string, n *node) {
	t, given := conf.Token{Name: name}, false
	l.members(path, n, l.tokenObject(&t, &given), nil)
	if !given {
		l.fault(path, n.offset, "needs sha256, the digest of the token; mcpx token new %s makes one", name)
	}
	a := l.authorization()
	if slices.ContainsFunc(a.Tokens, func(other conf.Token) bool { return other.SHA256 == t.SHA256 }) {
		l.fault(path, n.offset, "is the token of another name too")
	}
	a.Tokens = append(a.Tokens, t)
}

func (l *loader) tokenObject(t *conf.Token, given *bool) object {
	return object{name: "token", strict: true, keys: []key{
		{"sha256", value{schema: `{"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"}`, read: func(path string, n *node) {
			*given = true
			digest, err := hex.DecodeString(n.text)
			if n.kind != stringKind || err != nil || len(digest) != sha256.Size {
				l.fault(path, n.offset, "must be the SHA-256 of the token, 64 hexadecimal digits; mcpx token new %s makes one", t.Name)
				return
			}
			t.SHA256 = [sha256.Size]byte(digest)
		}}, "the SHA-256 of the token, in hexadecimal digits"},
		{"groups", l.names(&t.Groups), "the groups of who has it"},
		{"scopes", l.scopes(&t.Scopes), "its scopes"},
	}}
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
	t := conf.Token{Name: OldToken} // no token has the digest of one that is not known
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
