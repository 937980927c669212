package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
)

// RPCError is a JSON-RPC error that the upstream answered with.
type RPCError struct {
	Code    int64
	Message string
	// Data is the raw data member, nil where absent.
	Data json.RawMessage
	// OddCode is a code that is no whole number, as the server wrote it. NoCode says
	// that the error has no code at all. Code is 0 in both cases.
	OddCode json.RawMessage
	NoCode  bool
}

func (e *RPCError) Error() string { return e.Message + e.CodeNote() }

// CodeNote is the code as it stands behind a text; empty for an error without a code.
func (e *RPCError) CodeNote() string {
	switch {
	case e.NoCode:
		return ""
	case e.OddCode != nil:
		text := string(e.OddCode)
		_ = json.Unmarshal(e.OddCode, &text) // what is no string stays as it is
		return " (code " + strings.ToValidUTF8(text[:min(len(text), 40)], "") + ")"
	}
	return fmt.Sprintf(" (code %d)", e.Code)
}

// readCode takes a code as it was written. Some write whole numbers with a
// fraction, or as a string.
func (e *RPCError) readCode(raw json.RawMessage) {
	text := strings.Trim(string(raw), `"`)
	if number, err := strconv.ParseFloat(text, 64); err == nil && math.Trunc(number) == number && math.Abs(number) < 1<<53 {
		e.Code = int64(number)
		return
	}
	if e.NoCode = text == "" || text == "null"; !e.NoCode {
		e.OddCode = raw
	}
}

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

// BusyError says that no place among the concurrent calls came free in time.
// The call was not executed.
type BusyError struct {
	// Open is how many calls were in the way.
	Open int
	// All is set where the limit is the one for all upstreams together.
	All bool
	// Refused says that too many calls waited already, or that the call waited for as
	// long as it may; else its context ended.
	Refused bool
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

// notSent puts that mark on err, whose text stays.
func notSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string        { return e.err.Error() }
func (e *notSentError) Unwrap() error        { return e.err }
func (e *notSentError) Is(target error) bool { return target == errNotSent }
