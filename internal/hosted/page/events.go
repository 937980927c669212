package page

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"mcpx/internal/hosted/httpd"
)

const (
	// maxViewers bounds the open event streams. A page without a stream polls instead.
	maxViewers = 50
	// lookEvery is the time between two checks for a change.
	lookEvery = 2 * time.Second
	// quietFor is how long a stream may be silent, as proxies close silent streams.
	quietFor = 20 * time.Second
	// writeWithin bounds the time to write an event.
	writeWithin = 30 * time.Second
)

// current returns the state of mcpx as JSON, the same bytes for all viewers. It is computed at most once per half of
// lookEvery.
func (p *Page) current() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.state == nil || now.Sub(p.made) >= lookEvery/2 {
		text, err := json.Marshal(map[string]any{"status": p.Status(), "hour": p.Hour.last(now)})
		if err != nil {
			p.Logger.Error("encoding the state for the page", "err", err)
			return p.state
		}
		p.state, p.made = text, now
	}
	return p.state
}

// sendState answers with the state, and whether the viewer has a session to sign out of.
func (p *Page) sendState(w http.ResponseWriter, r *http.Request) {
	_, err := r.Cookie(cookieName)
	httpd.WriteJSON(w, http.StatusOK, struct {
		Session bool            `json:"session"`
		State   json.RawMessage `json:"state"`
	}{err == nil, p.current()})
}

// events streams the state whenever it has changed, until the viewer leaves, loses the right to see it, or mcpx ends.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	select {
	case p.viewers <- struct{}{}:
		defer func() { <-p.viewers }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx would buffer events
	stream := http.NewResponseController(w)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var sent []byte
	var quiet time.Time
	for {
		state, now := p.current(), time.Now()
		text := []byte(":\n\n")
		if changed := !bytes.Equal(state, sent); changed {
			text = append(append([]byte("data: "), state...), "\n\n"...)
			sent = state
		}
		if len(text) > 3 || now.Sub(quiet) >= quietFor {
			quiet = now
			_ = stream.SetWriteDeadline(now.Add(writeWithin))
			if _, err := w.Write(text); err != nil || stream.Flush() != nil {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done(): // the viewer has left, or its token was revoked
		case <-p.ended:
			return
		}
		if _, refused := p.viewer(r); refused != nil {
			// Otherwise the page would take the end for a lost connection, and retry for ten seconds.
			_, _ = w.Write([]byte("event: refused\ndata: {}\n\n"))
			return
		}
		if r.Context().Err() != nil {
			return
		}
	}
}
