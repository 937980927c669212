package transport

import "errors"

// ErrGone means that the server does not know the session any more (HTTP 404 or an equivalent). It did not execute the
// request.
var ErrGone = errors.New("the server ended the session")

// ErrNotSent marks a failure before any byte of the request was sent.
var ErrNotSent = errors.New("not sent")

// NotSent marks err with [ErrNotSent]. Its text stays the same.
func NotSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string        { return e.err.Error() }
func (e *notSentError) Unwrap() error        { return e.err }
func (e *notSentError) Is(target error) bool { return target == ErrNotSent }

// NoiseError is the error of a request during which the server wrote something that is no message.
type NoiseError struct {
	err   error
	First string // the first such line
}

func (e *NoiseError) Error() string { return e.err.Error() }
func (e *NoiseError) Unwrap() error { return e.err }
