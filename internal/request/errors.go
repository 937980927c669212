package request

import (
	"fmt"
	"math"
	"time"

	"mcpx/internal/base/catalog"
)

// HTTPError is an answer to a call with an HTTP error status that says nothing of
// whether the call was executed. The session goes on.
type HTTPError struct {
	Status int
	// Reason has the status, and what the server says to it.
	Reason string
	// RetryAfter is what the server asked for, 0 if nothing.
	RetryAfter time.Duration
}

func (e *HTTPError) Error() string { return e.Reason }

// UnavailableError says that there is no session to call on.
type UnavailableError struct {
	State  catalog.State
	Reason string
	// RetryAfter is the time until the next attempt, 0 if unknown.
	RetryAfter time.Duration
	// Stopped says that the upstream was stopped, and will not come back. The
	// call was not executed.
	Stopped bool
}

func (e *UnavailableError) Error() string {
	if e.Reason == "" {
		return string(e.State)
	}
	return string(e.State) + ": " + e.Reason
}

// LostError says that the session broke during the call.
type LostError struct {
	Reason string
	// MayHaveRun is false if the request surely never reached the upstream.
	MayHaveRun bool
	// CrashLoop says that the upstream is lost again and again.
	CrashLoop bool
}

func (e *LostError) Error() string { return "connection lost: " + e.Reason }

// TimeoutError says that the deadline of a call passed. The upstream was told
// to cancel.
type TimeoutError struct {
	After time.Duration
	// Idle is set where progress stopped, rather than the whole time passed.
	Idle bool
	// Queued is how much of the time the call waited for a place among the
	// concurrent ones.
	Queued time.Duration
	// Noise is the first line that the upstream wrote meanwhile and that is no
	// message, empty if there was none.
	Noise string
}

func (e *TimeoutError) Error() string {
	if e.Idle {
		return fmt.Sprintf("no progress within %s", e.After)
	}
	return fmt.Sprintf("no answer within %s", e.After)
}

// TooLargeError says that a message was over the limit. The session goes on.
type TooLargeError struct {
	Limit int64
	// Request is set if it was our own message, which was not sent.
	Request bool
}

func (e *TooLargeError) Error() string {
	if e.Request {
		return fmt.Sprintf("the request is over the limit of %d bytes", e.Limit)
	}
	return fmt.Sprintf("the answer is over the limit of %d bytes", e.Limit)
}

// AnswerError says that the upstream answered with something that is no answer
// of MCP. The call may have been executed.
type AnswerError struct{ Reason string }

func (e *AnswerError) Error() string { return e.Reason }

// ReplacedError is the error of a request that was not sent, because a reload has replaced or removed its server since the
// caller's catalogue, or the tool is another one now. The caller must find its rights in a new catalogue.
type ReplacedError struct{ Server string }

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("server %q was replaced by another; the call was not sent", e.Server)
}

// InputError says why a request for input ended without an answer.
type InputError struct{ Reason string }

func (e *InputError) Error() string { return "the server asks for input: " + e.Reason }

// LimitError is the refusal of a request or a session, which was not begun, as its caller is over a limit.
type LimitError struct {
	// Limit is the limit that is reached, such as "60 calls a minute", and whose it is.
	Limit string
	// RetryAfter is when there is room again, as far as it can be known.
	RetryAfter time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("over the limit of %s; retry_after: %d s", e.Limit, e.Seconds())
}

// Seconds is RetryAfter in whole seconds, at least 1.
func (e *LimitError) Seconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }
