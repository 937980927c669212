// Package upstream is one upstream MCP server: a process or a URL, the session
// on it, raw requests, and the supervision that opens a fresh session after a
// loss. Its transports are its own (see docs/design.md): they keep every byte,
// know whether a request was sent, and bound every message.
package upstream

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
	"mcpx/internal/transport"
)

// Spec says what an upstream is and how long things may take. New does not
// change it, and nobody may change it after New.
type Spec struct {
	// Options say how it is reached.
	transport.Options

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

	installs *installLimits // nil for what installs nothing

	// OnChange is called after each change of [Upstream.Status], from the
	// supervising goroutine. It must not block. May be nil.
	OnChange func()
}

// Health says how a session is checked while no call succeeds by itself.
type Health struct {
	Interval  time.Duration // 0 = no checks
	Timeout   time.Duration // 0 = 5 s
	Threshold int           // failures in a row that end the session; 0 = 2
}

func (s Spec) withDefaults() Spec {
	if installs(s.Launch.Command, s.Launch.Args) {
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
	if s.Health.Timeout <= 0 {
		s.Health.Timeout = 5 * time.Second
	}
	if s.Health.Threshold <= 0 {
		s.Health.Threshold = 2
	}
	s.Options = s.Options.WithDefaults()
	s.Logger = s.Logger.With("server", s.Name)
	if s.OnChange == nil {
		s.OnChange = func() {}
	}
	s.NoCatalogue = s.NoCatalogue || s.Catalogue != nil
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

// reason is why a server is not there, as everybody tells it: SERVER_UNAVAILABLE,
// inspect and check.
func (s *Spec) reason(err error) string {
	return s.Secrets.Line(err.Error(), catalog.MaxReason)
}
