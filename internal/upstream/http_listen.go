package upstream

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"mcpx/internal/wire"
)

// listen keeps the GET stream of a legacy session open, on which a server sends
// what belongs to no request. opened is called each time that it is. It ends with
// close, or when the server does not offer the stream, and calls ended then.
func (l *httpLink) listen(opened, ended func()) {
	l.streams.Go(func() {
		defer ended()
		pause, lastID, worked := time.Second, "", false
		for l.ctx.Err() == nil {
			began := time.Now()
			offered, err := l.listenOnce(&lastID, func() { worked = true; opened() })
			// What worked once is refused for a reason that can pass.
			if !offered && (!worked || errors.Is(err, errGone)) {
				return
			}
			if time.Since(began) > time.Minute {
				pause = time.Second
			}
			l.spec.Logger.Debug("listening stream ended", "err", err)
			if !sleep(l.ctx, max(pause, retryAfterOf(err))) {
				return
			}
			pause = min(2*pause, time.Minute)
		}
	})
}

// listenOnce reads one GET stream to its end. offered is false if the server
// has none, or no session any more.
func (l *httpLink) listenOnce(lastID *string, opened func()) (offered bool, err error) {
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return false, err
	}
	header := http.Header{}
	if *lastID != "" {
		header.Set("Last-Event-Id", *lastID)
	}
	l.setHeaders(req, header)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := l.client.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNotFound && l.session.Load() != nil:
		// Some servers answer 404 where they mean that there is no such stream:
		// the next call or health check tells whether the session lives.
		return false, errGone
	case resp.StatusCode != http.StatusOK:
		err := l.statusText(resp, nil) // whose body may never end
		return passing(err), err
	case media != "text/event-stream":
		return false, nil
	}
	opened()
	return true, l.pump(resp.Body, lastID)
}

// pump hands the messages of an event stream to in until the stream ends.
func (l *httpLink) pump(body io.Reader, lastID *string) error {
	reader := newEventReader(body, l.spec.MaxMessage)
	for {
		ev, err := reader.next()
		var large *wire.TooLargeError
		if errors.As(err, &large) {
			continue
		}
		if err != nil {
			return err
		}
		if ev.id != "" {
			*lastID = ev.id
		}
		if message, err := wire.Parse(ev.data); err == nil && message.Method != "" {
			l.in(message)
		}
	}
}

// sleep waits, and reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
