package front

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/identity"
	"mcpx/internal/view"
)

// TestEndUnknown_Late: a session that begins after EndUnknown has ended the others does not
// stay either.
func TestEndUnknown_Late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known atomic.Bool
		f := connectWith(t, Options{Known: func(*identity.Principal) bool { return known.Load() }}, view.Options{})
		f.EndUnknown()
		post := httptest.NewRequest("POST", "/mcp", strings.NewReader(strings.SplitN(hello("late"), "\n", 2)[0]))
		post.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, post)
		if f.Sessions() != 1 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		time.Sleep(2 * time.Minute)
		if n := f.Sessions(); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}
