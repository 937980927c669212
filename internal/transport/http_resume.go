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
	// firstResume is the pause before a stream is resumed, unless the server requests another pause.
	firstResume = 200 * time.Millisecond
	// leastPause and mostPause bound the pauses between attempts, unless the server requests a longer one.
	leastPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
	// resumeFailures is how many attempts to open a stream may fail in a row.
	resumeFailures = 3
)

// resumable reports whether the answer may come on another stream: a legacy server may end a stream after an event
// with an id, and send the rest in answer to a GET (2025-11-25, SEP-1699).
func (a *response) resumable(reader *eventReader, err error) bool {
	_, large := errors.AsType[*request.TooLargeError](err)
	return reader.lastID != "" && a.r.Header == nil && a.r.Method != "initialize" && !large
}

// resume gets the rest of a stream that broke with the error cause, beginning after the last event that arrived. ctx
// bounds the time for that. If the server does not offer the rest, resume returns cause.
func (a *response) resume(ctx context.Context, last *eventReader, cause error) (wire.Message, error) {
	a.resumed = true
	idle, failures := 0, 0 // how many attempts in a row brought no new event, or did not open a stream
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
		reader := last.resumed(resp.Body)
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

// resumePause returns the pause that the server requests, and a longer one after attempts without a new event.
func resumePause(retry time.Duration, idle int) time.Duration {
	pause := firstResume
	if retry >= 0 {
		pause = max(retry, leastPause)
	}
	return max(pause, min(pause<<min(idle, 10), mostPause))
}
