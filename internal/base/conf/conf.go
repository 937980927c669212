// Package conf has types that package config reads the config file into, and that other packages use as they are.
// The comment of each type names its owner, the package that gives it its meaning.
package conf

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"mcpx/internal/base/semaphore"
)

// Confirm says which calls the user must confirm. A larger value asks about more calls. Its owner is policy.
type Confirm uint8

// The values of [Confirm].
const (
	ConfirmNone        Confirm = iota
	ConfirmDestructive         // of tools that are not read-only
	ConfirmAll
)

// Pin says what happens to tools whose definition was not approved (mcpx lock). Its owner is policy.
type Pin uint8

// The values of [Pin].
const (
	PinOff   Pin = iota
	PinWarn      // changed definitions are logged
	PinBlock     // tools that are not approved are hidden
)

// Right says what some principals may see and do. Its owner is policy. The zero value gives
// everything but Admin to all principals.
type Right struct {
	// Principals are globs of names; Groups and Scopes are names. The rule is for
	// principals that match each of these lists that is not empty.
	Principals, Groups, Scopes []string
	// Servers are globs of names as they are in the file; nil = all.
	Servers []string
	// Allow and Deny are globs of "server.tool", with such a name; Deny wins. A rule without both gives all tools, and only
	// such a rule gives resources and prompts: nothing says which of those belong to a tool.
	Allow, Deny []string
	// ReadOnly excludes tools that do not declare themselves read-only.
	ReadOnly bool
	// Views are globs over the values of the config key view: in other views the rule gives nothing; nil = all.
	Views []string
	// Confirm applies to the tools that the rule gives, in addition to the Confirm of their server.
	Confirm Confirm
	// Admin opens the state of mcpx and the list of its servers.
	Admin bool
}

// Override changes the definitions of the tools whose original names match Glob. Its owner is policy.
type Override struct {
	Glob string
	// Name replaces the name of the tool, if it is not empty.
	Name string
	// Description replaces the description, if it is not nil.
	Description *string
	// Annotations, a JSON object or nil, has members that replace the tool's own.
	Annotations json.RawMessage
	// Arguments, a JSON object or nil, has arguments that are added to every call and removed from the schema.
	Arguments json.RawMessage
}

// ToolTimeout is the timeout, more than 0, for calls of the tools whose names match Glob. Its owner is executor.
type ToolTimeout struct {
	Glob    string
	Timeout time.Duration
}

// StructuredPolicy decides which clients get structuredContent: auto, always, once or never. Its
// owner is view.
type StructuredPolicy string

// TextForm is auto, or json if the texts of results must not become TOON. Its owner is view.
type TextForm string

// ResultForms are the forms that the texts of results may have, as a set; 0 = not set. Its owner is view.
type ResultForms uint8

// The members of [ResultForms]. JSON is always allowed.
const (
	FormJSON ResultForms = 1 << iota
	FormTOON
	FormJS // JavaScript that evaluates to the JSON
)

// AllForms has every form.
const AllForms = FormJSON | FormTOON | FormJS

// ClientRule has the settings for clients with certain names. An empty or zero field leaves a setting open. Its
// owner is view.
type ClientRule struct {
	// Name is a glob over clientInfo.name, which ignores case.
	Name       string
	Structured StructuredPolicy
	Text       TextForm
	Forms      ResultForms
	// DescriptionChars bounds a tool's description, in UTF-16 units.
	DescriptionChars int
	// ResultChars bounds the texts of a result, in bytes of UTF-8.
	ResultChars int
	// LineFirst is for clients that keep only the beginning of a long result: the line about
	// the rest comes first. It has no key.
	LineFirst bool
	// Searches is for clients that search for tools themselves, but load the tools of mcpx at once: their
	// descriptions are short, unless a rule of the user sets DescriptionChars. It has no key.
	Searches bool
	// CallWait is how long the client waits for the answer to a call.
	CallWait time.Duration
}

// Health says how the session with a server is checked while no call proves that it works. Its owner is upstream.
type Health struct {
	Interval  time.Duration // 0 = no checks
	Timeout   time.Duration // 0 = 5 s
	Threshold int           // failures in a row that end the session; 0 = 2
}

// OAuth says how mcpx logs in to a server. Its owner is desk/logins. Most servers need none of the fields.
type OAuth struct {
	// Off: mcpx puts no token on requests to this server.
	Off bool
	// Grant is authorization_code, client_credentials or private_key_jwt; empty is the first.
	Grant string
	// ClientID and ClientSecret belong to a client that was registered beforehand. Without them mcpx
	// registers itself.
	ClientID, ClientSecret string
	// ClientMetadataURL is an https URL of a client ID metadata document.
	ClientMetadataURL string
	// Scopes replace the scopes that the server asks for.
	Scopes []string
	// Issuer replaces the authorization server that the server names.
	Issuer string
	// Audience is sent in requests for tokens, beside the resource.
	Audience string
	// RedirectPort is the port on loopback that the browser is redirected to; 0 = any.
	RedirectPort int
	// Key is the private key for private_key_jwt: PEM, or the path of a PEM file.
	Key string
	// AllowPrivate lets discovery lead to private, link-local and loopback addresses.
	AllowPrivate bool
}

// Token is a token that mcpx made for a client over HTTP, known by its digest only. Its owner is hosted/identity.
type Token struct {
	Name           string
	SHA256         [sha256.Size]byte
	Groups, Scopes []string
}

// Issuer issues JWTs that prove who a client over HTTP is. Its owner is hosted/identity.
type Issuer struct {
	// URL is its identifier, exactly as in the claim iss.
	URL string
	// Audiences are the accepted values of the claim aud. If it is nil, the URL of the requested path and the
	// one of /mcp are accepted.
	Audiences []string
	// GroupsClaim is the claim that names groups.
	GroupsClaim string
	// AllowPrivate lets the issuer and the URLs in its metadata have private addresses.
	AllowPrivate bool
}

// AuthServer is the authorization server that mcpx runs in front of an OpenID issuer, for clients without a token.
// Its owner is hosted/authserver.
type AuthServer struct {
	// Issuer is the OpenID issuer that users log in at. mcpx is its client with ClientID and ClientSecret;
	// without a secret a public client.
	Issuer, ClientID string
	ClientSecret     string `json:"-"`
	// Scopes are requested from the issuer; nil = openid, profile, email.
	Scopes []string
	// GroupsClaim names the claim with the groups of a user; empty = groups.
	GroupsClaim string
	// AllowPrivate lets the issuer have an address that is not public.
	AllowPrivate bool
	// Allow says who may log in.
	Allow Allow
	// Redirects are globs of redirect URIs that clients may use; the word loopback is every address of the
	// user's machine. nil = the URIs of well-known clients.
	Redirects []string
	// NoDocuments refuses client IDs that are URLs of metadata documents, so that mcpx fetches no URL that a
	// stranger names. Clients have to register.
	NoDocuments bool
	// Key seals codes and tokens, at least 32 bytes; if it is empty, mcpx makes one and keeps it in a file.
	Key string `json:"-"`
}

// Allow says who may log in: users who match one of the lists. If all are nil, every user of the issuer may.
type Allow struct {
	Emails   []string // globs
	Groups   []string
	Subjects []string
	// UnverifiedEmails accepts addresses of which the issuer does not say whether they are verified.
	UnverifiedEmails bool
}

// TLS names the PEM files of the server's certificate. Its owner is hosted/httpd.
type TLS struct {
	// Cert is the certificate with its intermediate ones, Key its private key.
	Cert, Key string
	// ClientCA has the authorities that sign clients' certificates; empty: clients need no certificate.
	ClientCA string
	// Identity makes the certificate one of several credentials, of which a client needs one. Otherwise every
	// client needs a certificate, beside other credentials.
	Identity bool
}

// Limits bound the use of mcpx. Their owner is hosted/limits. The zero value has no limits.
type Limits struct {
	// All is for all clients together, Server for each server.
	All, Server Quota
	// Principal is for each principal, and Anybody for all clients without credentials together.
	Principal, Anybody Quota
	// AddressRequests bounds the requests a second from one address, with a burst. It does not include requests
	// with a credential that was accepted before.
	AddressRequests int
	// Connections bounds the open connections, and AddressConnections those from one address
	// without a request of a known principal.
	Connections, AddressConnections int
}

// Quota bounds the use by one principal, by all together, or of one server. A zero is no limit.
type Quota struct {
	// CallsPerMinute become free evenly over the minute. Burst calls may be made at once; 0 means CallsPerMinute.
	CallsPerMinute, Burst int
	// ResultBytesPerMinute bounds the bytes of results from servers. The size of a result is known only
	// afterwards: one may exceed the limit, and later calls are refused until that is made up for.
	ResultBytesPerMinute int
	// Sessions bounds the open sessions, including streams of events without a session. In the quota of a server
	// it bounds the server's sessions for single clients.
	Sessions int
	// ConcurrentCalls bounds the calls of a principal at the same time, and Queue the calls that wait for one of
	// these places. The limits of servers are in upstream.
	ConcurrentCalls int
	Queue           semaphore.Queue
	// RequestsPerSecond bounds HTTP requests of any kind, with a burst; more are refused as a flood. Requests
	// beyond Pace, also a second, only wait.
	RequestsPerSecond, Pace int
	// BodyBytes bounds the bodies that are read at the same time; a request beyond it is refused. BodyPace bounds
	// the bytes read in a second, or at once; beyond it reading waits.
	BodyBytes, BodyPace int64
}
