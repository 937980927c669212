package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpx/internal/catalog"
)

// RPCError is a JSON-RPC error that the upstream answered with.
type RPCError struct {
	Code    int64
	Message string
	// Data is the raw data member, nil where absent.
	Data json.RawMessage
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

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
}

func (e *LostError) Error() string { return "connection lost: " + e.Reason }

// TimeoutError says that the deadline of a call passed. The upstream was told
// to cancel.
type TimeoutError struct {
	After time.Duration
	// Idle is set where progress stopped, rather than the whole time passed.
	Idle bool
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

// BusyError says that no place among the concurrent calls came free in time.
// The call was not executed.
type BusyError struct {
	// Open is how many calls were in the way.
	Open int
	// All is set where the limit is that of all upstreams together.
	All bool
}

func (e *BusyError) Error() string {
	text := fmt.Sprintf("busy: %d calls are under way, the most that are allowed at once", e.Open)
	if e.All {
		text += " on all servers together"
	}
	return text
}

// errGone is a session that the server does not know any more (HTTP 404, or what
// it says instead). The request was not executed.
var errGone = errors.New("the server ended the session")

// errStopped ends the session of an upstream that is stopped.
var errStopped = errors.New("mcpx stopped the server")

// errNotSent marks a failure before any byte of the request was sent.
var errNotSent = errors.New("not sent")
