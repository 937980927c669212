package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// TestCredentials: two callers make calls at the same time, in both eras. With each call the server gets the
// key of its caller. A caller without a key gets an error that names the missing header. Over stdio no caller
// can have a key.
func TestCredentials(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	web := mcptest.Spec{}.HTTP(t)
	config := h.config(t, map[string]server{"web": {"url": web.URL, "credentials": map[string]string{"X-Api-Key": "header:X-User-Key"}}}, nil)
	d := h.serveHTTP(t, "--config", config, "--log-level", "debug")
	open := func(era, key string) *client {
		peer := d.peer(t)
		if key != "" {
			peer.header.Set("X-User-Key", key)
		}
		c := &client{era: era, name: "e2e", peer: peer}
		c.open(t)
		return c
	}
	var callers sync.WaitGroup
	for _, era := range []string{legacy, modern} {
		for i := range 2 {
			key := fmt.Sprintf("hush-%s-%d", era, i)
			c := open(era, key)
			callers.Go(func() {
				for range 5 {
					if got := c.exec(t, "web", "echo", `{"text":"to `+key+`"}`).text(t); got != "to "+key {
						t.Errorf("%s: %s", key, got)
					}
				}
			})
		}
		c := open(era, "")
		if got := c.exec(t, "web", "echo", `{"text":"x"}`).text(t); !strings.Contains(got, "the caller's header X-User-Key") || strings.Contains(got, "hush") {
			t.Errorf("without a key: %s", got)
		}
	}
	callers.Wait()
	keyOf := map[string]string{} // by session
	for _, entry := range web.Log().Event(mcptest.EventHTTP) {
		keyOf[entry.Session] = entry.Header.Get("X-Api-Key")
	}
	calls := web.Log().Calls("echo")
	for _, entry := range calls {
		if key := keyOf[entry.Session]; key == "" || !strings.Contains(string(entry.Message), "to "+key+`"`) {
			t.Errorf("with the key %q: %s", key, entry.Message)
		}
	}
	if len(calls) != 20 {
		t.Errorf("%d calls", len(calls))
	}
	// In a legacy session the next request has another key.
	c := open(legacy, "hush-one")
	c.exec(t, "web", "echo", `{"text":"x"}`)
	c.peer.(*httpPeer).header.Set("X-User-Key", "hush-two")
	c.exec(t, "web", "echo", `{"text":"y"}`)
	seen := web.Log().Event(mcptest.EventHTTP)
	if got := seen[len(seen)-1].Header.Get("X-Api-Key"); got != "hush-two" {
		t.Errorf("after a change of the key: %s", got)
	}
	if strings.Contains(d.stderr.String(), "hush-") {
		t.Errorf("the log:\n%s", d.stderr.String())
	}

	p := h.serveStdio(t, "--config", config)
	over := &client{era: legacy, name: "e2e", peer: p}
	over.open(t)
	if got := over.exec(t, "web", "echo", `{"text":"x"}`).text(t); !strings.Contains(got, "mcpx serves over stdio") {
		t.Errorf("over stdio: %s", got)
	}
	if out, _, code := h.run(t, "", "--config", config, "check"); code != 0 || !strings.Contains(out, "1 ready") {
		t.Errorf("check: %d\n%s", code, out)
	}
	if out, _, _ := h.run(t, "", "--config", config, "exec", "web", "echo", `{"text":"x"}`); !strings.Contains(out, "the caller's header X-User-Key") {
		t.Errorf("exec: %s", out)
	}
}

// TestCredentials_Exchange: mcpx exchanges the JWT of a caller for a token for the server, and sends a claim
// of the JWT as a header. The JWT itself does not reach the server.
func TestCredentials_Exchange(t *testing.T) {
	mcptest.Parallel(t)
	g, h := guard(t, 600), newHome(t)
	const gateway = "https://gateway.example/mcp"
	config := h.config(t, map[string]server{"tracker": {
		"url": g.url, "credentials": map[string]string{"Authorization": "exchange", "X-Tenant": "claim:tenant"},
		"oauth": map[string]any{"client_id": "exchanger", "client_secret": "exchanger-secret-of-the-tests", "grant": "client_credentials"},
	}}, map[string]any{"auth": map[string]any{"issuers": []any{map[string]any{"issuer": g.issuer, "audiences": []string{gateway}, "allow_private": true}}}})
	d := h.serveHTTP(t, "--config", config, "--log-level", "debug")
	tokens := map[string]string{} // by principal
	for _, who := range []string{"machine", "robot"} {
		tokens[who] = g.token(t, who, gateway)
	}
	var callers sync.WaitGroup
	for _, era := range []string{legacy, modern} {
		for who, token := range tokens {
			c := &client{era: era, name: "e2e", peer: d.peer(t)}
			c.peer.(*httpPeer).header.Set("Authorization", "Bearer "+token)
			c.open(t)
			callers.Go(func() {
				for range 5 {
					if got := c.exec(t, "tracker", "echo", `{"text":"of `+who+`"}`).text(t); got != "of "+who {
						t.Errorf("%s: %s", who, got)
					}
				}
			})
		}
	}
	callers.Wait()
	whose := map[string]string{} // by session
	for _, entry := range g.inner.Log().Event(mcptest.EventHTTP) {
		sub := entry.Header.Get("X-Sub")
		if before, ok := whose[entry.Session]; ok && entry.Session != "" && before != sub {
			t.Errorf("a session of %s and %s", before, sub)
		}
		whose[entry.Session] = sub
		if tenant := entry.Header.Get("X-Tenant"); tenant != "" && tenant != "tenant of "+sub || tenant == "" && sub != "" {
			t.Errorf("%s has the header %q", sub, tenant)
		}
	}
	calls := g.inner.Log().Calls("echo")
	for _, entry := range calls {
		if sub := whose[entry.Session]; sub == "" || !strings.Contains(string(entry.Message), `"of `+sub+`"`) {
			t.Errorf("with a token for %q: %s", sub, entry.Message)
		}
	}
	if len(calls) != 20 {
		t.Errorf("%d calls", len(calls))
	}
	if n := g.count("/token"); n != 2+1+2 { // one for each caller, one for the catalogue, and one exchange for each caller
		t.Errorf("%d requests for tokens", n)
	}

	c := &client{era: legacy, name: "e2e", peer: d.peer(t)}
	c.peer.(*httpPeer).header.Set("Authorization", "Bearer "+tokens["robot"])
	c.open(t)
	if got := c.echo(t); got != "x" {
		t.Errorf("got %s", got)
	}
	g.ended(t)
	if got := c.echo(t); got != "x" || g.count("/token") != 2+1+2+1 {
		t.Errorf("after the end of the exchanged token: %s, %d requests for tokens", got, g.count("/token"))
	}
	g.with(func() {
		g.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"not %s"}`, tokens["robot"])
			}
			return r.URL.Path == "/token"
		}
	})
	g.ended(t)
	said := c.echo(t)
	if !strings.HasPrefix(said, "SERVER_UNAVAILABLE") || !strings.Contains(said, "exchanging the caller's token: the authorization server "+g.issuer+" says invalid_grant: not [secret]") {
		t.Errorf("refused: %s", said)
	}
	g.with(func() { g.answer = nil })
	if got := c.echo(t); got != "x" {
		t.Errorf("after that: %s", got)
	}
	for _, token := range g.seen() {
		if strings.Count(token, ".") == 2 {
			t.Error("a JWT of a caller came to the server")
		}
		if strings.Contains(d.stderr.String()+said, token) {
			t.Errorf("a token is in the log:\n%s", d.stderr)
		}
	}
	for _, token := range tokens {
		if strings.Contains(d.stderr.String()+said, token) {
			t.Errorf("a JWT is in the log:\n%s", d.stderr)
		}
	}
}

// token returns a JWT for a program that calls mcpx.
func (g *guarded) token(t *testing.T, who, resource string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, g.issuer+"/token", strings.NewReader(url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {"mcp"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(who, who+"-secret-of-the-tests")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || strings.Count(got.Token, ".") != 2 {
		t.Fatalf("no JWT: %s %v", resp.Status, err)
	}
	return got.Token
}
