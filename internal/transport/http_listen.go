package transport

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
)

// Listen keeps the GET stream of a legacy session open, on which the server sends messages that belong to no
// request. It stops when the link is closed, or when the server does not offer the stream.
func (l *httpLink) Listen(opened, unavailable func()) {
	l.streams.Go(func() {
		defer unavailable()
		worked := false
		// last is the reader of the previous stream; the next stream continues it.
		last := &eventReader{limit: l.dialer.MaxMessage, retry: -1}
		delay.Retry(l.ctx, func() (wait time.Duration, again bool) {
			resp, err := l.openStream(l.ctx, last.lastID)
			switch {
			case err == nil:
				worked = true
				opened()
				last, err = l.pump(resp, last)
			case errors.Is(err, ErrGone), !Passing(err) && !worked:
				// The refusal is final: the server answered 404, or no stream has ever worked. After a stream that
				// worked, other refusals may be temporary.
				return 0, false
			case !Passing(err):
				last.lastID = "" // perhaps the server refuses only to resume the old stream
			}
			l.dialer.Logger.Debug("listening stream ended", "err", err)
			return max(min(last.retry, maxOwnWait), RetryAfterOf(err)), true
		})
	})
}

// get requests an event stream with GET. The response may be anything else: the caller must check its status and content type.
func (l *httpLink) get(ctx context.Context, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return nil, err
	}
	l.setHeaders(req, header)
	req.Header.Set("Accept", "text/event-stream")
	return l.client.Do(req)
}

// openStream opens an event stream with GET. If lastID is not empty, it asks the server to begin after the event with this id.
// [Passing] tells from the error whether another attempt may succeed.
func (l *httpLink) openStream(ctx context.Context, lastID string) (*http.Response, error) {
	header := http.Header{}
	if lastID != "" {
		header.Set("Last-Event-Id", lastID)
	}
	resp, err := l.get(ctx, header)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
		return resp, nil
	case resp.StatusCode == http.StatusNotFound && l.session.Load() != nil:
		// Some servers answer 404 because they offer no such stream. Whether the session still exists is tested by
		// the next call or health check.
		err = ErrGone
	default:
		err = l.dialer.statusText(resp, nil) // the body is not read, as it may never end
	}
	resp.Body.Close()
	return nil, err
}

// pump passes the messages of an event stream to the session until the stream ends. previous is the reader of the stream before
// this one: its last event ID and the requested pause still apply. pump returns the reader of this stream.
func (l *httpLink) pump(resp *http.Response, previous *eventReader) (*eventReader, error) {
	defer resp.Body.Close()
	reader := previous.resumed(resp.Body)
	none := &response{link: l, r: Outgoing{ID: -1}} // an id that no answer has
	for {
		ev, err := reader.next()
		if _, large := errors.AsType[*wire.TooLargeError](err); large {
			continue
		}
		if err != nil {
			return reader, err
		}
		l.dialer.traced(true, ev.data)
		none.accept(ev.data)
	}
}
