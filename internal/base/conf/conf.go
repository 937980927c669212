// Package conf has types that package config fills from the config file, and that other packages use without converting them. The
// comment of a type names the package that implements the type. A type that is only a part of another type here names none.
package conf

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"mcpx/internal/base/semaphore"
)

// Confirm says which calls of tools the user must confirm. A larger value asks about more calls. Requests with a method that mcpx
// does not know are treated like calls of a tool that is not read-only. Package policy implements it.
type Confirm uint8

// These are the values of [Confirm]. ConfirmNone asks about no call. ConfirmAll asks about every call.
const (
	ConfirmNone        Confirm = iota
	ConfirmDestructive         // calls of tools that are not read-only
	ConfirmAll
)

// Pin says what happens to tools whose present definition the user has not approved. Users approve definitions with mcpx lock or on
// the status page. Package policy implements it.
type Pin uint8

// These are the values of [Pin].
const (
	PinOff Pin = iota
	// PinWarn logs changed tools: those that differ from the definition that was approved or, if no tool of the server was ever
	// approved, from the definition that mcpx read before.
	PinWarn
	// PinBlock hides tools whose present definition is not approved. It also logs changed tools.
	PinBlock
)

// Share says which sessions of one user's clients use the same process or connection of a server. Package desk/share
// implements it. The empty Share means that the config does not say.
type Share string

// These are the values of [Share].
const (
	ShareSession Share = "session" // none: each session has a process or connection of its own
	ShareFolder  Share = "folder"  // the sessions in the same working folder
	ShareUser    Share = "user"    // all sessions
)

// Right is a rule that says what some principals may see and do. Package policy implements it. The zero value gives all
// principals everything but Admin.
type Right struct {
	// Principals are globs of names; Groups and Scopes are names. The rule applies to a principal if, for each of
	// Principals, Groups and Scopes that is not empty, the principal matches at least one element.
	Principals, Groups, Scopes []string
	// Servers are globs of server names as they are in the config file. nil means all servers.
	Servers []string
	// Allow and Deny are globs of "server.tool", where server is a name as in the config file. A tool that matches
	// both is denied. A rule without Allow and Deny gives all tools. Only such a rule gives resources and prompts,
	// since it is not known which tools they belong to.
	Allow, Deny []string
	// ReadOnly excludes tools that do not declare themselves read-only.
	ReadOnly bool
	// Views are globs of values of the config key view. In other views the rule gives nothing. nil means all views.
	Views []string
	// Confirm applies to the tools that the rule gives. The Confirm of their server applies too, so a call must be confirmed if
	// either of them says so.
	Confirm Confirm
	// Admin gives access to /status, /metrics, the page at / and /api/servers.
	Admin bool
	// TakeAway are globs of servers and of "server.tool". The principals of this rule do not get what matches them, even if another
	// rule gives it. A rule with TakeAway gives nothing: the fields from Servers to Admin are empty.
	TakeAway []string
}

// Override changes the definitions of tools whose original names match Glob. Package policy implements it.
type Override struct {
	Glob string
	// Name replaces the name of the tool, unless Name is empty.
	Name string
	// Description replaces the description of the tool, unless it is nil.
	Description *string
	// Annotations is a JSON object or nil. Its members replace the members with the same names in the tool's annotations.
	Annotations json.RawMessage
	// Arguments is a JSON object or nil. Its members are added to the arguments of every call and removed from the
	// input schema.
	Arguments json.RawMessage
}

// ToolTimeout is the timeout for calls of tools whose names match Glob. The timeout is more than 0. Package executor
// implements it.
type ToolTimeout struct {
	Glob    string
	Timeout time.Duration
}

// StructuredPolicy says when clients get structuredContent: "auto", "always", "once" or "never". Package view
// implements the values and explains them.
type StructuredPolicy string

// TextForm is "auto", or "json" if the texts of results must not be converted to TOON or JavaScript. Package view implements
// it.
type TextForm string

// ResultForms is a set: the forms in which clients may get the texts of results. 0 means that the config does not say which.
// Package view implements it.
type ResultForms uint8

// The members of [ResultForms]. JSON is always allowed.
const (
	FormJSON ResultForms = 1 << iota
	FormTOON
	FormJS // JavaScript that evaluates to the same value as the JSON
)

// AllForms contains every form.
const AllForms = FormJSON | FormTOON | FormJS

// ClientRule has the settings for clients with certain names. A field that is empty or zero sets nothing. Package
// view implements it.
type ClientRule struct {
	// Name is a glob for clientInfo.name. It ignores case.
	Name       string
	Structured StructuredPolicy
	Text       TextForm
	Forms      ResultForms
	// DescriptionChars bounds a tool's description, in UTF-16 code units.
	DescriptionChars int
	// ResultChars bounds the texts of a result together, in bytes of UTF-8.
	ResultChars int
	// LineFirst is for clients that keep only the beginning of a long result. Then the line that says how to get the
	// rest of a result comes before the text. No config key sets it.
	LineFirst bool
	// Uncut means that mcpx does not cut results for the client. It is for clients that cut results themselves, and that could not
	// ask mcpx for the rest. No config key sets it.
	Uncut bool
	// Searches is for clients that search for tools themselves, but load the tools of mcpx itself without a search. mcpx then gives
	// these tools short descriptions, unless the user has set DescriptionChars. No config key sets it.
	Searches bool
	// CallWait is how long the client waits for the response to a call.
	CallWait time.Duration
}

// Health says how mcpx checks its session with a server while no calls show that the session works. Package upstream
// implements it.
type Health struct {
	Interval time.Duration // 0 means no checks
	Timeout  time.Duration // 0 means 5 s
	// Threshold is how many checks must fail in a row before mcpx ends the session; 0 means 2. As long as the server may just be
	// busy with a call, mcpx keeps the session and goes on with the checks.
	Threshold int
}

// OAuth says how mcpx logs in to a server. Package desk/logins implements it. Most servers need none of these fields.
type OAuth struct {
	// Off means that mcpx sends no token with requests to this server.
	Off bool
	// PerPrincipal means that each principal has a login of its own.
	PerPrincipal bool
	// Grant is "authorization_code", "client_credentials" or "private_key_jwt". Empty means "authorization_code".
	Grant string
	// ClientID and ClientSecret belong to a client that the user has registered with the authorization server. If ClientID is
	// empty, mcpx uses ClientMetadataURL or registers itself.
	ClientID, ClientSecret string
	// ClientMetadataURL is the https URL of a document that describes mcpx (a client ID metadata document). If ClientID is
	// empty and the authorization server supports such documents, the URL is the client ID of mcpx.
	ClientMetadataURL string
	// Scopes replace the scopes that the server asks for.
	Scopes []string
	// Issuer replaces the authorization server that the server names.
	Issuer string
	// Audience is the parameter audience of requests for tokens. mcpx sends it in addition to the parameter resource.
	Audience string
	// RedirectPort is the port on this machine to which the browser is redirected. 0 means any free port.
	RedirectPort int
	// Key is the private key for the grant private_key_jwt: PEM text, or the path of a PEM file.
	Key string
	// AllowPrivate means that the URLs of a login, such as those of the authorization server, may lead to addresses that are not
	// public.
	AllowPrivate bool
}

// Token is a token that mcpx made for an HTTP client. mcpx knows only the digest of the token. Package
// hosted/identity checks it.
type Token struct {
	// Name is the owner of the token. Several tokens may have the same name.
	Name           string
	SHA256         [sha256.Size]byte
	Groups, Scopes []string
	// Expires is when the token stops being valid; zero means never.
	Expires time.Time
}

// ID identifies the token among the tokens of its owner.
func (t *Token) ID() string { return hex.EncodeToString(t.SHA256[:4]) }

// Issuer issues JWTs that prove the identity of an HTTP client. Package hosted/identity checks them.
type Issuer struct {
	// URL identifies the issuer. It is exactly the value of the claim iss.
	URL string
	// Audiences are the accepted values of the claim aud. If Audiences is nil, the URL of the requested path and the
	// URL of /mcp are accepted.
	Audiences []string
	// GroupsClaim is the name of the claim that contains the user's groups.
	GroupsClaim string
	// PrincipalClaim is the name of the claim that names the user in rights and logs; empty means sub. DisplayClaim is
	// the name of the claim with a readable name of the user, which is only shown; empty means that there is no such claim.
	PrincipalClaim, DisplayClaim string
	// AllowPrivate allows the URL of the issuer and the URLs in its metadata to have addresses that are not public.
	AllowPrivate bool
}

// AuthServer is the authorization server that mcpx runs for clients without a token. Users log in at an OpenID issuer.
// Package hosted/authserver implements it.
type AuthServer struct {
	// Issuer is the URL of the OpenID issuer at which users log in. mcpx is a client of the issuer, with ClientID and
	// ClientSecret. If ClientSecret is empty, mcpx is a public client.
	Issuer, ClientID string
	ClientSecret     string `json:"-"`
	// Scopes are requested from the issuer. nil means openid, profile and email.
	Scopes []string
	// GroupsClaim is the name of the claim that contains the user's groups. Empty means "groups".
	GroupsClaim string
	// PrincipalClaim and DisplayClaim mean the same as in an [Issuer].
	PrincipalClaim, DisplayClaim string
	// AllowPrivate allows the URL of the issuer and the URLs in its metadata to have addresses that are not public.
	AllowPrivate bool
	// Allow says who may log in.
	Allow Allow
	// Redirects are globs of redirect URIs that clients may use. The word loopback means every address of the user's
	// machine. nil means the URIs of well-known clients.
	Redirects []string
	// NoDocuments means that mcpx refuses client IDs that are URLs of metadata documents. Then mcpx fetches no URLs
	// named by strangers, and clients have to register.
	NoDocuments bool
	// Keys are secrets of at least 32 bytes, from which mcpx derives the encryption keys for codes and tokens. mcpx encrypts with
	// the first secret, and decrypts with any of them. If there are none, mcpx makes a secret and keeps it in a file.
	Keys []string `json:"-"`
}

// Allow says which users may log in: those who match at least one of the lists. If all lists are nil, every user of
// the issuer may log in.
type Allow struct {
	Emails   []string // globs
	Groups   []string
	Subjects []string
	// UnverifiedEmails accepts email addresses even if the issuer does not say that it has verified them.
	UnverifiedEmails bool
}

// TLS names the PEM files with which mcpx serves HTTPS. Package hosted/httpd reads them.
type TLS struct {
	// Cert is the file with the certificate of mcpx and the intermediate certificates. Key is the file with the private
	// key of that certificate.
	Cert, Key string
	// ClientCA is the file with the certificates of the authorities that sign the certificates of clients. If it is
	// empty, clients need no certificate.
	ClientCA string
	// Identity means that a client's certificate is a credential like a token: a client that has another credential needs no
	// certificate. Without Identity, but with ClientCA, every client needs a certificate in addition to its other credentials.
	Identity bool
}

// Limits bound the use of mcpx. Package hosted/limits implements them. The zero value has no limits.
type Limits struct {
	// All applies to all clients together. Server applies to each server.
	All, Server Quota
	// ServerCalls is how many calls of a server may be open, unless the server has a limit of its own.
	ServerCalls int
	// Principal applies to each principal. Anybody applies to all clients without credentials together.
	Principal, Anybody Quota
	// AddressRequests bounds the requests per second from one address; short bursts may exceed it. Requests with a
	// credential that was accepted before are not counted.
	AddressRequests int
	// Connections bounds the open connections. AddressConnections bounds, for each address, the connections on which
	// no known principal has sent a request.
	Connections, AddressConnections int
}

// Quota bounds the use of mcpx by one principal or by all clients together, or the use of one server. A field that is
// 0 sets no limit.
type Quota struct {
	// CallsPerMinute is how many calls are allowed per minute on average. Burst is how many of these calls may be made
	// at once; a Burst of 0 means CallsPerMinute.
	CallsPerMinute, Burst int
	// ResultBytesPerMinute bounds the bytes of results from servers. The size of a result is known only after the
	// call, so a result may exceed the limit. Further calls are then refused until the average is within the limit
	// again.
	ResultBytesPerMinute int
	// Sessions bounds the open sessions. Event streams without a session are counted too. In the quota of a server,
	// Sessions bounds the sessions that mcpx opens to that server for single clients.
	Sessions int
	// ConcurrentCalls bounds the calls of a principal that are executed at the same time. Queue bounds the calls that wait for
	// other calls to end. Both are for quotas of principals. Package upstream has the limits of a server for concurrent calls.
	ConcurrentCalls int
	Queue           semaphore.Queue
	// RequestsPerSecond bounds HTTP requests of any kind; short bursts may exceed it, and further requests are refused. Pace is
	// another bound on the requests per second: requests that exceed only Pace are not refused, but wait.
	RequestsPerSecond, Pace int
	// BodyBytes bounds the bytes of request bodies that are read at the same time. A request that would exceed it is
	// refused. BodyPace bounds the bytes of bodies that are read per second, on average. At most BodyPace bytes are read in
	// one burst. Further reading waits.
	BodyBytes, BodyPace int64
	// AnswerBytes bounds the bytes of large answers that are being written to a principal. While they have that many bytes, further
	// calls of the principal wait. The answers to calls that are already open may have more bytes together, up to four times
	// AnswerBytes. Instead of a further answer that would exceed this bound, mcpx sends an error. Without a principal no call
	// waits, and the answers together may have only AnswerBytes.
	AnswerBytes int64
}

// Dial says who may dial in: a principal dials in when it connects to mcpx and serves tools of its own over the connection.
// Package hosted/dial implements it.
type Dial struct {
	// Allow are rules. mcpx follows the first rule that matches both the principal and the name of the principal's server.
	Allow []DialRule
	// mcpx can replace another system whose agents dial in at other paths, with tokens of that system. Compat says which of these
	// tokens mcpx accepts; with [CompatOff], mcpx does not serve these paths. Keys are the keys of the tokens: mcpx makes new
	// tokens with the first key, and accepts a token if any of the keys fits.
	Compat Compat
	Keys   []string
}

// Compat is the config key dial.compat. It says which tokens mcpx accepts from agents of another system that mcpx replaces (see
// [Dial]).
type Compat uint8

// These are the values of [Compat].
const (
	CompatOff       Compat = iota
	CompatSigned           // signed tokens, which expire
	CompatEncrypted        // also encrypted tokens, which the other system issued and which never expire
)

// Agents is the prefix of the names of principals that have logged in with a token of [Dial.Compat]. No other principal has a name
// with this prefix.
const Agents = "agent:"

// DialRule lets some principals dial in, and says who can use their servers.
type DialRule struct {
	// Principals are globs of names; Groups and Scopes are names. The rule applies to a principal if, for each of
	// Principals, Groups and Scopes that is not empty, the principal matches at least one element.
	Principals, Groups, Scopes []string
	// Names are globs of the names that the servers of the rule may have.
	Names []string
	// For says who can use the servers that dial in by this rule: [DialSelf], [DialGroup] or [DialAll].
	For string
	// Overrides correct the definitions of the tools of the servers that dial in by this rule.
	Overrides []Override
}

// These are the values of [DialRule.For].
const (
	DialSelf  = "self"  // the principal that dialled in
	DialGroup = "group" // principals that share a group with the principal that dialled in
	DialAll   = "all"   // every principal whose rights allow it
)

// Programs is the config key programs: what JavaScript programs may do. Package programs implements it. The fields from Timeout to
// AtOnce are limits; 0 means the default of package programs.
type Programs struct {
	Off bool
	// Dir is the folder of the stored programs. Empty means the folder named programs beside the config file, if there is one.
	Dir                 string
	Timeout, MaxTimeout time.Duration
	Memory              int64 // in bytes
	Calls, AtOnce       int
}

// Cluster says how several processes of mcpx become one endpoint. Package hosted/cluster implements it.
type Cluster struct {
	// NATS are URLs of NATS servers.
	NATS []string `json:"-"` // may contain a password
	// Credentials is the path or the content of a NATS credentials file, or empty.
	Credentials string `json:"-"`
	TLS         ClientTLS
	// Keys are for the data that the replicas share. The first key encrypts it, and all of them can decrypt it.
	Keys []string `json:"-"`
	// Name is the name of this process in logs; empty means the name of the host. Bucket is the name of the cluster in NATS.
	Name, Bucket string
}

// ClientTLS names the PEM files for a connection that mcpx opens; each name may be empty.
type ClientTLS struct {
	// CA is the file with the certificates of the authorities that may sign the certificate of the server.
	CA string
	// Cert is the file with the certificate of mcpx. Key is the file with the private key of that certificate.
	Cert, Key string
}
