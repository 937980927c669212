package upstream

import "errors"

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
