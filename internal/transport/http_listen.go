package transport

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/base/wire"
)

// Listen keeps the GET stream of a legacy session open, on which a server sends
// what belongs to no request. opened is called each time that it is. It ends with
// Close, or when the server does not offer the stream, and calls none then.
func (l *httpLink) Listen(opened, none func()) {
	l.streams.Go(func() {
		defer none()
		worked := false
		last := &eventReader{retry: -1} // before the first stream
		delay.Retry(l.ctx, func() (wait time.Duration, again bool) {
			resp, err := l.openStream(l.ctx, last.lastID)
			switch {
			case err == nil:
				worked = true
				opened()
				last, err = l.pump(resp, last)
			case errors.Is(err, ErrGone), !Passing(err) && !worked:
				// A stream that worked once is refused for a reason that can pass.
				return 0, false
			case !Passing(err):
				last.lastID = "" // it may be refused for that
			}
			l.dialer.Logger.Debug("listening stream ended", "err", err)
			return max(min(last.retry, maxOwnWait), RetryAfterOf(err)), true
		})
	})
}

// get asks for an event stream. What comes may be anything else.
func (l *httpLink) get(ctx context.Context, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return nil, err
	}
	l.setHeaders(req, header)
	req.Header.Set("Accept", "text/event-stream")
	return l.client.Do(req)
}

// openStream asks for an event stream with GET, one that goes on behind the event
// lastID if that is not empty. [Passing] tells whether its error says that the
// server offers none.
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
		// Some servers answer 404 where they mean that there is no such stream:
		// the next call or health check tells whether the session lives.
		err = ErrGone
	default:
		err = l.dialer.statusText(resp, nil) // whose body may never end
	}
	resp.Body.Close()
	return nil, err
}

// pump hands the messages of an event stream to in until the stream ends. It goes
// on from the state of the last one, and returns its own.
func (l *httpLink) pump(resp *http.Response, last *eventReader) (*eventReader, error) {
	defer resp.Body.Close()
	reader := newEventReader(resp.Body, l.dialer.MaxMessage)
	reader.lastID, reader.retry = last.lastID, last.retry
	nobody := &response{link: l, r: Outgoing{ID: -1}} // whose answer does not come here
	for {
		ev, err := reader.next()
		if _, large := errors.AsType[*wire.TooLargeError](err); large {
			continue
		}
		if err != nil {
			return reader, err
		}
		l.dialer.traced(true, ev.data)
		nobody.accept(ev.data)
	}
}
