package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/pattern"
)

// Auth says which clients may connect over HTTP, and what they may do. Its fields have the values of the key auth of the file. The
// key auth_token adds a token. If the file has no key auth, the keys auth_token and dial.compat create an Auth.
type Auth struct {
	Resource     string   // the public URL of mcpx; if empty, mcpx uses the address of each request, which must be loopback
	Audiences    []string // what a JWT of an issuer may be for; nil means Resource, or the requested URL if it is below Resource
	Scopes       []string
	Tokens       []conf.Token // sorted by name, but the token of the key auth_token may be last
	Rights       []conf.Right // nil means that every authenticated client may use everything
	Issuers      []conf.Issuer
	Certificates bool
	Front        *conf.AuthServer // nil means that mcpx runs no authorization server
}

// oldToken is the name of the principal whose token is the value of the older key auth_token.
const oldToken = "auth_token"

// tokenName matches the names and labels that a token may have, except for [oldToken]. It excludes '@' and ':', because names
// with '@' belong to the users of an issuer, and names with ':' to client certificates and agents.
var tokenName = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)

// authorization returns the Auth of the config. The first call creates it.
func (l *loader) authorization() *Auth {
	if l.cfg.Auth == nil {
		l.cfg.Auth = &Auth{}
	}
	return l.cfg.Auth
}

func (l *loader) auth(n *node) {
	if !n.on() || !l.expectKind(objectKind, n) {
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
		{"tokens", value{into: &a.Tokens, named: true, read: l.authTokens, describe: func() object { return l.tokenObject(&conf.Token{}, new(bool)) }}, "by name: the tokens that `mcpx token new` has made; further ones of a name are `NAME/ID`"},
		{"issuers", list(l, &a.Issuers, conf.Issuer{GroupsClaim: groupsClaim}, l.issuerObject, l.checkIssuer), "authorization servers whose JWTs prove who a client is"},
		{"audiences", l.audiences(&a.Audiences), "what tokens of `issuers` may be for, in place of `resource`"},
		{"scopes", l.scopes(&a.Scopes), "what every token of an issuer needs"},
		{"front", optional(l, &a.Front, conf.AuthServer{GroupsClaim: groupsClaim}, l.authServerObject, l.checkAuthServer), "an authorization server in front of mcpx ([logins](docs/logins.md#logins-for-claudeai-chatgpt-and-other-clients-without-a-token))"},
		{"certificates", l.boolean(&a.Certificates).takes(atStart), "a certificate of a client proves who it is; needs `tls.client_ca`"},
		{"rights", list(l, &a.Rights, conf.Right{}, l.rightObject, l.checkRight).notNull(), "[what each may do](docs/rights.md#what-each-may-do); without it every authenticated client may use everything"},
	}}
}

// groupsClaim is the default of the keys groups_claim: the name of the claim in a JWT that lists the groups of the user.
const groupsClaim = "groups"

// audiences reads the audiences that a token may have. An empty list is a fault, because no token could be valid then.
func (l *loader) audiences(into *[]string) value {
	v := l.names(into).andThen(func(n *node) {
		if n.kind == arrayKind && len(n.items) == 0 {
			l.fault(n, "must not be empty")
		}
	})
	v.schema = someTexts
	return v
}

var scopeToken = pattern.New(`^[!#-\[\]-~]+$`) // RFC 6749, section 3.3

func (l *loader) scopes(into *[]string) value {
	return l.names(into).andThen(func(n *node) {
		for _, item := range n.items {
			if item.kind == stringKind && item.text != "" && !scopeToken.MatchString(item.text) {
				l.fault(item, "is not a scope: %s", quote(item.text))
			}
			if item.text == "offline_access" { // clients request this scope by themselves
				l.fault(item, "is a scope for the authorization server, not for mcpx")
			}
		}
	})
}

func (l *loader) resource(n *node) {
	if !l.expectKind(stringKind, n) {
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
		{"principal_claim", l.str(&i.PrincipalClaim), principalClaimHelp},
		{"display_claim", l.str(&i.DisplayClaim), displayClaimHelp},
		{"allow_private", l.boolean(&i.AllowPrivate), "it may have an address that is not public"},
	}}
}

const (
	principalClaimHelp = "the claim that names users, such as `email` or `preferred_username`, in place of `sub`: [names](docs/hosting.md#names)"
	displayClaimHelp   = "the claim with a name for people, such as `name`, which the log, the audit trail and the page show beside the principal"
)

// checkNames adds a fault if auth.front and auth.issuers would give the users of one issuer two different names.
func (l *loader) checkNames(a *Auth) {
	for _, i := range a.Issuers {
		if a.Front != nil && a.Front.Issuer == i.URL && cmp.Or(a.Front.PrincipalClaim, "sub") != cmp.Or(i.PrincipalClaim, "sub") {
			l.fault(l.authAt.child("front"), "has another principal_claim than %s in auth.issuers: its users would have two names", i.URL)
		}
	}
}

// isIssuer reports whether a string can identify an issuer: it is an https URL (RFC 8414, section 2), or an http URL of this
// machine, and it has no user, query, fragment or '@'.
func isIssuer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" &&
		(u.Scheme == "https" || u.Scheme == "http") && netguard.Safe(text) && !strings.Contains(text, "@") // users are named USER@ISSUER
}

func (l *loader) authTokens(n *node) {
	for m := range l.named(n) {
		name, label, several := strings.Cut(m.key, "/")
		switch {
		case !tokenName.MatchString(name) || name == oldToken || several && !tokenName.MatchString(label):
			l.fault(m, "must have a name of at most 64 letters (a-z), digits, '.', '_' and '-', and not %s; further tokens of a name are NAME/ID", oldToken)
		case l.expectKind(objectKind, m):
			l.authToken(m)
		}
	}
	slices.SortFunc(l.authorization().Tokens, func(a, b conf.Token) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), bytes.Compare(a.SHA256[:], b.SHA256[:]))
	})
}

func (l *loader) authToken(n *node) {
	name, _, _ := strings.Cut(n.key, "/")
	t, given := conf.Token{Name: name}, false
	l.members(n, l.tokenObject(&t, &given), nil)
	if !given {
		l.fault(n, "needs sha256, the digest of the token; mcpx token new %s makes one", name)
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
		{"expires", value{into: &t.Expires, schema: text, read: func(n *node) {
			if !l.expectKind(stringKind, n) {
				return
			}
			var err error
			if t.Expires, err = time.Parse(time.RFC3339, n.text); err != nil {
				if t.Expires, err = time.Parse(time.DateOnly, n.text); err != nil {
					l.fault(n, "must be a time such as 2027-01-31T12:00:00Z, or a day")
				}
			}
			t.Expires = t.Expires.UTC()
		}}, "when it ends; without it never"},
	}}
}

// minOldToken is the length, in bytes, below which mcpx warns about the auth_token.
const minOldToken = 16

// oldAuthToken reads the key auth_token of older versions of mcpx. Its value is the token itself, mostly written as ${VAR}.
func (l *loader) oldAuthToken(n *node) {
	if n.off() {
		return
	}
	token, known := l.expanded(n)
	switch token = strings.TrimSpace(token); {
	case !known:
	case token == "":
		l.fault(n, "is empty")
	case len(token) < minOldToken:
		l.warn("%s: is shorter than %d characters, and can be guessed; mcpx token new NAME makes a better one", n.path(), minOldToken)
	}
	t := conf.Token{Name: oldToken} // while the value of ${VAR} is unknown, the digest stays zero, which fits no token
	if known {
		t.SHA256 = sha256.Sum256([]byte(token))
	}
	a := l.authorization()
	a.Tokens = append(a.Tokens, t)
}

// finishAuth makes the checks for which all keys must be read. It adds a fault if no client could connect, if other keys lack what
// auth.certificates or auth.front needs, or if users would have two names (see checkNames). It warns if no rule in auth.rights
// grants anything. If auth.resource is missing, each server whose oauth has "per": "principal" becomes unavailable.
func (l *loader) finishAuth() {
	a := l.cfg.Auth
	switch {
	case a == nil:
	case a.Certificates && (l.cfg.TLS == nil || l.cfg.TLS.ClientCA == ""):
		l.fault(l.authAt.child("certificates"), "needs tls.client_ca, the authorities of the certificates")
	case len(a.Tokens) == 0 && len(a.Issuers) == 0 && !a.Certificates && a.Front == nil && !l.agents():
		l.fault(l.authAt, "no client could connect: it has no tokens and no issuers; mcpx token new NAME makes a token")
	}
	for i := range l.cfg.Servers {
		s := &l.cfg.Servers[i]
		if at := l.perPrincipal[cmp.Or(s.Written, s.Name)]; at != nil && (a == nil || a.Resource == "") {
			s.setFaults(append(s.faults, faultAt(at, "principal needs auth.resource, the public URL of mcpx: people log in there")))
		}
	}
	if a != nil {
		l.checkNames(a)
		l.checkRights(a.Rights)
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
	gives := r.Servers != nil || len(r.Allow)+len(r.Deny) > 0 || r.ReadOnly || r.Views != nil || r.Confirm != conf.ConfirmNone || r.Admin
	if r.TakeAway != nil && gives {
		l.fault(n.child("deny"), "a rule with deny gives nothing and takes away in all views: write what it gives as a rule of its own")
	}
}

// checkRights warns if auth.rights is empty, or if all its rules only take rights away (TakeAway). In both cases no rule grants
// anything, so nobody may use anything.
func (l *loader) checkRights(rights []conf.Right) {
	if rights != nil && !slices.ContainsFunc(rights, func(r conf.Right) bool { return r.TakeAway == nil }) {
		l.warn(`auth.rights: no rule gives anything, so nobody may use anything; {"principals": ["*"]} gives everything that deny leaves`)
	}
}

func (l *loader) rightObject(r *conf.Right) object {
	return object{name: "right", strict: true, keys: []key{
		{"principals", l.appliesTo(l.globs(&r.Principals)).notNull(), "globs of names. Where a rule has several of `principals`, `groups` and `scopes`, a principal needs one of each; one of the three is needed. `[\"*\"]` is every principal; any other glob without an `@` fits tokens and certificates only, and of `SUB@ISSUER` both parts are matched by themselves"},
		{"groups", l.appliesTo(l.names(&r.Groups)).notNull(), "names of groups"},
		{"scopes", l.appliesTo(l.names(&r.Scopes)).notNull(), "names of scopes"},
		{"servers", l.globs(&r.Servers).notNull(), "globs of names, as they are in the file; without it all, `[]` is none"},
		{"tools", l.nested(func() object {
			tools := l.toolFilter("rightTools", &r.Allow, &r.Deny)
			tools.strict = true
			for i := range tools.keys {
				tools.keys[i].noNull = true
			}
			return tools
		}).notNull(), "`allow` and `deny`, globs of `SERVER.TOOL`; `deny` wins, within its rule"},
		{"read_only", l.boolean(&r.ReadOnly).notNull(), "only tools that declare `readOnlyHint`"},
		{"views", l.globs(&r.Views).notNull(), "globs of `two_tools`, `tools`, `servers/NAME`, `groups/NAME`: in other views the rule gives nothing; without it all"},
		{"confirm", switched(l, &r.Confirm, "destructive", "all").notNull(), "which of its calls the user must confirm; the strictest is used of this, the server's, the group's and the other rules that give the tool"},
		{"admin", l.boolean(&r.Admin), "`/status`, `/metrics`, the page at `/` and `/api/servers`"},
		{"deny", l.appliesTo(l.globs(&r.TakeAway)).notNull(), "globs of servers and of `SERVER.TOOL` that the principals lose, [whatever other rules give](docs/rights.md#what-each-may-do). A rule with it gives nothing, and has none of the keys from `servers` to `admin`"},
	}}
}

// appliesTo reads a list that limits whom or what a rule is about, such as its principals, groups or names of servers. An empty
// list is a fault, because it could mean nobody or everybody.
func (l *loader) appliesTo(list value) value { return l.notEmpty(list, "the rule does not ask for it") }

// minAuthServerKey is the smallest length, in bytes, that the value of auth.front.key may have.
const minAuthServerKey = 32

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
		{"principal_claim", l.str(&f.PrincipalClaim), principalClaimHelp},
		{"display_claim", l.str(&f.DisplayClaim), displayClaimHelp},
		{"allow", l.nested(func() object { return l.allowObject(&f.Allow) }).andThen(func(n *node) {
			if n.kind == objectKind && f.Allow.Emails == nil && f.Allow.Groups == nil && f.Allow.Subjects == nil {
				l.fault(n, "needs emails, groups or subjects")
			}
		}).notNull(), "who may log in: users who match one of `emails` (globs), `groups`, `subjects`; without it every user of the issuer"},
		{"redirects", l.redirects(&f.Redirects), redirectsHelp},
		{"documents", l.boolean(&documents).andThen(func(*node) { f.NoDocuments = !documents }), "whether a client may be the URL of a document about itself. Turn it off where mcpx cannot reach claude.ai and chatgpt.com: clients register then"},
		{"key", l.secrets(&f.Keys, minAuthServerKey, "whoever guesses it can forge tokens", true), "at least 32 characters: codes and tokens are sealed with it. Replicas need the same, and another key ends all logins. Of a list the first seals, and all open: `[NEW, OLD]` replaces a key. Without it mcpx makes one at the first start, in the user's config folder"},
		{"allow_private", l.boolean(&f.AllowPrivate), "the issuer may have an address that is not public"},
	}}
}

const redirectsHelp = "where clients may have users sent back to: addresses, in which `*` matches a part between two slashes, and `loopback`. It replaces the default: `[\"loopback\", \"https://claude.ai/api/mcp/auth_callback\", \"https://claude.com/api/mcp/auth_callback\", \"https://chatgpt.com/connector_platform_oauth_redirect\", \"https://chatgpt.com/connector/oauth/*\", \"https://vscode.dev/redirect\", \"https://insiders.vscode.dev/redirect\"]`. It lacks `cursor://anysphere.cursor-mcp/oauth/callback`, where Cursor has its users sent back to"

func (l *loader) allowObject(a *conf.Allow) object {
	return object{name: "allow", strict: true, keys: []key{
		{"emails", l.appliesTo(l.globs(&a.Emails)), "globs of addresses that the issuer says are verified (the claim `email_verified`)"},
		{"unverified_emails", l.boolean(&a.UnverifiedEmails), "`emails` also accepts an address of which the issuer does not say whether it is verified. Only for an issuer whose users cannot choose their address"},
		{"groups", l.appliesTo(l.names(&a.Groups)), "names of groups"},
		{"subjects", l.appliesTo(l.names(&a.Subjects)), "identifiers of users at the issuer (the claim `sub`)"},
	}}
}

func (l *loader) authServerIssuer(into *string) value {
	return value{schema: text, read: func(n *node) {
		switch {
		case !l.expectKind(stringKind, n):
		case !isIssuer(n.text):
			l.fault(n, "must be the https:// URL of an OpenID issuer, exactly as in its metadata")
		default:
			*into = n.text
		}
	}}
}

// redirects reads globs for redirect addresses. When a client has asked for a login, mcpx sends the user's browser to the client's
// redirect address after the login, if one of the globs matches. Each glob must be "loopback" or have a scheme and a host. A glob such
// as * would match no address, because * does not match a slash.
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

// isRedirect reports whether a glob is allowed for redirect addresses. The glob must be a valid pattern of [path.Match], and
// begin with a scheme and a host. The scheme must not be http, and has only lower-case letters, digits, '+', '.' and '-'. After
// the scheme, '#', '@', '\' and spaces are not allowed.
func isRedirect(glob string) bool {
	scheme, rest, _ := strings.Cut(glob, "://")
	host, _, _ := strings.Cut(rest, "/")
	if scheme == "" || scheme == "http" || host == "" || strings.ContainsAny(rest, "#@\\ ") {
		return false
	}
	_, err := path.Match(glob, "")
	return err == nil && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") == ""
}
