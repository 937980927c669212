package request

import (
	"cmp"
	"sync/atomic"
	"time"

	"mcpx/internal/caller"
)

// The outcomes of an event, beside the codes of failures.
const (
	OutcomeResult    = "RESULT"
	OutcomeToolError = "TOOL_ERROR" // a result with isError
	OutcomeCancelled = "CANCELLED"
	OutcomeRunning   = "STILL_RUNNING" // of wait_result: the call goes on
)

// Event is what observers get of one message, once it was answered or refused: of a client's request, of a message to a
// server that belongs to no such request, or of a request over HTTP that was refused before it was read.
type Event struct {
	// Number is another one for each event of this process that is Attempted; 0 for others.
	Number uint64
	// Method is as the client wrote it; KnownMethod means that it is one of the protocol's.
	Method      string
	KnownMethod bool
	// Request means that the event is of a client's request, and ends with the answer to it. Others are of calls that go on after
	// their requests were answered, and of messages that have none.
	Request bool
	Who
	Target
	// Attempted means that the message went to a server or the built-in one, or was refused on its way: log and
	// audit trail have it.
	Attempted bool
	// Admitted means that the audit trail has its beginning.
	Admitted bool
	// Answered means that a server answered a tools/call with a result.
	Answered bool
	// Outcome is RESULT, TOOL_ERROR, CANCELLED, STILL_RUNNING, or the code of a failure; empty until the end.
	Outcome string
	// Code is of the JSON-RPC error; 0 for a result.
	Code int
	Durations
	Sizes
	Trace
	// Refused is nil but for a request over HTTP that was refused before it was read.
	Refused *Refused
}

// Who is whose message it is. Both may be empty: Principal is an ID, Client the name that the program gave itself.
type Who struct{ Principal, Client string }

// Target is what a message is for. Names are as the client wrote them: foreign text unless Known.
type Target struct {
	Server, Tool string
	// Item is the URI of a resource, the name of a prompt, the reference of a completion or the id of a task.
	Item string
	// KnownServer and Known mean that the caller's catalogue has the server, and the tool.
	KnownServer, Known bool
	// ReadOnly means that the message changes nothing: its tool is declared so, or its method only reads.
	ReadOnly bool
}

// Durations say when the event began, and what it took.
type Durations struct {
	Began time.Time
	// Asked is when mcpx first turned to the server; zero if it did not.
	Asked time.Time
	// Duration is of the whole event, Upstream the part of it that mcpx spent on the server: waiting for a session and
	// for the answer.
	Duration, Upstream time.Duration
	// Confirming is how long a person took to confirm the message, which is no part of Duration.
	Confirming time.Duration
}

// Sizes are of a message and its answer.
type Sizes struct {
	// Received are the tokens of the server's texts, Sent of the texts of the answer: estimates of o200k tokens.
	Received, Sent int
	// ArgumentBytes, ReceivedBytes and SentBytes are the sizes of the arguments, of the server's result and of the
	// answer's content, as JSON.
	ArgumentBytes, ReceivedBytes, SentBytes int
}

// Trace is the trace that an event belongs to (W3C Trace Context).
type Trace struct {
	ID string // 32 hex digits, or empty
	// Spans are the spans of the event, nil where nobody samples them.
	Spans *Spans
}

// Spans are the spans of one event: 16 hex digits each, the parent empty where the trace begins here.
type Spans struct{ Parent, Call, Upstream string }

// Refused is a request over HTTP that was refused before it was read.
type Refused struct {
	Status     int
	Verb, Path string
	Remote     string // the address of the client
}

// Stop says that the event takes no longer than until now.
func (e *Event) Stop() { e.Duration = time.Since(e.Began) - e.Confirming }

// IsCall reports whether the event is the call of a tool.
func (e *Event) IsCall() bool { return e.Method == "tools/call" }

// Failed reports whether the event ended in an error, be it the tool's, the server's or that of mcpx.
func (e *Event) Failed() bool {
	switch e.Outcome {
	case "", OutcomeResult, OutcomeCancelled, OutcomeRunning:
		return false
	}
	return true
}

// Cancelled reports whether the caller took the message back.
func (e *Event) Cancelled() bool { return e.Outcome == OutcomeCancelled }

// Journal numbers events, and hands each to the observers when it has ended. A nil *Journal has no observers. Safe for
// concurrent use once the observers are set.
type Journal struct {
	last      atomic.Uint64
	observers []func(*Event)
}

// Observe adds observers. They get each event, one observer after another, mostly when the client has its answer. They must be
// fast, must not keep the event, and are called from many goroutines. It must not be called once there are events.
func (j *Journal) Observe(observers ...func(*Event)) { j.observers = append(j.observers, observers...) }

// Begin makes the event of a message. Its maker calls End.
func (j *Journal) Begin(method string, client *caller.Client) *Event {
	e := &Event{Method: method, KnownMethod: Known(method), Durations: Durations{Began: time.Now()}}
	if client != nil {
		e.Who = Who{client.Principal.Key(), client.Name}
	}
	return e
}

// Attempt marks an event as one on its way to a server, and gives it a number.
func (j *Journal) Attempt(e *Event) {
	e.Attempted = true
	if e.Number == 0 && j != nil {
		e.Number = j.last.Add(1)
	}
}

// End ends an event, and calls the observers.
func (j *Journal) End(e *Event) {
	if e.Duration == 0 {
		e.Stop()
	}
	e.Outcome = cmp.Or(e.Outcome, OutcomeResult)
	if j == nil {
		return
	}
	for _, tell := range j.observers {
		tell(e)
	}
}
