// Package upstream is one upstream MCP server: a process or a URL, the session
// on it, raw requests, and the supervision that opens a fresh session after a
// loss. Its transports are its own (see docs/design.md): they keep every byte,
// know whether a request was sent, and bound every message.
package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
)

// The transports of a server.
const (
	Stdio     = "stdio"
	HTTP      = "http"
	SSE       = "sse"
	WebSocket = "websocket"
	InProcess = "in-process"
)

// Spec says what an upstream is and how long things may take. New does not
// change it, and nobody may change it after New.
type Spec struct {
	Name string
	// Type is one of the transports above.
	Type string

	// Command, Args, Env (the whole environment, KEY=VALUE) and Cwd start the
	// child of a Stdio upstream.
	Command string
	Args    []string
	Env     []string
	Cwd     string
	// ContentLength pins the framing of stdio to Content-Length headers,
	// NewlineOnly to lines, both ways. With neither, lines are tried first,
	// headers after an attempt in which nothing was answered, and what the server
	// sends is read in whichever framing it has.
	ContentLength, NewlineOnly bool

	// URL and Headers reach an upstream over the network. URLs, where not nil, are all
	// addresses of the same server: a session is opened at URL, or else at the next that
	// answers.
	URL     string
	URLs    []string
	Headers map[string]string

	// Dial, where not nil, is the way to the server in place of all that. It ends with
	// ctx; the session closes what it returns.
	Dial func(ctx context.Context) (Conn, error)

	// Serve is an InProcess upstream: newline-delimited JSON-RPC on in and out.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	// ClientName and ClientVersion are the clientInfo sent to the server.
	ClientName, ClientVersion string

	// Owner is the client that sessions belong to, nil where several clients share them:
	// they declare its capabilities, and what belongs to no call is for it. May be nil.
	Owner func() *caller.Client
	// Capabilities are what a legacy session without an owner declares, as JSON; empty =
	// none. (A request of the modern era declares those of its own client.)
	Capabilities string

	// OnUnknown gets notifications of the server that mcpx does not know, from a reader:
	// it must not block. params may be nil. May be nil.
	OnUnknown func(method string, params json.RawMessage)

	// ConnectTimeout bounds one attempt, from start to tools/list; 0 = 30 s, and 10 min
	// for a command that installs what it runs while it is at work.
	ConnectTimeout time.Duration
	CallTimeout    time.Duration // 0 = 5 min
	// ProbeTimeout bounds the wait for server/discover before initialize is
	// sent; 0 = 2 s.
	ProbeTimeout time.Duration
	// IdleTimeout ends a call without progress; progress, for which the server is
	// asked then, renews it, but never CallTimeout. 0 = none.
	IdleTimeout time.Duration
	// MaxMessage bounds one message, both ways, in bytes; 0 = 64 MiB.
	MaxMessage int64
	// MaxConcurrency bounds the open calls; more wait. 0 = no limit.
	MaxConcurrency int
	// Queue bounds those that wait.
	Queue semaphore.Queue
	// Gate, where not nil, does so in place of MaxConcurrency, for all upstreams
	// that share it. AllGate, where not nil, does so beside it.
	Gate, AllGate *semaphore.Semaphore
	Health        Health

	// Protocol pins the era: [EraLegacy] or [EraModern]. Anything else finds it out.
	Protocol string
	// Legacy says that the server spoke a legacy revision when it was last
	// seen: the probe for a modern one is left out of the first attempt.
	Legacy bool
	// NoCatalogue leaves out tools/list: for a session whose catalogue is known
	// from elsewhere.
	NoCatalogue bool
	// Tools, where not nil, are what the session is taken to list until it has, in a slice
	// that stays in use if it lists the same.
	Tools []catalog.Tool
	// Catalogue says where, and implies NoCatalogue: it returns the tools as they
	// are now, in a slice that is never changed (a change is another slice), such
	// as that of the shared session's [Status]. Without it the arguments that a
	// tool wants in HTTP headers are not known. It is called with each call, from
	// any goroutine, and must not block. May be nil.
	Catalogue func() []catalog.Tool

	// Seen says that a start with this definition has succeeded once, and that its
	// catalogue is kept elsewhere.
	Seen bool
	// Lazy opens no session before it is needed. A server that was never seen is
	// started once, for its catalogue.
	Lazy bool
	// StopIdle ends a session that was not used for so long, until it is needed again;
	// 0 = never.
	StopIdle time.Duration
	// Installs, where not nil, bounds how many commands that install are at work at once,
	// of all upstreams that share it.
	Installs *semaphore.Semaphore

	// Authorize, where not nil, puts credentials on the requests to an upstream over the
	// network; those of a WebSocket are its handshakes. An error of it that has NotSent()
	// true says that the request surely was not executed.
	Authorize func(http.RoundTripper) http.RoundTripper

	// Secrets are struck out of reasons and logs. So is what NewSecrets, where not nil,
	// returns at that time.
	Secrets    []string
	NewSecrets func() []string
	// Trace, where not nil, gets every message from and to the server, without those
	// secrets. It must not block.
	Trace func(received bool, message []byte)
	// Reaper ends the child if this process dies; may be nil.
	Reaper *proc.Reaper
	// Logger may be nil (discard).
	Logger *slog.Logger
	// closeWithin bounds the end of a session, in nanoseconds; 0 = the defaults.
	// One value for all copies of the spec of an upstream.
	closeWithin *atomic.Int64
	installs    *installLimits // nil for what installs nothing
	heard       *heard         // likewise one value
	// OnChange is called after each change of [Upstream.Status], from the
	// supervising goroutine. It must not block. May be nil.
	OnChange func()
	// Transport replaces the HTTP transport (tests); nil = one of its own.
	Transport http.RoundTripper
}

// Health says how a session is checked while no call succeeds by itself.
type Health struct {
	Interval  time.Duration // 0 = no checks
	Timeout   time.Duration // 0 = 5 s
	Threshold int           // failures in a row that end the session; 0 = 2
}

func (s Spec) withDefaults() Spec {
	if installs(s.Command, s.Args) {
		s.installs = newInstallLimits(s.ConnectTimeout)
	}
	if s.Installs == nil {
		s.Installs = semaphore.New(0)
	}
	if s.ConnectTimeout <= 0 {
		s.ConnectTimeout = 30 * time.Second
	}
	if s.CallTimeout <= 0 {
		s.CallTimeout = 5 * time.Minute
	}
	if s.ProbeTimeout <= 0 {
		s.ProbeTimeout = 2 * time.Second
	}
	if s.MaxMessage <= 0 {
		s.MaxMessage = 64 << 20
	}
	s.MaxMessage = max(s.MaxMessage, 64<<10)
	if s.Health.Timeout <= 0 {
		s.Health.Timeout = 5 * time.Second
	}
	if s.Health.Threshold <= 0 {
		s.Health.Threshold = 2
	}
	s.Secrets = spellings(s.Secrets)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	s.Logger = s.Logger.With("server", s.Name)
	if s.OnChange == nil {
		s.OnChange = func() {}
	}
	s.NoCatalogue = s.NoCatalogue || s.Catalogue != nil
	if s.closeWithin == nil {
		s.closeWithin = new(atomic.Int64)
	}
	if s.heard == nil {
		s.heard = new(heard)
	}
	if s.Gate == nil {
		s.Gate = semaphore.New(s.MaxConcurrency)
		s.Gate.SetQueue(s.Queue)
	}
	if s.AllGate == nil {
		s.AllGate = semaphore.New(0)
	}
	if s.ClientName == "" {
		s.ClientName = "mcpx"
	}
	return s
}

func (s *Spec) owner() *caller.Client {
	if s.Owner == nil {
		return nil
	}
	return s.Owner()
}

// grace is how a child is ended.
func (s *Spec) grace() proc.Grace {
	within := time.Duration(s.closeWithin.Load())
	return proc.Grace{EOF: within / 2, TERM: within / 3}
}

// shortSecret is the length below which a value is struck out of nothing: such
// are in every text.
const shortSecret = 4

// spellings are the secrets in all the ways that they are met in: as they are,
// in a URL, in JSON, and line by line. The longer ones come first, as one may be
// a part of another.
func spellings(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		quoted, _ := json.Marshal(secret)
		all = append(all, secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1:len(quoted)-1]))
		if lines := strings.Split(secret, "\n"); len(lines) > 1 {
			for _, line := range lines {
				// A shorter line can be a word of any text.
				if line = strings.TrimSpace(line); len(line) >= 2*shortSecret {
					all = append(all, line)
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(secret string) bool { return len(secret) < shortSecret })
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// cleanBytes bounds the text that is looked at for a reason or a log.
const cleanBytes = 64 << 10

// shownRunes is how much of a useless answer goes into a text.
const shownRunes = 100

// clean makes foreign text fit for a reason or a log: secrets struck out, one
// line in which nothing hides, at most limit runes.
func (s *Spec) clean(text string, limit int) string {
	text = sanitize.Line(s.struck(text[:min(len(text), cleanBytes)]), 0)
	return sanitize.Line(s.struck(text), limit) // again: what was hidden in a secret is gone
}

// reason is why a server is not there, as everybody tells it: SERVER_UNAVAILABLE,
// inspect and check.
func (s *Spec) reason(err error) string {
	return s.clean(err.Error(), catalog.MaxReason)
}

// cleanEnd is clean for text of which the end says most: that is kept.
func (s *Spec) cleanEnd(text string, limit int) string {
	text = s.struck(sanitize.Line(s.struck(text[max(0, len(text)-cleanBytes):]), 0))
	if runes := []rune(text); len(runes) > limit {
		return "..." + string(runes[len(runes)-limit+3:])
	}
	return text
}

// traced hands a message to Trace.
func (s *Spec) traced(received bool, message []byte) {
	if s.Trace != nil {
		s.Trace(received, []byte(s.struck(string(message))))
	}
}

// struck is text without the secrets in it.
func (s *Spec) struck(text string) string {
	secrets := s.Secrets
	if s.NewSecrets != nil {
		secrets = slices.Concat(secrets, spellings(s.NewSecrets()))
	}
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return text
}
