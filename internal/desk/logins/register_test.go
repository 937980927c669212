package logins

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// TestRegister: whatever a registration endpoint answers, mcpx gets a client or a clear error, and the error does not quote the
// answer. A client that is registered without authentication (none) has no secret (RFC 7591, section 2), even if the answer names
// one: an authorization server may refuse requests with it.
func TestRegister(t *testing.T) {
	const redirect = "http://127.0.0.1:1/callback"
	made := client{ID: "x", Secret: "s3cret", Redirect: redirect}
	with := func(change func(*client)) client {
		one := made
		change(&one)
		return one
	}
	for _, test := range []struct {
		status     int
		body, want string // want is the error
		client     client
	}{
		{status: 201, body: `{"client_id":"x","client_secret":"s3cret"}`, client: made},
		{status: 200, body: `{"client_id":"x","client_secret":"s3cret","token_endpoint_auth_method":"none"}`,
			client: client{ID: "x", Method: "none", Redirect: redirect}},
		{status: 201, body: `{"client_id":"x","client_secret":"s3cret","token_endpoint_auth_method":"client_secret_post"}`,
			client: with(func(c *client) { c.Method = "client_secret_post" })},
		{status: 201, body: `{"client_id":"x","client_secret":"s3cret","client_secret_expires_at":1796000000}`,
			client: with(func(c *client) { c.Expires = time.Unix(1796000000, 0) })},
		{status: 201, body: `{"client_id":"x","client_secret":"s3cret","client_secret_expires_at":"1796000000.5"}`,
			client: with(func(c *client) { c.Expires = time.Unix(1796000000, 0) })},
		{status: 201, body: `{"client_id":"x","client_secret":"s3cret","client_secret_expires_at":0}`, client: made},
		{status: 201, body: `{"client_id":"x","client_secret":"s3cret","client_secret_expires_at":1796000000000}`, client: made},
		{status: 201, body: `{"client_id":"x","client_secret":"s3cret","client_secret_expires_at":"never"}`, client: made},
		{status: 201, body: `null`, want: "registering mcpx with https://as.example: the answer has no client_id"},
		{status: 201, body: `[]`, want: "registering mcpx with https://as.example: the answer has no client_id"},
		{status: 201, body: `{"client_secret":"s3cret"}`, want: "registering mcpx with https://as.example: the answer has no client_id"},
		{status: 403, body: `<html>s3cret`, want: "registering mcpx with https://as.example: the answer is 403 Forbidden"},
		{status: 400, body: `null`, want: "registering mcpx with https://as.example: the answer is 400 Bad Request"},
		{status: 403, body: `{"error":"insufficient_scope","error_description":"Policy\n'Trusted Hosts'"}`,
			want: "the authorization server https://as.example refuses to register mcpx: insufficient_scope Policy 'Trusted Hosts'"},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		}))
		meta := &oauthex.AuthServerMeta{Issuer: "https://as.example", RegistrationEndpoint: web.URL}
		got, err := register(t.Context(), web.Client(), meta, redirect, "native")
		switch {
		case test.want != "" && (err == nil || err.Error() != test.want || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("%s: %v", test.body, err)
		case test.want == "" && (err != nil || got != test.client):
			t.Errorf("%s: %+v %v", test.body, got, err)
		}
		web.Close()
	}
}

// TestClient_Ends: a client is registered again before its secret expires, and not if the secret never does.
func TestClient_Ends(t *testing.T) {
	for _, c := range []struct {
		expires time.Time
		ends    bool
	}{{time.Time{}, false}, {time.Now().Add(2 * time.Hour), false}, {time.Now().Add(30 * time.Minute), true}, {time.Now().Add(-time.Hour), true}} {
		if got := (&client{Expires: c.expires}).ends(); got != c.ends {
			t.Errorf("%v: %t", c.expires, got)
		}
	}
}
