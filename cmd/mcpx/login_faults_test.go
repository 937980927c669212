package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// loggedIn returns a home with a login at the server g, and the path of its config.
func loggedIn(t *testing.T, g *guarded) (h *home, config string) {
	t.Helper()
	h = newHome(t)
	config = h.config(t, map[string]server{"tracker": {"url": g.url}}, nil)
	h.login(t, 0, "--config", config, "tracker")
	return h, config
}

// working starts mcpx, and returns a client that has made a call for which the login was needed.
func (h *home) working(t *testing.T, config string) *client {
	t.Helper()
	c := h.client(t, config)
	if got := c.echo(t); got != "x" {
		t.Fatalf("got %s", got)
	}
	return c
}

func (h *home) client(t *testing.T, config string) *client {
	t.Helper()
	c := &client{peer: h.serveStdio(t, "--config", config, "serve"), era: legacy, name: "e2e"}
	c.open(t)
	return c
}

func (c *client) echo(t *testing.T) string {
	t.Helper()
	return c.exec(t, "tracker", "echo", `{"text":"x"}`).text(t)
}

// TestLogin_TwoProcesses: two mcpx processes use one login. Its tokens expire after five seconds, and each
// refresh issues a new refresh token. If a refresh token were used twice, the login would end.
//
// With MCPX_SOAK=5m, for example, tokens expire after a minute, and for five minutes each of 50 callers makes
// a call every two seconds:
//
//	MCPX_SOAK=5m go test ./cmd/mcpx -run TestLogin_TwoProcesses -v -timeout 0
func TestLogin_TwoProcesses(t *testing.T) {
	mcptest.Parallel(t)
	lifetime, callers, pause, lasts := 5, 6, 150*time.Millisecond, 16*time.Second // calls often enough even on a busy machine
	var more []map[string]any
	if soak, err := time.ParseDuration(os.Getenv("MCPX_SOAK")); err == nil {
		lifetime, callers, pause, lasts = 60, 50, 2*time.Second, soak
		more = append(more, map[string]any{"refresh": 60})
	}
	g := guard(t, lifetime, more...)
	h, config := loggedIn(t, g)
	first := g.count("/token")
	var all sync.WaitGroup
	var calls, failed, slowest atomic.Int64
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	for range 2 {
		c := h.client(t, config)
		for range callers / 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					if got := c.echo(t); got != "x" && failed.Add(1) < 10 {
						t.Errorf("after %d calls: %s", calls.Load(), got)
					}
					calls.Add(1)
					for took := int64(time.Since(began)); took > slowest.Load(); {
						slowest.Store(took)
					}
					// All call at the same moments, so that both processes find the token expired at once.
					<-time.After(pause - time.Since(start)%pause)
				}
			})
		}
	}
	all.Wait()
	asked, ends := g.count("/token")-first, int(time.Since(start)/time.Second)/lifetime
	t.Logf("%d calls, %d failed, the slowest took %s; %d requests for a token in %s", calls.Load(), failed.Load(), time.Duration(slowest.Load()), asked, lasts)
	if asked < 2 || asked > 3*ends {
		t.Errorf("%d requests for a token in %s", asked, lasts)
	}
}

// ended makes the server refuse the access token that it has seen last.
func (g *guarded) ended(t *testing.T) {
	t.Helper()
	g.with(func() { g.dead = append(g.dead, g.tokens[len(g.tokens)-1]) })
}

// TestLogin_ProviderDown: if a refresh fails because the authorization server is down for a moment, mcpx keeps
// the login, and the error says so.
func TestLogin_ProviderDown(t *testing.T) {
	mcptest.Parallel(t)
	g := guard(t, 600)
	h, config := loggedIn(t, g)
	c := h.working(t, config)
	g.with(func() {
		g.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				http.Error(w, "down", http.StatusServiceUnavailable)
			}
			return r.URL.Path == "/token"
		}
	})
	g.ended(t)
	if got := c.echo(t); !strings.HasPrefix(got, "SERVER_UNAVAILABLE") || !strings.Contains(got, g.issuer+" answered 503 Service Unavailable; the login is kept") {
		t.Errorf("down: %s", got)
	}
	g.with(func() { g.answer = nil })
	g.admin(t, "/test/rotate")
	if got := c.echo(t); got != "x" {
		t.Errorf("up again, with another key: %s", got)
	}
}

// TestLogin_ProviderSlow: a refresh continues when the call that needed it is cancelled. mcpx keeps the new
// tokens; otherwise the next refresh would use the same refresh token again.
func TestLogin_ProviderSlow(t *testing.T) {
	mcptest.Parallel(t)
	g := guard(t, 600)
	h, config := loggedIn(t, g)
	c := h.working(t, config)
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	g.with(func() {
		g.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				once.Do(func() { close(asked) })
				<-release
			}
			return false
		}
	})
	g.ended(t)
	id := c.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs("tracker", "echo", `{"text":"x"}`)+`}`, "")
	<-asked
	c.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
	close(release)
	if got := c.echo(t); got != "x" {
		t.Errorf("after a call that was given up: %s", got)
	}
	g.with(func() { g.answer = nil })
	g.ended(t)
	if got := c.echo(t); got != "x" {
		t.Errorf("the next refresh: %s", got)
	}
}

// TestLogin_Forgotten: if the authorization server has forgotten the registration of mcpx, the next login
// registers mcpx again.
func TestLogin_Forgotten(t *testing.T) {
	mcptest.Parallel(t)
	g := guard(t, 600)
	h, config := loggedIn(t, g)
	c := h.working(t, config)
	g.admin(t, "/test/forget?client="+url.QueryEscape(g.lastClient()))
	g.ended(t)
	want := "needs mcpx login tracker: the authorization server no longer knows mcpx (invalid_client)"
	if got := c.echo(t); !strings.Contains(got, want) {
		t.Errorf("forgotten: %s", got)
	}
	asked := g.count("/token")
	if got := c.echo(t); !strings.Contains(got, want) || g.count("/token") != asked {
		t.Errorf("it asks again: %s", got)
	}
	registered := g.count("/reg")
	h.login(t, 0, "--config", config, "tracker")
	if g.count("/reg") != registered+1 {
		t.Error("the login did not register mcpx again")
	}
	mcptest.WaitFor(t, "the new login", patience, func() bool { return c.echo(t) == "x" })
}

// TestLogin_Revoked: if the login was revoked at the authorization server, mcpx tells the user to log in
// again.
func TestLogin_Revoked(t *testing.T) {
	mcptest.Parallel(t)
	g := guard(t, 600)
	h, config := loggedIn(t, g)
	g.with(func() {
		g.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/token" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"grant was ended"}`)
			return true
		}
	})
	c := h.client(t, config)
	if got := c.echo(t); got != "x" {
		t.Fatalf("got %s", got)
	}
	g.ended(t)
	if got := c.echo(t); !strings.Contains(got, "needs mcpx login tracker: the login has ended (invalid_grant)") {
		t.Errorf("got %s", got)
	}
	if files := loginFiles(t, h); len(files) != 1 {
		t.Errorf("the file of the login is gone: %v", files)
	}
	stdout, _, code := h.run(t, "", "check", "--config", config)
	if code != 1 || !strings.Contains(stdout, "needs mcpx login tracker") {
		t.Errorf("check: %d %s", code, stdout)
	}
}

func loginFiles(t *testing.T, h *home) []string {
	t.Helper()
	folder := filepath.Join(h.dir, "config")
	if runtime.GOOS == "darwin" {
		folder = filepath.Join(h.dir, "Library", "Application Support")
	}
	files, err := filepath.Glob(filepath.Join(folder, "mcpx", "logins", "*.login"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestLogin_Refused: mcpx refuses invalid or insecure logins, and its error gives the reason.
func TestLogin_Refused(t *testing.T) {
	mcptest.Parallel(t)
	g, h := guard(t, 600), newHome(t)
	config := h.config(t, map[string]server{"tracker": {"url": g.url}, "plain": {"url": "http://192.0.2.1/mcp"}, "command": {"command": "x"}}, nil)
	g.with(func() {
		g.change = func(resp *http.Response) error {
			if to := resp.Header.Get("Location"); strings.Contains(to, "iss=") {
				resp.Header.Set("Location", strings.Replace(to, url.QueryEscape(g.issuer), url.QueryEscape("https://evil.example"), 1))
			}
			return nil
		}
	})
	out, page := h.login(t, 1, "--config", config, "tracker")
	if want := "the redirect came from another authorization server (iss)"; !strings.Contains(out, want) || !strings.Contains(page, want) {
		t.Errorf("a wrong iss: %s\n%s", out, page)
	}
	if n := g.count("/token"); n != 0 {
		t.Errorf("a wrong iss: the code was sent")
	}
	g.with(func() {
		g.change = func(resp *http.Response) error {
			resp.Header.Set("Location", regexp.MustCompile(`[?&]iss=[^&]*`).ReplaceAllString(resp.Header.Get("Location"), ""))
			return nil
		}
	})
	if out, _ := h.login(t, 1, "--config", config, "tracker"); !strings.Contains(out, "the redirect came from another authorization server (iss)") || g.count("/token") != 0 {
		t.Errorf("no iss: %s", out)
	}
	metadata := func(status int, text string) {
		g.with(func() {
			g.change = nil
			g.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/.well-known/") {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					fmt.Fprint(w, text)
				}
				return strings.HasPrefix(r.URL.Path, "/.well-known/")
			}
		})
	}
	const elsewhere = `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"code_challenge_methods_supported":["S256"]}`
	for _, test := range []struct {
		status     int
		text, want string
	}{
		{http.StatusServiceUnavailable, "down", "reading the metadata of the authorization server " + g.issuer + ": the answer is 503"},
		{http.StatusNotFound, "", "the authorization server " + g.issuer + " has no metadata"},
		{http.StatusOK, "<html>", "the answer is not the expected JSON document"},
		{http.StatusOK, fmt.Sprintf(elsewhere, "https://evil.example", "https://evil.example/a", "https://evil.example/t"), g.issuer + ": they are of another issuer, https://evil.example"},
		{http.StatusOK, fmt.Sprintf(elsewhere, g.issuer, "http://evil.example/a", "https://evil.example/t"), "no page to log in on over https"},
		{http.StatusOK, fmt.Sprintf(elsewhere, g.issuer, "wss://evil.example/a", "https://evil.example/t"), "no page to log in on over https"},
		{http.StatusOK, fmt.Sprintf(elsewhere, g.issuer, "javascript:alert(1)", "https://evil.example/t"), "no page to log in on over https"},
		{http.StatusOK, fmt.Sprintf(elsewhere, g.issuer, "https://evil.example/a", "http://evil.example/t"), "names no token endpoint over https"},
	} {
		metadata(test.status, test.text)
		if out, _ := h.login(t, 1, "--config", config, "tracker"); !strings.Contains(out, test.want) {
			t.Errorf("metadata %s: %s", test.text, out)
		}
	}
	g.with(func() { g.answer, g.resource = nil, "https://other.example/mcp" })
	if out, _ := h.login(t, 1, "--config", config, "tracker"); !strings.Contains(out, "the metadata of the server is for another resource: https://other.example/mcp") {
		t.Errorf("a foreign resource: %s", out)
	}
	if out, _ := h.login(t, 1, "--config", config, "plain"); !strings.Contains(out, "a login needs a server over https") {
		t.Errorf("in the clear: %s", out)
	}
	if out, _ := h.login(t, 1, "--config", config, "command"); !strings.Contains(out, "command is a local command and has no login") {
		t.Errorf("a command: %s", out)
	}
	if files := loginFiles(t, h); len(files) != 0 {
		t.Errorf("a login was kept: %v", files)
	}
}

// TestLogin_MoreRights: if a server later requires further scopes, the next login requests them in addition to
// the earlier scopes.
func TestLogin_MoreRights(t *testing.T) {
	mcptest.Parallel(t)
	g := guard(t, 600)
	h, config := loggedIn(t, g)
	c := h.client(t, config)
	c.awaitReady(t, "tracker")
	g.with(func() { g.scopes = "more" })
	if got := c.echo(t); !strings.Contains(got, "needs mcpx login tracker: the server needs more scopes") {
		t.Errorf("got %s", got)
	}
	if out, _ := h.login(t, 0, "--config", config, "tracker"); !strings.Contains(out, "(mcp more offline_access)") && !strings.Contains(out, "(mcp more)") {
		t.Errorf("login: %s", out)
	}
	g.with(func() { g.scopes = "mcp more" })
	if got := c.echo(t); got != "x" {
		t.Errorf("with more rights: %s", got)
	}
}

// TestLogin_Machine: the grants without a user work, also when their tokens expire.
func TestLogin_Machine(t *testing.T) {
	mcptest.Parallel(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey.Bytes() // the byte 4, then X and Y
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	jwk := map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "x": part(public[1:33]), "y": part(public[33:])}
	g, h := guard(t, 600, map[string]any{"jwk": jwk}), newHome(t)
	file := h.write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	for name, oauth := range map[string]map[string]any{
		"secret": {"grant": "client_credentials", "client_id": "machine", "client_secret": "machine-secret-of-the-tests"},
		"key":    {"grant": "private_key_jwt", "client_id": "signer", "key": file},
	} {
		config := h.config(t, map[string]server{"tracker": {"url": g.url, "oauth": oauth}}, nil)
		c := h.client(t, config)
		for range 2 {
			if got := c.echo(t); got != "x" {
				t.Errorf("%s: %s", name, got)
			}
			g.ended(t)
		}
	}
	config := h.config(t, map[string]server{"tracker": {"url": g.url, "oauth": map[string]any{"grant": "client_credentials", "client_id": "machine", "client_secret": "a-wrong-secret"}}}, nil)
	stdout, stderr, code := h.run(t, "", "check", "--config", config)
	if code != 1 || !strings.Contains(stdout, "invalid_client") || strings.Contains(stdout+stderr, "a-wrong-secret") {
		t.Errorf("check: %d %s %s", code, stdout, stderr)
	}
}

// TestLogin_Secrets: no token is in an answer, in a page or in the log, and only its owner may read the file of the login. One
// warning tells the user about this file.
func TestLogin_Secrets(t *testing.T) {
	mcptest.Parallel(t)
	g, h := guard(t, 600), newHome(t)
	config := h.config(t, map[string]server{"tracker": {"url": g.url}}, map[string]any{"log_level": "debug"})
	said, page := h.login(t, 0, "--config", config, "tracker")
	if n := strings.Count(said, "kept unencrypted"); n != 1 {
		t.Errorf("%d warnings: %s", n, said)
	}
	d := h.serveHTTP(t, "--config", config)
	c := &client{peer: d.peer(t), era: legacy, name: "e2e"}
	c.open(t)
	if got := c.echo(t); got != "x" {
		t.Fatalf("got %s", got)
	}
	// This server repeats the received token in its errors.
	g.with(func() { g.repeats = true })
	g.ended(t)
	said += c.echo(t)
	status, err := http.Get(strings.TrimSuffix(d.url, "/mcp") + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer status.Body.Close()
	stdout, stderr, _ := h.run(t, "", "check", "--config", config, "--json")
	var text strings.Builder
	fmt.Fprint(&text, said, page, stdout, stderr, d.stderr)
	for _, file := range loginFiles(t, h) {
		info, err := os.Stat(file)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
	tokens := g.seen()
	if len(tokens) < 2 {
		t.Fatalf("%d tokens", len(tokens))
	}
	for _, token := range tokens {
		if strings.Contains(text.String(), token) {
			t.Errorf("a token is in\n%s", text.String())
		}
	}
}
