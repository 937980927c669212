package front

import (
	"context"
	"net/http"
	"net/http/httptest"
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
