package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/state"
	"mcpx/internal/hosted/identity"
)

// TestRenew_Left: if the issuer refuses to renew a login, the login and its requests end, and the end is reported once.
func TestRenew_Left(t *testing.T) {
	for _, code := range []string{"invalid_grant", "invalid_request", "interaction_required"} {
		s := newSite(t)
		client := s.registered(claude)
		tokens, other := s.connected(client, claude), s.connected(client, claude)
		proof := s.server.Prove(tokens["access_token"].(string))
		s.issuer.with(func() { s.issuer.fails = code })
		status, answer := s.refresh(client, tokens)
		if status != 400 || answer["error"] != "invalid_grant" || !strings.Contains(answer["error_description"].(string), "log in again") {
			t.Errorf("%s: %d %v", code, status, answer)
		}
		if s.counts(tokens) || proof.Revoked.Err() == nil {
			t.Errorf("%s: the access token is still valid, or its requests go on", code)
		}
		s.refresh(client, tokens)
		s.refresh(client, other)
		want := []string{
			"login, ann@, Claude, ", "login, ann@, Claude, ",
			"login_ended, ann@, Claude, the issuer does not renew the login", "login_ended, ann@, Claude, the issuer does not renew the login",
		}
		if strings.Join(s.events, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %s", code, strings.Join(s.events, "\n"))
		}
	}
}

// TestRenew_Changed: a renewal takes the user's groups anew from the ID token or from UserInfo. If the user has left all groups
// that Allow permits, the login ends. A renewal fails if the claims are about another user.
func TestRenew_Changed(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Allow = conf.Allow{Groups: []string{"staff", "guests"}} })
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	claim := func(name string, value any) {
		s.issuer.with(func() { s.issuer.change = func(claims jwt.MapClaims) { claims[name] = value } })
	}
	claim("groups", []string{"guests"})
	_, tokens = s.refresh(client, tokens)
	if proof := s.server.Prove(tokens["access_token"].(string)); proof == nil || strings.Join(proof.Principal.Groups, " ") != "guests" {
		t.Fatalf("%+v", proof)
	}
	claim("groups", []string{"left"})
	if status, answer := s.refresh(client, tokens); status != 400 || !strings.Contains(answer["error_description"].(string), "may not use this mcpx") || s.counts(tokens) {
		t.Errorf("a group that may not: %d %v", status, answer)
	}
	claim("sub", "ann")
	tokens = s.connected(client, claude)
	claim("sub", "bob")
	if status, answer := s.refresh(client, tokens); status != 400 || s.counts(tokens) {
		t.Errorf("another user: %d %v", status, answer)
	}

	s = newSite(t)
	client = s.registered(claude)
	s.issuer.info = map[string]any{"sub": "ann", "groups": []string{"a"}}
	s.issuer.change = func(claims jwt.MapClaims) { delete(claims, "groups") }
	s.issuer.silent = true
	tokens = s.connected(client, claude)
	s.issuer.with(func() { s.issuer.info["groups"] = []string{"b"} })
	_, tokens = s.refresh(client, tokens)
	if proof := s.server.Prove(tokens["access_token"].(string)); proof == nil || strings.Join(proof.Principal.Groups, " ") != "b" {
		t.Errorf("by UserInfo: %+v", proof)
	}
	s.issuer.with(func() { s.issuer.info["sub"] = "bob" })
	if status, answer := s.refresh(client, tokens); status != 503 {
		t.Errorf("UserInfo of another: %d %v", status, answer)
	}
	s.issuer.with(func() { s.issuer.info = nil }) // UserInfo answers 401
	if status, answer := s.refresh(client, tokens); status != 503 || answer["error"] != "temporarily_unavailable" {
		t.Errorf("without UserInfo: %d %v", status, answer)
	}
}

// TestRenew_IssuerAway: if the issuer is down, or mcpx is registered wrongly there, clients get no new tokens, but no login ends.
func TestRenew_IssuerAway(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	for _, code := range []string{"down", "invalid_client", "unauthorized_client", "server_error", "invalid_scope"} {
		s.issuer.with(func() { s.issuer.fails = code })
		for range 2 {
			if status, answer := s.refresh(client, tokens); status != 503 || answer["error"] != "temporarily_unavailable" || answer["access_token"] != nil {
				t.Errorf("%s: %d %v", code, status, answer)
			}
		}
		if !s.counts(tokens) {
			t.Errorf("%s: the login has ended", code)
		}
	}
	s.issuer.with(func() { s.issuer.fails = "" })
	if status, tokens := s.refresh(client, tokens); status != 200 || !s.counts(tokens) {
		t.Errorf("when it is back: %d %v", status, tokens)
	}
}

// TestRenew_Life: whatever the issuer says of the life of its tokens, a user can log in, and the login is renewed.
func TestRenew_Life(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	for _, life := range []any{1800.5, "1800", "1800.5", "soon", "", true} {
		s.issuer.with(func() { s.issuer.life = life })
		tokens := s.connected(client, claude)
		if status, tokens := s.refresh(client, tokens); status != 200 || !s.counts(tokens) {
			t.Errorf("expires_in %v: %d %v", life, status, tokens)
		}
	}
}

// TestRenew_AtOnce: many requests at two servers use the same refresh token at the same time. Only one of them asks the issuer,
// so the issuer's own refresh token is used once, and all requests get tokens. A later request with the same token ends the
// login.
func TestRenew_AtOnce(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	second, err := New(s.server.o, Parts{Store: s.server.store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	form := url.Values{"client_id": {client}, "refresh_token": {tokens["refresh_token"].(string)}}
	const n = 8
	arrived := make(chan struct{}, 10*n)
	s.server.store, second.store = arriving{s.server.store, arrived}, arriving{s.server.store, arrived}
	s.issuer.with(func() {
		s.issuer.renewing = func() { // waits until all requests have seen the login as it was before the renewal
			for range n {
				<-arrived
			}
		}
	})
	var all sync.WaitGroup
	var mu sync.Mutex
	var got []*grant
	for i := range n {
		all.Go(func() {
			g, err := []*Server{s.server, second}[i%2].renew(t.Context(), form)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			got = append(got, g)
		})
	}
	all.Wait()
	s.issuer.with(func() {
		s.issuer.renewing = nil
		if s.issuer.renewals != 1 || s.issuer.reused || len(got) != n {
			t.Errorf("the issuer was asked %d times, the same token came twice: %v; %d answers", s.issuer.renewals, s.issuer.reused, len(got))
		}
	})
	for _, g := range got {
		if g.Next != 2 {
			t.Errorf("number %d", g.Next)
		}
	}
	if status, answer := s.refresh(client, tokens); status != 400 || s.counts(tokens) {
		t.Errorf("the refresh token afterwards: %d %v", status, answer)
	}
	if second.lifeOf(got[0].Number) != nil {
		t.Error("the login goes on at the other server")
	}
}

// arriving is a store that sends to the channel arrived at the beginning of each change.
type arriving struct {
	state.Followed
	arrived chan struct{}
}

func (a arriving) Change(ctx context.Context, key string, change func([]byte) ([]byte, time.Time, error)) error {
	select {
	case a.arrived <- struct{}{}:
	default: // no renewal reads from the channel any more
	}
	return a.Followed.Change(ctx, key, change)
}

// TestRenew_Clocks: the clocks of replicas may differ by a minute (docs/replicas.md). While a replica renews a login, one whose clock is a
// minute ahead does not use the same refresh token of the issuer.
func TestRenew_Clocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := still(t, storeIn(t, ""), 'k')
		g, err := s.redeem(t.Context(), s.codeOf(t, "c"))
		if err != nil {
			t.Fatal(err)
		}
		form := refreshOf("c", g, s)
		at := s.oidc.web.Transport.(inProcess).to.(*issuer)
		var both sync.WaitGroup
		asked := 0
		at.renewing = func() {
			if asked++; asked > 1 {
				return
			}
			time.Sleep(issuerTime / 2)
			ahead := func(g *grant) error { // the same as if the clock of the other replica were ahead
				g.RenewingUntil -= 60
				return nil
			}
			if _, err := s.change(t.Context(), g.Number, ahead); err != nil {
				t.Error(err)
			}
			both.Go(func() {
				if _, err := s.renew(t.Context(), form); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(issuerTime / 4)
		}
		if _, err := s.renew(t.Context(), form); err != nil {
			t.Error(err)
		}
		if both.Wait(); asked != 1 || at.reused {
			t.Errorf("the issuer was asked %d times", asked)
		}
	})
}

// TestRenew_Late: a request that has waited long for others, which renew the same login, has as much time for the issuer as any. If the
// request were cut off, the issuer's new refresh token would be lost.
func TestRenew_Late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := still(t, storeIn(t, ""), 'k')
		g, err := s.redeem(t.Context(), s.codeOf(t, "c"))
		if err != nil {
			t.Fatal(err)
		}
		waits := func(g *grant) error { // the same as if another replica renewed the login
			g.Renewing, g.RenewingUntil = "another", deadline(renewingTime-time.Second)
			return nil
		}
		if _, err := s.change(t.Context(), g.Number, waits); err != nil {
			t.Fatal(err)
		}
		s.oidc.web.Transport.(inProcess).to.(*issuer).renewing = func() { time.Sleep(issuerTime / 2) }
		if g, err = s.renew(t.Context(), refreshOf("c", g, s)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.renew(t.Context(), refreshOf("c", g, s)); err != nil {
			t.Errorf("the next renewal: %v", err)
		}
	})
}

// loginNumber returns the number of the login to which these tokens belong. It reads the number from the refresh token.
func loginNumber(s *Server, tokens map[string]any) string {
	var r refresh
	_ = s.seals.refresh.open(tokens["refresh_token"].(string), &r)
	return r.Grant
}

// TestRenew_Ended: a login that ends while the issuer is asked stays ended.
func TestRenew_Ended(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	s.issuer.renewing = func() {
		if _, err := s.server.End(t.Context(), s.server.Logins()[0].ID, "test"); err != nil {
			t.Error(err)
		}
	}
	if status, answer := s.refresh(client, tokens); status != 400 || answer["access_token"] != nil || s.counts(tokens) {
		t.Errorf("%d %v", status, answer)
	}
}

// TestRenew_NoRefreshToken: if the issuer gives no refresh token, mcpx asks UserInfo whether the user may stay logged in, and the
// login ends with the issuer's access token. Without UserInfo it ends with the first access token of mcpx.
func TestRenew_NoRefreshToken(t *testing.T) {
	s := newSite(t)
	s.issuer.poor, s.issuer.info = true, map[string]any{"sub": "ann"}
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	if left := time.Until(s.server.Logins()[0].Until); left > 30*time.Minute || left < 29*time.Minute {
		t.Errorf("it lasts another %v", left)
	}
	status, tokens := s.refresh(client, tokens)
	if status != 200 || !strings.Contains(s.log.String(), "gives no refresh token") {
		t.Fatalf("%d %v\n%s", status, tokens, s.log)
	}
	s.issuer.with(func() { s.issuer.info = nil }) // 401
	if status, answer := s.refresh(client, tokens); status != 400 || answer["error"] != "invalid_grant" || s.counts(tokens) {
		t.Errorf("when UserInfo refuses: %d %v", status, answer)
	}
	s = newSite(t)
	s.issuer.poor = true
	client = s.registered(claude)
	tokens = s.connected(client, claude)
	if left := time.Until(s.server.Logins()[0].Until); left > accessTime {
		t.Errorf("without UserInfo it lasts another %v", left)
	}
	if status, answer := s.refresh(client, tokens); status != 400 || answer["error"] != "invalid_grant" {
		t.Errorf("without UserInfo: %d %v", status, answer)
	}
}

// TestSecrets: an administrator does not see the number of a login, and the number alone opens nothing.
func TestSecrets(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	tokens := s.connected(client, claude)
	number := loginNumber(s.server, tokens)
	shown, _ := json.Marshal(s.server.Logins())
	for _, secret := range []string{number, keyOf(number)} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("an administrator sees %s: %s", secret, shown)
		}
		for _, token := range []string{secret, accessPrefix + secret, "mcpx_rt_" + secret} {
			if s.server.Prove(token) != nil {
				t.Errorf("%s is an access token", token)
			}
			if status, _ := s.refresh(client, map[string]any{"refresh_token": token}); status != 400 {
				t.Errorf("%s is a refresh token", token)
			}
		}
	}
	// The login of a client is not accepted as the login of a page.
	if _, err := s.server.Standing(t.Context(), number); err == nil {
		t.Error("a page takes the login of a client")
	}
	if !s.counts(tokens) {
		t.Error("the login has ended")
	}
}

// TestEnd: an administrator ends one login by the ID of the login, or all logins of a principal by the principal's name.
func TestEnd(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	one, two := s.connected(client, claude), s.connected(client, claude)
	all := s.server.Logins()
	if len(all) != 2 || all[0].Client != "Claude" || all[0].Email != "ann@example.com" {
		t.Fatalf("%+v", all)
	}
	number := loginNumber(s.server, one)
	if token, err := s.server.IssuerToken(t.Context(), number); err != nil || token == "" {
		t.Errorf("the issuer's token: %q, %v", token, err)
	}
	ended, err := s.server.End(t.Context(), s.server.find(number).id(), "test")
	if err != nil || len(ended) != 1 || s.counts(one) || !s.counts(two) {
		t.Errorf("%+v %v", ended, err)
	}
	for _, gone := range []string{number, "unknown"} {
		if token, err := s.server.IssuerToken(t.Context(), gone); !errors.Is(err, errEnded) {
			t.Errorf("the issuer's token of %s: %q, %v", gone, token, err)
		}
	}
	if status, _ := s.refresh(client, one); status != 400 {
		t.Errorf("its refresh token: %d", status)
	}
	if ended, err = s.server.End(t.Context(), "ann", "test"); err != nil || len(ended) != 0 {
		t.Errorf("a subject is no name: %+v %v", ended, err)
	}
	if ended, err = s.server.End(t.Context(), all[0].Principal, "test"); err != nil || len(ended) != 1 || s.counts(two) || len(s.server.Logins()) != 0 {
		t.Errorf("%+v %v", ended, err)
	}
}

// TestTooMany: a user with too many logins loses one of them, so the logins of other users stay valid.
func TestTooMany(t *testing.T) {
	s := still(t, storeIn(t, ""), 'k')
	for range maxPerUser + 1 {
		if _, err := s.redeem(t.Context(), s.codeOf(t, "c")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.validGrants()); n != maxPerUser {
		t.Errorf("%d logins", n)
	}
}

// TestSignIn: a page of mcpx gets a login of its own, without a token, which the issuer renews. It ends when the issuer refuses
// the user, or when the viewer signs out.
func TestSignIn(t *testing.T) {
	s := newSite(t)
	s.browser.CheckRedirect = func(next *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(next.URL.Path, "/back") {
			return http.ErrUseLastResponse
		}
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/signin", func(w http.ResponseWriter, r *http.Request) { s.server.SignIn(w, r, "/back?x=1") })
	mux.Handle("/", s.server)
	s.handler = mux
	signIn := func() (login string) {
		t.Helper()
		status, text, to := s.get(s.server.issuer + "/signin")
		if to == nil || to.String() != s.server.issuer+"/back?x=1" {
			t.Fatalf("%d %s %v\n%s", status, text, to, s.log)
		}
		return s.signed[len(s.signed)-1]
	}
	login := signIn()
	proof, err := s.server.Standing(t.Context(), login)
	if err != nil || proof.Principal.ID != s.issuer.url+" ann" || time.Until(proof.Until) > accessTime {
		t.Fatalf("%+v %v", proof, err)
	}
	past := func() {
		_, err := s.server.change(t.Context(), login, func(g *grant) error {
			g.Renewed -= int64(accessTime / time.Second)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	past()
	s.issuer.with(func() { s.issuer.fails = "down" })
	if _, err := s.server.Standing(t.Context(), login); err != identity.ErrUnavailable {
		t.Errorf("while the issuer is down: %v", err)
	}
	s.issuer.with(func() { s.issuer.fails = "" })
	if _, err := s.server.Standing(t.Context(), login); err != nil || s.issuer.renewals != 1 {
		t.Errorf("%v, %d renewals", err, s.issuer.renewals)
	}
	if _, err := s.server.Standing(t.Context(), login); err != nil || s.issuer.renewals != 1 {
		t.Errorf("%v, the issuer is asked at each request", err)
	}
	past()
	s.issuer.with(func() { s.issuer.fails = "invalid_grant" })
	if _, err := s.server.Standing(t.Context(), login); err != identity.ErrInvalid {
		t.Errorf("a user who has left: %v", err)
	}
	s.issuer.with(func() { s.issuer.fails = "" })
	login = signIn()
	proof, _ = s.server.Standing(t.Context(), login)
	if err := s.server.SignOut(t.Context(), login); err != nil || proof.Revoked.Err() == nil {
		t.Errorf("%v", err)
	}
	if _, err := s.server.Standing(t.Context(), login); err != identity.ErrInvalid {
		t.Errorf("signed out: %v", err)
	}
	if _, err := s.server.Standing(t.Context(), random()); err != identity.ErrInvalid {
		t.Errorf("a made-up login: %v", err)
	}
	// Another browser cannot finish a login, so nobody can be signed in to the account of an attacker.
	s.issuer.with(func() { s.issuer.fails = "" })
	var back url.Values
	s.issuer.with(func() { s.issuer.answer = func(values url.Values) { back = values } })
	s.browser.CheckRedirect = func(next *http.Request, _ []*http.Request) error {
		if next.URL.Path == callbackPath {
			return http.ErrUseLastResponse
		}
		return nil
	}
	n := len(s.signed)
	s.get(s.server.issuer + "/signin")
	s.browser = s.newBrowser()
	if status, _, to := s.get(s.server.issuer + callbackPath + "?" + back.Encode()); status != 400 || to != nil || len(s.signed) != n {
		t.Errorf("another browser: %d %v", status, to)
	}
}

// TestLogout: a logout token ends the logins of its session, or all of its user. Whatever is not a good logout token for this mcpx
// ends nothing.
func TestLogout(t *testing.T) {
	s := newSite(t)
	client := s.registered(claude)
	good := func() jwt.MapClaims {
		return jwt.MapClaims{
			"iss": s.issuer.url, "aud": "mcpx", "iat": time.Now().Unix(), "exp": time.Now().Add(2 * time.Minute).Unix(), "jti": random(),
			"events": map[string]any{logoutEvent: map[string]any{}}, "sid": "session of ann", "sub": "ann",
		}
	}
	post := func(token string) int {
		status, _ := s.post(logoutPath, url.Values{"logout_token": {token}})
		return status
	}
	tokens := s.connected(client, claude)
	stranger := newIssuer(t)
	without := func(names ...string) func(jwt.MapClaims) {
		return func(claims jwt.MapClaims) {
			for _, name := range names {
				delete(claims, name)
			}
		}
	}
	with := func(name string, value any) func(jwt.MapClaims) {
		return func(claims jwt.MapClaims) { claims[name] = value }
	}
	for name, change := range map[string]func(jwt.MapClaims){
		"another issuer": with("iss", stranger.url), "no issuer": without("iss"), "another audience": with("aud", "other"), "no audience": without("aud"),
		"old": with("iat", time.Now().Add(-time.Hour).Unix()), "no time": without("iat"), "from the future": with("iat", time.Now().Add(time.Hour).Unix()),
		"expired": with("exp", time.Now().Add(-time.Hour).Unix()), "no ID": without("jti"), "no event": without("events"),
		"another event": with("events", map[string]any{"http://example.com/x": map[string]any{}}), "the event as text": with("events", logoutEvent),
		"the event without an object": with("events", map[string]any{logoutEvent: true}), "a nonce": with("nonce", "x"), "an empty nonce": with("nonce", ""),
		"nobody": without("sub", "sid"), "a number for a session": func(claims jwt.MapClaims) { delete(claims, "sub"); claims["sid"] = 5 },
	} {
		claims := good()
		change(claims)
		if status := post(s.issuer.signed(claims, s.issuer.key)); status != 400 || !s.counts(tokens) {
			t.Errorf("%s: %d", name, status)
		}
	}
	typed := func(kind string) string {
		token := jwt.NewWithClaims(jwt.SigningMethodES256, good())
		token.Header["kid"], token.Header["typ"] = "one", kind
		text, _ := token.SignedString(s.issuer.key)
		return text
	}
	none, _ := jwt.NewWithClaims(jwt.SigningMethodNone, good()).SignedString(jwt.UnsafeAllowNoneSignatureType)
	for name, token := range map[string]string{
		"another key": s.issuer.signed(good(), stranger.key), "no signature": none, "nothing": "", "no JWT": "x.y.z", "an access token": typed("at+jwt"),
		"our own token": tokens["access_token"].(string),
	} {
		if status := post(token); status != 400 || !s.counts(tokens) {
			t.Errorf("%s: %d", name, status)
		}
	}
	for name, change := range map[string]func(jwt.MapClaims){
		"another session": with("sid", "other"), "another user": func(claims jwt.MapClaims) { delete(claims, "sid"); claims["sub"] = "bob" },
		"the session of another user": with("sub", "bob"),
	} {
		claims := good()
		change(claims)
		if status := post(s.issuer.signed(claims, s.issuer.key)); status != 200 || !s.counts(tokens) {
			t.Errorf("%s: %d", name, status)
		}
	}
	used := ""
	for name, token := range map[string]func() string{
		"session and user": func() string { return s.issuer.signed(good(), s.issuer.key) },
		"the session":      func() string { c := good(); delete(c, "sub"); return s.issuer.signed(c, s.issuer.key) },
		"the user":         func() string { c := good(); delete(c, "sid"); used = s.issuer.signed(c, s.issuer.key); return used },
		"no end":           func() string { c := good(); delete(c, "exp"); return s.issuer.signed(c, s.issuer.key) },
		"its type":         func() string { return typed("logout+jwt") },
	} {
		tokens := s.connected(client, claude)
		if status := post(token()); status != 200 || s.counts(tokens) {
			t.Errorf("%s: %d", name, status)
		}
		if status, _ := s.refresh(client, tokens); status != 400 {
			t.Errorf("%s: the refresh token counts: %d", name, status)
		}
	}
	again := s.connected(client, claude)
	if status := post(used); status != 400 || !s.counts(again) {
		t.Errorf("a logout token a second time: %d", status)
	}
}

// TestScopes: mcpx asks for offline_access if the issuer lists that scope. If the config names scopes, mcpx asks for these and
// openid alone.
func TestScopes(t *testing.T) {
	for _, test := range []struct{ of, has, want string }{
		{"", "", "openid profile email"}, {"", "openid offline_access", "openid profile email offline_access"}, {"email", "offline_access", "openid email"},
	} {
		s := newSite(t, func(o *Options) {
			if test.of != "" {
				o.Scopes = strings.Fields(test.of)
			}
		})
		s.issuer.lies = func(m map[string]any) { m["scopes_supported"] = strings.Fields(test.has) }
		var asked url.Values
		s.issuer.answer = func(url.Values) {
			for _, one := range s.issuer.asked {
				asked = one
			}
		}
		s.connected(s.registered(claude), claude)
		if got := asked.Get("scope"); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
