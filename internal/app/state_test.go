package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpx/internal/desk/config"
	"mcpx/internal/front"
	"mcpx/internal/mcptest"
)

// TestState_Shared: two Apps with one clientState serve the same clients. What one App has given to a client is valid at the
// other, only for the same principal. What one App counts or uses up is also counted or used up at the other. This shows that
// nothing that belongs to a client is stored anywhere else, except for things that exist only in one process. Two Apps in a
// cluster do the same, also while the key of the cluster is replaced.
func TestState_Shared(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		mcptest.NoLeaks(t)
		testShared(t, "", func(one *endpoint) *endpoint { return servingWith(t, one.cfg, one.app.state) })
	})
	for name, keys := range map[string][2]string{
		"cluster":                            {`"` + clusterKey + `"`, `"` + clusterKey + `"`},
		"cluster, while its key is replaced": {`["` + clusterKey + `","` + newKey + `"]`, `["` + newKey + `","` + clusterKey + `"]`},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			url := mcptest.StartNATS(t).URL
			at := func(keys string) string { return `,"cluster":{"nats":"` + url + `","key":` + keys + `}` }
			testShared(t, at(keys[0]), func(one *endpoint) *endpoint {
				cfg := *one.cfg
				other, err := config.Parse("c.json", []byte(`{"mcpServers":{}`+at(keys[1])+`}`), config.Options{})
				if err != nil {
					t.Fatal(err)
				}
				cfg.Cluster = other.Cluster
				two := serving(t, &cfg)
				meet(t, one, two)
				return two
			})
		})
	}
}

func testShared(t *testing.T, cluster string, another func(*endpoint) *endpoint) {
	const rights = `[{"principals":["alice"],"admin":true},{"principals":["bob"]}]`
	const more = `,"result_token_limit":100,"result_preview_tokens":50,"limits":{"principal":{"calls_per_minute":20,"requests_per_second":0}}`
	one, _ := workshop(t, rights, more+cluster)
	two := another(one)
	within := time.Millisecond // how long it may take until one App knows what the other has done
	if cluster != "" {
		within = 2 * time.Second
	}
	soon := func(said func() string, want string) {
		t.Helper()
		for end := time.Now().Add(within); ; <-time.After(10 * time.Millisecond) {
			switch got := said(); {
			case strings.HasPrefix(got, want):
				return
			case time.Now().After(end):
				t.Errorf("after %v alice gets %s, want %s", within, got, want)
				return
			}
		}
	}
	at := func(v *visitor, e *endpoint) *visitor {
		moved := *v
		moved.endpoint = e
		return &moved
	}
	t.Run("a session", func(t *testing.T) {
		alice, bob := one.visitor(t, "alice", legacyEra, false), two.visitor(t, "bob", legacyEra, false)
		alice.ask(t, "/mcp", "ping", "")
		bob.sessions = alice.sessions
		for range 2 {
			for _, e := range []*endpoint{two, one} {
				if said := at(alice, e).ask(t, "/mcp", "tools/list", ""); !strings.HasPrefix(said, "200 ") {
					t.Errorf("alice gets %s", said)
				}
			}
		}
		if said := bob.ask(t, "/mcp", "ping", ""); !strings.HasPrefix(said, "404 ") {
			t.Errorf("bob gets %s", said)
		}
		if status, said, _ := at(alice, two).http(t, "DELETE", "/mcp", "", map[string]string{"Mcp-Session-Id": alice.sessions["/mcp"]}); status != 200 {
			t.Errorf("the end: %d %s", status, said)
		}
		soon(func() string { return alice.ask(t, "/mcp", "ping", "") }, "404 ")
	})
	t.Run("a result", func(t *testing.T) {
		alice, bob := one.visitor(t, "alice", modernEra, false), two.visitor(t, "bob", modernEra, false)
		found := handleIn.FindStringSubmatch(alice.ask(t, "/mcp", "tools/call", execute("fake", "table", `{"rows":400}`)))
		if found == nil {
			t.Fatal("no handle")
		}
		read := execute("mcpx", "read_result", `{"handle":"`+found[1]+`","offset":7,"limit":1}`)
		said, own := at(alice, two).ask(t, "/mcp", "tools/call", read), alice.ask(t, "/mcp", "tools/call", read)
		if said != own || strings.Contains(said, "VALIDATION_ERROR") {
			t.Errorf("there alice gets %s, here %s", said, own)
		}
		if said := bob.ask(t, "/mcp", "tools/call", read); !strings.Contains(said, "VALIDATION_ERROR") {
			t.Errorf("bob gets %s", said)
		}
	})
	t.Run("a task, and the state of a server", func(t *testing.T) {
		alice, bob := one.visitor(t, "alice", modernEra, false), two.visitor(t, "bob", modernEra, false)
		alice.caps = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		bob.caps = alice.caps
		task := taskIn.FindStringSubmatch(alice.ask(t, "/mcp", "tools/call", execute("tasks", "t", `{}`)))
		state := stateIn.FindStringSubmatch(alice.ask(t, "/mcp", "tools/call", execute("modern", "ask", `{}`)))
		if task == nil || state == nil {
			t.Fatalf("%v %v", task, state)
		}
		reply := execute("modern", "ask", `{}`) + `,"inputResponses":{"word":{"action":"accept","content":{"word":"mellon"}}},"requestState":` + state[1]
		for _, test := range []struct{ method, params, want string }{
			{"tasks/get", `"taskId":"` + task[1] + `"`, task[1]}, {"tools/call", reply, "mellon"},
		} {
			if said := at(alice, two).ask(t, "/mcp", test.method, test.params); !strings.Contains(said, test.want) || strings.Contains(said, `"error"`) {
				t.Errorf("%s: alice gets %s", test.method, said)
			}
			if said := bob.ask(t, "/mcp", test.method, test.params); !strings.Contains(said, `"error"`) {
				t.Errorf("%s: bob gets %s", test.method, said)
			}
		}
	})
	// the call exists in only one process, to which a cluster forwards the request; its requestState is used up for all
	t.Run("a call that waits for its client", func(t *testing.T) {
		alice := one.visitor(t, "alice", modernEra, false)
		alice.caps = `{"elicitation":{}}`
		found := stateIn.FindStringSubmatch(alice.ask(t, "/mcp", "tools/call", execute("fake", "ask", `{}`)))
		if found == nil {
			t.Fatal("no state")
		}
		reply := execute("fake", "ask", `{}`) + `,"inputResponses":{"q1":{"action":"accept","content":{"word":"mellon","run":true}}},"requestState":` + found[1]
		bob := two.visitor(t, "bob", modernEra, false)
		bob.caps = alice.caps
		if said := bob.ask(t, "/mcp", "tools/call", reply); !strings.Contains(said, `"error"`) {
			t.Errorf("bob gets %s", said)
		}
		there := at(alice, two).ask(t, "/mcp", "tools/call", reply)
		here := alice.ask(t, "/mcp", "tools/call", reply)
		switch {
		case cluster == "" && (!strings.Contains(there, "another process") || !strings.Contains(here, "mellon")),
			cluster != "" && (!strings.Contains(there, "mellon") || !strings.Contains(here, "no call waits")):
			t.Errorf("there: %s, here: %s", there, here)
		}
		name := "suspended " + strings.TrimPrefix(strings.Trim(found[1], `"`), "mcpx.suspended.")
		if fresh, err := two.app.state.once.Redeem(t.Context(), name, time.Now().Add(time.Hour)); fresh || err != nil {
			t.Errorf("the state is not used up: %v", err)
		}
	})
	t.Run("a browser", func(t *testing.T) {
		alice := one.visitor(t, "alice", modernEra, false)
		status, said, head := alice.http(t, "POST", "/ui/session", `{"token":"alice"}`, nil)
		cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
		if status != 200 || cookie == "" {
			t.Fatalf("signing in: %d %s", status, said)
		}
		with := map[string]string{"Cookie": cookie}
		soon(func() string {
			status, _, _ := at(alice, two).http(t, "GET", "/ui/state", "", with)
			return fmt.Sprint(status)
		}, "200")
		at(alice, two).http(t, "DELETE", "/ui/session", "", with)
		soon(func() string { status, _, _ := alice.http(t, "GET", "/ui/state", "", with); return fmt.Sprint(status) }, "401")
	})
	t.Run("a limit", func(t *testing.T) {
		bob, passed := one.visitor(t, "bob", modernEra, false), 0
		pace := time.NewTicker(10 * time.Millisecond) // the other replica knows of a call after about 20 ms
		defer pace.Stop()
		for i := range 60 {
			<-pace.C
			if said := at(bob, []*endpoint{one, two}[i%2]).ask(t, "/mcp", "tools/call", execute("fake", "echo", `{"text":"x"}`)); !strings.Contains(said, "RATE_LIMITED") {
				passed++
			}
		}
		if passed < 15 || passed > 25 { // not exactly 20: earlier subtests made some calls, and the limit permits more with time
			t.Errorf("%d calls of 20 a minute passed", passed)
		}
	})
}

// TestState_Restart: a later process of the same user continues the sessions of an earlier one. Their ids contain all that it
// needs. An id alone gives no access: a request without a credential, or with the credential of another principal, is refused.
// Sessions that their clients have ended, and sessions of a removed view, are unknown. Without the key file, all earlier
// sessions are unknown too.
func TestState_Restart(t *testing.T) {
	mcptest.NoLeaks(t)
	const rights = `[{"principals":["alice","bob"]}]`
	fake := mcptest.Spec{}.HTTP(t)
	one := hosted(t, map[string]string{"fake": fake.URL}, rights, `,"groups":{"all":{"servers":["fake"]}},"limits":{"principal":{"sessions":2}}`)
	restarted := func(more string) *endpoint {
		later := newClientState(0)
		later.folder = one.app.state.folder
		later.seal(slog.New(slog.DiscardHandler))
		return servingWith(t, configOf(t, map[string]string{"fake": fake.URL}, rights, more), later)
	}
	key := filepath.Join(one.app.state.folder, "sessions.key")
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Fatalf("%v, %v", info, err)
	}
	alice, ended, bob := one.visitor(t, "alice", legacyEra, false), one.visitor(t, "alice", legacyEra, false), one.visitor(t, "bob", legacyEra, false)
	for _, v := range []*visitor{alice, ended, bob} {
		if said := v.ask(t, "/mcp", "ping", ""); !strings.HasPrefix(said, "200 ") {
			t.Fatal(said)
		}
	}
	bob.ask(t, "/mcp/groups/all", "ping", "")
	hers := alice.sessions["/mcp"]
	two := restarted(`,"limits":{"principal":{"sessions":2}}`)
	for _, v := range []*visitor{alice, ended, bob} {
		v.endpoint = two
	}
	head := map[string]string{"Mcp-Session-Id": ended.sessions["/mcp"]}
	if status, said, _ := ended.http(t, "DELETE", "/mcp", "", head); status != 200 {
		t.Errorf("the end: %d %s", status, said)
	}
	if said := ended.ask(t, "/mcp", "ping", ""); !strings.HasPrefix(said, "404 ") {
		t.Errorf("after the end: %s", said)
	}
	for _, v := range []*visitor{alice, bob, alice} {
		if said := v.ask(t, "/mcp", "tools/list", ""); !strings.HasPrefix(said, "200 ") || !strings.Contains(said, "fake") {
			t.Errorf("%s gets %s", v.who, said)
		}
	}
	if n := two.app.views.get(config.ViewTwoTools).front.Sessions(); n != 2 {
		t.Errorf("%d sessions are live", n)
	}
	for name, v := range map[string]*visitor{
		"bob": two.visitor(t, "bob", legacyEra, false), "nobody": two.visitor(t, "nobody", legacyEra, false), "no credential": two.visitor(t, "x", legacyEra, false),
	} {
		v.sessions["/mcp"] = hers
		if said := v.ask(t, "/mcp", "tools/list", ""); !strings.HasPrefix(said, "40") || strings.Contains(said, `"tools"`) {
			t.Errorf("%s gets %s", name, said)
		}
		if status, said, _ := v.http(t, "DELETE", "/mcp", "", map[string]string{"Mcp-Session-Id": hers}); status < 400 {
			t.Errorf("%s ends it: %d %s", name, status, said)
		}
	}
	for _, path := range []string{"/mcp", "/mcp/tools"} { // a session of a removed view is unknown at the other views
		if status, said, _ := bob.http(t, "POST", path, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Session-Id": bob.sessions["/mcp/groups/all"]}); status != 404 {
			t.Errorf("%s: %d %s", path, status, said)
		}
	}
	if said := alice.ask(t, "/mcp", "ping", ""); !strings.HasPrefix(said, "200 ") {
		t.Errorf("at the end alice gets %s", said)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	alice.endpoint = restarted("")
	if said := alice.ask(t, "/mcp", "ping", ""); !strings.HasPrefix(said, "404 ") {
		t.Errorf("with another key alice gets %s", said)
	}
}

// TestState_NoFile: without a folder for the key there is one warning, and sessions work until the process ends. The profiles
// for commands, stdio and the demo make no key.
func TestState_NoFile(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s := newClientState(0)
	if s.folder = filepath.Join(t.TempDir(), "file", "mcpx"); os.WriteFile(filepath.Dir(s.folder), nil, 0o600) != nil {
		t.Fatal("writing a file")
	}
	s.seal(logger)
	id, err := s.sessions.Open(t.Context(), &front.Session{View: "tools"}, time.Time{})
	if err != nil || strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), "after a restart") {
		t.Errorf("%v; the log says %s", err, log.String())
	}
	if record, err := s.sessions.Get(t.Context(), id); err != nil || record.View != "tools" {
		t.Errorf("%+v, %v", record, err)
	}
	folder := t.TempDir()
	for _, variable := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(variable, folder)
	}
	for _, profile := range []Profile{Command, Once, Look, Measure, Stdio, Demo} {
		a, err := New(Options{Config: configOf(t, nil, everybody, ""), Profile: profile, Log: logger})
		if err != nil {
			t.Fatal(err)
		}
		if files, _ := filepath.Glob(filepath.Join(a.state.folder, "*")); len(files) > 0 {
			t.Errorf("%+v: %s", profile, files)
		}
		a.Close()
	}
}

// TestState_Secret: the key of the authorization server is the secret of the process, also after a restart. Without such a key,
// each process has its own secret. A reload does not change the secret, even if the key file is gone.
func TestState_Secret(t *testing.T) {
	folder := t.TempDir()
	for _, variable := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(variable, folder)
	}
	secret := func(auth string) (a *App, key []byte) {
		t.Helper()
		cfg, err := config.Parse("c.json", []byte(`{"mcpServers":{}`+auth+`}`), config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err = New(Options{Config: cfg, Profile: Hosted, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a, a.state.secrets[0].Key("a test")
	}
	const front = `,"auth":{"resource":"https://mcp.example.com/mcp","front":{"issuer":"https://login.example.com","client_id":"mcpx"`
	const key = `,"key":"0123456789abcdef0123456789abcdef"`
	_, none := secret("")
	_, noneAgain := secret("")
	_, kept := secret(front + `}}`)
	a, keptAgain := secret(front + `}}`)
	_, chosen := secret(front + key + `}}`)
	_, chosenAgain := secret(front + key + `}}`)
	if bytes.Equal(none, noneAgain) || !bytes.Equal(kept, keptAgain) || !bytes.Equal(chosen, chosenAgain) || bytes.Equal(kept, chosen) {
		t.Errorf("%x %x, %x %x, %x %x", none, noneAgain, kept, keptAgain, chosen, chosenAgain)
	}
	files, err := filepath.Glob(filepath.Join(a.state.folder, "front.key"))
	if err != nil || len(files) != 1 || os.Remove(files[0]) != nil {
		t.Fatalf("%v %v", files, err)
	}
	before := a.current.Load().authServer
	cfg, err := config.Parse("c.json", []byte(`{"mcpServers":{}`+front+`,"scopes":["more"]}}}`), config.Options{})
	if err != nil || a.reload(cfg) != nil {
		t.Fatal(err)
	}
	after := a.current.Load().authServer
	if after == before || !bytes.Equal(after.of.Secrets[0].Key("a test"), kept) || !bytes.Equal(a.state.secrets[0].Key("a test"), kept) {
		t.Error("a reload changes the key")
	}
}
