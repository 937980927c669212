package authserver

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/hosted/audit"
)

// TestToken_Code: a code can be used only by one client, with one redirect URI and one code_verifier, and only once.
func TestToken_Code(t *testing.T) {
	s := newSite(t)
	client, other := s.registered(claude), s.registered(claude, "http://localhost/")
	good := s.exchange(client, claude, s.allow(s.query(client, claude)).Get("code"))
	for _, test := range []struct {
		name   string
		change url.Values
		want   string
	}{
		{"no grant type", url.Values{"grant_type": nil}, "invalid_request"},
		{"a password", url.Values{"grant_type": {"password"}}, "unsupported_grant_type"},
		{"no client", url.Values{"client_id": nil}, "invalid_client"},
		{"another client", url.Values{"client_id": {other}}, "invalid_grant"},
		{"two clients", url.Values{"client_id": {client, other}}, "invalid_request"},
		{"no code", url.Values{"code": nil}, "invalid_grant"},
		{"a made-up code", url.Values{"code": {"AAAA"}}, "invalid_grant"},
		{"no redirect", url.Values{"redirect_uri": nil}, "invalid_grant"},
		{"another redirect", url.Values{"redirect_uri": {"https://claude.com/api/mcp/auth_callback"}}, "invalid_grant"},
		{"no verifier", url.Values{"code_verifier": nil}, "invalid_grant"},
		{"the challenge as verifier", url.Values{"code_verifier": {challengeOfVerifier}}, "invalid_grant"},
		{"a longer verifier", url.Values{"code_verifier": {verifier + "x"}}, "invalid_grant"},
		{"another resource", url.Values{"resource": {"https://other.example/mcp"}}, "invalid_target"},
		{"two resources", url.Values{"resource": {s.server.o.Resource, "https://other.example/mcp"}}, "invalid_target"},
	} {
		form := url.Values{}
		for name, values := range good {
			form[name] = values
		}
		for name, values := range test.change {
			form[name] = values
		}
		status, answer := s.post(tokenPath, form)
		if answer["error"] != test.want || status != 400 && (status != 401 || test.want != "invalid_client") || answer["access_token"] != nil {
			t.Errorf("%s: %d %v", test.name, status, answer)
		}
	}
	if status, answer := s.post(tokenPath+"?"+good.Encode(), nil); status != 400 {
		t.Errorf("parameters in the URL: %d %v", status, answer)
	}
	if status, answer := s.send(tokenPath, "application/x-www-form-urlencoded", "grant_type=authorization_code&x="+strings.Repeat("x", maxTokenRequest)); status != 400 {
		t.Errorf("a long request: %d %v", status, answer)
	}
	// None of the failed requests has used up the code.
	status, tokens := s.post(tokenPath, good)
	if status != 200 || !s.counts(tokens) {
		t.Fatalf("%d %v", status, tokens)
	}
	if status, answer := s.post(tokenPath, good); status != 400 || answer["error"] != "invalid_grant" {
		t.Errorf("a second time: %d %v", status, answer)
	}
	if s.counts(tokens) {
		t.Error("the access token counts after the code came twice")
	}
	if status, answer := s.refresh(client, tokens); status != 400 {
		t.Errorf("the refresh token after the code came twice: %d %v", status, answer)
	}
}

// TestToken_Refresh: a refresh token can be used only by its own client. Other kinds of tokens are not accepted as
// refresh tokens.
func TestToken_Refresh(t *testing.T) {
	s := newSite(t)
	client, other := s.registered(claude), s.registered(claude, "http://localhost/")
	tokens := s.connected(client, claude)
	if status, answer := s.refresh(other, tokens); status != 400 || answer["error"] != "invalid_grant" {
		t.Errorf("another client: %d %v", status, answer)
	}
	access, long := tokens["access_token"].(string), tokens["refresh_token"].(string)
	for _, test := range []struct{ name, token string }{
		{"the access token", access}, {"its text with the other prefix", "mcpx_rt_" + strings.TrimPrefix(access, accessPrefix)},
		{"a changed one", long[:len(long)-1] + string('A'+'B'-long[len(long)-1])}, {"nothing", ""}, {"more", long + "A"},
	} {
		if status, answer := s.refresh(client, map[string]any{"refresh_token": test.token}); status != 400 || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", test.name, status, answer)
		}
	}
	for _, token := range []string{long, accessPrefix + strings.TrimPrefix(long, "mcpx_rt_"), "", accessPrefix, access + "A"} {
		if s.server.Prove(token) != nil {
			t.Errorf("%s is an access token", token)
		}
	}
	if status, _ := s.refresh(client, tokens); status != 200 {
		t.Errorf("none of that should have used it up: %d", status)
	}
}

// TestToken_UnknownClient: a client that registered under another key reads invalid_client, with which clients register again. A client
// that is a document needs no registration, and reads invalid_grant.
func TestToken_UnknownClient(t *testing.T) {
	before, s := newSite(t), newSite(t, func(o *Options) { o.Secrets = []*state.Secret{secretOf('z')} })
	client := before.registered(claude)
	code := before.exchange(client, claude, before.allow(before.query(client, claude)).Get("code"))
	tokens := before.connected(client, claude)
	if status, answer := s.refresh(client, tokens); status != 401 || answer["error"] != "invalid_client" {
		t.Errorf("a refresh token: %d %v", status, answer)
	}
	if status, answer := s.post(tokenPath, code); status != 401 || answer["error"] != "invalid_client" {
		t.Errorf("a code: %d %v", status, answer)
	}
	if status, answer := s.refresh("https://claude.ai/document", tokens); status != 400 || answer["error"] != "invalid_grant" {
		t.Errorf("a document: %d %v", status, answer)
	}
}

// TestRevoke: a client can revoke its own tokens, and no others.
func TestRevoke(t *testing.T) {
	s := newSite(t)
	client, other := s.registered(claude), s.registered(claude, "http://localhost/")
	for _, which := range []string{"access_token", "refresh_token"} {
		tokens := s.connected(client, claude)
		token := tokens[which].(string)
		if status, _ := s.post(revokePath, url.Values{"client_id": {other}, "token": {token}}); status != 200 || !s.counts(tokens) {
			t.Errorf("%s, by another client: %d", which, status)
		}
		if status, _ := s.post(revokePath, url.Values{"client_id": {client}, "token": {token}}); status != 200 || s.counts(tokens) {
			t.Errorf("%s: %d", which, status)
		}
		if status, _ := s.refresh(client, tokens); status != 400 {
			t.Errorf("%s: the refresh token counts: %d", which, status)
		}
	}
	if status, answer := s.post(revokePath, url.Values{"client_id": {client}}); status != 400 {
		t.Errorf("no token: %d %v", status, answer)
	}
}

// still returns a server whose issuer is in this process, for tests in fake time. The issuer renews every login, and sends no ID
// token then.
func still(t testing.TB, store state.Followed, key byte) *Server {
	t.Helper()
	i := &issuer{url: "https://login.example.com", valid: map[string]bool{}, used: map[string]bool{}, silent: true}
	s, err := New(Options{
		Resource: "https://mcp.example.com/mcp", Secrets: []*state.Secret{secretOf(key)}, Audit: unrecorded, Log: quiet,
		AuthServer: conf.AuthServer{Issuer: i.url, ClientID: "mcpx", ClientSecret: "secret-of-the-issuer"},
	}, Parts{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	s.oidc.web.Transport = inProcess{i}
	t.Cleanup(s.Close)
	return s
}

// codeOf makes a login and a code for a client, and returns the form to redeem it.
func (s *Server) codeOf(t testing.TB, client string) url.Values {
	t.Helper()
	i, ok := s.oidc.web.Transport.(inProcess)
	if !ok {
		t.Fatal("the issuer is not in this process")
	}
	at := i.to.(*issuer)
	at.mu.Lock()
	g := &grant{
		Number: random(), Client: digest(client), Who: user{Subject: "ann", Name: "ann"}, Began: time.Now().Unix(), Renewed: time.Now().Unix(),
		Until: deadline(codeTime), Issued: issued{Refresh: at.refreshToken()},
	}
	at.mu.Unlock()
	if err := s.begin(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	of := authorization{Client: digest(client), Redirect: claude, Challenge: challengeOfVerifier}
	sealed := s.seals.code.close(code{g.Number, of, deadline(codeTime)})
	return url.Values{"grant_type": {"authorization_code"}, "code": {sealed}, "client_id": {client}, "redirect_uri": {claude}, "code_verifier": {verifier}}
}

// refreshOf returns the form with which a client renews a login.
func refreshOf(client string, g *grant, s *Server) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {s.seals.refresh.close(refresh{g.Number, g.Next})}}
}

// TestTimes: codes are valid for one minute, access tokens for 10 minutes, refresh tokens for 30 days, and a login for
// 90 days.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := still(t, storeIn(t, ""), 'k')
		form := s.codeOf(t, "c")
		time.Sleep(codeTime)
		if _, err := s.redeem(t.Context(), form); err == nil {
			t.Error("an old code counts")
		}
		g, err := s.redeem(t.Context(), s.codeOf(t, "c"))
		if err != nil {
			t.Fatal(err)
		}
		sealed := s.seals.access.close(access{g.Number, g.Who, deadline(accessTime)})
		time.Sleep(10*time.Minute - time.Second)
		if s.Prove(sealed) == nil {
			t.Error("an access token does not count for 10 minutes")
		}
		time.Sleep(time.Second)
		if s.Prove(sealed) != nil {
			t.Error("an old access token counts")
		}
		begun := time.Now()
		for { // a client that refreshes every 20 days stays connected for more than 30 days
			time.Sleep(20 * 24 * time.Hour)
			next, err := s.renew(t.Context(), refreshOf("c", g, s))
			if err != nil {
				break
			}
			g = next
		}
		if lasted := time.Since(begun); lasted < 80*24*time.Hour || lasted > 100*24*time.Hour {
			t.Errorf("the login ended after %v", lasted)
		}
		if g, err = s.redeem(t.Context(), s.codeOf(t, "c")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(refreshTime)
		if _, err := s.renew(t.Context(), refreshOf("c", g, s)); err == nil {
			t.Error("a refresh token counts that nobody has used for 30 days")
		}
	})
}

// TestExpired: a login that nobody renews in time ends, and the end is reported.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := still(t, storeIn(t, ""), 'k')
		var told []audit.Login
		s.o.Audit = recorder(func(l audit.Login) { told = append(told, l) })
		if _, err := s.redeem(t.Context(), s.codeOf(t, "c")); err != nil {
			t.Fatal(err)
		}
		s.codeOf(t, "never redeemed")
		s.sweep(t.Context())
		time.Sleep(refreshTime + time.Hour)
		s.sweep(t.Context())
		if len(told) != 2 || told[0].Event != audit.LoginBegan || told[1].Event != audit.LoginEnded || told[1].Reason != "it was not renewed in time" {
			t.Errorf("%+v", told)
		}
		time.Sleep(2 * time.Hour)
		if s.sweep(t.Context()); len(s.known.byNumber) != 0 || len(told) != 2 {
			t.Errorf("%d logins are remembered, %d events", len(s.known.byNumber), len(told))
		}
	})
}

// TestOnce: if several requests use the same code at the same time, one gets tokens, and the others cause the login to end.
func TestOnce(t *testing.T) {
	s := still(t, storeIn(t, t.TempDir()), 'k')
	form := s.codeOf(t, "c")
	var got atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if g, err := s.redeem(t.Context(), form); err == nil {
				got.Add(1)
				_ = g
			}
		})
	}
	all.Wait()
	if n := got.Load(); n != 1 {
		t.Errorf("%d got tokens", n)
	}
	var c code
	if err := s.seals.code.open(form.Get("code"), &c); err != nil || s.lifeOf(c.Grant) != nil {
		t.Errorf("the login counts: %v", err)
	}
}

// TestRestart: after a restart, used codes and tokens stay used, and unused ones stay valid. A server with another
// key, or without the folder, accepts none of them.
func TestRestart(t *testing.T) {
	folder := t.TempDir()
	var issuer http.RoundTripper
	open := func(key byte) *Server {
		s := still(t, storeIn(t, folder), key)
		if issuer != nil {
			s.oidc.web.Transport = issuer
		}
		issuer = s.oidc.web.Transport
		return s
	}
	s := open('k')
	form := s.codeOf(t, "c")
	first, err := s.redeem(t.Context(), form)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.renew(t.Context(), refreshOf("c", first, s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open('l').renew(t.Context(), refreshOf("c", second, s)); err == nil {
		t.Error("another key opens a refresh token")
	}
	lost := still(t, storeIn(t, ""), 'k')
	if _, err := lost.renew(t.Context(), refreshOf("c", second, lost)); err == nil {
		t.Error("a login goes on without the folder")
	}
	s = open('k')
	next, err := s.renew(t.Context(), refreshOf("c", second, s))
	if err != nil {
		t.Fatalf("the newest token after a restart: %v", err)
	}
	s = open('k')
	if _, err := s.renew(t.Context(), refreshOf("c", first, s)); err == nil {
		t.Error("an old token counts after a restart")
	}
	s = open('k')
	if _, err := s.renew(t.Context(), refreshOf("c", next, s)); err == nil {
		t.Error("the login did not end, or that was forgotten by a restart")
	}
	again := s.codeOf(t, "c")
	if _, err := s.redeem(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if _, err := open('k').redeem(t.Context(), again); err == nil {
		t.Error("a code counts twice, once after a restart")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if info, _ := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || bytes.Contains(data, []byte("ann")) || bytes.Contains(data, []byte("refresh")) {
			t.Errorf("%v %v %s", info.Mode(), err, data)
		}
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open('k') // New must not fail because of damaged files
	if _, err := s.redeem(t.Context(), again); err == nil {
		t.Error("a code counts without its login")
	}
}

// TestServers_Shared: if a login ends at one server, it ends at another one with the same store, together with its open requests.
// If a server is closed, the requests that it has authenticated end, and the requests of the other server continue.
func TestServers_Shared(t *testing.T) {
	store := storeIn(t, "")
	before, next := still(t, store, 'k'), still(t, store, 'k')
	next.oidc.web.Transport = before.oidc.web.Transport
	one, err := before.redeem(t.Context(), before.codeOf(t, "c"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := next.redeem(t.Context(), before.codeOf(t, "c"))
	if err != nil {
		t.Fatal(err)
	}
	stands, other := next.lifeOf(one.Number), next.lifeOf(two.Number)
	if done, err := before.end(t.Context(), one.Number, "test"); !done || err != nil {
		t.Fatal(done, err)
	}
	if stands.Err() == nil || next.lifeOf(one.Number) != nil || other.Err() != nil {
		t.Error("the end at one server is not the end at the other")
	}
	here := before.lifeOf(two.Number)
	before.Close()
	if here.Err() == nil || other.Err() != nil || next.lifeOf(two.Number) == nil {
		t.Error("closing a server does not end its requests, or ends those of another")
	}
	if still(t, store, 'l').find(two.Number) != nil {
		t.Error("another key opens a login")
	}
}

// awayStore is a store that cannot be reached.
type awayStore struct{ state.Followed }

func (awayStore) Change(context.Context, string, func([]byte) ([]byte, time.Time, error)) error {
	return state.ErrAway
}

// TestAway: while the store cannot be reached, codes and refresh tokens are refused with an error that asks the
// client to try again, so that it does not give up its login. Access tokens stay valid.
func TestAway(t *testing.T) {
	store := storeIn(t, "")
	s := still(t, store, 'k')
	g, err := s.redeem(t.Context(), s.codeOf(t, "c"))
	if err != nil {
		t.Fatal(err)
	}
	form := s.codeOf(t, "c")
	s.store = awayStore{store}
	short := s.seals.access.close(access{g.Number, g.Who, deadline(accessTime)})
	for name, test := range map[string]struct {
		path string
		form url.Values
	}{
		"a code":                   {tokenPath, form},
		"a refresh token":          {tokenPath, refreshOf("c", g, s)},
		"the end of a login":       {revokePath, url.Values{"client_id": {"c"}, "token": {s.seals.refresh.close(refresh{g.Number, 1})}}},
		"the end by another token": {revokePath, url.Values{"client_id": {"c"}, "token": {short}}},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, s.issuer+test.path, strings.NewReader(test.form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		s.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"temporarily_unavailable"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if s.Prove(short) == nil {
		t.Error("an access token is no longer valid")
	}
}

// TestCookies_TLS: over TLS, cookies have the prefix __Host-, so that they are sent to this host only.
func TestCookies_TLS(t *testing.T) {
	s := still(t, storeIn(t, ""), 'k')
	client := s.seals.client.close(client{Name: "Claude", Redirects: []string{claude}})
	query := url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {claude}, "code_challenge": {challengeOfVerifier}, "code_challenge_method": {"S256"}}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, s.issuer+authorizePath+"?"+query.Encode(), nil))
	cookie := w.Header().Get("Set-Cookie")
	if w.Code != 200 || !strings.HasPrefix(cookie, "__Host-mcpx-page=") {
		t.Fatalf("%d %s %s", w.Code, cookie, w.Body)
	}
	for _, want := range []string{"; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
		if !strings.Contains(cookie, want) || strings.Contains(cookie, "Domain") {
			t.Errorf("%s lacks %s", cookie, want)
		}
	}
}
