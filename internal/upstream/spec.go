// Package upstream supervises one MCP server. An [Upstream] owns its session with the server, and opens a fresh session
// after a loss. A session sends raw requests over a [transport.Link], which it owns. [Upstream.Close] ends both. The
// errors are listed at [Upstream.Call].
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
	// Options describe how to reach the server.
	transport.Options
	Introduction Introduction
	Timeouts     Timeouts
	Concurrency  Concurrency
	Health       conf.Health
	Catalogue    Catalogue

	// Protocol fixes the era: [EraLegacy] or [EraModern]. With any other value, the handshake finds out the era. Over
	// HTTP+SSE, which is older than the modern era, a session is always legacy.
	Protocol string
	// Era is the era of the server when it was last seen, or empty if that is not known. The first attempt does not
	// probe a legacy server for the modern era.
	Era string
	// StartedBefore means that a start with these settings has succeeded before.
	StartedBefore bool
	// Lazy means that no session is opened before a request needs one. A server that was never seen is started once, to read
	// its catalogue, and then ended.
	Lazy bool
	// StopIdle is how long a session may be unused before it is ended; the next request opens a fresh one. 0 means that an unused
	// session stays open, except as Lazy says.
	StopIdle time.Duration
	// NoQuestions means that the server may not ask clients anything (elicitation, sampling, roots).
	NoQuestions bool
	// NoInstructions means that mcpx ignores the title and the instructions of the server. They can change with each session,
	// and the approval of the server's tools does not cover them.
	NoInstructions bool

	// OnUnknown gets the server's notifications that mcpx does not know. params may be nil. The goroutine that
	// reads from the server calls it, so it must not block. May be nil.
	OnUnknown func(method string, params json.RawMessage)
	// OnLog is for a session that several client programs share. It gets the log messages on a shared stream that go to no call and
	// to no owner. program is the only program that may have caused the message (see [caller.Client.Program]); it is empty if no
	// program can have caused it. OnLog does not get messages that several programs may have caused. It must not block. May be nil.
	OnLog func(program string, params json.RawMessage)
	// OnQuestion is called when the server sends a request other than ping (elicitation, sampling, roots), or first answers
	// a call with input_required. It must not block. May be nil.
	OnQuestion func()
	// OnChange is called after each change of [Upstream.Status]. The supervising goroutine calls it. But if a call of
	// [Upstream.Ask] or a request wakes an idle upstream, the goroutine of that call or request calls OnChange. OnChange must not
	// block. May be nil.
	OnChange func()

	installs time.Duration // bounds the start of a command that may install its program first; 0 for every other server
}

// Introduction is how mcpx introduces itself to the server.
type Introduction struct {
	// Name and Version are sent as clientInfo; the default name is mcpx. If the owner has a name, that is sent with a suffix
	// instead of Name.
	Name, Version string
	// Owner returns the client that the session belongs to, or nil if several clients share the session. In the
	// session of an owner, mcpx declares the owner's capabilities, and messages that belong to no call go to the
	// owner. May be nil.
	Owner func() *caller.Client
	// Capabilities, as JSON, are declared in a legacy session without an owner. If empty, none are declared. (A
	// modern request declares the capabilities of the client that sent it.)
	Capabilities string
}

// Timeouts bound how long mcpx waits for the server.
type Timeouts struct {
	// Connect bounds one attempt to connect to one address, until tools/list is read; 0 means 30 s. A command that may install its
	// program first has this time twice: for its start with the handshake, where 0 means 10 min, and then for tools/list, where 0
	// means 30 s. Such a command is ended earlier if it makes no progress. The wait for its turn to install does not count.
	Connect time.Duration
	// Probe bounds the wait for the answer to server/discover before initialize is sent, and the sending of
	// notifications/initialized; 0 means 2 s.
	Probe time.Duration
	// Call bounds a call without a timeout of its own; 0 means 5 min.
	Call time.Duration
}

// Concurrency bounds the open calls.
type Concurrency struct {
	// Max is how many calls of this upstream may be open; further calls wait. 0 means no limit.
	Max int
	// Queue bounds the calls that wait.
	Queue semaphore.Queue
	// Gate, if not nil, is a limit that several upstreams share, and replaces Max and Queue. All, if not nil, is a
	// limit that applies in addition.
	Gate, All *semaphore.Semaphore
	// Installs, if not nil, bounds how many commands install at the same time, over all upstreams that share it.
	Installs *semaphore.Semaphore
}

// Catalogue says from where a session gets the tools. The zero value reads them from the server.
type Catalogue struct {
	// Admit, if not nil, is called after each page of a list, with the number of items and bytes read so far of that
	// list. An error refuses the list. If a list of tools is refused, a new session does not open, and an open session
	// keeps the tools that it had.
	Admit func(kind catalog.Kind, items, bytes int) error
	// Shared, if not nil, returns the current tools; the session then reads no lists itself. For example, Shared returns the tools
	// in the [Status] of a shared session. The slice must never be changed; new tools need a new slice. Requests call Shared in
	// their own goroutines, so Shared must not block.
	Shared func() []catalog.Tool
	// Tools, if not nil, are the catalogue until the session has read the server's tools. If the server's tools are
	// equal to these, this slice stays in use.
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
	if s.OnQuestion == nil {
		s.OnQuestion = func() {}
	}
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

// orDefault returns value if it is above 0; if not, it returns the second argument.
func orDefault[N int | time.Duration](value, otherwise N) N { return cmp.Or(max(value, 0), otherwise) }

func (s *Spec) owner() *caller.Client {
	if s.Introduction.Owner == nil {
		return nil
	}
	return s.Introduction.Owner()
}

// reason returns the text of an error for the status, errors and logs: without secrets, and shortened.
func (s *Spec) reason(err error) string {
	return s.Secrets.Line(err.Error(), catalog.MaxReason)
}
