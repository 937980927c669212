package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
)

// yard has HTTP servers and a program, from which tests make configs.
type yard struct {
	fakes   map[string]*mcptest.HTTPServer
	program config.Server
}

func newYard(t *testing.T, names ...string) *yard {
	t.Helper()
	y := &yard{fakes: make(map[string]*mcptest.HTTPServer)}
	for _, name := range names {
		y.fakes[name] = mcptest.Spec{}.HTTP(t)
	}
	command, args, env := mcptest.Spec{}.Stdio(t)
	entry, _ := json.Marshal(map[string]any{"command": command, "args": args, "env": env})
	cfg, err := config.Parse("c.json", fmt.Appendf(nil, `{"mcpServers":{"program":%s}}`, entry), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	y.program = cfg.Servers[0]
	return y
}

// config returns a config with the program and the named servers. header is a header value for the server "change".
func (y *yard) config(t *testing.T, header, rights, more string, names ...string) *config.Config {
	t.Helper()
	urls := make(map[string]string)
	for _, name := range names {
		urls[name] = y.fakes[name].URL
	}
	cfg := configOf(t, urls, rights, more)
	cfg.Servers = append(cfg.Servers, y.program)
	slices.SortFunc(cfg.Servers, func(a, b config.Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range cfg.Servers {
		if cfg.Servers[i].Name == "change" {
			cfg.Servers[i].Headers = map[string]string{"X-Test": header}
		}
	}
	return cfg
}

// opened returns how many sessions were opened at all servers together.
func (y *yard) opened() (n int) {
	for _, fake := range y.fakes {
		n += fake.Count("initialize")
	}
	return n
}

// reload applies a config, and waits until its servers are ready.
func (e *endpoint) reload(t *testing.T, to *config.Config) {
	t.Helper()
	if err := e.app.reload(to); err != nil {
		t.Fatal(err)
	}
	e.cfg = to
	mcptest.WaitFor(t, "the servers", patience, func() bool {
		return !slices.ContainsFunc(e.app.Registry.Snapshot().Servers, func(s catalog.Server) bool { return s.State != catalog.Ready || !s.Listed })
	})
}

// TestReload_Refused: if one part of a config cannot be used, nothing of that config takes effect, and the log says why. After
// that part is corrected, the whole config takes effect.
func TestReload_Refused(t *testing.T) {
	mcptest.NoLeaks(t)
	y := newYard(t, "keep", "change", "drop", "add")
	was := y.config(t, "1", `[{"principals":["alice","bob"]}]`, `,"groups":{"all":{"servers":["keep"],"view":"tools"}}`, "keep", "change", "drop")
	e := serving(t, was)
	folder, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	key, lock := filepath.Join(folder, "mcpx", "front.key"), filepath.Join(t.TempDir(), "c.lock.json")
	for name, broken := range map[string]struct{ path, want string }{
		"the authorization server": {key, "auth.front: keeping the key of auth.front: " + key + " is too short"},
		"the lock":                 {lock, "reading the approved tools in " + lock},
	} {
		t.Run(name, func(t *testing.T) {
			to := y.config(t, "2", `[{"principals":["alice"],"servers":["keep"]}]`, `,"limits":{"principal":{"calls_per_minute":1}}`, "keep", "change", "add")
			to.Path, to.Auth.Tokens = strings.TrimSuffix(lock, ".lock.json")+".json", to.Auth.Tokens[:1]
			to.Auth.Resource = "https://mcp.example.com/mcp"
			to.Auth.Front = &conf.AuthServer{Issuer: "https://issuer.example.com", ClientID: "mcpx"}
			if os.MkdirAll(filepath.Dir(broken.path), 0o700) != nil || os.WriteFile(broken.path, []byte("{"), 0o600) != nil {
				t.Fatal("writing the file")
			}
			bob := e.visitor(t, "bob", modernEra, false)
			stream := bob.listening(t, "/mcp/groups/all", "")
			pid := bob.ask(t, "/mcp", "tools/call", execute("program", "pid", `{}`))
			before, snapshot, opened := e.app.current.Load(), e.app.Registry.Snapshot(), y.opened()

			var log bytes.Buffer
			r := &reloader{
				load: func() (*config.Config, error) { return to, nil }, apply: e.app.reload, current: was,
				log: slog.New(slog.NewTextHandler(&log, nil)),
			}
			if err := r.reload(t.Context(), "a test", true); err == nil || !strings.Contains(err.Error(), broken.want) {
				t.Errorf("got %v", err)
			}
			if said := log.String(); !strings.Contains(said, "config refused, the old one stays in force") || !strings.Contains(said, broken.want) {
				t.Errorf("the log: %s", said)
			}
			if e.app.current.Load() != before || r.current != was || e.app.Registry.Snapshot() != snapshot {
				t.Error("something of the config is in force")
			}
			for range 2 { // two calls, more than the new limit allows, by a principal and to a server that the new config removes
				if said := bob.ask(t, "/mcp", "tools/call", execute("drop", "echo", `{"text":"still here"}`)); !strings.Contains(said, "still here") {
					t.Errorf("bob gets %s", said)
				}
			}
			if said := bob.ask(t, "/mcp/groups/all", "tools/list", ""); !strings.Contains(said, "echo") {
				t.Errorf("the view: %s", said)
			}
			if now := bob.ask(t, "/mcp", "tools/call", execute("program", "pid", `{}`)); now != pid {
				t.Errorf("the program is another one: %s, before %s", now, pid)
			}
			select {
			case <-stream.ended:
				t.Error("a stream has ended")
			default:
			}
			if n := y.opened(); n != opened {
				t.Errorf("%d sessions with servers, %d before", n, opened)
			}
			if err := os.Remove(broken.path); err != nil {
				t.Fatal(err)
			}
			if err := r.reload(t.Context(), "a test", true); err != nil {
				t.Fatal(err)
			}
			<-stream.ended
			if said := bob.ask(t, "/mcp", "tools/list", ""); !strings.HasPrefix(said, "401 ") {
				t.Errorf("mended, bob gets %s", said)
			}
			if s, _ := e.app.Registry.Snapshot().Server("add"); s == nil || e.app.current.Load().authServer == nil {
				t.Error("the mended config is not in force")
			}
			e.reload(t, was)
		})
	}
}

// TestReload_Kept: if one server changes, the other servers keep their sessions, and the program keeps its process. The
// authorization server is kept too, so its clients stay logged in.
func TestReload_Kept(t *testing.T) {
	mcptest.NoLeaks(t)
	y := newYard(t, "keep", "change")
	with := func(header, more string) *config.Config {
		cfg := y.config(t, header, everybody, more, "keep", "change")
		cfg.Auth.Resource = "https://mcp.example.com/mcp"
		cfg.Auth.Front = &conf.AuthServer{Issuer: "https://issuer.example.com", ClientID: "mcpx"}
		return cfg
	}
	e := serving(t, with("1", ""))
	alice := e.visitor(t, "alice", legacyEra, false)
	state := func() (pid string, sessions [2]string, authServer *authServer) {
		t.Helper()
		pid = alice.ask(t, "/mcp", "tools/call", execute("program", "pid", `{}`))
		for i, name := range []string{"keep", "change"} {
			if said := alice.ask(t, "/mcp", "tools/call", execute(name, "echo", `{"text":"there"}`)); !strings.Contains(said, "there") {
				t.Fatal(said)
			}
			calls := y.fakes[name].Log().Calls("echo")
			sessions[i] = calls[len(calls)-1].Session
		}
		return pid, sessions, e.app.current.Load().authServer
	}
	pid, sessions, server := state()
	e.reload(t, with("2", `,"limits":{"sessions":100},"result_token_limit":1000`))
	nowPID, now, nowServer := state()
	if nowPID != pid || now[0] != sessions[0] || nowServer != server || server == nil {
		t.Errorf("what did not change: %s, %s, %p; before %s, %s, %p", nowPID, now[0], nowServer, pid, sessions[0], server)
	}
	if now[1] == sessions[1] {
		t.Error("the server that changed has the session of before")
	}
	if n := y.fakes["keep"].Count("initialize"); n != 1 {
		t.Errorf("%d sessions with a server that did not change", n)
	}
}

// TestReload_Calls: calls that run during many reloads all succeed, on servers that do not change and on one that changes each
// time.
func TestReload_Calls(t *testing.T) {
	mcptest.NoLeaks(t)
	y := newYard(t, "keep", "change")
	e := serving(t, y.config(t, "0", everybody, "", "keep", "change"))
	var calling sync.WaitGroup
	var ended atomic.Bool
	var made atomic.Int32
	for _, server := range []string{"keep", "change", "program"} {
		for _, era := range []string{legacyEra, modernEra} {
			v := e.visitor(t, "alice", era, false)
			calling.Go(func() {
				for n := 0; !ended.Load(); n++ {
					text := fmt.Sprint("call ", n)
					if said := v.ask(t, "/mcp", "tools/call", execute(server, "slow", `{"ms":5}`)); !strings.Contains(said, "slept 5 ms") {
						t.Errorf("%s %s: %s", server, text, said)
						return
					}
					made.Add(1)
				}
			})
		}
	}
	for n := range 20 {
		before := made.Load()
		to := y.config(t, fmt.Sprint(n+1), everybody, fmt.Sprintf(`,"result_token_limit":%d`, 1000+n), "keep", "change")
		if err := e.app.reload(to); err != nil {
			t.Fatal(err)
		}
		mcptest.WaitFor(t, "more calls", patience, func() bool { return made.Load() > before+6 || t.Failed() })
	}
	ended.Store(true)
	calling.Wait()
	if n := y.fakes["keep"].Count("initialize"); n != 1 {
		t.Errorf("%d sessions with a server that did not change", n)
	}
}

// TestReload_OneConfig: a call follows the rules of a single config. Two configs alternate; both require a confirmation, one
// with confirm of the server, the other with confirm of the rights. So no call is ever made without a confirmation.
func TestReload_OneConfig(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	servers := map[string]string{"fake": fake.URL}
	by := []*config.Config{configOf(t, servers, everybody, ""), configOf(t, servers, `[{"principals":["alice"],"confirm":"all"}]`, "")}
	by[0].Servers[0].Confirm = conf.ConfirmAll
	e := serving(t, by[0])
	var calling sync.WaitGroup
	var ended atomic.Bool
	var asked atomic.Int32
	for range 4 {
		alice := e.visitor(t, "alice", modernEra, false)
		calling.Go(func() {
			for !ended.Load() {
				if said := alice.ask(t, "/mcp", "tools/call", execute("fake", "echo", `{"text":"made"}`)); !strings.Contains(said, "the user could not be asked") {
					t.Errorf("got %s", said)
					return
				}
				asked.Add(1)
			}
		})
	}
	for n := 0; asked.Load() < 400 && !t.Failed(); n++ {
		e.reload(t, by[n%2])
	}
	ended.Store(true)
	calling.Wait()
	if calls := fake.Log().Calls("echo"); len(calls) > 0 {
		t.Errorf("%d calls were made", len(calls))
	}
}

// TestReload_Closed: a reload after Close leaves no goroutine or process running.
func TestReload_Closed(t *testing.T) {
	mcptest.NoLeaks(t)
	ownFolders(t)
	a, err := New(Options{Config: configOf(t, nil, everybody, ""), Profile: Hosted, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	last := a.current.Load()
	a.Close()
	if err := a.reload(configOf(t, nil, everybody, `,"ui":false`)); err != nil || a.current.Load() != last {
		t.Errorf("%v, in force: %t", err, a.current.Load() != last)
	}
}
