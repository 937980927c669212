package logins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
	"golang.org/x/oauth2"
)

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		resource, server string
		want             bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp/", "https://a.example/mcp", true},
		{"https://a.example", "https://a.example/mcp", true},
		{"https://A.example/", "https://a.example/mcp", true},
		{"https://a.example/m", "https://a.example/mcp", false},
		{"https://a.example/other", "https://a.example/mcp", false},
		{"https://b.example/mcp", "https://a.example/mcp", false},
		{"http://a.example/mcp", "https://a.example/mcp", false},
		{"https://a.example:8443/mcp", "https://a.example/mcp", false},
		{"", "https://a.example/mcp", false},
		{"https://a.example/mcp", "wss://a.example/mcp", true},
		{"wss://a.example/mcp", "wss://a.example/mcp", true},
		{"http://a.example/mcp", "wss://a.example/mcp", false},
	} {
		if got := covers(test.resource, test.server); got != test.want {
			t.Errorf("%s, %s: %t", test.resource, test.server, got)
		}
	}
}

// TestStore: a file is encrypted with a key from the keyring. It cannot be read without that key, nor under another name.
func TestStore(t *testing.T) {
	keyring.MockInit()
	ctx, dir := context.Background(), t.TempDir()
	s := &store{dir: dir}
	kept := login{Server: "tracker", Access: "an-access-token", Refresh: "a-refresh-token", Expiry: time.Now().Add(time.Hour).Round(0)}
	if err := s.write(ctx, "a.login", kept); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a.login"))
	if err != nil || strings.Contains(string(data), "token") || strings.Contains(string(data), "tracker") {
		t.Errorf("on disk: %s %v", data, err)
	}
	var got login
	if err := (&store{dir: dir}).read(ctx, "a.login", &got); err != nil || got.Access != kept.Access || !got.Expiry.Equal(kept.Expiry) {
		t.Errorf("read: %+v %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.login"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&store{dir: dir}).read(ctx, "b.login", &got); !errors.Is(err, errLost) {
		t.Errorf("a file under another name: %v", err)
	}
	if err := s.read(ctx, "c.login", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	keyring.MockInit() // the keyring is empty again
	if err := (&store{dir: dir}).read(ctx, "a.login", &got); !errors.Is(err, errLost) {
		t.Errorf("without the key: %v", err)
	}
}

// TestStore_Locked: if the keyring fails, a stored login is not lost. A process that already has the key can still use it.
func TestStore_Locked(t *testing.T) {
	keyring.MockInit()
	server := Server{Name: "tracker", URL: "https://tracker.example/mcp"}
	ctx, l := context.Background(), New(t.TempDir(), nil)
	if err := l.store.write(ctx, loginFile(server), login{Access: "an-access-token"}); err != nil {
		t.Fatal(err)
	}
	keyring.MockInitWithError(errors.New("the collection is locked"))
	fresh := New(l.store.(*store).dir, nil)
	if _, err := fresh.source(server).token(ctx); err == nil || !strings.Contains(err.Error(), "the collection is locked") {
		t.Errorf("locked: %v", err)
	}
	if token, err := l.source(server).token(ctx); err != nil || token != "an-access-token" {
		t.Errorf("the process that has the key: %q %v", token, err)
	}
}

// TestTokenError: the error says what went wrong at the token endpoint. Of the response it quotes only the OAuth error and its
// description, and of the request nothing.
func TestTokenError(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		body, want string
		final      bool
	}{
		"refused":   {400, `{"error":"invalid_grant","error_description":"gone"}`, "the authorization server https://as.example says invalid_grant: gone", true},
		"passing":   {503, `{"error":"temporarily_unavailable","x":"SECRET"}`, "the authorization server https://as.example answered 503 Service Unavailable", false},
		"limited":   {429, `SECRET`, "the authorization server https://as.example answered 429 Too Many Requests", false},
		"page":      {502, `<html>SECRET`, "the authorization server https://as.example answered 502 Bad Gateway", false},
		"no JSON":   {200, `{"access_token":"SECRET"`, "the authorization server https://as.example: its response is not a token", false},
		"no token":  {200, `{"refresh_token":"SECRET"}`, "the authorization server https://as.example: oauth2: server response missing access_token", false},
		"bad bytes": {400, "{\"error\":\"invalid_request\",\"error_description\":\"a\\u001b[31m\\nb\"}", "the authorization server https://as.example says invalid_request: a b", false},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		}))
		e := endpoint{Issuer: "https://as.example", Token: web.URL, Client: client{ID: "x"}}
		_, err := e.ask(context.Background(), web.Client(), nil, map[string][]string{"grant_type": {"refresh_token"}, "refresh_token": {"SECRET"}})
		web.Close()
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: %v", name, err)
		}
		refusal, ok := errors.AsType[*refusedError](err)
		if got := ok && final(refusal.code); got != test.final {
			t.Errorf("%s: final %t", name, got)
		}
	}
}

// TestAuthorize: Authorize adds tokens only if the server's URL is encrypted or on this machine, and the config has no
// Authorization header for it.
func TestAuthorize(t *testing.T) {
	l := New(t.TempDir(), nil)
	for want, servers := range map[bool][]Server{
		true: {{URL: "https://a.example/mcp"}, {URL: "http://localhost:8080/mcp"}, {URL: "http://[::1]/mcp"}, {URL: "wss://a.example/mcp"}, {URL: "ws://127.0.0.1/mcp"}},
		false: {
			{URL: "http://a.example/mcp"}, {URL: "http://10.0.0.1/mcp"}, {URL: "ws://a.example/mcp"},
			{URL: "https://a.example/mcp", Headers: map[string]string{"authorization": "Bearer x"}},
		},
	} {
		for _, s := range servers {
			if wrap, secrets := l.Authorize(s); (wrap != nil) != want || (secrets != nil) != want {
				t.Errorf("%+v: not %t", s, want)
			}
		}
	}
}

// TestTransport_Elsewhere: transport adds a token only to requests to the hosts of its server.
func TestTransport_Elsewhere(t *testing.T) {
	tr := &transport{server: Server{URL: "https://a.example/mcp", URLs: []string{"https://a.example/mcp", "https://c.example/mcp"}}}
	for address, want := range map[string]string{
		"https://a.example/other": "Bearer x", "https://a.example:8443/": "Bearer x",
		"https://c.example/mcp": "Bearer x", "http://c.example/mcp": "",
		"http://a.example/mcp": "", "https://b.example/mcp": "", "https://a.example.evil.example/": "",
	} {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.withToken(req, "x").Header.Get("Authorization"); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// TestStyle: whether the client authenticates in the header or in the body depends on its secret, on its registered method, and
// on the methods that the authorization server supports.
func TestStyle(t *testing.T) {
	for _, test := range []struct {
		secret, method string
		takes          []string
		want           oauth2.AuthStyle
	}{
		{"", "", nil, oauth2.AuthStyleInParams},
		{"", "client_secret_basic", nil, oauth2.AuthStyleInParams},
		{"s", "client_secret_basic", nil, oauth2.AuthStyleInHeader},
		{"s", "client_secret_post", []string{"client_secret_basic"}, oauth2.AuthStyleInParams},
		{"s", "", []string{"client_secret_post"}, oauth2.AuthStyleInParams},
		{"s", "", []string{"none", "client_secret_post", "client_secret_basic"}, oauth2.AuthStyleInHeader},
		{"s", "", nil, oauth2.AuthStyleInHeader},
	} {
		e := endpoint{Methods: test.takes, Client: client{ID: "x", Secret: test.secret, Method: test.method}}
		if got := e.style(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestDiscover_BehindProxy: if the metadata URL in the challenge is a private address, not encrypted or not found,
// discover uses the well-known URLs of the specification.
func TestDiscover_BehindProxy(t *testing.T) {
	var web *httptest.Server
	hidden := false
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/.well-known/oauth-protected-resource/mcp" && !hidden:
			fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%s"]}`, web.URL, web.URL)
		case r.URL.Path == "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"%s/token","code_challenge_methods_supported":["S256"]}`, web.URL, web.URL)
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	s := Server{Name: "tracker", URL: web.URL + "/mcp"}
	for _, place := range []string{"", "http://tracker.example/.well-known/x", "https://10.0.0.1/x", web.URL + "/no/such/place"} {
		f, err := discover(context.Background(), newHTTPClient(s), s, challenge{metadata: place}, wanted{asked: true})
		if err != nil || f.resource != s.URL || f.server.TokenEndpoint != web.URL+"/token" {
			t.Errorf("%q: %+v %v", place, f, err)
		}
	}
	hidden = true
	if _, err := discover(context.Background(), newHTTPClient(s), s, challenge{metadata: "https://10.0.0.1/x"}, wanted{asked: true}); err == nil || !strings.Contains(err.Error(), "oauth.allow_private") {
		t.Errorf("nothing elsewhere: %v", err)
	}
}

// TestDiscover_Places: the metadata of an authorization server are at the first well-known place that has metadata of this issuer. The
// slash at the end of an issuer does not belong to the place (RFC 8414, section 3.1). A place with anything else is passed over.
func TestDiscover_Places(t *testing.T) {
	var web *httptest.Server
	var at, issuer string
	var elsewhere http.HandlerFunc
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%s"]}`, web.URL, issuer)
		case at:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"%s/token","code_challenge_methods_supported":["S256"]}`, issuer, web.URL)
		default:
			elsewhere(w, r)
		}
	}))
	defer web.Close()
	s := Server{Name: "tracker", URL: web.URL + "/mcp"}
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	page := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html>") }
	broken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	other := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":"https://honest.example","token_endpoint":"%s/token","code_challenge_methods_supported":["S256"]}`, web.URL)
	}
	for _, test := range []struct {
		path, at  string
		elsewhere http.HandlerFunc
		found     bool
	}{
		{"", oauth, http.NotFound, true},
		{"", openID, http.NotFound, true},
		{"/", oauth, http.NotFound, true},
		{"/", openID, http.NotFound, true},
		{"/a/b", oauth + "/a/b", http.NotFound, true},
		{"/a/b/", oauth + "/a/b", http.NotFound, true},
		{"/a/b/", openID + "/a/b", http.NotFound, true},
		{"/a/b", "/a/b" + openID, http.NotFound, true},
		{"/a/b/", "/a/b" + openID, http.NotFound, true},
		{"", openID, page, true},
		{"", openID, broken, true},
		{"/a", "/a" + openID, other, true},
		{"", "", http.NotFound, false},
		{"", "", page, false},
		{"", "", broken, false},
		{"", "", other, false},
	} {
		at, issuer, elsewhere = test.at, web.URL+test.path, test.elsewhere
		f, err := discover(t.Context(), newHTTPClient(s), s, challenge{}, wanted{asked: true})
		if found := err == nil && f.server.TokenEndpoint == web.URL+"/token"; found != test.found {
			t.Errorf("issuer with the path %q, metadata at %q: %v", test.path, test.at, err)
		}
	}
}

// TestDiscover_WithoutPKCE: metadata that do not name S256 are enough for tokens that mcpx gets itself, which need no PKCE, but not for
// a login in a browser.
func TestDiscover_WithoutPKCE(t *testing.T) {
	var web *httptest.Server
	methods := ""
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token"%[2]s}`, web.URL, methods)
		case "/token":
			fmt.Fprint(w, `{"access_token":"ours","token_type":"Bearer"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer web.Close()
	for _, methods = range []string{"", `,"code_challenge_methods_supported":["plain"]`} {
		s := Server{Name: "tracker", URL: web.URL + "/mcp"}
		s.ClientID, s.ClientSecret, s.Issuer = "ours", "secret", web.URL
		l := New(t.TempDir(), nil)
		if _, err := l.begin(t.Context(), s, ""); err == nil || !strings.Contains(err.Error(), "PKCE") {
			t.Errorf("%q: a login: %v", methods, err)
		}
		s.Grant = ClientCredentials
		src := l.source(s)
		got, err := src.machineToken(t.Context(), nil, challenge{}, false)
		if err != nil || got != "ours" {
			t.Errorf("%q: a token of mcpx itself: %q %v", methods, got, err)
		}
		l.Close(time.Minute)
	}
}

// TestIsPage: a browser is sent to http and https alone, and unencrypted only to this machine.
func TestIsPage(t *testing.T) {
	for address, want := range map[string]bool{
		"https://login.example/a": true, "HTTPS://login.example/a": true, "http://localhost:1/a": true,
		"http://login.example/a": false, "wss://login.example/a": false, "WSS://login.example/a": false, "javascript:alert(1)": false, "": false,
	} {
		if isPage(address) != want {
			t.Errorf("%q: want %t", address, want)
		}
	}
}

// TestBegin_MovedServer: the configured client belongs to the authorization server of the last login. If the server names another one
// now, no login begins, because that one would get the client's secret. oauth.issuer permits it, and a registered client has its own
// registration at each authorization server.
func TestBegin_MovedServer(t *testing.T) {
	keyring.MockInit()
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%s"]}`, web.URL, web.URL)
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","registration_endpoint":"%[1]s/register","code_challenge_methods_supported":["S256"]}`, web.URL)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer web.Close()
	const elsewhere = "https://login.example"
	for _, test := range []struct {
		client, issuer, before, of string
		refused                    bool
	}{
		{"ours", "", elsewhere, "ours", true},
		{"ours", "", web.URL, "ours", false},
		{"ours", web.URL, elsewhere, "ours", false},
		{"another", "", elsewhere, "ours", false},
		{"", "", elsewhere, "registered", false},
		{"ours", "", "", "", false},
	} {
		s := Server{Name: "tracker", URL: web.URL + "/mcp"}
		s.ClientID, s.Issuer = test.client, test.issuer
		l := New(t.TempDir(), nil)
		if test.before != "" {
			before := login{Endpoint: endpoint{Issuer: test.before, Client: client{ID: test.of}}}
			if err := l.store.write(t.Context(), loginFile(s), before); err != nil {
				t.Fatal(err)
			}
		}
		b, err := l.begin(t.Context(), s, "")
		if err == nil {
			b.web.CloseIdleConnections()
		}
		if refused := err != nil; refused != test.refused || refused && !strings.Contains(err.Error(), elsewhere) {
			t.Errorf("%+v: %v", test, err)
		}
		l.Close(time.Minute)
	}
}

// TestClose: Close waits for a token request whose caller has given up. The old refresh token is used up by the request,
// so the new one must be stored.
func TestClose(t *testing.T) {
	keyring.MockInit()
	asked, release := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-release
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"new","token_type":"Bearer","refresh_token":"next","expires_in":600}`)
	}))
	defer web.Close()
	s := Server{Name: "tracker", URL: web.URL + "/mcp"}
	l := New(t.TempDir(), nil)
	old := login{Endpoint: endpoint{Token: web.URL, Client: client{ID: "x"}}, Access: "old", Refresh: "once", Expiry: time.Now().Add(-time.Minute)}
	if err := l.store.write(context.Background(), loginFile(s), old); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	given := make(chan error)
	go func() { // ends when cancel is called
		_, err := l.source(s).token(ctx)
		given <- err
	}()
	<-asked
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that gave up: %v", err)
	}
	closed := make(chan struct{})
	go func() { // ends once the token is stored
		l.Close(time.Minute)
		close(closed)
	}()
	close(release)
	<-closed
	if err := l.store.read(context.Background(), loginFile(s), &old); err != nil || old.Access != "new" || old.Refresh != "next" {
		t.Errorf("kept: %+v %v", old, err)
	}
}

// TestExplain: if a server does not respond, the error says so, without the URL that errors of net/http contain.
func TestExplain(t *testing.T) {
	silent := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-silent }))
	defer web.Close()
	defer close(silent)
	client, who := &http.Client{Timeout: time.Millisecond}, client{ID: "x"}
	if _, err := client.Get(web.URL); err == nil || explain(err).Error() != "no answer in time" {
		t.Errorf("got %v", err)
	}
	_, err := (endpoint{Issuer: "https://as.example", Token: web.URL, Client: who}).ask(context.Background(), client, nil, url.Values{"grant_type": {"refresh_token"}})
	if err == nil || err.Error() != "the authorization server https://as.example: no answer in time" {
		t.Errorf("got %v", err)
	}
}

// TestTake_Sleep: the clocks of a login are those of the wall. The monotonic clock stands still while the machine sleeps, so with it a
// token that expired in the night would be sent in the morning.
func TestTake_Sleep(t *testing.T) {
	l := &login{}
	l.take(&oauth2.Token{AccessToken: "a", Expiry: time.Now().Add(time.Hour)})
	if l.Expiry != l.Expiry.Round(0) || l.Issued != l.Issued.Round(0) {
		t.Errorf("issued %v, expires %v", l.Issued, l.Expiry)
	}
}

// TestTake_Life: whatever a token says of its life, a renewal keeps its refresh token: the one before works no more.
func TestTake_Life(t *testing.T) {
	keyring.MockInit()
	const unknown = -1
	for life, want := range map[string]time.Duration{
		"3600": time.Hour, "3599.5": time.Hour, `"3600"`: time.Hour, `"3599.5"`: time.Hour,
		"-5": 0, "-99999999999999": 0, "99999999999999": math.MaxInt32 * time.Second, "1e9": 1e9 * time.Second,
		"0": unknown, `""`: unknown, `"soon"`: unknown, `"NaN"`: unknown, "null": unknown, "true": unknown, "{}": unknown,
	} {
		e := &tokenEndpoint{body: `{"access_token":"new","token_type":"Bearer","refresh_token":"next","expires_in":` + life + `}`}
		l := New(t.TempDir(), nil)
		src := expired(t, l, e)
		token, err := src.token(t.Context())
		var kept login
		if err := l.store.read(t.Context(), src.file, &kept); err != nil {
			t.Fatal(err)
		}
		if token != "new" || err != nil || kept.Refresh != "next" {
			t.Errorf("expires_in %s: %q %v, kept %q", life, token, err, kept.Refresh)
		}
		got := time.Until(kept.Expiry).Round(time.Minute)
		if kept.Expiry.IsZero() {
			got = unknown
		}
		if got != want.Round(time.Minute) && got != want {
			t.Errorf("expires_in %s: valid for %v", life, got)
		}
		l.Close(time.Minute)
	}
}
