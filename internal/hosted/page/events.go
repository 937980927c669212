package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"mcpx/internal/hosted/httpd"
)

const (
	// maxViewers is the maximum number of open event streams. A page that gets no stream asks for the state every few seconds.
	maxViewers = 50
	// lookEvery is how often a stream checks whether the state has changed.
	lookEvery = 2 * time.Second
	// quietFor is how long a stream may send nothing, because proxies close streams that are silent for too long.
	quietFor = 20 * time.Second
	// writeWithin is how long writing an event, or the answer to a call, may take.
	writeWithin = 30 * time.Second
)

// current returns the state of mcpx as JSON. It caches the state, so that the state is not made anew for each viewer. If the cached
// state is younger than age, current returns it. Otherwise current makes the state again.
func (p *Page) current(age time.Duration) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.state == nil || now.Sub(p.made) >= age {
		all := map[string]any{}
		if p.About != nil {
			all = p.About()
		}
		all["status"], all["hour"], all["mode"], all["calls"] = p.Status(), p.Hour.last(now), p.mode(), p.Calls.mode()
		text, err := json.Marshal(all)
		if err != nil {
			p.Logger.Error("encoding the state for the page", "err", err)
			return p.state
		}
		p.state, p.made = text, now
	}
	return p.state
}

// sendState sends the present state of mcpx, and whether the viewer has a session to sign out of. The page asks for them after it
// has changed something.
func (p *Page) sendState(w http.ResponseWriter, r *http.Request) {
	_, err := r.Cookie(cookieName)
	if p.Links != nil {
		err = nil
	}
	httpd.WriteJSON(w, http.StatusOK, struct {
		Session bool            `json:"session"`
		State   json.RawMessage `json:"state"`
	}{err == nil, p.current(0)})
}

// events sends the state whenever it has changed. It returns when the viewer disconnects or loses the right to see the page, or
// when the page closes ([Page.EndUnused]).
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	select {
	case p.viewers <- struct{}{}:
		defer func() { <-p.viewers }()
	default:
		Refuse(w, http.StatusServiceUnavailable, "busy", "too many pages are open")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise nginx buffers the events
	stream := http.NewResponseController(w)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var sent []byte
	var quiet time.Time
	for {
		state, now := p.current(lookEvery/2), time.Now()
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
		case <-r.Context().Done(): // the viewer has disconnected, or the viewer's token was revoked
		case <-p.ended:
			_, _ = fmt.Fprintf(w, "event: ended\ndata: {\"why\":%q}\n\n", p.reason)
			return
		}
		if _, refused := p.viewer(r); refused != nil {
			// Without this event, the page would take the end of the stream for a lost connection, and try to reconnect for ten
			// seconds.
			_, _ = w.Write([]byte("event: refused\ndata: {}\n\n"))
			return
		}
		if r.Context().Err() != nil {
			return
		}
	}
}
