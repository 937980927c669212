package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/app"
	"mcpx/internal/mcptest"
)

// TestReplicas_Left: a person has logged in at a server, and has two logins at mcpx. Two replicas end one of these each at the
// same moment. Then the login at the server ends too, and is revoked there. All replicas list it before, and none afterwards.
func TestReplicas_Left(t *testing.T) {
	mcptest.Parallel(t)
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tracker := guard(t, 600)
	f := &fronted{issuer: guard(t, 600), resource: "http://" + public.Addr().String() + "/mcp"}
	servers := map[string]server{"tracker": {"url": tracker.url, "oauth": map[string]any{"per": "principal"}}}
	r := startReplicas(t, 2, servers, map[string]any{"auth": f.auth(nil)})
	f.hosted = r.replicas[0].hosted
	roundRobin(t, r, public)
	c := discover(t, f)
	_, client := c.post("registration_endpoint", "application/json", `{"redirect_uris":["`+connectorRedirect+`"]}`)
	id := client["client_id"].(string)
	both := []map[string]any{c.connect(f, id, connectorRedirect), c.connect(f, id, connectorRedirect)}
	call := func(text string) string {
		return c.ask(both[0], `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":`+execArgs("tracker", "echo", `{"text":"`+text+`"}`)+`}}`)
	}
	if status, page := newBrowser(t, "anna").visit(t, connectLink.FindString(call("early")), nil); !strings.Contains(page, "tracker is connected") {
		t.Fatalf("%d %s", status, page)
	}
	if got := call("with my own"); !strings.Contains(got, "with my own") || len(good(t, tracker)) == 0 {
		t.Fatal(got)
	}
	logins := func(at *replica, args ...string) (clients, accounts []app.Login) {
		t.Helper()
		var all []app.Login
		config := filepath.Join(at.home.dir, "mcpx.json")
		if err := json.Unmarshal([]byte(at.home.must(t, 0, append([]string{"--config", config, "logins"}, args...)...)), &all); err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.Server != "" {
				accounts = append(accounts, one)
			} else {
				clients = append(clients, one)
			}
		}
		return clients, accounts
	}
	for _, at := range r.replicas {
		mcptest.WaitFor(t, "all logins at "+at.name, patience, func() bool {
			clients, accounts := logins(at, "list", "--json")
			return len(clients) == 3 && len(accounts) == 1 && accounts[0].Server == "tracker" && accounts[0].Principal == clients[0].Principal
		})
	}
	clients, _ := logins(r.replicas[0], "list", "--json")
	for _, one := range clients {
		if one.Client == "the page of mcpx" {
			at := r.replicas[0].home
			at.must(t, 0, "--config", filepath.Join(at.dir, "mcpx.json"), "logins", "end", one.ID)
		}
	}
	if len(good(t, tracker)) == 0 {
		t.Fatal("the account has ended, and two logins go on")
	}
	var ending sync.WaitGroup
	for i, at := range r.replicas {
		ending.Go(func() { // ends with the answer
			resp, err := http.PostForm(c.at(at).endpoint("revocation_endpoint"), url.Values{"client_id": {id}, "token": {both[i]["refresh_token"].(string)}})
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Error(resp, err)
				return
			}
			resp.Body.Close()
		})
	}
	ending.Wait()
	mcptest.WaitFor(t, "the account to be revoked", patience, func() bool { return len(good(t, tracker)) == 0 })
	for _, at := range r.replicas {
		mcptest.WaitFor(t, "no logins at "+at.name, patience, func() bool {
			clients, accounts := logins(at, "list", "--json")
			return len(clients)+len(accounts) == 0
		})
	}
}
