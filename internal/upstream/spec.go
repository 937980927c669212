// Package upstream supervises one MCP server. An [Upstream] owns its session, which sends raw requests over a
// [transport.Link] that the session owns; after a loss it opens a fresh one. Both end with Close. [Upstream.Call] lists
// the errors.
package upstream

import (
	"cmp"
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
	"mcpx/internal/transport"
)

// Spec describes an upstream. Nothing may change it after New.
type Spec struct {
	// Options say how to reach the server.
	transport.Options
	Introduction Introduction
	Timeouts     Timeouts
	Concurrency  Concurrency
	Health       Health
	Catalogue    Catalogue

	// Protocol pins the era: [EraLegacy] or [EraModern]. Any other value lets the handshake find it out.
	Protocol string
	// Legacy means that the server spoke a legacy revision when it was last seen: the first attempt does not probe for a
	// modern one.
	Legacy bool
	// Seen means that a start with these settings has succeeded before, and that the registry has its catalogue.
	Seen bool
	// Lazy opens no session before one is needed. A server that was never seen is started once, to read its catalogue.
	Lazy bool
	// StopIdle ends a session that was not used for this time, until it is needed again; 0 = never.
	StopIdle time.Duration

	// OnUnknown gets the server's notifications that mcpx does not know. A reader calls it, so it must not block. params
	// may be nil. May be nil.
	OnUnknown func(method string, params json.RawMessage)
	// OnChange is called after each change of [Upstream.Status], by the supervising goroutine. It must not block. May be
	// nil.
	OnChange func()

	installs time.Duration // bounds the start of a command that may install its program first; 0 for all others
}

// Introduction is how mcpx introduces itself to the server.
type Introduction struct {
	// Name and Version are the clientInfo; the default name is mcpx.
	Name, Version string
	// Owner is the client that the session belongs to, nil if several clients share it. Such a session declares the
	// owner's capabilities, and messages that belong to no call go to the owner. May be nil.
	Owner func() *caller.Client
	// Capabilities, as JSON, are declared in a legacy session without an owner; empty = none. (A modern request declares
	// those of its own client.)
	Capabilities string
}

// Timeouts bound waits for the server.
type Timeouts struct {
	// Connect bounds one attempt, from the start to tools/list. 0 = 30 s, but 10 min for a command that installs its
	// program first, as long as it makes progress.
	Connect time.Duration
	// Probe bounds the wait for server/discover before initialize is sent; 0 = 2 s.
	Probe time.Duration
	// Call bounds a call without a timeout of its own; 0 = 5 min.
	Call time.Duration
	// Idle ends a call without progress for this time; progress, which mcpx then requests, restarts it, but does not
	// extend Call. 0 = none.
	Idle time.Duration
}

// Concurrency bounds the open calls.
type Concurrency struct {
	// Max bounds the open calls of this upstream; further ones wait. 0 = no limit.
	Max int
	// Queue bounds the calls that wait.
	Queue semaphore.Queue
	// Gate, if not nil, replaces Max and Queue by a limit for all upstreams that share it. All, if not nil, is a further
	// limit.
	Gate, All *semaphore.Semaphore
	// Installs, if not nil, bounds how many commands install at once, over all upstreams that share it.
	Installs *semaphore.Semaphore
}

// Health says how to check a session while no call proves that it works.
type Health = conf.Health

// Catalogue says where the tools come from. The zero value reads them from the server.
type Catalogue struct {

	// Shared, if not nil, means that the session reads no lists, as they are known already. It returns the tools as they
	// are now, such as those in the [Status] of a shared session. The slice must never be changed; new tools need a new
	// slice. It is called with each call, from any goroutine, and must not block.
	Shared func() []catalog.Tool
	// Tools, if not nil, are taken as the catalogue until the session has listed its tools. If they are equal, this slice
	// stays in use.
	Tools []catalog.Tool
}

func (s Spec) withDefaults() Spec {
	if installs(s.Launch.Command, s.Launch.Args) {
		s.installs = orDefault(s.Timeouts.Connect, installTime)
	}
	s.Timeouts.Connect = orDefault(s.Timeouts.Connect, 30*time.Second)
	s.Timeouts.Call = orDefault(s.Timeouts.Call, 5*time.Minute)
	s.Timeouts.Probe = orDefault(s.Timeouts.Probe, 2*time.Second)
	s.Health.Timeout = orDefault(s.Health.Timeout, 5*time.Second)
	s.Health.Threshold = orDefault(s.Health.Threshold, 2)
	s.Options = s.Options.WithDefaults()
	s.Logger = s.Logger.With("server", s.Name)
	if s.OnChange == nil {
		s.OnChange = func() {}
	}

	calls := &s.Concurrency
	calls.Gate = cmp.Or(calls.Gate, semaphore.New(calls.Max, calls.Queue))
	calls.All = cmp.Or(calls.All, semaphore.New(0, semaphore.Queue{}))
	calls.Installs = cmp.Or(calls.Installs, semaphore.New(0, semaphore.Queue{}))
	s.Introduction.Name = cmp.Or(s.Introduction.Name, "mcpx")
	return s
}

// orDefault returns value if it is above 0, else otherwise.
func orDefault[N int | time.Duration](value, otherwise N) N { return cmp.Or(max(value, 0), otherwise) }

func (s *Spec) owner() *caller.Client {
	if s.Introduction.Owner == nil {
		return nil
	}
	return s.Introduction.Owner()
}

// reason is the text of an error as status, errors and logs show it.
func (s *Spec) reason(err error) string {
	return s.Secrets.Line(err.Error(), catalog.MaxReason)
}
