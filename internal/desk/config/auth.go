package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strings"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/pattern"
)

// Auth says who may connect over HTTP.
type Auth struct {
	Resource     string   // empty = the address that the request was sent to, on loopback only
	Audiences    []string // nil = Resource and the URLs below it
	Scopes       []string
	Tokens       []conf.Token // sorted by name
	Rights       []conf.Right // nil = every authenticated client may use everything
	Issuers      []conf.Issuer
	Certificates bool
	Front        *conf.AuthServer // nil = none
}

// OldToken is the name of the principal with the token of the older key auth_token.
const OldToken = "auth_token"

// tokenName excludes the characters by which the names of other kinds of principals are told apart.
var tokenName = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)

// authorization is the config's Auth, made by the first key that asks for one.
func (l *loader) authorization() *Auth {
	if l.cfg.Auth == nil {
		l.cfg.Auth = &Auth{}
	}
	return l.cfg.Auth
}

func (l *loader) auth(n *node) {
	turnedOff := slices.ContainsFunc(n.members, func(m *node) bool { return m.key == "enabled" && m.off() })
	if turnedOff || n.kind != objectKind && n.off() || !l.is(objectKind, n) {
		return
	}
	a := l.authorization()
	l.authAt = n
	l.members(n, l.authObject(a), nil)
}

func (l *loader) authObject(a *Auth) object {
	return object{name: "auth", strict: true, keys: []key{
		enabled,
		{"resource", value{into: &a.Resource, schema: text, read: l.resource}, "the public URL of `/mcp`, which tokens of `issuers` are made for; without it, on loopback, the address that a request was sent to"},
		{"tokens", value{into: &a.Tokens, named: true, read: l.authTokens, of: func() object { return l.tokenObject(&conf.Token{}, new(bool)) }}, "by name: the tokens that `mcpx token new` has made"},
		{"issuers", list(l, &a.Issuers, conf.Issuer{GroupsClaim: groupsClaim}, l.issuerObject, l.checkIssuer), "authorization servers whose JWTs prove who a client is"},
		{"audiences", l.audiences(&a.Audiences), "what tokens of `issuers` may be for, in place of `resource`"},
		{"scopes", l.scopes(&a.Scopes), "what every token of an issuer needs"},
		{"front", optional(l, &a.Front, conf.AuthServer{GroupsClaim: groupsClaim}, l.authServerObject, l.checkAuthServer), "an authorization server in front of mcpx ([logins](docs/hosting.md#logins-for-claudeai-chatgpt-and-other-clients-without-a-token))"},
		{"certificates", l.boolean(&a.Certificates).takes(atStart), "a certificate of a client proves who it is; needs `tls.client_ca`"},
		{"rights", list(l, &a.Rights, conf.Right{}, l.rightObject, l.checkRight), "[what each may do](docs/hosting.md#what-each-may-do); without it every authenticated client may use everything"},
	}}
}

// groupsClaim is the claim of a token that names groups, unless the file names another.
const groupsClaim = "groups"

// audiences reads what tokens may be for. An empty list is a fault, as no token could be for nothing.
func (l *loader) audiences(into *[]string) value {
	v := l.names(into).then(func(n *node) {
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(n, "must not be empty")
		}
	})
	v.schema = someTexts
	return v
}

var scopeToken = pattern.New(`^[!#-\[\]-~]+$`) // RFC 6749, section 3.3

func (l *loader) scopes(into *[]string) value {
	return l.names(into).then(func(n *node) {
		for _, item := range n.items {
			if item.kind == stringKind && item.text != "" && !scopeToken.MatchString(item.text) {
				l.fault(item, "is not a scope: %s", quote(item.text))
			}
			if item.text == "offline_access" { // clients ask for it themselves
				l.fault(item, "is a scope for the authorization server, not for mcpx")
			}
		}
	})
}

func (l *loader) resource(n *node) {
	if !l.is(stringKind, n) {
		return
	}
	u, err := url.Parse(n.text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		l.fault(n, "must be the public URL of mcpx, such as https://mcp.example.com/mcp")
		return
	}
	l.authorization().Resource = strings.TrimSuffix(n.text, "/")
}

func (l *loader) checkIssuer(n *node, one *conf.Issuer) {
	switch {
	case !isIssuer(one.URL):
		l.fault(n.child("issuer"), "must be an https:// URL, exactly as in the claim iss of its tokens, or one of this machine")
	case slices.ContainsFunc(l.cfg.Auth.Issuers, func(other conf.Issuer) bool { return other.URL == one.URL }):
		l.fault(n, "is there twice")
	}
}

func (l *loader) issuerObject(i *conf.Issuer) object {
	return object{name: "issuer", strict: true, keys: []key{
		{"issuer", l.str(&i.URL), "its URL, exactly as in the claim `iss` of its tokens"},
		{"audiences", l.audiences(&i.Audiences), "what its tokens may be for, in place of `auth.audiences`"},
		{"groups_claim", l.str(&i.GroupsClaim), "the claim that names groups"},
		{"allow_private", l.boolean(&i.AllowPrivate), "it may have an address that is not public"},
	}}
}

// isIssuer reports whether text can identify an issuer: an https URL (RFC 8414, section 2), or one of this machine.
func isIssuer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" &&
		(u.Scheme == "https" || u.Scheme == "http") && netguard.Safe(text)
}

func (l *loader) authTokens(n *node) {
	for m := range l.named(n) {
		switch {
		case !tokenName.MatchString(m.key) || m.key == OldToken:
			l.fault(m, "must have a name of at most 64 letters (a-z), digits, '.', '_' and '-', and not %s", OldToken)
		case l.is(objectKind, m):
			l.authToken(m)
		}
	}
	slices.SortFunc(l.authorization().Tokens, func(a, b conf.Token) int { return strings.Compare(a.Name, b.Name) })
}

func (l *loader) authToken(n *node) {
	t, given := conf.Token{Name: n.key}, false
	l.members(n, l.tokenObject(&t, &given), nil)
	if !given {
		l.fault(n, "needs sha256, the digest of the token; mcpx token new %s makes one", n.key)
	}
	a := l.authorization()
	if slices.ContainsFunc(a.Tokens, func(other conf.Token) bool { return other.SHA256 == t.SHA256 }) {
		l.fault(n, "is also the token of another name")
	}
	a.Tokens = append(a.Tokens, t)
}

func (l *loader) tokenObject(t *conf.Token, given *bool) object {
	return object{name: "token", strict: true, keys: []key{
		{"sha256", value{schema: `{"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"}`, read: func(n *node) {
			*given = true
			digest, err := hex.DecodeString(n.text)
			if n.kind != stringKind || err != nil || len(digest) != sha256.Size {
				l.fault(n, "must be the SHA-256 of the token, 64 hexadecimal digits; mcpx token new %s makes one", t.Name)
				return
			}
			t.SHA256 = [sha256.Size]byte(digest)
		}}, "the SHA-256 of the token, in hexadecimal digits"},
		{"groups", l.names(&t.Groups), "the groups of its owner"},
		{"scopes", l.scopes(&t.Scopes), "its scopes"},
	}}
}

// leastOldToken is the length below which auth_token gets a warning.
const leastOldToken = 16

// oldAuthToken reads the key of the older mcpx: the token itself, mostly a ${VAR}.
func (l *loader) oldAuthToken(n *node) {
	if n.off() {
		return
	}
	token, known := l.expanded(n)
	switch token = strings.TrimSpace(token); {
	case !known:
	case token == "":
		l.fault(n, "is empty")
	case len(token) < leastOldToken:
		l.warn("%s: is shorter than %d characters, and can be guessed; mcpx token new NAME makes a better one", n.path(), leastOldToken)
	}
	t := conf.Token{Name: OldToken} // the zero digest of an unknown token fits no token
	if known {
		t.SHA256 = sha256.Sum256([]byte(token))
	}
	a := l.authorization()
	a.Tokens = append(a.Tokens, t)
}

// finishAuth notes what auth lacks, beside the keys of single objects.
func (l *loader) finishAuth() {
	a := l.cfg.Auth
	switch {
	case a == nil:
	case a.Certificates && (l.cfg.TLS == nil || l.cfg.TLS.ClientCA == ""):
		l.fault(l.authAt.child("certificates"), "needs tls.client_ca, the authorities of the certificates")
	case len(a.Tokens) == 0 && len(a.Issuers) == 0 && !a.Certificates && a.Front == nil:
		l.fault(l.authAt, "no client could connect: it has no tokens and no issuers; mcpx token new NAME makes a token")
	}
	switch {
	case a == nil || a.Front == nil:
	case a.Resource == "":
		l.fault(l.authAt.child("front"), "needs auth.resource, the public URL of mcpx")
	case !netguard.Safe(a.Resource):
		l.fault(l.authAt.child("front"), "needs an auth.resource with https://: users log in there")
	}
}

func (l *loader) checkRight(n *node, r *conf.Right) {
	if r.Principals == nil && r.Groups == nil && r.Scopes == nil {
		l.fault(n, `applies to no principal: it needs principals, groups or scopes; "principals": ["*"] is every principal`)
	}
}

func (l *loader) rightObject(r *conf.Right) object {
	return object{name: "right", strict: true, keys: []key{
		{"principals", l.some(l.globs(&r.Principals)), "globs of names. Where a rule has several of `principals`, `groups` and `scopes`, a principal needs one of each; one of the three is needed. `[\"*\"]` is every principal; any other glob without an `@` fits tokens and certificates only, and of `SUB@ISSUER` both parts are matched by themselves"},
		{"groups", l.some(l.names(&r.Groups)), "names of groups"},
		{"scopes", l.some(l.names(&r.Scopes)), "names of scopes"},
		{"servers", l.globs(&r.Servers), "globs of names; without it all, `[]` is none"},
		{"tools", l.nested(func() object {
			tools := l.toolFilter("rightTools", &r.Allow, &r.Deny)
			tools.strict = true
			return tools
		}), "`allow` and `deny`, globs of `SERVER.TOOL`; `deny` wins, within its rule"},
		{"read_only", l.boolean(&r.ReadOnly), "only tools that declare `readOnlyHint`"},
		{"views", l.globs(&r.Views), "globs of `two_tools`, `tools`, `servers/NAME`, `groups/NAME`: in other views the rule gives nothing; without it all"},
		{"confirm", switched(l, &r.Confirm, "destructive", "all"), "which of its calls the user must confirm; the strictest is used of this, the server's, the group's and the other rules that give the tool"},
		{"admin", l.boolean(&r.Admin), "`/status`, `/metrics`, the page at `/` and `/api/servers`"},
	}}
}

// some reads a list of whom a rule is for. An empty list is a fault: it could mean no principal, or all.
func (l *loader) some(list value) value { return l.notEmpty(list, "the rule does not ask for it") }

// servedRights replaces the names of servers in the rules: a rule has the name in the file, and a server may be
// served under another ([loader.safeNames]).
func (l *loader) servedRights() {
	if l.cfg.Auth == nil {
		return
	}
	for _, r := range l.cfg.Auth.Rights {
		for i, name := range r.Servers {
			r.Servers[i] = cmp.Or(l.cfg.Served(name), name)
		}
		for _, globs := range [][]string{r.Allow, r.Deny} {
			for i, glob := range globs {
				for _, s := range l.cfg.Servers {
					if tool, ok := strings.CutPrefix(glob, s.Written+"."); ok && s.Written != "" {
						globs[i] = s.Name + "." + tool
					}
				}
			}
		}
	}
}

// leastAuthServerKey is the length of the shortest auth.front.key, in bytes.
const leastAuthServerKey = 32

func (l *loader) checkAuthServer(n *node, f *conf.AuthServer) {
	if f.Issuer == "" || f.ClientID == "" && len(l.faults) == 0 {
		l.fault(n, "needs issuer and client_id, by which the issuer knows mcpx")
	}
}

func (l *loader) authServerObject(f *conf.AuthServer) object {
	documents := true
	return object{name: "front", strict: true, keys: []key{
		enabled,
		{"issuer", l.authServerIssuer(&f.Issuer), "the OpenID issuer that users log in at, exactly as in its metadata"},
		{"client_id", value{schema: text, read: func(n *node) { f.ClientID, _ = l.expanded(n) }}, "the client ID that mcpx has at the issuer"},
		{"client_secret", l.secret(&f.ClientSecret), "the secret that goes with it; may be `${…}`"},
		{"scopes", l.names(&f.Scopes), "scopes that the issuer is asked for; without it `openid`, `profile` and `email`"},
		{"groups_claim", l.str(&f.GroupsClaim), "the claim of the ID token, or of the userinfo endpoint, with the groups of a user"},
		{"allow", l.nested(func() object { return l.allowObject(&f.Allow) }).then(func(n *node) {
			if n.kind == objectKind && f.Allow.Emails == nil && f.Allow.Groups == nil && f.Allow.Subjects == nil {
				l.fault(n, "needs emails, groups or subjects")
			}
		}), "who may log in: users who match one of `emails` (globs), `groups`, `subjects`; without it every user of the issuer"},
		{"redirects", l.redirects(&f.Redirects), redirectsHelp},
		{"documents", l.boolean(&documents).then(func(*node) { f.NoDocuments = !documents }), "whether a client may be the URL of a document about itself. Turn it off where mcpx cannot reach claude.ai and chatgpt.com: clients register then"},
		{"key", l.secret(&f.Key).then(func(n *node) {
			if f.Key != "" && len(f.Key) < leastAuthServerKey {
				l.fault(n, "must have at least %d characters: whoever guesses it can forge tokens", leastAuthServerKey)
			}
		}), "at least 32 characters: codes and tokens are sealed with it. Replicas need the same, and another key ends all logins. Without it mcpx makes one at the first start, in the user's config folder"},
		{"allow_private", l.boolean(&f.AllowPrivate), "the issuer may have an address that is not public"},
	}}
}

const redirectsHelp = "where clients may have users sent back to: addresses, in which `*` matches a part between two slashes, and `loopback`. It replaces the default: `[\"loopback\", \"https://claude.ai/api/mcp/auth_callback\", \"https://claude.com/api/mcp/auth_callback\", \"https://chatgpt.com/connector_platform_oauth_redirect\", \"https://chatgpt.com/connector/oauth/*\", \"https://vscode.dev/redirect\", \"https://insiders.vscode.dev/redirect\", \"cursor://anysphere.cursor-mcp/oauth/callback\"]`"

func (l *loader) allowObject(a *conf.Allow) object {
	return object{name: "allow", strict: true, keys: []key{
		{"emails", l.some(l.globs(&a.Emails)), "globs. An address is accepted unless the issuer says that it is not verified"},
		{"groups", l.some(l.names(&a.Groups)), "names of groups"},
		{"subjects", l.some(l.names(&a.Subjects)), "identifiers of users at the issuer (the claim `sub`)"},
	}}
}

func (l *loader) authServerIssuer(into *string) value {
	return value{schema: text, read: func(n *node) {
		switch {
		case !l.is(stringKind, n):
		case !isIssuer(n.text):
			l.fault(n, "must be the https:// URL of an OpenID issuer, exactly as in its metadata")
		default:
			*into = n.text
		}
	}}
}

// redirects reads globs of addresses. A glob needs a scheme and a host, as each part of an address is matched
// by itself.
func (l *loader) redirects(into *[]string) value {
	return value{schema: someTexts, read: func(n *node) {
		list, ok := l.strings(n)
		if !ok {
			return
		}
		if len(list) == 0 {
			l.fault(n, "must not be empty")
		}
		for i, glob := range list {
			if glob != "loopback" && !isRedirect(glob) {
				l.fault(n.items[i], `must be an address such as "https://claude.ai/api/mcp/auth_callback", in which * matches any part between two slashes, or "loopback"`)
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
