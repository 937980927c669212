package transport

import (
	"context"
	"errors"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

const (
	// firstResume is the pause before the first attempt to go on, where the server asks for none.
	firstResume = 200 * time.Millisecond
	// leastPause and mostPause bound the time between two attempts to go on with a
	// stream, as far as the server does not want more.
	leastPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
	// resumeFailures is how many attempts in a row may reach no stream.
	resumeFailures = 3
)

// resumable reports whether the answer may come on another stream: a server may
// end one behind an event with an id, and holds the rest ready for a GET
// (2025-11-25, SEP-1699). The modern era has no such thing.
func (a *response) resumable(reader *eventReader, err error) bool {
	_, large := errors.AsType[*request.TooLargeError](err)
	return reader.lastID != "" && a.r.Header == nil && a.r.Method != "initialize" && !large
}

// resume goes on behind the last event of a stream that ended with cause, for as
// long as ctx lasts. A server that does not offer that leaves it at cause.
func (a *response) resume(ctx context.Context, last *eventReader, cause error) (wire.Message, error) {
	a.resumed = true
	idle, failures := 0, 0 // attempts in a row that brought nothing, that reached nothing
	for delay.Sleep(ctx, resumePause(last.retry, idle)) {
		resp, err := a.link.openStream(ctx, last.lastID)
		switch {
		case ctx.Err() != nil:
			return wire.Message{}, ctx.Err()
		case err != nil:
			idle++
			if failures++; failures < resumeFailures && Passing(err) && !errors.Is(err, ErrGone) {
				continue
			}
			return wire.Message{}, cause
		}
		reader := newEventReader(resp.Body, a.link.dialer.MaxMessage)
		reader.lastID, reader.retry = last.lastID, last.retry
		answer, err := a.events(reader)
		resp.Body.Close()
		if err == nil || !a.resumable(reader, err) {
			return answer, err
		}
		idle++
		if reader.lastID != last.lastID {
			idle = 0
		}
		last, failures, cause = reader, 0, err
	}
	return wire.Message{}, ctx.Err()
}

// resumePause is what the server asked for, more where attempts brought nothing.
func resumePause(retry time.Duration, idle int) time.Duration {
	pause := firstResume
	if retry >= 0 {
		pause = max(retry, leastPause)
	}
	return max(pause, min(pause<<min(idle, 10), mostPause))
}
