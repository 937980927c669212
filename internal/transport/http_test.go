package transport

import (
	"net/http"
	"testing"
)

// TestHTTPClient_Unbounded: the HTTP client has no timeouts for how long an event stream or a call may be silent.
func TestHTTPClient_Unbounded(t *testing.T) {
	client := newHTTPClient(Remote{})
	if transport := client.Transport.(*http.Transport); client.Timeout != 0 || transport.ResponseHeaderTimeout != 0 {
		t.Errorf("the HTTP client gives up after %v, or %v without a header", client.Timeout, transport.ResponseHeaderTimeout)
	}
}
