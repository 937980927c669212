package httpd

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/hosted/limits"
)

// TestRefusedRequestsFillNoLog: requests that are refused before floods are counted cannot fill the log.
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
				verifier := verifierOf(&identity.Options{})
				defer verifier.SetOptions(nil)
				o := &Options{Endpoint: stub(http.NotFound), Identity: verifier.Verifier, Logger: slog.New(slog.NewTextHandler(&out, nil))}
				h := o.handler()
				hosts := 0
				refused := func() {
					r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", nil)
					hosts++ // another address each time, because answers to the same one would be delayed
					r.RemoteAddr = fmt.Sprintf("192.0.%d.%d:1234", hosts/256, hosts%256)
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

// TestRefusedOverAndOverIsLate: if requests from one address are refused repeatedly before authentication, the
// answers are delayed.
func TestRefusedOverAndOverIsLate(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"host":   func(r *http.Request) { r.Host = "evil.example" },
		"origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &Options{Endpoint: stub(http.NotFound), Identity: &identity.Verifier{}, Limits: limits.New(conf.Limits{}), Logger: slog.New(slog.DiscardHandler)}
				h, began := o.handler(), time.Now()
				late := func(from string) bool {
					before := time.Now()
					r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", nil)
					r.RemoteAddr = from
					change(r)
					answer := httptest.NewRecorder()
					if h.ServeHTTP(answer, r); answer.Code != http.StatusForbidden {
						t.Fatalf("status %d", answer.Code)
					}
					return time.Since(before) > 0
				}
				for range 100 {
					if late("1.2.3.4:5") {
						t.Fatal("an early answer is late")
					}
				}
				for range 100 {
					late("1.2.3.4:5")
				}
				if took := time.Since(began); took < 2*time.Second {
					t.Errorf("200 refused requests took %s", took)
				}
				if late("1.2.3.5:5") {
					t.Error("the first answer to another address is late")
				}
			})
		})
	}
}
