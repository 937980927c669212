package app

import (
	"crypto/sha256"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
)

// withTokens returns the config of e with these tokens of alice in place of hers. The SHA-256 of a token is that of its text.
func (e *endpoint) withTokens(tokens ...string) *config.Config {
	next, auth := *e.cfg, *e.cfg.Auth
	auth.Tokens = nil
	for _, one := range e.cfg.Auth.Tokens {
		if one.Name != "alice" {
			auth.Tokens = append(auth.Tokens, one)
		}
	}
	for _, token := range tokens {
		auth.Tokens = append(auth.Tokens, conf.Token{Name: "alice", SHA256: sha256.Sum256([]byte(token))})
	}
	next.Auth = &auth
	return &next
}

// waitingCall returns arguments of the fake tool slow, with which a call runs as long as the file gate exists. It makes this file.
func waitingCall(t *testing.T) (gate, arguments string) {
	t.Helper()
	gate = filepath.Join(t.TempDir(), "gate")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	quoted, _ := json.Marshal(gate)
	return gate, `{"ms":0,"while":` + string(quoted) + `}`
}

// meet waits until two replicas know each other.
func meet(t *testing.T, one, two *endpoint) {
	t.Helper()
	mcptest.WaitFor(t, "the replicas know each other", patience, func() bool {
		return len(one.app.state.cluster.Others()) == 1 && len(two.app.state.cluster.Others()) == 1
	})
}

// TestRevoked_CallsThatGoOn: the calls that one request makes, and that go on after their client has got a handle, end with the
// token of the request. The call that its server has begun is cancelled, and no further one is made.
func TestRevoked_CallsThatGoOn(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, everybody, `,"clients":{"waiter":{"call_wait":"100ms"}}`)
	gate, waits := waitingCall(t)
	alice := e.visitor(t, "alice", legacyEra, false)
	alice.name = "waiter"
	said := alice.ask(t, "/mcp", "tools/call", `"name":"exec","arguments":{"server_name":"fake","tool_name":"slow","each":[`+waits+`,{"ms":0}]}`)
	handle := handleIn.FindStringSubmatch(said)
	if handle == nil {
		t.Fatalf("no handle: %s", said)
	}
	mcptest.WaitFor(t, "the first call", patience, func() bool { return len(fakes["fake"].Log().Calls("slow")) == 1 })
	if err := e.app.reload(e.withTokens()); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "its end", patience, func() bool { return fakes["fake"].Count("notifications/cancelled") == 1 })
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	if err := e.app.reload(e.withTokens("alice")); err != nil { // who has the token again learns how the calls ended
		t.Fatal(err)
	}
	if said := e.visitor(t, "alice", modernEra, false).ask(t, "/mcp", "tools/call", execute("mcpx", "wait_result", `{"handle":"`+handle[1]+`"}`)); !strings.Contains(said, "the call was cancelled") {
		t.Errorf("afterwards: %s", said)
	}
	if calls := len(fakes["fake"].Log().Calls("slow")); calls != 1 {
		t.Errorf("%d calls were made", calls)
	}
}

// TestRevoked_Changed: a call ends if its token gets other groups, and its error does not say that the token is gone, which is still
// valid.
func TestRevoked_Changed(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, everybody, "")
	_, waits := waitingCall(t)
	alice := e.visitor(t, "alice", modernEra, false)
	answer := make(chan string, 1)
	go func() { answer <- alice.ask(t, "/mcp", "tools/call", execute("fake", "slow", waits)) }() // ends with the reload
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(fakes["fake"].Log().Calls("slow")) == 1 })
	to := e.withTokens("alice")
	to.Auth.Tokens[len(to.Auth.Tokens)-1].Groups = []string{"others"}
	if err := e.app.reload(to); err != nil {
		t.Fatal(err)
	}
	if said := <-answer; !strings.Contains(said, "what it gives was changed") {
		t.Errorf("the call: %s", said)
	}
	if said := alice.ask(t, "/mcp", "tools/call", execute("fake", "echo", `{"text":"hello"}`)); !strings.Contains(said, "hello") {
		t.Errorf("afterwards: %s", said)
	}
}

// twoOfAlice returns two replicas that alice has a token for. A session of hers has its calls at one replica. more is for the config.
func twoOfAlice(t *testing.T, more string) (one, two *endpoint, fakes map[string]*mcptest.HTTPServer) {
	one, fakes = workshop(t, everybody, more+clusterAt(mcptest.StartNATS(t).URL, clusterKey))
	for i := range one.cfg.Servers {
		one.cfg.Servers[i].Session = "per_client"
	}
	if err := one.app.reload(one.withTokens("alice")); err != nil {
		t.Fatal(err)
	}
	two = serving(t, one.withTokens("alice"))
	meet(t, one, two)
	return one, two, fakes
}

// TestRevoked_AtAnotherReplica: a call that another replica has passed on goes on after its client has got a handle, and ends with
// the token of its request.
func TestRevoked_AtAnotherReplica(t *testing.T) {
	mcptest.NoLeaks(t)
	one, two, fakes := twoOfAlice(t, `,"clients":{"waiter":{"call_wait":"100ms"}}`)
	_, waits := waitingCall(t)
	alice := two.visitor(t, "alice", legacyEra, false)
	alice.name = "waiter"
	alice.ask(t, "/mcp", "tools/call", execute("fake", "echo", `{"text":"x"}`))
	alice.endpoint = one
	said := alice.ask(t, "/mcp", "tools/call", execute("fake", "slow", waits))
	if handle := handleIn.FindStringSubmatch(said); handle == nil || !strings.HasPrefix(handle[1], "r"+two.app.replica()) {
		t.Fatalf("no handle of the other replica %s: %s", two.app.replica(), said)
	}
	for _, e := range []*endpoint{one, two} {
		if err := e.app.reload(one.withTokens()); err != nil {
			t.Fatal(err)
		}
	}
	mcptest.WaitFor(t, "its end", patience, func() bool { return fakes["fake"].Count("notifications/cancelled") == 1 })
}

// TestRevoked_Forwarded: a call that a replica has forwarded ends with an error if its token is revoked at this replica.
func TestRevoked_Forwarded(t *testing.T) {
	mcptest.NoLeaks(t)
	one, two, fakes := twoOfAlice(t, "")
	_, waits := waitingCall(t)
	alice := two.visitor(t, "alice", legacyEra, false)
	alice.ask(t, "/mcp", "tools/call", execute("fake", "echo", `{"text":"x"}`))
	alice.endpoint = one
	answer := make(chan string, 1)
	go func() { answer <- alice.ask(t, "/mcp", "tools/call", execute("fake", "slow", waits)) }() // ends with the reload
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(fakes["fake"].Log().Calls("slow")) == 1 })
	to := one.withTokens("alice")
	to.Auth.Tokens[len(to.Auth.Tokens)-1].Groups = []string{"others"}
	if err := one.app.reload(to); err != nil {
		t.Fatal(err)
	}
	if said := <-answer; !strings.Contains(said, "cancelled: the credential was revoked, or what it gives was changed") {
		t.Errorf("the call: %s", said)
	}
	mcptest.WaitFor(t, "its end", patience, func() bool { return fakes["fake"].Count("notifications/cancelled") == 1 })
}

// TestForwarded_Principal: a request that another replica has passed on stays that of its principal, also if the token is somebody else's
// at the replica that answers, as while a new config comes to one replica after the other.
func TestForwarded_Principal(t *testing.T) {
	mcptest.NoLeaks(t)
	one, _ := workshop(t, everybody, `,"clients":{"waiter":{"call_wait":"100ms"}}`+clusterAt(mcptest.StartNATS(t).URL, clusterKey))
	if err := one.app.reload(one.withTokens("alice", "another")); err != nil {
		t.Fatal(err)
	}
	two := serving(t, one.withTokens("alice", "another"))
	meet(t, one, two)
	gate, waits := waitingCall(t)
	other := two.visitor(t, "another", modernEra, false)
	other.name = "waiter"
	said := other.ask(t, "/mcp", "tools/call", execute("fake", "slow", waits))
	handle := handleIn.FindStringSubmatch(said)
	if handle == nil || !strings.HasPrefix(handle[1], "r"+two.app.replica()) {
		t.Fatalf("no handle of the replica %s: %s", two.app.replica(), said)
	}
	given := two.withTokens("another")
	given.Auth.Tokens = append(given.Auth.Tokens, conf.Token{Name: "bob", SHA256: sha256.Sum256([]byte("alice"))})
	if err := two.app.reload(given); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	said = one.visitor(t, "alice", modernEra, false).ask(t, "/mcp", "tools/call", execute("mcpx", "wait_result", `{"handle":"`+handle[1]+`"}`))
	if strings.Contains(said, `"isError":true`) || !strings.Contains(said, "200 ") {
		t.Errorf("the result: %s", said)
	}
}

// TestRevoked_Questions: a call that waits for an answer of its user ends with its token, even if the principal has another one.
func TestRevoked_Questions(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, `[{"principals":["alice"],"confirm":"all"}]`, "")
	if err := e.app.reload(e.withTokens("alice", "alice2")); err != nil {
		t.Fatal(err)
	}
	alice, again := e.visitor(t, "alice", modernEra, false), e.visitor(t, "alice2", modernEra, false)
	alice.caps, again.caps = `{"elicitation":{}}`, `{"elicitation":{}}`
	call := execute("fake", "echo", `{"text":"done"}`)
	state := stateIn.FindStringSubmatch(alice.ask(t, "/mcp", "tools/call", call))
	if state == nil {
		t.Fatal("no question")
	}
	if err := e.app.reload(e.withTokens("alice2")); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "the end of the call", patience, func() bool {
		w := httptest.NewRecorder()
		e.app.metricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return strings.Contains(w.Body.String(), `="CANCELLED"`)
	})
	said := again.ask(t, "/mcp", "tools/call", call+`,"inputResponses":{"q1":{"action":"accept","content":{"run":true}}},"requestState":`+state[1])
	if !strings.Contains(said, `"error"`) || len(fakes["fake"].Log().Calls("echo")) > 0 {
		t.Errorf("answered afterwards: %s", said)
	}
	if state = stateIn.FindStringSubmatch(again.ask(t, "/mcp", "tools/call", call)); state == nil {
		t.Error("no question for a call of the other token")
	}
}
