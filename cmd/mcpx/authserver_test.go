package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/internal/mcptest"
)

// fronted is an mcpx with the setting auth.front. Its users log in at a real OpenID issuer.
type fronted struct {
	*hosted
	resource string // the public URL, from which a proxy forwards to the daemon
	issuer   *guarded
	box      server
	person   string // who logs in; empty means anna
}

// startFronted starts an mcpx with auth.front; change has keys of auth.front to set.
func (h *home) startFronted(t *testing.T, change map[string]any) *fronted {
	t.Helper()
	f := &fronted{issuer: guard(t, 600)}
	proxy := httptest.NewUnstartedServer(nil)
	f.resource = "http://" + proxy.Listener.Addr().String() + "/mcp"
	f.box = fake(t, mcptest.Spec{})
	f.hosted = h.serveHTTP(t, "--config", h.frontConfig(t, f, change), "--watch")
	to, err := url.Parse(strings.TrimSuffix(f.hosted.url, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1
	proxy.Config.Handler = pass
	proxy.Start()
	t.Cleanup(proxy.Close)
	return f
}

// frontConfig writes the config of an mcpx with an authorization server (auth.front), changed by change, and returns its path.
func (h *home) frontConfig(t *testing.T, f *fronted, change map[string]any) string {
	t.Helper()
	return h.config(t, map[string]server{"box": f.box}, map[string]any{"auth": f.auth(change)})
}

// auth returns the key auth of the config.
func (f *fronted) auth(change map[string]any) map[string]any {
	front := map[string]any{"issuer": f.issuer.issuer, "client_id": "front", "client_secret": "front-secret-of-the-tests", "scopes": []string{"openid", "email", "groups"}}
	maps.Copy(front, change)
	return map[string]any{"resource": f.resource, "scopes": []string{"mcp"}, "front": front}
}

var (
	anyForm   = regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`)
	formTo    = regexp.MustCompile(`<form[^>]*\saction="([^"]+)"`)
	formField = regexp.MustCompile(`<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"`)
)

// agree acts as a user with a browser: it opens the page, allows the access that mcpx asks about, logs in, and
// gives consent. It returns the address on another host to which the browser is redirected.
func agree(t *testing.T, f *fronted, address string) *url.URL {
	t.Helper()
	to, _ := browseTo(t, f, address, func(*url.URL) bool { return false })
	return to
}

// signedIn signs in to the page of mcpx, and returns the cookie.
func signedIn(t *testing.T, f *fronted, address string) (cookie string) {
	t.Helper()
	_, cookies := browseTo(t, f, address, func(to *url.URL) bool { return to.Path == "/" })
	for _, one := range cookies {
		if one.Name == "__Host-mcpx" {
			return one.Value
		}
	}
	return ""
}

// loopbackJar sends cookies that are Secure over http too, as browsers do on loopback.
type loopbackJar struct{ *cookiejar.Jar }

func newLoopbackJar() loopbackJar {
	jar, _ := cookiejar.New(nil) // never fails
	return loopbackJar{jar}
}

func (j loopbackJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	for _, one := range cookies {
		one.Secure = false
	}
	j.Jar.SetCookies(u, cookies)
}

// browseTo browses like agree, but also stops at a redirect to an address for which stop returns true. It returns the address
// of the last redirect, and the cookies that come with it.
func browseTo(t *testing.T, f *fronted, address string, stop func(*url.URL) bool) (*url.URL, []*http.Cookie) {
	t.Helper()
	jar := newLoopbackJar()
	at, _ := url.Parse(f.issuer.issuer)
	own := []string{strings.TrimSuffix(f.resource, "/mcp"), at.Scheme + "://" + at.Host}
	web := &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		if origin := next.URL.Scheme + "://" + next.URL.Host; origin != own[0] && origin != own[1] || stop(next.URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	t.Cleanup(web.CloseIdleConnections)
	resp, err := web.Get(address)
	for range 8 {
		if err != nil {
			t.Fatalf("browsing: %v", err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if to, err := resp.Location(); err == nil {
			return to, resp.Cookies()
		}
		form := anyForm.FindString(string(body))
		if form == "" {
			t.Fatalf("%s: %s\n%s\n%s", resp.Request.URL, resp.Status, body, f.stderr.String())
		}
		to := resp.Request.URL.String()
		if action := formTo.FindStringSubmatch(form); action != nil {
			next, err := resp.Request.URL.Parse(html.UnescapeString(action[1]))
			if err != nil {
				t.Fatal(err)
			}
			to = next.String()
		}
		name := cmp.Or(f.person, "anna")
		values := url.Values{"login": {name}, "username": {name}, "password": {"password"}, "answer": {"allow"}}
		for _, field := range formField.FindAllStringSubmatch(form, -1) {
			if field[2] != "" { // otherwise the user types it
				values.Set(field[1], html.UnescapeString(field[2]))
			}
		}
		resp, err = web.PostForm(to, values)
	}
	t.Fatal("browsing does not end")
	return nil, nil
}

// TestFront_Claude replays how claude.ai connects with dynamic registration: it knows only the URL, discovers and registers,
// lists the tools, and continues with a refresh token. An old refresh token ends the login.
func TestFront_Claude(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, map[string]any{"allow": map[string]any{"emails": []string{"*@example.com"}, "groups": []string{"nobody"}}})
	c := discover(t, f)
	const redirect = "https://claude.ai/api/mcp/auth_callback"
	status, client := c.post("registration_endpoint", "application/json", `{"client_name":"Claude","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"mcp","redirect_uris":["`+redirect+`"]}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, client)
	}
	id := client["client_id"].(string)
	tokens := c.connect(f, id, redirect)
	if got := c.tools(tokens); !strings.Contains(got, `"name":"exec"`) {
		t.Fatalf("tools/list: %s", got)
	}
	status, next := c.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)}})
	if status != http.StatusOK || !strings.Contains(c.tools(next), `"name":"exec"`) {
		t.Fatalf("refresh: %d %v", status, next)
	}
	for _, token := range []string{next["refresh_token"].(string), next["access_token"].(string) + "A", "x.y.z"} {
		if status, _, _ := c.call(f.resource, token, legacyInitialize); status != http.StatusUnauthorized {
			t.Errorf("%.12s…: %d", token, status)
		}
	}
	// If an old refresh token is used again, it may be stolen: the login ends for the thief and for the client.
	if status, answer := c.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)}}); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("an old refresh token: %d %v", status, answer)
	}
	if status, _, _ := c.call(f.resource, next["access_token"].(string), legacyInitialize); status != http.StatusUnauthorized {
		t.Errorf("the access token after that: %d", status)
	}
	for _, secret := range []string{"front-secret-of-the-tests", tokens["refresh_token"].(string), next["access_token"].(string)} {
		if strings.Contains(f.stderr.String(), secret) {
			t.Errorf("the log has %s in it", secret)
		}
	}
}

// TestFront_ChatGPT replays how ChatGPT connects: its client ID is the URL of a metadata document.
func TestFront_ChatGPT(t *testing.T) {
	mcptest.Parallel(t)
	id := ""
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"client_id":%q,"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none","private_key_jwt"],"jwks_uri":"https://chatgpt.com/oauth/jwks.json"}`, id)
	}))
	t.Cleanup(web.Close)
	id = web.URL + "/oauth/client.json"
	h := newHome(t)
	if !trusts(h, web) {
		t.Skip("the system does not say which certificates a program trusts")
	}
	f := h.startFronted(t, nil)
	c := discover(t, f)
	if c.metadata["client_id_metadata_document_supported"] != true {
		t.Fatalf("%v", c.metadata)
	}
	tokens := c.connect(f, id, "https://chatgpt.com/connector_platform_oauth_redirect")
	if got := c.tools(tokens); !strings.Contains(got, `"name":"exec"`) {
		t.Fatalf("tools/list: %s", got)
	}
}

// trusts makes the programs of a home trust the certificate of a server. It returns false if the operating
// system does not allow that.
func trusts(h *home, web *httptest.Server) bool {
	var file bytes.Buffer
	_ = pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	path := filepath.Join(h.dir, "trusted.pem")
	h.extra = append(h.extra, "SSL_CERT_FILE="+path)
	return os.WriteFile(path, file.Bytes(), 0o600) == nil && certificatesByVariable
}

// TestFront_Allow: a user whom the config does not allow gets no access, and reads the reason.
func TestFront_Allow(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, map[string]any{"allow": map[string]any{"groups": []string{"admins"}}})
	c := discover(t, f)
	_, client := c.post("registration_endpoint", "application/json", `{"redirect_uris":["http://127.0.0.1/cb"]}`)
	to := agree(t, f, c.endpoint("authorization_endpoint")+"?"+url.Values{
		"response_type": {"code"}, "client_id": {client["client_id"].(string)}, "redirect_uri": {"http://127.0.0.1:1/cb"},
		"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"},
	}.Encode())
	if to.Query().Get("error") != "access_denied" || !strings.Contains(to.Query().Get("error_description"), "may not use this mcpx") {
		t.Errorf("%s", to)
	}
}

// TestFront_Reload: if a changed config no longer allows a user, the user loses access at once, and the user's
// open streams end.
func TestFront_Reload(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, nil)
	c := discover(t, f)
	const redirect = "https://claude.ai/api/mcp/auth_callback"
	_, client := c.post("registration_endpoint", "application/json", `{"redirect_uris":["`+redirect+`"]}`)
	id := client["client_id"].(string)
	tokens := c.connect(f, id, redirect)
	token := tokens["access_token"].(string)
	_, header, _ := c.call(f.resource, token, legacyInitialize)
	req, _ := http.NewRequest(http.MethodGet, f.url, nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	stream, err := http.DefaultClient.Do(req)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", stream, err)
	}
	defer stream.Body.Close()
	f.follow(t, "config loaded again", func() {
		h.frontConfig(t, f, map[string]any{"allow": map[string]any{"emails": []string{"bob@example.com"}}})
	})
	if status, _, answer := c.call(f.resource, token, legacyInitialize); status != http.StatusUnauthorized {
		t.Errorf("the access token after the change: %d %s", status, answer)
	}
	if status, answer := c.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)}}); status != http.StatusBadRequest {
		t.Errorf("the refresh token after the change: %d %v", status, answer)
	}
	if _, err := io.ReadAll(stream.Body); err != nil && !strings.Contains(err.Error(), "EOF") {
		t.Errorf("the stream: %v", err)
	}
}

// TestFront_Restart: after a restart mcpx uses the key that it made before, so users do not have to log in
// again.
func TestFront_Restart(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	f := h.startFronted(t, nil)
	c := discover(t, f)
	_, client := c.post("registration_endpoint", "application/json", `{"redirect_uris":["https://claude.ai/api/mcp/auth_callback"]}`)
	id := client["client_id"].(string)
	tokens := c.connect(f, id, "https://claude.ai/api/mcp/auth_callback")
	terminate(f.cmd)
	<-f.exited
	d := h.serveHTTP(t, "--config", filepath.Join(h.dir, "mcpx.json"))
	if status, _, answer := c.call(d.url, tokens["access_token"].(string), legacyInitialize); status != http.StatusOK {
		t.Errorf("the access token after a restart: %d %s", status, answer)
	}
	c.metadata["token_endpoint"] = strings.TrimSuffix(d.url, "/mcp") + "/oauth/token"
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)}}
	if status, answer := c.token(form); status != http.StatusOK {
		t.Errorf("the refresh token after a restart: %d %v", status, answer)
	}
	if status, answer := c.token(form); status != http.StatusBadRequest {
		t.Errorf("a second time: %d %v", status, answer)
	}
}

// TestFront_TypeScript: the client of the TypeScript SDK identifies itself by registration or by a metadata
// document, logs in, and renews its tokens.
func TestFront_TypeScript(t *testing.T) {
	mcptest.Parallel(t)
	for _, document := range []bool{false, true} {
		t.Run(fmt.Sprint("document ", document), func(t *testing.T) {
			h, s := newHome(t), findSuite(t)
			const redirect = "http://localhost:1/callback" // no program listens there
			args := []string{filepath.Join(s.dir, "connect.mjs"), "", redirect}
			if document {
				id := ""
				web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"client_id":%q,"client_name":"SDK client","redirect_uris":["http://localhost/callback"]}`, id)
				}))
				t.Cleanup(web.Close)
				id = web.URL + "/client.json"
				args = append(args, id)
				if !trusts(h, web) {
					t.Skip("the system does not say which certificates a program trusts")
				}
			}
			f := h.startFronted(t, nil)
			args[1] = f.resource
			listsTwice(t, f.hosted, func(page string) string { return agree(t, f, page).String() }, s.node, args...)
		})
	}
}

// logIn returns a function that opens a login page for a client with a local listener: it consents, logs in,
// and follows the redirect to the client.
func (f *fronted) logIn(t *testing.T) func(page string) {
	return func(page string) {
		t.Helper()
		resp, err := (&http.Client{Timeout: time.Minute}).Get(agree(t, f, page).String())
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// TestFront_Itself: one mcpx logs in at another, using the discovery and registration of go-sdk.
func TestFront_Itself(t *testing.T) {
	mcptest.Parallel(t)
	f, h := newHome(t).startFronted(t, nil), newHome(t)
	config := h.config(t, map[string]server{"other": {"url": f.resource}}, nil)
	cmd := h.command(t, "login", "--no-browser", "--config", config, "other")
	if out, err := visit(t, cmd, f.logIn(t)); err != nil {
		t.Fatalf("login: %v\n%s\n%s", err, out, f.stderr.String())
	}
	peer := &client{peer: h.serveStdio(t, "--config", config, "serve"), era: legacy, name: "e2e"}
	peer.open(t)
	peer.awaitReady(t, "other")
	if got := peer.exec(t, "other", "exec", `{"server_name":"box","tool_name":"echo","arguments":{"text":"x"}}`).text(t); got != "x" {
		t.Errorf("through both: %s", got)
	}
}

// TestFront_Go: the OAuth handler for clients in go-sdk registers and logs in without other help.
func TestFront_Go(t *testing.T) {
	mcptest.Parallel(t)
	f := newHome(t).startFronted(t, nil)
	const redirect = "http://localhost:1/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "go-sdk", RedirectURIs: []string{redirect}}},
		RedirectURL:                     redirect, RequestRefreshToken: true,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			back := agree(t, f, args.URL).Query()
			return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest(http.MethodPost, f.resource, nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := handler.Authorize(t.Context(), req, resp); err != nil {
		t.Fatalf("%v\n%s", err, f.stderr.String())
	}
	source, err := handler.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil || token.RefreshToken == "" {
		t.Fatalf("%+v %v", token, err)
	}
	c := &connector{t: t, resource: f.resource}
	if got := c.tools(map[string]any{"access_token": token.AccessToken}); !strings.Contains(got, `"name":"exec"`) {
		t.Errorf("tools/list: %s", got)
	}
}

// TestConformanceOfTheFront runs the part of the official conformance suite that tests authorization servers.
func TestConformanceOfTheFront(t *testing.T) {
	mcptest.Parallel(t)
	h, s := newHome(t), findSuite(t)
	f := h.startFronted(t, nil)
	c := discover(t, f)
	_, client := c.post("registration_endpoint", "application/json", `{"redirect_uris":["http://localhost/callback","http://127.0.0.1/callback"]}`)
	cmd := exec.Command(s.node, filepath.Join(s.dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"), "authorization",
		"--url", c.metadata["issuer"].(string), "--client-id", client["client_id"].(string), "--resource", f.resource,
		"--port", fmt.Sprint(freePort(t)), "--output-dir", h.dir)
	cmd.Dir = h.dir
	out, err := visit(t, cmd, f.logIn(t))
	if err != nil || strings.Contains(out, "SKIPPED") {
		t.Errorf("%v\n%s", err, out)
		results, _ := filepath.Glob(filepath.Join(h.dir, "*", "checks.json")) // what failed, and why: out has only the count
		for _, name := range results {
			result, _ := os.ReadFile(name)
			t.Logf("%s:\n%s", name, result)
		}
	}
}

// certificatesByVariable reports whether SSL_CERT_FILE determines which certificates a program trusts. On
// Windows and macOS it does not.
const certificatesByVariable = runtime.GOOS != "windows" && runtime.GOOS != "darwin"
