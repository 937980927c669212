package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// realm is a realm of Keycloak: a set of users and clients of its own, made for one test.
type realm struct {
	t           *testing.T
	url, name   string
	client, ann string // the IDs in Keycloak of the client mcpx and of the user anna
}

// keycloak makes an empty realm in the Keycloak at $MCPX_KEYCLOAK, whose administrator is admin with the password admin.
func keycloak(t *testing.T) *realm {
	t.Helper()
	at := os.Getenv("MCPX_KEYCLOAK")
	if at == "" || !mcptest.Full {
		t.Skip("needs MCPX_FULL, and the URL of a Keycloak in MCPX_KEYCLOAK; .ci/full starts one")
	}
	r := &realm{t: t, url: at, name: fmt.Sprintf("team-%d", time.Now().UnixNano())}
	r.admin("POST", "/admin/realms", map[string]any{"realm": r.name, "enabled": true})
	t.Cleanup(func() { r.admin("DELETE", "/admin/realms/"+r.name, nil) })
	return r
}

// adminToken logs the administrator in. Its tokens last a minute.
func (r *realm) adminToken() string {
	r.t.Helper()
	resp, err := http.PostForm(r.url+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {"admin"},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Token == "" {
		r.t.Fatalf("%s %v", resp.Status, err)
	}
	return got.Token
}

// admin asks the administration interface, and returns the ID of what was made.
func (r *realm) admin(method, path string, body any) (id string) {
	r.t.Helper()
	data, _ := json.Marshal(body)
	req, err := http.NewRequest(method, r.url+path, bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.adminToken())
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode/100 != 2 {
		r.t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	at := resp.Header.Get("Location")
	return at[strings.LastIndexByte(at, '/')+1:]
}

// fill does what docs/logins.md says: the client mcpx with its groups, a group and two users.
func (r *realm) fill(resource string) {
	base, public := "/admin/realms/"+r.name, strings.TrimSuffix(resource, "/mcp")
	r.client = r.admin("POST", base+"/clients", map[string]any{
		"clientId": "mcpx", "secret": "front-secret-of-the-tests", "publicClient": false, "standardFlowEnabled": true, "directAccessGrantsEnabled": false,
		"redirectUris": []string{public + "/oauth/callback"}, "frontchannelLogout": false,
		"attributes": map[string]string{
			"pkce.code.challenge.method": "S256", "backchannel.logout.url": public + "/oauth/logout", "backchannel.logout.session.required": "true",
		},
		"protocolMappers": []any{map[string]any{
			"name": "groups", "protocol": "openid-connect", "protocolMapper": "oidc-group-membership-mapper",
			"config": map[string]string{"full.path": "false", "claim.name": "groups", "id.token.claim": "true", "userinfo.token.claim": "true", "access.token.claim": "false"},
		}},
	})
	group := r.admin("POST", base+"/groups", map[string]any{"name": "staff"})
	for _, name := range []string{"bert", "anna"} {
		r.ann = r.admin("POST", base+"/users", map[string]any{
			"username": name, "enabled": true, "email": name + "@example.com", "emailVerified": true, "firstName": name, "lastName": "Example",
			"credentials": []any{map[string]any{"type": "password", "value": "password", "temporary": false}},
		})
		r.admin("PUT", base+"/users/"+r.ann+"/groups/"+group, nil)
	}
}

// startRecipe starts an mcpx whose users log in at an issuer. fill prepares the issuer for its public URL.
func (h *home) startRecipe(t *testing.T, issuer string, fill func(resource string), scopes ...string) *fronted {
	t.Helper()
	f := &fronted{issuer: &guarded{issuer: issuer}, box: fake(t, mcptest.Spec{})}
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := public.Addr().String()
	_ = public.Close() // mcpx listens there
	f.resource = "http://" + at + "/mcp"
	fill(f.resource)
	front := map[string]any{"issuer": issuer, "client_id": "mcpx", "client_secret": "front-secret-of-the-tests"}
	front["documents"] = false // the metadata documents of Claude Code and Codex are on the internet
	if scopes != nil {
		front["scopes"] = scopes
	}
	auth := map[string]any{"resource": f.resource, "scopes": []string{"mcp"}, "front": front}
	config := h.config(t, map[string]server{"box": f.box}, map[string]any{"auth": auth})
	f.hosted = h.serving(t, h.command(t, "--log-level", "info", "--config", config, "serve", "--http", at, "--watch"))
	return f
}

// firstCalls lets a client of each SDK register, log in and make its first call.
func firstCalls(t *testing.T, f *fronted) {
	t.Helper()
	t.Run("TypeScript SDK", func(t *testing.T) {
		s := findSuite(t)
		listsTwice(t, f.hosted, func(page string) string { return agree(t, f, page).String() }, s.node,
			filepath.Join(s.dir, "connect.mjs"), f.resource, "http://localhost:1/callback")
	})
	t.Run("mcpx, with go-sdk", func(t *testing.T) {
		h := newHome(t)
		config := h.config(t, map[string]server{"other": {"url": f.resource}}, nil)
		if out, err := visit(t, h.command(t, "login", "--no-browser", "--config", config, "other"), f.logIn(t)); err != nil {
			t.Fatalf("login: %v\n%s\n%s", err, out, f.stderr.String())
		}
		out, stderr, code := h.run(t, "", "--config", config, "exec", "other", "exec", `{"server_name":"box","tool_name":"echo","arguments":{"text":"x"}}`)
		if code != 0 || !strings.Contains(out, "x") {
			t.Errorf("%d %s %s", code, out, stderr)
		}
	})
}

// agents logs Claude Code and Codex in, and lets a scripted model make their first call. Their programs are in $MCPX_AGENTS.
func agents(t *testing.T, f *fronted) {
	t.Helper()
	for _, name := range []string{"claude-code", "codex"} {
		t.Run(name, func(t *testing.T) {
			at, node := os.Getenv("MCPX_AGENTS"), findSuite(t).node
			if at == "" {
				t.Skip("needs the folder of the programs claude and codex in MCPX_AGENTS; .ci/full installs them")
			}
			own := t.TempDir()
			command := func(what string) *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), node, filepath.Join("..", "..", "tools", "clients", "first.mjs"), what, name, own, f.resource)
				cmd.Env = append(os.Environ(), "CLIENTS_BIN="+at)
				cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends the client
				return cmd
			}
			if out, err := visit(t, command("login"), f.logIn(t)); err != nil {
				t.Fatalf("login: %v\n%s\n%s", err, out, f.stderr.String())
			}
			var stderr bytes.Buffer
			call := command("call")
			call.Stderr = &stderr
			out, err := call.Output()
			if err != nil || !strings.Contains(string(out), "__exec") || !strings.Contains(string(out), "the first call") {
				t.Fatalf("%v\n%s\n%s\n%s", err, out, stderr.String(), f.stderr.String())
			}
			t.Logf("%s", out)
		})
	}
}

// renewalRefused renews a login that the issuer does not renew any more, and so ends it.
func (l *connected) renewalRefused(t *testing.T, what string) {
	t.Helper()
	if status, answer := l.token(refreshForm(l.client, l.tokens)); status != http.StatusBadRequest {
		t.Errorf("%s: %d %v", what, status, answer)
	}
	l.out(t, what)
}

// TestRecipe_Keycloak is the recipe of docs/logins.md, from an empty realm to the first call. With offline_access, Keycloak has
// no session of the user whose end would end a login. When an administrator signs the user out or disables them, it ends at the
// next renewal.
func TestRecipe_Keycloak(t *testing.T) {
	r, h := keycloak(t), newHome(t)
	f := h.startRecipe(t, r.url+"/realms/"+r.name, r.fill)
	firstCalls(t, f)
	agents(t, f)
	base := "/admin/realms/" + r.name
	l, user := f.connected(t), base+"/users/"+r.ann
	if _, open := fetch(t, http.MethodGet, r.url+user+"/sessions", "", bearer(r.adminToken())); strings.TrimSpace(open) != "[]" {
		t.Errorf("sessions that signing out in the browser would end: %s", open)
	}
	status, next := l.token(refreshForm(l.client, l.tokens))
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, next)
	}
	l.tokens = next
	issued := time.Now().Unix() // Keycloak refuses what it has issued before the second in which the administrator signs the user out
	mcptest.WaitFor(t, "another second", patience, func() bool { return time.Now().Unix() > issued })
	r.admin("POST", user+"/logout", nil)
	l.renewalRefused(t, "signed out by an administrator")
	l.again()
	r.admin("PUT", user, map[string]any{"enabled": false})
	l.renewalRefused(t, "disabled")
}

// TestRecipe_KeycloakPeople: two people log in through Keycloak, each with an account of their own at a server that has an
// authorization server of its own. Each call goes with the account of its caller. When one of them is disabled in Keycloak,
// their account is revoked.
func TestRecipe_KeycloakPeople(t *testing.T) {
	r, h := keycloak(t), newHome(t)
	f := h.startRecipe(t, r.url+"/realms/"+r.name, r.fill)
	tracker := guard(t, 600)
	calls := record(tracker)
	config := filepath.Join(h.dir, "mcpx.json")
	var written map[string]any
	if err := json.Unmarshal([]byte(readFile(t, config)), &written); err != nil {
		t.Fatal(err)
	}
	written["mcpServers"].(map[string]any)["tracker"] = map[string]any{"url": tracker.url, "oauth": map[string]any{"per": "principal"}}
	text, _ := json.Marshal(written)
	f.follow(t, loadedAgain, func() { h.write(t, "mcpx.json", string(text)) })
	clients := map[string]*connected{}
	for _, name := range []string{"anna", "bert"} {
		f.person = name
		l := f.connected(t)
		clients[name] = l
		call := func(text string) string {
			return l.ask(l.tokens, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":`+execArgs("tracker", "echo", `{"text":"`+text+`"}`)+`}}`)
		}
		link := connectLink.FindString(call("early"))
		if status, page := newBrowser(t, name).visit(t, link, nil); !strings.Contains(page, "tracker is connected") {
			t.Fatalf("%s: %d %s\n%s", name, status, page, f.stderr.String())
		}
		if got := call("I am " + name); !strings.Contains(got, "I am "+name) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := strings.Join(calls.called(), "; "); got != "anna I am anna; bert I am bert" {
		t.Errorf("the server was called by %s", got)
	}
	r.admin("PUT", "/admin/realms/"+r.name+"/users/"+r.ann, map[string]any{"enabled": false})
	clients["anna"].renewalRefused(t, "disabled")
	mcptest.WaitFor(t, "the account of anna to be revoked", patience, func() bool {
		all := good(t, tracker)
		return !all["anna"] && all["bert"]
	})
}

// TestRecipe_KeycloakLogout: without offline_access, logins end when an administrator signs the user out at Keycloak.
func TestRecipe_KeycloakLogout(t *testing.T) {
	r, h := keycloak(t), newHome(t)
	f := h.startRecipe(t, r.url+"/realms/"+r.name, r.fill, "openid", "profile", "email")
	l := f.connected(t)
	r.admin("POST", "/admin/realms/"+r.name+"/users/"+r.ann+"/logout", nil)
	mcptest.WaitFor(t, "the logout to end the login", patience, func() bool { return f.logged("logged out at the issuer") > 0 })
	l.out(t, "logged out at Keycloak")
}

// TestRecipe_Dex is the recipe of docs/logins.md for Dex, whose program is at $MCPX_DEX. The test uses a connector that logs in
// everybody, because the connector for Dex's own passwords does not renew logins if Dex stores its data in memory.
func TestRecipe_Dex(t *testing.T) {
	program := os.Getenv("MCPX_DEX")
	if program == "" || !mcptest.Full {
		t.Skip("needs MCPX_FULL, and the path of the program dex in MCPX_DEX")
	}
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	issuer, h := "http://"+at+"/dex", newHome(t)
	f := h.startRecipe(t, issuer, func(resource string) {
		config := filepath.Join(t.TempDir(), "dex.yaml")
		text := fmt.Sprintf(`issuer: %s
storage: {type: memory}
web: {http: "%s"}
oauth2: {skipApprovalScreen: true}
connectors:
- {type: mockCallback, id: mock, name: Example}
staticClients:
- {id: mcpx, name: mcpx, secret: front-secret-of-the-tests, redirectURIs: ["%s/oauth/callback"]}
`, issuer, at, strings.TrimSuffix(resource, "/mcp"))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "serve", config)
		cmd.Dir = filepath.Dir(program)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		mcptest.WaitFor(t, "dex to start", patience, func() bool {
			resp, err := http.Get(issuer + "/.well-known/openid-configuration")
			if err == nil {
				resp.Body.Close()
			}
			return err == nil && resp.StatusCode == http.StatusOK
		})
	})
	firstCalls(t, f)
}
