package authserver

import (
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

// still returns a server whose issuer is never asked, for tests in fake time.
func still(t *testing.T, grants Grants, key byte) *Server {
	t.Helper()
	s, err := New(Options{Resource: "https://mcp.example.com/mcp", AuthServer: conf.AuthServer{Issuer: "https://login.example.com"}, Secrets: []*state.Secret{secretOf(key)}, Log: quiet}, grants)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// codeOf makes a code for a client, and returns the form to redeem it.
func (s *Server) codeOf(client string) url.Values {
	sealed := s.seals.code.close(code{random(), authorization{digest(client), claude, "", challengeOfVerifier}, user{Subject: "ann", Name: "ann"}, deadline(codeTime)})
	return url.Values{"grant_type": {"authorization_code"}, "code": {sealed}, "client_id": {client}, "redirect_uri": {claude}, "code_verifier": {verifier}}
}

func refreshOf(client string, r *refresh, s *Server) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {s.seals.refresh.close(r)}}
}

// TestTimes: codes are valid for one minute, access tokens for an hour, refresh tokens for 30 days, and a login for
// 90 days.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := still(t, GrantsIn("", quiet), 'k')
		form := s.codeOf("c")
		time.Sleep(codeTime)
		if _, err := s.redeem(t.Context(), form); err == nil {
			t.Error("an old code counts")
		}
		r, err := s.redeem(t.Context(), s.codeOf("c"))
		if err != nil {
			t.Fatal(err)
		}
		sealed := s.seals.access.close(access{r.Grant, r.Client, r.Who, deadline(accessTime)})
		time.Sleep(accessTime - time.Second)
		if s.Prove(sealed) == nil {
			t.Error("an access token does not count for an hour")
		}
		time.Sleep(time.Second)
		if s.Prove(sealed) != nil {
			t.Error("an old access token counts")
		}
		begun := time.Now()
		for { // a client that refreshes every 20 days stays connected for more than 30 days
			time.Sleep(20 * 24 * time.Hour)
			next, err := s.renew(t.Context(), refreshOf("c", r, s))
			if err != nil {
				break
			}
			r = next
		}
		if lasted := time.Since(begun); lasted < 80*24*time.Hour || lasted > 100*24*time.Hour {
			t.Errorf("the login ended after %v", lasted)
		}
		if r, err = s.redeem(t.Context(), s.codeOf("c")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(refreshTime)
		if _, err := s.renew(t.Context(), refreshOf("c", r, s)); err == nil {
			t.Error("a refresh token counts that nobody has used for 30 days")
		}
	})
}

// TestOnce: if several requests use the same code at the same time, one gets tokens, and the others cause these
// tokens to be revoked.
func TestOnce(t *testing.T) {
	s := still(t, GrantsIn(t.TempDir(), quiet), 'k')
	form := s.codeOf("c")
	var got atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r, err := s.redeem(t.Context(), form); err == nil {
				got.Add(1)
				if _, err := s.renew(t.Context(), refreshOf("c", r, s)); err == nil {
					got.Add(100)
				}
			}
		})
	}
	all.Wait()
	if n := got.Load() % 100; n != 1 {
		t.Errorf("%d got tokens", n)
	}
	var c code
	if err := s.seals.code.open(form.Get("code"), &c); err != nil || s.grants.Standing(t.Context(), c.Grant) != nil {
		t.Errorf("the login counts: %v", err)
	}
}

// BenchmarkPrincipal measures what checking an access token costs in each request.
func BenchmarkPrincipal(b *testing.B) {
	s, err := New(Options{Resource: "https://mcp.example.com/mcp", Secrets: []*state.Secret{secretOf(0)}, Log: quiet, Granted: []string{"mcp"},
		AuthServer: conf.AuthServer{Issuer: "https://login.example.com", Allow: Allow{Emails: []string{"*@example.com"}}}}, GrantsIn("", quiet))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	token := s.seals.access.close(access{random(), digest("c"), user{"ann", "Ann", "ann@example.com", true, []string{"staff", "admins"}}, deadline(accessTime)})
	b.ReportAllocs()
	for b.Loop() {
		if s.Prove(token) == nil {
			b.Fatal("the token does not count")
		}
	}
}

// TestRestart: after a restart, used codes and tokens stay used, and unused ones stay valid. A server with another
// key accepts none of them.
func TestRestart(t *testing.T) {
	folder := t.TempDir()
	s := still(t, GrantsIn(folder, quiet), 'k')
	form := s.codeOf("c")
	first, err := s.redeem(t.Context(), form)
	if err != nil {
		t.Fatal(err)
	}
	old := *first
	second, err := s.renew(t.Context(), refreshOf("c", first, s))
	if err != nil {
		t.Fatal(err)
	}
	s = still(t, GrantsIn(folder, quiet), 'k')
	next, err := s.renew(t.Context(), refreshOf("c", second, s))
	if err != nil {
		t.Fatalf("the newest token after a restart: %v", err)
	}
	s = still(t, GrantsIn(folder, quiet), 'k')
	if _, err := s.renew(t.Context(), refreshOf("c", &old, s)); err == nil {
		t.Error("an old token counts after a restart")
	}
	s = still(t, GrantsIn(folder, quiet), 'k')
	if _, err := s.renew(t.Context(), refreshOf("c", next, s)); err == nil {
		t.Error("the grant did not end, or that was forgotten by a restart")
	}
	again := s.codeOf("c")
	if _, err := s.redeem(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if _, err := still(t, GrantsIn(folder, quiet), 'k').redeem(t.Context(), again); err == nil {
		t.Error("a code counts twice, once after a restart")
	}
	if _, err := still(t, GrantsIn(folder, quiet), 'l').redeem(t.Context(), again); err == nil || !strings.Contains(err.Error(), "unknown code") {
		t.Errorf("another key: %v", err)
	}
	// A replica without the file accepts a newer token, and from then on knows that the older ones were used.
	replica := still(t, GrantsIn(t.TempDir(), quiet), 'k')
	r, err := replica.renew(t.Context(), refreshOf("c", second, replica))
	if err != nil || r.Number != 3 {
		t.Fatalf("a replica: %v %+v", err, r)
	}
	if _, err := replica.renew(t.Context(), refreshOf("c", &old, replica)); err == nil {
		t.Error("the replica takes an older token")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "front-*.json"))
	if len(files) != 1 {
		t.Fatalf("%v", files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(s.o, GrantsIn(folder, quiet)); err == nil || !strings.Contains(err.Error(), "front-") {
		t.Errorf("a broken file: %v", err)
	}
}

// TestGrants_Shared: a token that was used or revoked at one server is also refused by another server with the same
// key, whether that server starts later or runs at the same time, and with or without a file. A server with another
// key has other tokens. When a server is closed, the requests whose tokens it has accepted end.
func TestGrants_Shared(t *testing.T) {
	for name, test := range map[string]struct {
		folder string
		key    byte
		same   bool
	}{"a file": {t.TempDir(), 'k', true}, "no file": {"", 'k', true}, "another key": {"", 'l', false}} {
		grants := GrantsIn(test.folder, quiet)
		before, next, until := still(t, grants, 'k'), still(t, grants, test.key), time.Now().Add(time.Hour)
		use := func(s *Server, id string, number int) bool {
			fresh, err := s.grants.Redeem(t.Context(), id, number, until)
			return fresh && err == nil
		}
		if !use(before, "used", 3) || !use(before, "open", 0) || before.grants.End(t.Context(), "revoked", until) != nil {
			t.Fatal(name)
		}
		of := before.grants.Standing(before.ctx, "open")
		before.Close()
		if of.Err() == nil {
			t.Errorf("%s: a request goes on after its server", name)
		}
		if own := next.grants.Standing(next.ctx, "open"); own == nil || own.Err() != nil {
			t.Errorf("%s: no request can begin at the next server", name)
		}
		if use(next, "used", 3) == test.same || !use(next, "new", 0) {
			t.Errorf("%s: what was used can be used again", name)
		}
		if (next.grants.Standing(t.Context(), "revoked") == nil) != test.same {
			t.Errorf("%s: what was revoked counts", name)
		}
	}
}

// awayOnce is a store that cannot be reached.
type awayOnce struct{}

func (awayOnce) Redeem(context.Context, string, int, time.Time) (bool, error) {
	return true, state.ErrAway
}
func (awayOnce) End(context.Context, string, time.Time) error           { return state.ErrAway }
func (awayOnce) Standing(ctx context.Context, _ string) context.Context { return ctx }

// TestAway: while the store cannot be reached, codes and refresh tokens are refused with an error that asks the
// client to try again, so that it does not give up its login. Access tokens stay valid.
func TestAway(t *testing.T) {
	s := still(t, func(string) (state.Once, error) { return awayOnce{}, nil }, 'k')
	until := deadline(time.Hour)
	long := refresh{"g", 1, digest("c"), user{Subject: "ann"}, time.Now().Unix(), until}
	short := s.seals.access.close(access{"g", digest("c"), user{Subject: "ann"}, until})
	for name, test := range map[string]struct {
		path string
		form url.Values
	}{
		"a code":                   {tokenPath, s.codeOf("c")},
		"a refresh token":          {tokenPath, refreshOf("c", &long, s)},
		"the end of a login":       {revokePath, url.Values{"client_id": {"c"}, "token": {s.seals.refresh.close(long)}}},
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
		t.Error("an access token counts no more")
	}
}

// TestCookies_TLS: over TLS, cookies have the prefix __Host-, so that they are sent to this host only.
func TestCookies_TLS(t *testing.T) {
	s := still(t, GrantsIn("", quiet), 'k')
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
