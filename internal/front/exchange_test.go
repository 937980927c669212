package front

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/view"
)

// deadlines is a ResponseWriter that keeps the last write deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

// SetWriteDeadline is called by http.ResponseController.
func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.last = at
	return nil
}

// TestExtend: a large write has all of writeWithin, however much of the last deadline is left. A small one has at least half.
func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := connectWith(t, Options{}, view.Options{})
		ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: 2 * time.Minute})
		for _, test := range []struct {
			after time.Duration
			size  int
			left  time.Duration // 0 means that the deadline of net/http stays
		}{{50 * time.Second, 100, 0}, {70 * time.Second, 100, 2 * time.Minute}, {50 * time.Second, 1 << 20, 2 * time.Minute}} {
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			e := f.newExchange(w, httptest.NewRequestWithContext(ctx, "POST", "/mcp", nil))
			time.Sleep(test.after)
			e.answer(make([]byte, test.size))
			if left := time.Until(w.last); w.last.IsZero() != (test.left == 0) || test.left > 0 && left != test.left {
				t.Errorf("%d bytes after %v: %v", test.size, test.after, left)
			}
		}
	})
}

// stuck is a ResponseWriter whose client reads nothing until the channel is closed.
type stuck struct {
	*httptest.ResponseRecorder
	reads chan struct{}
}

func (s *stuck) Write(data []byte) (int, error) {
	<-s.reads
	return s.ResponseRecorder.Write(data)
}

// TestExchange_Flood: while the client does not read, notifications wait up to maxPending bytes, in their order. A question is still
// sent then, however large it is, but not a second one. So is a notification larger than that, if no other waits.
func TestExchange_Flood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := connectWith(t, Options{}, view.Options{})
		w := &stuck{httptest.NewRecorder(), make(chan struct{})}
		e := f.newExchange(w, httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil))
		e.notify("first", nil)
		synctest.Wait() // the first notification is being written
		params := json.RawMessage(`{"data":"` + strings.Repeat("x", 100) + `"}`)
		for range 100_000 {
			e.notify("later", params)
		}
		question := []byte(`{"method":"question","params":"` + strings.Repeat("x", 2*maxPending) + `"}`)
		if !e.send(question) {
			t.Error("the question was not sent")
		}
		if e.send(question) {
			t.Error("questions wait without a limit")
		}
		close(w.reads)
		synctest.Wait()
		e.notify("large", json.RawMessage(`"`+strings.Repeat("x", maxPending)+`"`))
		e.close()
		body := w.Body.String()
		if n := strings.Count(body, `"later"`); n < maxPending/200 || n > maxPending/100 {
			t.Errorf("%d notifications came", n)
		}
		for _, part := range []string{`"first"`, `"later"`, `"question"`, `"large"`} {
			at := strings.Index(body, part)
			if at < 0 {
				t.Fatalf("%s did not come, or not in its order", part)
			}
			body = body[at:]
		}
	})
}

// TestExchange_Pending: notifications that the clients of many streams do not read are bounded together. Beyond that, a stream whose client
// reads still gets small ones, and there is room again when the others are written or their connections have ended.
func TestExchange_Pending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pending := NewPending(16 * maxPending) // at most a quarter of it
		f := connectWith(t, Options{Pending: pending}, view.Options{})
		open := func() (*exchange, *stuck) {
			w := &stuck{httptest.NewRecorder(), make(chan struct{})}
			return f.newExchange(w, httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil)), w
		}
		large := json.RawMessage(`"` + strings.Repeat("x", 2*maxPending) + `"`)
		var streams []*exchange
		var clients []*stuck
		for range 20 {
			e, w := open()
			e.notify("large", large)
			synctest.Wait() // if it was taken, it is being written
			e.notify("large", large)
			streams, clients = append(streams, e), append(clients, w)
		}
		if n := pending.bytes.Load(); n < 2*maxPending || n > 4*maxPending {
			t.Errorf("%d bytes wait", n)
		}
		reader, w := open()
		close(w.reads)
		reader.notify("large", large)
		reader.notify("small", nil)
		reader.close()
		if body := w.Body.String(); !strings.Contains(body, `"small"`) || strings.Contains(body, `"large"`) {
			t.Errorf("a client that reads got %.200s", body)
		}
		for i, e := range streams {
			close(clients[i].reads)
			e.close()
		}
		if n := pending.bytes.Load(); n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
	})
}
