package transport

import "errors"

// ErrGone is a session that the server does not know any more (HTTP 404, or what it says instead). The request was not
// executed.
var ErrGone = errors.New("the server ended the session")

// ErrNotSent marks a failure before any byte of the request was sent.
var ErrNotSent = errors.New("not sent")

// NotSent puts that mark on err, whose text stays.
func NotSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string        { return e.err.Error() }
func (e *notSentError) Unwrap() error        { return e.err }
func (e *notSentError) Is(target error) bool { return target == ErrNotSent }

// NoiseError ends a request during which the server wrote something that is no message.
type NoiseError struct {
	err   error
	First string // the first line of that
}

func (e *NoiseError) Error() string { return e.err.Error() }
func (e *NoiseError) Unwrap() error { return e.err }
