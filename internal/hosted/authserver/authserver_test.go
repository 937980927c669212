package authserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/mcptest"
)

// site is an authorization server with its login issuer and a user's browser.
type site struct {
	t       *testing.T
	server  *Server
	handler http.Handler // serves all requests of the browser; it is the server, unless a test changes it
	issuer  *issuer
	browser *http.Client
	log     *bytes.Buffer
	events  []string
	signed  []string // the numbers of the logins of mcpx's own pages
}

// recorder is an [audit.Logins] that calls a func.
type recorder func(audit.Login)

func (r recorder) Login(l audit.Login) { r(l) }

// unrecorded is an [audit.Logins] that records nothing.
var unrecorded = recorder(func(audit.Login) {})

func (s *site) record(l audit.Login) {
	if l.Event != audit.LoginRefused {
		s.events = append(s.events, fmt.Sprintf("%s, %s, %s, %s", l.Event, l.Principal[:4], l.Client, l.Reason))
	}
}

func (s *site) signedIn(_ http.ResponseWriter, _ *http.Request, login string, _ *caller.Principal) error {
	s.signed = append(s.signed, login)
	return nil
}

// storeIn opens a store of logins in a folder or, if the name of the folder is empty, in memory.
func storeIn(t testing.TB, folder string) state.Followed {
	t.Helper()
	store, err := state.OpenFolder(folder, MaxLogins, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newSite(t *testing.T, change ...func(*Options)) *site {
	t.Helper()
	mcptest.NoLeaks(t)
	s := &site{t: t, issuer: newIssuer(t), log: &bytes.Buffer{}}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	o := Options{
		Resource: web.URL + "/mcp", Granted: []string{"mcp"},
		AuthServer: conf.AuthServer{Issuer: s.issuer.url, ClientID: "mcpx", ClientSecret: "secret-of-the-issuer"},
		Secrets:    []*state.Secret{secretOf('k')}, Audit: recorder(s.record), Log: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for _, one := range change {
		one(&o)
	}
	var err error
	if s.server, err = New(o, Parts{Store: storeIn(t, t.TempDir()), SignedIn: s.signedIn}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.server.Close)
	s.handler = s.server
	s.browser = s.newBrowser()
	return s
}

// secretOf returns a secret that consists of one repeated letter.
func secretOf(letter byte) *state.Secret { return state.SecretOf(bytes.Repeat([]byte{letter}, 32)) }

// newBrowser returns a browser that follows redirects only between the servers on this machine.
func (s *site) newBrowser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		if origin := next.URL.Scheme + "://" + next.URL.Host; origin != s.server.issuer && origin != s.issuer.url {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

const (
	claude   = "https://claude.ai/api/mcp/auth_callback"
	verifier = "a-verifier-of-at-least-43-characters-as-PKCE-wants-it"
)

var challengeOfVerifier = digest(verifier)

// post posts a form and reads the JSON response.
func (s *site) post(path string, form url.Values, headers ...string) (status int, answer map[string]any) {
	s.t.Helper()
	return s.send(path, "application/x-www-form-urlencoded", form.Encode(), headers...)
}

func (s *site) send(path, kind, body string, headers ...string) (status int, answer map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.server.issuer+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.browser.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Cache-Control") != "no-store" {
		s.t.Errorf("%s may be cached: %q", path, resp.Header.Get("Cache-Control"))
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &answer); err != nil {
			s.t.Fatalf("%s: %v: %s", path, err, data)
		}
	}
	return resp.StatusCode, answer
}

// registered registers a client with these redirect URIs and returns its ID.
func (s *site) registered(redirects ...string) (id string) {
	s.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": "Claude", "redirect_uris": redirects})
	status, answer := s.send(registerPath, "application/json", string(body))
	if status != http.StatusCreated {
		s.t.Fatalf("registering: %d %v", status, answer)
	}
	return answer["client_id"].(string)
}

// query returns the parameters of a client's authorization request.
func (s *site) query(client, redirect string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"state of the client"}, "scope": {"mcp offline_access"},
		"code_challenge": {challengeOfVerifier}, "code_challenge_method": {"S256"}, "resource": {s.server.o.Resource},
	}
}

// open opens an authorization request in the browser. It returns the page, or the URL that the browser was redirected
// to.
func (s *site) open(query url.Values) (status int, text string, to *url.URL) {
	s.t.Helper()
	return s.get(s.server.issuer + authorizePath + "?" + query.Encode())
}

func (s *site) get(address string) (status int, text string, to *url.URL) {
	s.t.Helper()
	resp, err := s.browser.Get(address)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.read(resp)
}

func (s *site) read(resp *http.Response) (status int, text string, to *url.URL) {
	s.t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	to, _ = resp.Location()
	return resp.StatusCode, string(data), to
}

var pageField = regexp.MustCompile(`name="page" value="([^"]+)"`)

// allow opens an authorization request, and allows it on the consent page. It returns the parameters that the client
// receives.
func (s *site) allow(query url.Values) (back url.Values) {
	s.t.Helper()
	status, text, _ := s.open(query)
	field := pageField.FindStringSubmatch(text)
	if status != http.StatusOK || field == nil {
		s.t.Fatalf("authorize: %d %s", status, text)
	}
	resp, err := s.browser.PostForm(s.server.issuer+authorizePath+"?"+query.Encode(), url.Values{"page": {field[1]}, "answer": {"allow"}})
	if err != nil {
		s.t.Fatal(err)
	}
	status, text, to := s.read(resp)
	if to == nil {
		s.t.Fatalf("after allow: %d %s\n%s", status, text, s.log)
	}
	want, _ := url.Parse(query.Get("redirect_uri"))
	if to.Host != want.Host || to.Path != want.Path {
		s.t.Fatalf("sent to %s", to)
	}
	return to.Query()
}

// exchange returns the form with which a client exchanges a code for tokens.
func (s *site) exchange(client, redirect, code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {client}, "redirect_uri": {redirect}, "code_verifier": {verifier},
		"resource": {s.server.o.Resource},
	}
}

// connected goes through the whole login of a client, and returns the client's tokens.
func (s *site) connected(client, redirect string) (tokens map[string]any) {
	s.t.Helper()
	back := s.allow(s.query(client, redirect))
	if back.Get("code") == "" || back.Get("state") != "state of the client" || back.Get("iss") != s.server.Issuer() {
		s.t.Fatalf("sent back with %v\n%s", back, s.log)
	}
	status, tokens := s.post(tokenPath, s.exchange(client, redirect, back.Get("code")))
	if status != http.StatusOK {
		s.t.Fatalf("token: %d %v", status, tokens)
	}
	return tokens
}

func (s *site) refresh(client string, tokens map[string]any) (int, map[string]any) {
	s.t.Helper()
	return s.post(tokenPath, url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {tokens["refresh_token"].(string)}, "resource": {s.server.o.Resource}})
}

// counts reports whether the access token is valid.
func (s *site) counts(tokens map[string]any) bool {
	return s.server.Prove(tokens["access_token"].(string)) != nil
}

// TestConnect does what claude.ai does when it registers itself: it reads the metadata, gets a token, and then uses
// refresh tokens.
func TestConnect(t *testing.T) {
	s := newSite(t)
	status, text, _ := s.get(s.server.issuer + metadataPath)
	var metadata map[string]any
	if err := json.Unmarshal([]byte(text), &metadata); err != nil || status != 200 || metadata["issuer"] != s.server.issuer {
		t.Fatalf("%d %v %s", status, err, text)
	}
	if _, below, _ := s.get(s.server.issuer + metadataPath + "/mcp"); below != text {
		t.Errorf("below the path of the resource: %s", below)
	}
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	if tokens["token_type"] != "Bearer" || tokens["expires_in"] != 600.0 || tokens["scope"] != "mcp" {
		t.Errorf("%v", tokens)
	}
	proof := s.server.Prove(tokens["access_token"].(string))
	if proof == nil {
		t.Fatal("the token does not count")
	}
	who := proof.Principal
	if left := time.Until(proof.Until); left > accessTime || left < accessTime/2 || proof.Revoked.Err() != nil {
		t.Errorf("it counts for another %v", left)
	}
	if who.ID != s.issuer.url+" ann" || who.Name != "ann@"+strings.TrimPrefix(s.issuer.url, "http://") || !strings.Contains(string(who.Claims), `"email":"ann@example.com"`) || strings.Join(who.Groups, " ") != "staff" || strings.Join(who.Scopes, " ") != "mcp" {
		t.Errorf("%+v", who)
	}
	first := tokens
	for range 3 {
		if status, tokens = s.refresh(client, tokens); status != 200 || !s.counts(tokens) {
			t.Fatalf("refresh: %d %v", status, tokens)
		}
	}
	// A refresh token is used a second time, so it or its successor was stolen.
	if status, answer := s.refresh(client, first); status != 400 || answer["error"] != "invalid_grant" {
		t.Errorf("an old refresh token: %d %v", status, answer)
	}
	if status, answer := s.refresh(client, tokens); status != 400 || answer["error"] != "invalid_grant" || s.counts(tokens) {
		t.Errorf("the newest after that: %d %v", status, answer)
	}
	if proof.Revoked.Err() == nil {
		t.Error("requests with its tokens go on")
	}
	if !strings.Contains(s.log.String(), "used twice") {
		t.Errorf("the log does not say so:\n%s", s.log)
	}
	for _, secret := range []string{tokens["access_token"].(string), tokens["refresh_token"].(string), "secret-of-the-issuer", "token of the issuer"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %s in it", secret)
		}
	}
}

// TestPage: the consent page shows which client asks. The client cannot use its name to forge the page.
func TestPage(t *testing.T) {
	s := newSite(t)
	body, _ := json.Marshal(map[string]any{"client_name": "<script>x</script>\u202eClaude", "redirect_uris": []string{claude, "http://127.0.0.1/cb"}})
	_, answer := s.send(registerPath, "application/json", string(body))
	resp, err := s.browser.Get(s.server.issuer + authorizePath + "?" + s.query(answer["client_id"].(string), claude).Encode())
	if err != nil {
		t.Fatal(err)
	}
	policy, frames := resp.Header.Get("Content-Security-Policy"), resp.Header.Get("X-Frame-Options")
	_, text, _ := s.read(resp)
	for _, want := range []string{"&lt;script&gt;x&lt;/script&gt;Claude", "<strong>claude.ai</strong>", "nobody has checked", s.server.o.Resource, s.issuer.url} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") || frames != "DENY" || strings.Contains(text, "<script") {
		t.Errorf("%s, %s:\n%s", policy, frames, text)
	}
	if _, text, _ = s.open(s.query(answer["client_id"].(string), "http://127.0.0.1:4711/cb")); !strings.Contains(text, "a program on this computer") {
		t.Errorf("loopback:\n%s", text)
	}
}

// TestAuthorize_Refused: if the redirect URI cannot be trusted, the user sees an error page. Other errors are sent to
// the client, with its state and the server's issuer name.
func TestAuthorize_Refused(t *testing.T) {
	s := newSite(t)
	client, other := s.registered(claude, "http://localhost/cb?x=1"), newSite(t, func(o *Options) { o.Secrets = []*state.Secret{secretOf('o')} })
	foreign := other.registered(claude)
	for _, test := range []struct {
		name   string
		change url.Values
		code   string // empty if an error page is expected
		text   string
	}{
		{"no client", url.Values{"client_id": nil}, "", "client_id is missing"},
		{"a foreign client", url.Values{"client_id": {foreign}}, "", "register again"},
		{"a made-up client", url.Values{"client_id": {"mcpx_client_AAAA"}}, "", "register again"},
		{"a refresh token as client", url.Values{"client_id": {"mcpx_client_" + strings.TrimPrefix(s.server.seals.refresh.close(refresh{}), "mcpx_rt_")}}, "", "register again"},
		{"no redirect", url.Values{"redirect_uri": nil}, "", "redirect_uri is missing"},
		{"another redirect", url.Values{"redirect_uri": {"https://claude.com/api/mcp/auth_callback"}}, "", "not registered"},
		{"a longer redirect", url.Values{"redirect_uri": {claude + "/x"}}, "", "not registered"},
		{"a redirect with a query", url.Values{"redirect_uri": {claude + "?x=1"}}, "", "not registered"},
		{"a redirect with a fragment", url.Values{"redirect_uri": {claude + "#x"}}, "", "not registered"},
		{"a redirect with a user", url.Values{"redirect_uri": {"https://claude.ai@evil.example/api/mcp/auth_callback"}}, "", "not registered"},
		{"another path on loopback", url.Values{"redirect_uri": {"http://localhost:99/other?x=1"}}, "", "not registered"},
		{"another query on loopback", url.Values{"redirect_uri": {"http://localhost:99/cb?x=2"}}, "", "not registered"},
		{"another name of loopback", url.Values{"redirect_uri": {"http://127.0.0.1/cb?x=1"}}, "", "not registered"},
		{"two clients", url.Values{"client_id": {client, client}}, "", "duplicate client_id"},
		{"two redirects", url.Values{"redirect_uri": {claude, "https://evil.example/"}}, "", "duplicate redirect_uri"},
		{"a token in the browser", url.Values{"response_type": {"token"}}, "unsupported_response_type", ""},
		{"no response type", url.Values{"response_type": nil}, "unsupported_response_type", ""},
		{"a fragment", url.Values{"response_mode": {"fragment"}}, "invalid_request", "response_mode"},
		{"no PKCE", url.Values{"code_challenge": nil, "code_challenge_method": nil}, "invalid_request", "S256"},
		{"plain PKCE", url.Values{"code_challenge_method": {"plain"}}, "invalid_request", "S256"},
		{"PKCE without a method", url.Values{"code_challenge_method": nil}, "invalid_request", "S256"},
		{"a short challenge", url.Values{"code_challenge": {"abc"}}, "invalid_request", "S256"},
		{"no base64url", url.Values{"code_challenge": {challengeOfVerifier[1:] + "="}}, "invalid_request", "S256"},
		{"another resource", url.Values{"resource": {"https://other.example/mcp"}}, "invalid_target", s.server.o.Resource},
		{"its origin", url.Values{"resource": {s.server.issuer}}, "invalid_target", ""},
		{"a longer name", url.Values{"resource": {s.server.o.Resource + "x"}}, "invalid_target", ""},
		{"two resources", url.Values{"resource": {s.server.o.Resource, s.server.o.Resource}}, "invalid_target", ""},
	} {
		query := s.query(client, claude)
		for name, values := range test.change {
			query[name] = values
		}
		status, text, to := s.open(query)
		if test.code == "" {
			if to != nil || status != 400 || !strings.Contains(text, test.text) {
				t.Errorf("%s: %d, sent to %v: %s", test.name, status, to, text)
			}
			continue
		}
		if to == nil || to.Host != "claude.ai" {
			t.Errorf("%s: %d, sent to %v: %s", test.name, status, to, text)
			continue
		}
		back := to.Query()
		if back.Get("error") != test.code || !strings.Contains(back.Get("error_description"), test.text) || back.Get("state") != "state of the client" || back.Get("iss") != s.server.issuer {
			t.Errorf("%s: %v", test.name, back)
		}
	}
	for _, path := range []string{"?client_id=%zz", "?" + strings.Repeat("x", maxQuery+1)} {
		if status, _, to := s.get(s.server.issuer + authorizePath + path); status/100 != 4 || to != nil {
			t.Errorf("%.20s: %d %v", path, status, to)
		}
	}
	// The port of a loopback address may differ from the registered one. The URL of a view is also accepted as the
	// resource.
	query := s.query(client, "http://localhost:4711/cb?x=1")
	query.Set("resource", strings.ToUpper(s.server.issuer[:4])+s.server.issuer[4:]+"/mcp/view/")
	if back := s.allow(query); back.Get("code") == "" || back.Get("x") != "1" {
		t.Errorf("loopback: %v", back)
	}
	if len(s.issuer.asked) != 0 {
		t.Errorf("the issuer has codes that nobody has used: %v", s.issuer.asked)
	}
}

// TestAnswer: only the browser that was shown the consent page can submit its form.
func TestAnswer(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	query := s.query(client, claude)
	_, text, _ := s.open(query)
	proof := pageField.FindStringSubmatch(text)[1]
	other := s.query(s.registered(claude, "http://localhost/"), claude)
	answer := func(browser *http.Client, query, form url.Values, headers ...string) (int, *url.URL) {
		t.Helper()
		s, req := *s, httptest.NewRequest(http.MethodPost, s.server.issuer+authorizePath+"?"+query.Encode(), strings.NewReader(form.Encode()))
		req.RequestURI = ""
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		status, _, to := s.read(resp)
		return status, to
	}
	yes := url.Values{"page": {proof}, "answer": {"allow"}}
	foreign := s.newBrowser()
	resp, err := foreign.Get(s.server.issuer + authorizePath + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	s.read(resp)
	for _, test := range []struct {
		name    string
		browser *http.Client
		query   url.Values
		form    url.Values
		headers []string
	}{
		{"no proof", s.browser, query, url.Values{"answer": {"allow"}}, nil},
		{"a made-up proof", s.browser, query, url.Values{"answer": {"allow"}, "page": {proof[:len(proof)-2] + "AA"}}, nil},
		{"no cookie", s.newBrowser(), query, yes, nil},
		{"the page of another browser", foreign, query, yes, nil},
		{"the page of another client", s.browser, other, yes, nil},
		{"another site", s.browser, query, yes, []string{"Origin", "https://evil.example"}},
		{"another site by its metadata", s.browser, query, yes, []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		if status, to := answer(test.browser, test.query, test.form, test.headers...); status != http.StatusForbidden || to != nil {
			t.Errorf("%s: %d %v", test.name, status, to)
		}
	}
	if status, to := answer(s.browser, query, url.Values{"page": {proof}, "answer": {"deny"}}); to == nil || to.Query().Get("error") != "access_denied" || to.Query().Get("state") == "" {
		t.Errorf("deny: %d %v", status, to)
	}
	if len(s.issuer.paths) != 0 {
		t.Errorf("the issuer was asked: %v", s.issuer.paths)
	}
	if status, to := answer(s.browser, query, yes, "Origin", s.server.issuer, "Sec-Fetch-Site", "same-origin"); to == nil || to.Query().Get("code") == "" {
		t.Errorf("allow: %d %v", status, to)
	}
}

// TestLongState: if a state does not fit into a cookie, the client gets an error.
func TestLongState(t *testing.T) {
	s := newSite(t)
	query := s.query(s.registered(claude), claude)
	query.Set("state", strings.Repeat("s", 2000))
	if back := s.allow(query); back.Get("code") == "" {
		t.Errorf("2000 bytes: %v", back)
	}
	query.Set("state", strings.Repeat("s", 3000))
	if back := s.allow(query); back.Get("error") != "invalid_request" || !strings.Contains(back.Get("error_description"), "too long") {
		t.Errorf("3000 bytes: %v", back)
	}
}
