// Package upstream is one upstream MCP server under supervision: the session over a [transport.Link], raw requests on
// it, and a fresh session after a loss. An [Upstream] owns its session, and the session its link; both end with Close.
// [Upstream.Call] lists the errors.
package upstream

import (
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
	"mcpx/internal/transport"
)

// Spec says what an upstream is. New does not change it, and nothing may change it after New.
type Spec struct {
	// Options say how the server is reached.
	transport.Options
	Introduction Introduction
	Timeouts     Timeouts
	Concurrency  Concurrency
	Health       Health
	Catalogue    Catalogue

	// Protocol pins the era: [EraLegacy] or [EraModern]. Anything else finds it out.
	Protocol string
	// Legacy says that the server spoke a legacy revision when it was last
	// seen: the probe for a modern one is left out of the first attempt.
	Legacy bool
	// Seen says that a start with this definition has succeeded once, and that its
	// catalogue is kept elsewhere.
	Seen bool
	// Lazy opens no session before it is needed. A server that was never seen is
	// started once, for its catalogue.
	Lazy bool
	// StopIdle ends a session that was not used for so long, until it is needed again;
	// 0 = never.
	StopIdle time.Duration

	// OnUnknown gets notifications of the server that mcpx does not know, from a reader:
	// it must not block. params may be nil. May be nil.
	OnUnknown func(method string, params json.RawMessage)
	// OnChange is called after each change of [Upstream.Status], from the
	// supervising goroutine. It must not block. May be nil.
	OnChange func()

	installs *installLimits // nil for what installs nothing
}

// Introduction is how mcpx introduces itself to the server.
type Introduction struct {
	// Name and Version are the clientInfo; no name = mcpx.
	Name, Version string
	// Owner is the client that sessions belong to, nil where several clients share them:
	// they declare its capabilities, and what belongs to no call is for it. May be nil.
	Owner func() *caller.Client
	// Capabilities are what a legacy session without an owner declares, as JSON; empty =
	// none. (A request of the modern era declares those of its own client.)
	Capabilities string
}

// Timeouts bound waits for the server.
type Timeouts struct {
	// Connect bounds one attempt, from start to tools/list; 0 = 30 s, and 10 min
	// for a command that installs what it runs while it is at work.
	Connect time.Duration
	// Probe bounds the wait for server/discover before initialize is sent; 0 = 2 s.
	Probe time.Duration
	// Call bounds a call that has no time of its own; 0 = 5 min.
	Call time.Duration
	// Idle ends a call without progress; progress, for which the server is
	// asked then, renews it, but never Call. 0 = none.
	Idle time.Duration
}

// Concurrency bounds what is under way at the same time.
type Concurrency struct {
	// Max bounds the open calls; more wait. 0 = no limit.
	Max int
	// Queue bounds the calls that wait.
	Queue semaphore.Queue
	// Gate, where not nil, bounds them in place of Max, for all upstreams that share it.
	// All, where not nil, does so beside it.
	Gate, All *semaphore.Semaphore
	// Installs, where not nil, bounds how many commands that install are at work at once,
	// of all upstreams that share it.
	Installs *semaphore.Semaphore
}

// Health says how a session is checked while no call succeeds by itself.
type Health = conf.Health

// Catalogue says where the tools of a session come from; the zero value: from the server.
type Catalogue struct {
	// Elsewhere leaves out tools/list: the catalogue is known from elsewhere.
	Elsewhere bool
	// Shared says from where, and implies Elsewhere: it returns the tools as they
	// are now, in a slice that is never changed (a change is another slice), such
	// as the one in the shared session's [Status]. Without it the arguments that a
	// tool has mirrored into HTTP headers are not known. It is called with each call, from
	// any goroutine, and must not block. May be nil.
	Shared func() []catalog.Tool
	// Tools, where not nil, are what the session is taken to list until it has, in a slice
	// that stays in use if it lists the same.
	Tools []catalog.Tool
}

func (s Spec) withDefaults() Spec {
	if installs(s.Launch.Command, s.Launch.Args) {
		s.installs = newInstallLimits(s.Timeouts.Connect)
	}
	if s.Concurrency.Installs == nil {
		s.Concurrency.Installs = semaphore.New(0)
	}
	if s.Timeouts.Connect <= 0 {
		s.Timeouts.Connect = 30 * time.Second
	}
	if s.Timeouts.Call <= 0 {
		s.Timeouts.Call = 5 * time.Minute
	}
	if s.Timeouts.Probe <= 0 {
		s.Timeouts.Probe = 2 * time.Second
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
	s.Catalogue.Elsewhere = s.Catalogue.Elsewhere || s.Catalogue.Shared != nil
	if s.Concurrency.Gate == nil {
		s.Concurrency.Gate = semaphore.New(s.Concurrency.Max)
		s.Concurrency.Gate.SetQueue(s.Concurrency.Queue)
	}
	if s.Concurrency.All == nil {
		s.Concurrency.All = semaphore.New(0)
	}
	if s.Introduction.Name == "" {
		s.Introduction.Name = "mcpx"
	}
	return s
}

func (s *Spec) owner() *caller.Client {
	if s.Introduction.Owner == nil {
		return nil
	}
	return s.Introduction.Owner()
}

// reason is why a server is not there, for all who report it: SERVER_UNAVAILABLE,
// inspect and check.
func (s *Spec) reason(err error) string {
	return s.Secrets.Line(err.Error(), catalog.MaxReason)
}
