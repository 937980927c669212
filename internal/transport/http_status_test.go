package transport

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestStatusError_Refused: a redirect, or a status 4xx other than 408, shows that the request was not executed. The status 408
// or 5xx does not: a gateway may give up a request on which the server still works.
func TestStatusError_Refused(t *testing.T) {
	for code, want := range map[int]bool{202: false, 302: true, 400: true, 404: true, 408: false, 429: true, 499: true, 500: false, 502: false, 504: false} {
		if got := (&StatusError{Code: code}).Refused(); got != want {
			t.Errorf("%d: %t, want %t", code, got, want)
		}
	}
}

// TestParseRetryAfter: Retry-After is in seconds or a date, and the result is bounded.
func TestParseRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, " 120 ": 2 * time.Minute, "0": 0, "-5": 0, "1h": 0, "soon": 0, "": 0,
		"99999999999": maxRetryAfter, "99999999999999999999": 0,
		"Wed, 21 Oct 2015 07:28:00 GMT": 0, "Fri, 01 Jan 2999 00:00:00 GMT": maxRetryAfter,
	} {
		if got := parseRetryAfter(value); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(90 * time.Second)
		if got := parseRetryAfter(at.UTC().Format(http.TimeFormat)); got != 90*time.Second {
			t.Errorf("a date in 90 s: got %v", got)
		}
	})
	if got := RetryAfterOf(&StatusError{RetryAfter: time.Hour}); got != maxOwnWait {
		t.Errorf("mcpx itself would wait for %v", got)
	}
}
