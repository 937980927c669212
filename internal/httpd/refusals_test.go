package httpd

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/identity"
)

// A stranger who is refused before any flood is counted must not fill the log.
func TestRefusedRequestsFillNoLog(t *testing.T) {
	long := strings.Repeat("x", 60_000)
	for name, change := range map[string]func(*http.Request){
		"host":   func(r *http.Request) { r.Host = "evil." + long },
		"origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil."+long) },
		"path":   func(r *http.Request) { r.URL.Path += long },
		"method": func(r *http.Request) { r.Method = long },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				verifier := &identity.Verifier{}
				verifier.SetOptions(&identity.Options{})
				defer verifier.SetOptions(nil)
				o := &Options{Endpoint: stub(http.NotFound), Identity: verifier, Logger: slog.New(slog.NewTextHandler(&out, nil))}
				h := o.handler()
				refused := func() {
					r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", nil)
					change(r)
					answer := httptest.NewRecorder()
					if h.ServeHTTP(answer, r); answer.Code < 400 {
						t.Fatalf("status %d", answer.Code)
					}
				}
				for range 500 {
					refused()
				}
				if lines := strings.Count(out.String(), "\n"); lines != 50 || out.Len() > 50*1024 {
					t.Errorf("500 requests are %d lines with %d bytes", lines, out.Len())
				}
				time.Sleep(time.Second)
				out.Reset()
				if refused(); !strings.Contains(out.String(), "left_out_before=450") {
					t.Errorf("the next line is %s", out.String())
				}
			})
		})
	}
}
