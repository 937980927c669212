package request

import (
	"cmp"
	"sync/atomic"
	"time"

	"mcpx/internal/caller"
)

// These are the outcomes of an event. If mcpx or the server failed to handle the message, the outcome is the code of the failure
// instead, such as TIMEOUT or ERROR -32601.
const (
	OutcomeResult    = "RESULT"
	OutcomeToolError = "TOOL_ERROR" // a result with isError
	OutcomeCancelled = "CANCELLED"
	OutcomeRunning   = "STILL_RUNNING" // wait_result returned while the call that it waits for still ran
)

// Event records one message for the observers: a request of a client, a message that mcpx itself, a program or the built-in server
// sends to a server, or an HTTP request that was refused before its body was read. It is complete when the message was answered or
// has failed.
type Event struct {
	// Number is different for each event of this process that is Attempted. For other events it is 0.
	Number uint64
	// Method is the method as the client wrote it; KnownMethod means that mcpx knows it.
	Method      string
	KnownMethod bool
	// Request means that the event records a client's request, and ends when the request is answered. It is false for all other
	// events, also for the event of a call that goes on after its request was answered.
	Request bool
	Who
	Target
	// Attempted is set for every tools/call, even if the tool is unknown. It is also set for every other message that reaches the
	// middleware, even if the middleware refuses it. Such events are logged and audited.
	Attempted bool
	// Admitted means that mcpx has written the beginning of the call to the audit trail, or has tried to.
	Admitted bool
	// Answered means that a server answered a client's tools/call with a result; it is not set for calls that a program makes. For
	// a call of the built-in server, it means that the tool was a program that has called tools.
	Answered bool
	// Outcome is one of the outcomes above, or the code of a failure; empty until the end.
	Outcome string
	// Code is the JSON-RPC error code of the answer; 0 if the answer is not a JSON-RPC error.
	Code int
	Durations
	Sizes
	// Definitions returns how many tokens of tool definitions the answer saves the client; negative numbers are what it costs. It
	// is nil if the answer does neither. Observers call it after the answer was sent, because counting may take milliseconds.
	Definitions func() []Saving
	// ReadOn is set for a call that reads the next part of a result that was cut; otherwise it is nil. Only its fields Server and
	// Tool are set: they name the tool that returned the result. For the output of a program, this is the tool "run" of the
	// built-in server.
	ReadOn *Target
	Trace
	OfProgram
	// Said is the text of the error with which a call has ended, cut if it is too long; empty for other events.
	Said string
	// Content returns the arguments and the result of a call as texts. Observers must call it before they return. It is nil
	// unless the config says that these texts are recorded.
	Content func() (arguments, result string)
	// Refused is set only for an HTTP request that was refused before its body was read.
	Refused *Refused
}

// OfProgram links the event of a program with the events of the calls that the program makes.
type OfProgram struct {
	// Program is the number of the event of the program that made this call; 0 if no program made it.
	Program uint64
	// Costs is set in the event of a program: it has one element for each call that the program has made.
	Costs []Cost
}

// Who is the sender of a message. Any of its fields may be empty.
type Who struct {
	// Principal and Display are the fields Name and Display of the principal.
	Principal, Display string
	// Client is what the client calls itself.
	Client string
}

// Target is what a message is for. Server and Tool are as the client wrote them. Trust Server only if KnownServer is set, and Tool
// only if Known is set.
type Target struct {
	Server, Tool string
	// Item is the URI of a resource, the name of a prompt, the reference of a completion or the id of a task.
	Item string
	// KnownServer means that the server is in the caller's catalogue, or is the built-in server. Known means that this server has
	// the tool.
	KnownServer, Known bool
	// For a tools/call, ReadOnly means that the tool is declared read-only. For any other method it means that mcpx knows the
	// method (see the var known).
	ReadOnly bool
}

// Durations say when the event began, and how long its parts took.
type Durations struct {
	Began time.Time
	// Asked is when mcpx first tried to send something to the server. At this time it still has to wait for a slot or a session.
	// Asked is zero if mcpx did not try, and for the built-in server.
	Asked time.Time
	// Duration is the time of the whole event. Upstream is the part of it in which mcpx waited for a slot, for a session and
	// for the server.
	Duration, Upstream time.Duration
	// Confirming is how long the user took to confirm; Duration does not include it.
	Confirming time.Duration
}

// Sizes are the sizes of a message and its answer.
type Sizes struct {
	// Received is the number of tokens in the texts of the server's result. Sent is the number of tokens in the answer to the
	// client. All numbers of tokens here are estimates, for the tokenizer o200k.
	Received, Sent int
	// Cut is the number of tokens that are not in the answer because the result was too long. The caller can read them with a
	// handle. LeftOut is the number of tokens that the caller did not want: select or grep removed them, or only a program got
	// them.
	Cut, LeftOut int
	// ArgumentBytes, ReceivedBytes and SentBytes are the sizes, in bytes of JSON, of the arguments, of the server's result, and
	// of the content of the answer.
	ArgumentBytes, ReceivedBytes, SentBytes int
}

// Compression returns how many tokens mcpx saved by writing the result in a shorter form. The number is negative if mcpx made the
// result longer.
func (s Sizes) Compression() int { return s.Received - s.Sent - s.Cut - s.LeftOut }

// Saving is how many tokens of tool definitions mcpx keeps out of the requests that a client sends to its model. What mcpx adds to
// these requests is negative. Tool is empty if the number is for all definitions of a server.
type Saving struct {
	Server, Tool string
	Tokens       int
}

// Trace says to which trace the event belongs (W3C Trace Context).
type Trace struct {
	ID string // 32 hex digits, or empty
	// Spans is nil if the trace is not sampled.
	Spans *Spans
}

// Cost records one call that a program has made.
type Cost struct {
	Server, Tool, Outcome string
	Duration              time.Duration
	Received              int // tokens
}

// Spans are the ids of an event's spans, 16 hex digits each. Parent is empty if the trace begins here.
type Spans struct{ Parent, Call, Upstream string }

// Refused is an HTTP request that was refused before its body was read.
type Refused struct {
	Status     int
	Verb, Path string
	Remote     string // the address of the client
	Reason     string // why the request was refused; empty if the status says enough
}

// Stop sets the event's duration to the time until now, without the time for confirmation.
func (e *Event) Stop() { e.Duration = time.Since(e.Began) - e.Confirming }

// IsCall reports whether the event is the call of a tool.
func (e *Event) IsCall() bool { return e.Method == "tools/call" }

// Failed reports whether the event ended with an error of the tool, the server or mcpx.
func (e *Event) Failed() bool {
	switch e.Outcome {
	case "", OutcomeResult, OutcomeCancelled, OutcomeRunning:
		return false
	}
	return true
}

// Cancelled reports whether the caller cancelled the message.
func (e *Event) Cancelled() bool { return e.Outcome == OutcomeCancelled }

// Journal numbers events and passes each finished event to the observers. A nil *Journal has no observers. When the observers are
// set, several goroutines may use it at the same time.
type Journal struct {
	last      atomic.Uint64
	observers []func(*Event)
}

// Observe adds observers. It must be called before the first event. Each event is passed to all observers, one after the other,
// mostly after the client has its answer. Observers are called from many goroutines, must be fast, and must not keep the event.
func (j *Journal) Observe(observers ...func(*Event)) { j.observers = append(j.observers, observers...) }

// Begin makes the event of a message. The caller must end it with End.
func (j *Journal) Begin(method string, client *caller.Client) *Event {
	e := &Event{Method: method, KnownMethod: Known(method), Durations: Durations{Began: time.Now()}}
	if client != nil {
		e.By(client.Principal)
		e.Client = client.Name
	}
	return e
}

// By sets the principal of an event. If p is nil, the event stays as it is.
func (e *Event) By(p *caller.Principal) {
	if p != nil {
		e.Principal, e.Display = p.Name, p.Display
	}
}

// Attempt marks an event as Attempted, and gives it a number if it has none.
func (j *Journal) Attempt(e *Event) {
	e.Attempted = true
	if e.Number == 0 && j != nil {
		e.Number = j.last.Add(1)
	}
}

// End ends an event. If its duration or its outcome is not set yet, End sets it; the outcome is then RESULT. After that it calls
// the observers.
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
