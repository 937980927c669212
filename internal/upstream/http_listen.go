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
// what belongs to no request. It ends with close, or when the server does not
// offer the stream.
func (l *httpLink) listen() {
	l.streams.Add(1)
	go func() {
		defer l.streams.Done()
		pause := time.Second
		lastID := ""
		for l.ctx.Err() == nil {
			began := time.Now()
			offered, err := l.listenOnce(&lastID)
			if !offered {
				return
			}
			if time.Since(began) > time.Minute {
				pause = time.Second
			}
			l.spec.Logger.Debug("listening stream ended", "err", err)
			if !sleep(l.ctx, pause) {
				return
			}
			pause = min(2*pause, time.Minute)
		}
	}()
}

// listenOnce reads one GET stream to its end. offered is false if the server
// has none, or no session any more.
func (l *httpLink) listenOnce(lastID *string) (offered bool, err error) {
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
	case resp.StatusCode >= 500:
		return true, &statusError{code: resp.StatusCode, text: resp.Status}
	case resp.StatusCode != http.StatusOK || media != "text/event-stream":
		return false, nil
	}
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

// subscribe keeps a subscriptions/listen request of the modern era open. next
// makes the message, with a fresh id each time. It ends with close, or when the
// server does not offer it.
func (l *httpLink) subscribe(next func() request) {
	l.streams.Add(1)
	go func() {
		defer l.streams.Done()
		pause := time.Second
		for l.ctx.Err() == nil {
			began := time.Now()
			message, err := l.request(l.ctx, next())
			if err == nil && message.Error != nil {
				return
			}
			var status *statusError
			if errors.As(err, &status) && status.code < 500 && status.code != http.StatusTooManyRequests {
				return
			}
			if time.Since(began) > time.Minute {
				pause = time.Second
			}
			if !sleep(l.ctx, pause) {
				return
			}
			pause = min(2*pause, time.Minute)
		}
	}()
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
