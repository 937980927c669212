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
	// minPause and maxPause bound the pauses between attempts, unless the server requests a longer pause.
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
	// resumeFailures is how many attempts to open a stream may fail in a row.
	resumeFailures = 3
)

// resumable reports whether the answer may still come on another stream. A legacy server may end a stream after an event with an
// id, and send the missing events in answer to a GET (2025-11-25, SEP-1699).
func (a *response) resumable(reader *eventReader, err error) bool {
	_, large := errors.AsType[*request.TooLargeError](err)
	return reader.lastID != "" && a.r.Header == nil && a.r.Method != "initialize" && !large
}

// resume reads on after a stream that broke with the error cause: it opens another stream that begins after the last event that
// arrived. previous is the reader of the broken stream. ctx bounds the time. If the server offers no such stream, resume returns
// cause.
func (a *response) resume(ctx context.Context, previous *eventReader, cause error) (wire.Message, error) {
	a.resumed = true
	idle, failures := 0, 0 // how many attempts in a row have brought no new event, and how many have opened no stream
	for delay.Sleep(ctx, resumePause(previous.retry, idle)) {
		resp, err := a.link.openStream(ctx, previous.lastID)
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
		reader := previous.resumed(resp.Body)
		answer, err := a.events(reader)
		resp.Body.Close()
		if err == nil || !a.resumable(reader, err) {
			return answer, err
		}
		idle++
		if reader.lastID != previous.lastID {
			idle = 0
		}
		previous, failures, cause = reader, 0, err
	}
	return wire.Message{}, ctx.Err()
}

// resumePause returns the pause that the server requests, or a longer pause after attempts that brought no new event. idle is the
// number of such attempts in a row.
func resumePause(retry time.Duration, idle int) time.Duration {
	pause := firstResume
	if retry >= 0 {
		pause = max(retry, minPause)
	}
	return max(pause, min(pause<<min(idle, 10), maxPause))
}
