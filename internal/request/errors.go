package request

import (
	"errors"
	"fmt"
	"math"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
)

// HTTPError says that the server answered a call with an HTTP error status. Perhaps the call was executed, perhaps not. The session
// goes on.
type HTTPError struct {
	Status int
	// Reason is the status, with the explanation in the server's response.
	Reason string
	// RetryAfter is the time in the server's header Retry-After; 0 if the server sent none.
	RetryAfter time.Duration
}

func (e *HTTPError) Error() string { return e.Reason }

// UnavailableError says that the server cannot be used now: for example, it has no session, is disabled, needs the user's
// login, or refuses requests with an HTTP status. The request was not executed.
type UnavailableError struct {
	State  catalog.State
	Reason string
	// RetryAfter is the time until an attempt may succeed; 0 if it is not known.
	RetryAfter time.Duration
	// Stopped means that mcpx has stopped the upstream of the server, for example because a reload replaced it, and will not
	// start that upstream again.
	Stopped bool
}

func (e *UnavailableError) Error() string {
	if e.Reason == "" {
		return string(e.State)
	}
	return string(e.State) + ": " + e.Reason
}

// LostError says that no answer can come any more. Either the session or the connection ended during the call, for example because
// the server crashed. Or the call cannot go on, for example because the config changed while its task ran. LostError is also the
// error with which a [Subscription] ends.
type LostError struct {
	Reason string
	// MayHaveRun is false only if the request certainly never reached the server. For the end of a [Subscription] it means nothing.
	MayHaveRun bool
	// CrashLoop means that the session has been lost again and again.
	CrashLoop bool
	// Unsent means that the session may still be open. A later message about the call was not sent, and Reason says why.
	Unsent bool
}

func (e *LostError) Error() string {
	if e.Unsent {
		return "the call cannot go on: " + e.Reason
	}
	return "connection lost: " + e.Reason
}

// Begun returns the error of a call that has begun. err is the error of a later message about the call, such as a poll of its task,
// or the answers to questions of the server. If this later message was not sent or not executed, Begun returns a [*LostError] that
// says that the call itself may have run. It returns other errors unchanged.
func Begun(err error) error {
	if lost, ok := errors.AsType[*LostError](err); ok {
		begun := *lost
		begun.MayHaveRun = true
		return &begun
	}
	_, unavailable := errors.AsType[*UnavailableError](err)
	_, busy := errors.AsType[*semaphore.BusyError](err)
	if unavailable || busy {
		return &LostError{Reason: err.Error(), MayHaveRun: true, Unsent: true}
	}
	return err
}

// TimeoutError says that the deadline of a request has passed.
type TimeoutError struct {
	After time.Duration
	// Told means that mcpx has told the upstream to cancel the request.
	Told bool
	// MayHaveRun is false only if the request certainly never reached the server.
	MayHaveRun bool
	// Idle means that there was no progress for too long (After), although the time for the whole call had not passed.
	Idle bool
	// Queued is how long the call waited for a concurrency slot. This time is a part of After.
	Queued time.Duration
	// Noise is the first line from the upstream during the call that was not a JSON-RPC message; empty if there was none.
	Noise string
}

func (e *TimeoutError) Error() string {
	if e.Idle {
		return fmt.Sprintf("no progress within %s", e.After)
	}
	return fmt.Sprintf("no answer within %s", e.After)
}

// TooLargeError says that a message was longer than the limit. The session goes on.
type TooLargeError struct {
	Limit int64
	// Request means that the message was the request to the server, which was not sent. Otherwise it was the answer.
	Request bool
}

func (e *TooLargeError) Error() string {
	if e.Request {
		return fmt.Sprintf("the request is over the limit of %d bytes", e.Limit)
	}
	return fmt.Sprintf("the answer is over the limit of %d bytes", e.Limit)
}

// AnswerError says that the upstream's answer is not valid MCP. The call may have been executed.
type AnswerError struct{ Reason string }

func (e *AnswerError) Error() string { return e.Reason }

// ReplacedError says that a request was not sent, because the caller has used a catalogue that is out of date: since then, a reload
// has replaced or removed the server, or the tool or the caller's rights have changed. The caller must check the request again in a
// new catalogue.
type ReplacedError struct{ Server string }

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("server %q was replaced by another; the call was not sent", e.Server)
}

// InputError says why a server's request for input (SEP-2322) ended without an answer.
type InputError struct{ Reason string }

func (e *InputError) Error() string { return "the server asks for input: " + e.Reason }

// LimitError refuses a request or a session because a limit is reached: that of its caller, of the server, or of all callers
// together. Nothing was executed.
type LimitError struct {
	// Limit names the limit, such as "60 calls a minute", and to whom it applies.
	Limit string
	// RetryAfter is an estimate of the time until the limit permits another request.
	RetryAfter time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("over the limit of %s; retry_after: %d s", e.Limit, e.Seconds())
}

// Seconds returns RetryAfter, rounded up to whole seconds, and at least 1.
func (e *LimitError) Seconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }
