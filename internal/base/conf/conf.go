// Package conf has the types that the config file is read into and that the parts of mcpx use
// as they are. The comment of each names its owner, the package that gives it its meaning.
package conf

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"mcpx/internal/base/semaphore"
)

// Confirm says which calls a user must confirm. A larger one asks about more. Its owner is policy.
type Confirm uint8

// The values of [Confirm].
const (
	ConfirmNone        Confirm = iota
	ConfirmDestructive         // of tools that are not read-only
	ConfirmAll
)

// Pin says what happens to tools whose definition was not approved. Its owner is policy.
type Pin uint8

// The values of [Pin].
const (
	PinOff   Pin = iota
	PinWarn      // those that have changed are logged
	PinBlock     // they do not exist
)

// Right says what some principals may see and do. Its owner is policy. The zero value gives
// everything but Admin, to everybody.
type Right struct {
	// Principals are globs of names; Groups and Scopes are names. The rule is for
	// principals that have one of each list that is not empty.
	Principals, Groups, Scopes []string
	// Servers are globs of names; nil = all.
	Servers []string
	// Allow, if not empty, has globs of the only "server.tool" that the rule gives; Deny
	// wins over it. Only a rule without both gives what servers have beside tools: nothing
	// says which resources belong to a tool.
	Allow, Deny []string
	// ReadOnly leaves out each tool that does not declare itself read-only.
	ReadOnly bool
	// Views are globs of the views that the rule is for, as the key view names them; nil =
	// all. In other views the rule gives nothing.
	Views []string
	// Confirm applies beside the one of the server to the tools that the rule gives.
	Confirm Confirm
	// Admin opens the state of mcpx and the list of its servers.
	Admin bool
}

// Override repairs what a server declares of the tools whose own names match. Its owner is policy.
type Override struct {
	Glob string
	// Name replaces the name of the tool; empty = it stays.
	Name string
	// Description replaces the description; nil = it stays.
	Description *string
	// Annotations are a JSON object whose members replace the ones of the same name; nil = none.
	Annotations json.RawMessage
	// Arguments are a JSON object: every call has these arguments, and the schema does
	// not show them. Nil = none.
	Arguments json.RawMessage
}

// ToolTimeout is the timeout of the calls of the tools whose names match, more than 0. Its owner
// is executor.
type ToolTimeout struct {
	Glob    string
	Timeout time.Duration
}

// StructuredPolicy decides which clients get structuredContent: auto, always, once or never. Its
// owner is view.
type StructuredPolicy string

// TextForm says what the texts of results may become: auto or json. Its owner is view.
type TextForm string

// ClientRule is what holds for the clients of some names. What is empty or 0 the rule leaves
// open. Its owner is view.
type ClientRule struct {
	// Name is a glob of clientInfo.name; case does not matter.
	Name       string
	Structured StructuredPolicy
	Text       TextForm
	// DescriptionChars bounds a tool's description, in UTF-16 units.
	DescriptionChars int
	// ResultChars bounds the texts of a result, in bytes of UTF-8.
	ResultChars int
	// LineFirst is for clients that keep only the beginning of a long result: the line about
	// the rest is above it. No key says it.
	LineFirst bool
	// Searches says that the client searches for tools itself, but loads the tools of mcpx at
	// once: they are short for it, unless a rule of the user sets DescriptionChars. No key says
	// it.
	Searches bool
	// CallWait is how long the client waits for the answer to a call.
	CallWait time.Duration
}

// Health says how a session is checked while no call succeeds by itself. Its owner is upstream.
type Health struct {
	Interval  time.Duration // 0 = no checks
	Timeout   time.Duration // 0 = 5 s
	Threshold int           // failures in a row that end the session; 0 = 2
}

// OAuth says how mcpx logs in to a server. Its owner is desk/logins. All may be empty: most
// servers need nothing.
type OAuth struct {
	// Off: mcpx puts no token on requests to this server.
	Off bool
	// Grant is authorization_code, client_credentials or private_key_jwt; empty is the first.
	Grant string
	// ClientID and ClientSecret are a client that was registered beforehand; empty: mcpx
	// registers itself.
	ClientID, ClientSecret string
	// ClientMetadataURL is an https URL of a client ID metadata document.
	ClientMetadataURL string
	// Scopes replace those that the server asks for.
	Scopes []string
	// Issuer is the authorization server, in place of the one that the server names.
	Issuer string
	// Audience goes into the requests for tokens, beside the resource.
	Audience string
	// RedirectPort is the port on loopback that the browser comes back to; 0 = any.
	RedirectPort int
	// Key signs for private_key_jwt: PEM, or the path of a file with it.
	Key string
	// AllowPrivate lets discovery lead to private, link-local and loopback addresses.
	AllowPrivate bool
}

// Token is a token of a client over HTTP that mcpx itself has given out; mcpx knows only its
// digest. Its owner is hosted/identity.
type Token struct {
	Name           string
	SHA256         [sha256.Size]byte
	Groups, Scopes []string
}

// Issuer gives out JWTs that prove who a client over HTTP is. Its owner is hosted/identity.
type Issuer struct {
	// URL is its identifier, as its tokens have it in iss.
	URL string
	// Audiences are the accepted values of the claim aud; nil: the resource at the path of a
	// request, or at /mcp.
	Audiences []string
	// GroupsClaim is the claim that names groups.
	GroupsClaim string
	// AllowPrivate: the issuer, and the addresses in its metadata, may lie in a private network.
	AllowPrivate bool
}

// AuthServer is the authorization server in front of mcpx, for clients that bring no token. Its
// owner is hosted/authserver.
type AuthServer struct {
	// Issuer is the OpenID issuer that people log in at, and ClientID and ClientSecret are
	// what it knows this server by. Without a secret it is a public client.
	Issuer, ClientID string
	ClientSecret     string `json:"-"`
	// Scopes are asked of the issuer; nil = openid, profile, email.
	Scopes []string
	// GroupsClaim names the claim with the groups of a user; empty = groups.
	GroupsClaim string
	// AllowPrivate: the issuer may have an address that is not public.
	AllowPrivate bool
	// Allow says who may log in.
	Allow Allow
	// Redirects are globs of the addresses to which clients may have a user sent back; the word
	// loopback is every address of the user's machine. nil = the addresses of well-known clients.
	Redirects []string
	// NoDocuments: a client ID is never the URL of a document, so that nothing is fetched
	// that a stranger names. Clients have to register.
	NoDocuments bool
	// Key is what everything is sealed with, at least 32 bytes; empty: mcpx makes one, and keeps it.
	Key string `json:"-"`
}

// Allow says who may log in, by one of these; all nil = everybody whom the issuer knows.
type Allow struct {
	Emails   []string // globs
	Groups   []string
	Subjects []string
}

// TLS names the PEM files of the server's certificate. Its owner is hosted/httpd.
type TLS struct {
	// Cert is the certificate with its intermediate ones, Key its private key.
	Cert, Key string
	// ClientCA has the authorities of certificates of clients; empty: clients need none.
	ClientCA string
	// Identity: a client's certificate is one of several credentials, so that a client may have
	// none. Otherwise each client needs a certificate, whatever else it brings.
	Identity bool
}

// Limits are how much may be used. Their owner is hosted/limits. The zero value bounds nothing.
type Limits struct {
	// All is for everybody together, Server for each server.
	All, Server Quota
	// Principal is for each principal, and Anybody for all who do not say who they are.
	Principal, Anybody Quota
	// AddressRequests bounds the requests a second from one address, with a burst. Requests
	// with a credential that was found good before are left out.
	AddressRequests int
	// Connections bounds the open connections, and AddressConnections those from one address
	// without a request of a known principal.
	Connections, AddressConnections int
}

// Quota is how much one principal may use, or all together, or all of one server. A zero
// bounds nothing.
type Quota struct {
	// CallsPerMinute become free evenly over the minute. Burst of them may be made at once; 0 =
	// CallsPerMinute.
	CallsPerMinute, Burst int
	// ResultBytesPerMinute bounds the bytes of results from servers. The size of a result is
	// known only when it is there: one may go beyond, and later calls are refused until that is
	// made up for.
	ResultBytesPerMinute int
	// Sessions bounds the sessions open at once; a stream of events without a session counts as
	// one. In the quota of a server it bounds its sessions for single clients.
	Sessions int
	// ConcurrentCalls bounds the calls of a principal under way at once, and Queue those that
	// wait for a place among them. Servers have gates of their own for that.
	ConcurrentCalls int
	Queue           semaphore.Queue
	// RequestsPerSecond bounds requests over HTTP of any kind, with a burst; beyond it they are a
	// flood, and refused. Requests beyond Pace, also a second, only wait.
	RequestsPerSecond, Pace int
	// BodyBytes bounds the bytes of the requests that are being read; beyond it one is refused.
	// BodyPace bounds the bytes that come in a second, or at once; beyond it reading waits.
	BodyBytes, BodyPace int64
}
