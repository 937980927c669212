package main

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// frontedFleet is an authorization server of three replicas, behind one public URL.
type frontedFleet struct {
	*fleet
	*fronted
	client string // a registered client
}

const connectorRedirect = "https://claude.ai/api/mcp/auth_callback"

// startFrontedFleet starts the replicas behind a balancer, and registers a client.
func startFrontedFleet(t *testing.T, balance func(testing.TB, *fleet, net.Listener)) (*frontedFleet, *connector) {
	t.Helper()
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fronted{issuer: guard(t, 600), resource: "http://" + public.Addr().String() + "/mcp"}
	r := startReplicas(t, 3, map[string]server{
		"box": fake(t, mcptest.Spec{}),
		"swapped": {"url": f.issuer.url, "session": "per_client", "credentials": map[string]string{"Authorization": "exchange"},
			"oauth": map[string]any{"client_id": "exchanger", "client_secret": "exchanger-secret-of-the-tests", "grant": "client_credentials"}},
	}, map[string]any{"auth": f.auth(nil)})
	f.hosted = r.replicas[0].hosted
	balance(t, r, public)
	c := discover(t, f)
	status, registered := c.post("registration_endpoint", "application/json", `{"redirect_uris":["`+connectorRedirect+`"]}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, registered)
	}
	return &frontedFleet{r, f, registered["client_id"].(string)}, c
}

// at returns the connector at one replica, past the balancer.
func (c *connector) at(r *replica) *connector {
	one := *c
	one.metadata = map[string]any{}
	for name, value := range c.metadata {
		text, _ := value.(string)
		if at, err := url.Parse(text); err == nil && strings.HasPrefix(at.Path, "/oauth/") {
			value = strings.TrimSuffix(r.url, "/mcp") + at.Path
		}
		one.metadata[name] = value
	}
	return &one
}

// everywhere posts a form to the token endpoints of all replicas at once, and returns the answers by status.
func (c *connector) everywhere(f *frontedFleet, form url.Values) map[int][]map[string]any {
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := make(map[int][]map[string]any)
	form.Set("resource", c.resource)
	for _, r := range f.replicas {
		all.Go(func() {
			status, answer := c.at(r).post("token_endpoint", "application/x-www-form-urlencoded", form.Encode())
			mu.Lock()
			defer mu.Unlock()
			answers[status] = append(answers[status], answer)
		})
	}
	all.Wait()
	return answers
}

// accept returns, for each replica, the status of initialize with this token.
func (f *frontedFleet) accept(c *connector, tokens map[string]any) (statuses []int) {
	for _, r := range f.replicas {
		status, _, _ := c.call(r.url, tokens["access_token"].(string), legacyInitialize)
		statuses = append(statuses, status)
	}
	return statuses
}

// endsWithin is how long a login that has ended may go on. A machine that is busy with the race detector may take longer.
const endsWithin = 2 * time.Second

// refused waits until all replicas refuse a token.
func (f *frontedFleet) refused(t *testing.T, c *connector, what string, tokens map[string]any) {
	t.Helper()
	began := time.Now()
	mcptest.WaitFor(t, what+" is refused by all replicas", patience, func() bool {
		return slices.Equal(f.accept(c, tokens), []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized})
	})
	if took := time.Since(began); took > endsWithin && !mcptest.Race {
		t.Errorf("%s: the replicas took %v", what, took)
	}
}

func codeForm(client, code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {connectorRedirect}, "code_verifier": {connectorVerifier},
	}
}

func refreshForm(client string, tokens map[string]any) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {tokens["refresh_token"].(string)}}
}

// TestReplicas_Login: each request of a login reaches another replica, and every replica accepts the tokens. A replica to which
// another one passes a call on can exchange the issuer's token of the login. A code can be redeemed once over all replicas, and so
// can a refresh token, apart from requests at the same moment. A login that has ended has ended at every replica, with its streams.
// While NATS does not run, codes and refresh tokens are refused. They can be redeemed when NATS runs again.
func TestReplicas_Login(t *testing.T) {
	mcptest.Parallel(t)
	loginAtReplicas(t, roundRobin)
}

func loginAtReplicas(t *testing.T, balance func(testing.TB, *fleet, net.Listener)) {
	f, c := startFrontedFleet(t, balance)
	tokens := c.connect(f.fronted, f.client, connectorRedirect)
	for range f.replicas { // each in its turn
		if got := c.tools(tokens); !strings.Contains(got, `"name":"exec"`) {
			t.Fatalf("tools/list: %s", got)
		}
	}
	for range f.replicas { // all but one pass the call on
		if got := c.ask(tokens, execute(4, "swapped", "echo", `{"text":"exchanged"}`)); !strings.Contains(got, "exchanged") || strings.Contains(got, `isError":true`) {
			t.Errorf("exchange: %s", got)
		}
	}
	t.Run("a code at all at once", func(t *testing.T) {
		answers := c.everywhere(f, codeForm(f.client, c.code(f.fronted, f.client, connectorRedirect)))
		if len(answers[http.StatusOK]) != 1 || len(answers[http.StatusBadRequest]) != 2 {
			t.Fatalf("%v", answers)
		}
		f.refused(t, c, "the token of a code that was used again", answers[http.StatusOK][0])
	})
	t.Run("a refresh token at all at once", func(t *testing.T) {
		// All replicas give tokens if the requests are there while one replica asks the issuer; a request that comes later is a
		// second use. In no case does the issuer get its own refresh token twice, which would end the login there.
		shared := c.connect(f.fronted, f.client, connectorRedirect)
		answers := c.everywhere(f, refreshForm(f.client, shared))
		good := answers[http.StatusOK]
		if len(good) == 0 || len(good)+len(answers[http.StatusBadRequest]) != 3 {
			t.Fatalf("%v", answers)
		}
		if len(good) == 3 {
			for _, status := range f.accept(c, good[2]) {
				if status != http.StatusOK {
					t.Errorf("a token of a renewal at all at once: %d", status)
				}
			}
			if status, answer := c.token(refreshForm(f.client, shared)); status != http.StatusBadRequest {
				t.Errorf("the refresh token afterwards: %d %v", status, answer)
			}
		}
		f.refused(t, c, "the token of a login whose refresh token was used again", good[0])
		f.refused(t, c, "the token from before", shared)
	})
	var ended map[string]any
	t.Run("revoked", func(t *testing.T) {
		ended = c.connect(f.fronted, f.client, connectorRedirect)
		stream := f.stream(t, c, ended)
		resp, err := http.PostForm(c.at(f.replicas[0]).endpoint("revocation_endpoint"), url.Values{"client_id": {f.client}, "token": {ended["refresh_token"].(string)}})
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", resp, err)
		}
		resp.Body.Close()
		f.refused(t, c, "a revoked login", ended)
		if _, err := io.ReadAll(stream); err != nil && !strings.Contains(err.Error(), "EOF") {
			t.Errorf("the stream at another replica: %v", err)
		}
		if answers := c.everywhere(f, refreshForm(f.client, ended)); len(answers[http.StatusBadRequest]) != 3 {
			t.Errorf("its refresh token: %v", answers)
		}
	})
	t.Run("NATS away", func(t *testing.T) { f.away(t, c, tokens, ended) })
}

// stream opens the GET stream of a new session at the last replica.
func (f *frontedFleet) stream(t *testing.T, c *connector, tokens map[string]any) io.Reader {
	t.Helper()
	at, token := f.replicas[2].url, tokens["access_token"].(string)
	_, header, _ := c.call(at, token, legacyInitialize)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.Body
}

// away tests what still works while NATS does not run, and what works again when NATS is back.
func (f *frontedFleet) away(t *testing.T, c *connector, tokens, ended map[string]any) {
	code := c.code(f.fronted, f.client, connectorRedirect)
	f.nats.Kill()
	for _, form := range []url.Values{codeForm(f.client, code), refreshForm(f.client, tokens)} {
		for status, answers := range c.everywhere(f, form) {
			if status != http.StatusServiceUnavailable || answers[0]["error"] != "temporarily_unavailable" {
				t.Errorf("%s without NATS: %d %v", form.Get("grant_type"), status, answers)
			}
		}
	}
	for range f.replicas {
		if got := c.ask(tokens, execute(3, "box", "echo", `{"text":"hello"}`)); !strings.Contains(got, "hello") {
			t.Errorf("a call without NATS: %s", got)
		}
	}
	f.refused(t, c, "a login that was revoked before", ended)
	for _, status := range f.accept(c, tokens) {
		if status != http.StatusOK {
			t.Errorf("a new session without NATS: %d", status)
		}
	}
	f.nats.Start()
	for _, r := range f.replicas {
		mcptest.WaitFor(t, r.name+" has NATS again", patience, func() bool { return r.logged("the connection to NATS is back") > 0 })
	}
	status, fresh := c.token(codeForm(f.client, code))
	if status != http.StatusOK {
		t.Errorf("the code when NATS is back: %d %v", status, fresh)
	}
	if status, next := c.token(refreshForm(f.client, tokens)); status != http.StatusOK {
		t.Errorf("the refresh token when NATS is back: %d %v", status, next)
	}
	if status, answer := c.token(refreshForm(f.client, tokens)); status != http.StatusBadRequest {
		t.Errorf("the refresh token a second time: %d %v", status, answer)
	}
	f.refused(t, c, "the login whose refresh token was used twice", tokens)
}
