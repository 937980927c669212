package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

const patience = 2 * time.Minute

// over returns the spec of a server with this type of transport, name and URL.
func over(kind, name, url string) upstream.Spec {
	return upstream.Spec{Options: transport.Options{Name: name, Type: kind, Remote: transport.Remote{URL: url}}}
}

func child(t testing.TB, name string, fake mcptest.Spec) Server {
	t.Helper()
	command, args, env := fake.Stdio(t)
	spec := upstream.Spec{Options: transport.Options{Name: name, Type: transport.Stdio, Launch: transport.Launch{Command: command, Args: args}}}
	for variable, value := range env {
		spec.Launch.Env = append(spec.Launch.Env, variable+"="+value)
	}
	return Server{Spec: spec, Definition: name, Key: Key(name)}
}

// piped returns a fake server that runs in this process, so it can be used in a synctest bubble.
func piped(t testing.TB, name string, fake mcptest.Spec) Server {
	t.Helper()
	return Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.InProcess, Serve: fake.Serve(t, nil)}}, Definition: name, Key: Key(name)}
}

// never returns a server that never answers.
func never(name string) Server {
	return Server{Definition: name, Key: Key(name), Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.InProcess, Serve: func(ctx context.Context, _ io.Reader, _ io.Writer) error {
		<-ctx.Done()
		return ctx.Err()
	}}}}
}

func start(t testing.TB, options Options, servers ...Server) *Registry {
	t.Helper()
	r := New(servers, options)
	r.Use(r.Credentials)
	r.Start()
	t.Cleanup(func() { r.Close(0) })
	return r
}

func tried(t testing.TB, r *Registry) *catalog.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.WaitTried(ctx)
	if ctx.Err() != nil {
		t.Fatal("an attempt does not end")
	}
	return r.Snapshot()
}

// follow calls the server with this name. If the server is replaced meanwhile, follow calls the new one, as the executor does.
func follow(ctx context.Context, r *Registry, name string, q request.Request) (json.RawMessage, error) {
	for {
		server, ok := r.Snapshot().Server(name)
		if !ok {
			return nil, errNoServer
		}
		q.To = server
		result, err := r.Send(ctx, &q)
		if replaced := (*request.ReplacedError)(nil); !errors.As(err, &replaced) {
			return result, err
		}
		r.WaitServer(ctx, name)
	}
}

var errNoServer = errors.New("there is no such server")

func call(r *Registry, server string, client *caller.Client, tool, arguments string) (string, error) {
	raw, err := follow(context.Background(), r, server, request.Request{From: request.From{Client: client}, Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(arguments)), Times: request.Times{Timeout: patience}})
	if err != nil {
		return "", err
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) == 0 {
		return "", fmt.Errorf("result %s", raw)
	}
	return result.Content[0].Text, nil
}

// picture describes what is lasting in a snapshot: the names, texts and tools of the servers, but not their states.
func picture(snap *catalog.Snapshot) string {
	var out strings.Builder
	for i := range snap.Servers {
		s := &snap.Servers[i]
		fmt.Fprintf(&out, "%s known=%t %q %q %q\n", s.Name, s.Known, s.Title, s.Version, s.Purpose())
		for j := range s.Tools {
			tool := &s.Tools[j]
			fmt.Fprintf(&out, "  %s|%s|%s|%s|%s|%s|%s\n", tool.Name, tool.Title, tool.Description, tool.InputSchema, tool.OutputSchema, tool.Annotations, tool.Raw)
		}
	}
	return out.String()
}

// TestCache: the cache on disk contains the tools and texts of the snapshot. At the next start, the first snapshot has the same
// tools and texts before any server is connected.
func TestCache(t *testing.T) {
	mcptest.NoLeaks(t)
	options := Options{CacheDir: filepath.Join(t.TempDir(), "deep", "cache")}
	fake := mcptest.Spec{OddTools: true, Instructions: "Use <b>&amp;</b> \u2028 it\nwell."}
	r := New([]Server{child(t, "one", fake), child(t, "two", mcptest.Spec{Era: mcptest.EraModern}), never("three")}, options)
	r.Start()
	mcptest.WaitFor(t, "two catalogues", patience, func() bool {
		one, _ := r.Snapshot().Server("one")
		two, _ := r.Snapshot().Server("two")
		return one.Known && two.Known
	})
	want := picture(r.Snapshot())
	r.Close(0)

	// None of these servers ever answers.
	silent := []Server{never("one"), never("two"), never("three")}
	before := New(silent, options)
	if got := picture(before.Snapshot()); got != want {
		t.Errorf("before anything is connected:\n%s\nwant:\n%s", got, want)
	}
	one, _ := before.Snapshot().Server("one")
	if one.State != catalog.Connecting || len(one.Tools) < 30 {
		t.Errorf("state %s, %d tools", one.State, len(one.Tools))
	}
	before.Close(0)

	files, err := os.ReadDir(options.CacheDir)
	if err != nil || len(files) != 3 { // for the third, the file says that mcpx has tried to connect
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file.Name(), info.Mode(), err)
		}
	}
}

// TestCacheOfAShortRun: if mcpx ends before a server had the time Patience to answer, nothing is recorded about the server.
func TestCacheOfAShortRun(t *testing.T) {
	mcptest.NoLeaks(t)
	for patience, want := range map[time.Duration]int{0: 1, time.Hour: 0} {
		options := Options{CacheDir: t.TempDir(), Patience: patience}
		r := New([]Server{never("one")}, options)
		r.Start()
		r.Close(0)
		if files, err := os.ReadDir(options.CacheDir); err != nil || len(files) != want {
			t.Errorf("patience %v: %d files, want %d, %v", patience, len(files), want, err)
		}
	}
}

// TestCacheRemembersTheEra: if a server spoke only the legacy era when last used, mcpx does not probe its era again.
func TestCacheRemembersTheEra(t *testing.T) {
	mcptest.NoLeaks(t)
	options := Options{CacheDir: t.TempDir()}
	server := mcptest.Spec{}.HTTP(t)
	config := Server{Spec: over(transport.HTTP, "web", server.URL), Key: Key("web")}
	for range 2 {
		r := New([]Server{config}, options)
		r.Start()
		tried(t, r)
		r.Close(0)
	}
	if n := server.Count("server/discover"); n != 1 {
		t.Errorf("%d probes in two starts", n)
	}
}

// TestCacheRemembersTheEra_Clients: the era of a legacy client's session is not recorded as the era of the server. So a later
// modern client still gets a modern session, and the result of an earlier probe is kept.
func TestCacheRemembersTheEra_Clients(t *testing.T) {
	const modernVersion = mcptest.ModernVersion
	for _, tt := range []struct {
		fake    mcptest.Spec
		clients []string // the protocol revisions of the clients; each uses a new start of mcpx
		modern  []bool   // whether each session is of the modern era
		probes  int
	}{
		{mcptest.Spec{Era: mcptest.EraBoth}, []string{mcptest.LegacyVersion, modernVersion, mcptest.LegacyVersion, modernVersion}, []bool{false, true, false, true}, 2},
		{mcptest.Spec{}, []string{mcptest.LegacyVersion, modernVersion, mcptest.LegacyVersion, modernVersion}, make([]bool, 4), 1},
	} {
		mcptest.NoLeaks(t)
		options := Options{CacheDir: t.TempDir()}
		server := tt.fake.HTTP(t)
		config := Server{Spec: over(transport.HTTP, "web", server.URL), Key: Key("web")}
		for i, version := range tt.clients {
			r := New([]Server{config}, options)
			r.Own(&caller.Client{ID: "only", Version: version})
			r.Start()
			tried(t, r)
			if status, _ := r.Status("web"); status.Modern != tt.modern[i] {
				t.Errorf("client %d, %s: the session is modern: %t", i, version, status.Modern)
			}
			r.Close(0)
		}
		if n := server.Count("server/discover"); n != tt.probes {
			t.Errorf("%d probes, want %d", n, tt.probes)
		}
	}
}

// TestCacheIgnoresBrokenFiles: a file of the cache that is broken, foreign or in another format is ignored and overwritten.
func TestCacheIgnoresBrokenFiles(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, content := range []string{``, `nonsense`, `[]`, `null`, `{}`, `{"format":99,"tools":[{"name":"a"}]}`, `{"format":1,"tools":[{"name":7}]}`,
		`{"format":1,"tools":"x"}`, `{"format":1,"tools":[null]}`, "\x00\x01", `{"format":1,"tools":[{"name":"a"}`} {
		options := Options{CacheDir: t.TempDir()}
		file := filepath.Join(options.CacheDir, Key("one")+".json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		r := New([]Server{piped(t, "one", mcptest.Spec{})}, options)
		if one, _ := r.Snapshot().Server("one"); one.Known || len(one.Tools) != 0 {
			t.Errorf("%q: known with %d tools", content, len(one.Tools))
		}
		r.Start()
		tried(t, r)
		r.Close(0)
		if now, err := os.ReadFile(file); err != nil || !bytes.Contains(now, []byte(`"read_echo"`)) {
			t.Errorf("%q: not replaced: %.60q, %v", content, now, err)
		}
	}
	// If the folder cannot be created, mcpx logs a warning and works without it.
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{CacheDir: filepath.Join(blocked, "cache")}, piped(t, "one", mcptest.Spec{}))
	tried(t, r)
	if got, err := call(r, "one", nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKey(t *testing.T) {
	again := Key("secret")
	if Key("a", "bc") == Key("ab", "c") || Key("a") == Key("a", "") || Key("secret") != again || strings.Contains(Key("secret"), "secret") {
		t.Error("keys are not told apart, or tell what they are made of")
	}
}

// TestWaitKnown: WaitKnown waits only for servers whose first attempt to connect has not ended, in this run or an earlier one.
func TestWaitKnown(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		options := Options{CacheDir: t.TempDir()}
		prepare := New([]Server{piped(t, "cached", mcptest.Spec{})}, options)
		prepare.Start()
		tried(t, prepare)
		prepare.Close(0)

		broken := never("broken")
		broken.Spec.Serve = func(context.Context, io.Reader, io.Writer) error { return io.ErrUnexpectedEOF }
		off := never("off")
		off.Disabled = true
		faulty := never("faulty")
		faulty.Fault = "url: must start with http:// or https://"
		wait := func(limit time.Duration, servers ...Server) time.Duration {
			r := New(servers, options)
			r.Start()
			defer r.Close(0)
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			began := time.Now()
			r.WaitKnown(ctx, nil)
			return time.Since(began)
		}
		if took := wait(5*time.Second, never("cached"), broken, off, faulty); took != 0 {
			t.Errorf("for nobody: waited %v", took)
		}
		slow := piped(t, "slow", mcptest.Spec{InitDelay: time.Second})
		if took := wait(5*time.Second, never("cached"), slow); took < time.Second || took > 2*time.Second {
			t.Errorf("for a slow one: waited %v", took)
		}
		if took := wait(5*time.Second, never("new"), slow); took != 5*time.Second {
			t.Errorf("for one that never answers: waited %v", took)
		}
		if took := wait(5*time.Second, never("new")); took != 0 {
			t.Errorf("for one that has never answered before: waited %v", took)
		}
		late := piped(t, "new", mcptest.Spec{InitDelay: time.Second})
		r := New([]Server{late}, options)
		r.Start()
		r.WaitTried(context.Background())
		r.Close(0)
		again := New([]Server{never("new"), never("cached")}, options)
		for _, name := range []string{"new", "cached"} { // one answered in this run, the other in an earlier one
			if s, _ := again.Snapshot().Server(name); !s.Known || s.Tried || len(s.Tools) == 0 {
				t.Errorf("%s: known %v, tried %v, %d tools", name, s.Known, s.Tried, len(s.Tools))
			}
		}
		again.Close(0)
	})
}

// rules is a catalog.Rules that only serves to identify a configuration.
type rules struct{ name string }

func (*rules) See(*catalog.Server, *catalog.Tool) (*catalog.Tool, string) { return nil, "all" }

// TestSnapshot_Rules: a snapshot has all tools, also those from disk, and the rules of the same configuration as its servers.
func TestSnapshot_Rules(t *testing.T) {
	mcptest.NoLeaks(t)
	folder, first := t.TempDir(), &rules{"first"}
	for range 2 { // the second time, the tools come from disk
		r := New([]Server{piped(t, "one", mcptest.Spec{})}, Options{CacheDir: folder, Rules: first})
		if got := r.Snapshot().Rules; got != first {
			t.Errorf("the first snapshot has %v", got)
		}
		r.Start()
		if snap := tried(t, r); snap.Tools() != 18 || snap.Rules != first {
			t.Errorf("%d tools, rules %v", snap.Tools(), snap.Rules)
		}
		r.Close(0)
	}
	r := start(t, Options{Rules: first}, piped(t, "one", mcptest.Spec{}))
	defer r.Close(0)
	before := tried(t, r)
	second := &rules{"second"}
	another := piped(t, "one", mcptest.Spec{})
	another.Definition = "another"
	r.OnChange(func() {
		snap := r.Snapshot()
		one, _ := snap.Server("one")
		old, _ := before.Server("one")
		if (one.Generation == old.Generation) != (snap.Rules == first) {
			t.Errorf("generation %d, before %d, with rules %v", one.Generation, old.Generation, snap.Rules)
		}
	})
	r.Apply([]Server{another}, Options{Rules: second}, nil)
	if snap := tried(t, r); snap.Rules != second {
		t.Errorf("rules %v", snap.Rules)
	}
}

// TestCall_Replaced: a call that was prepared from a snapshot is sent to the server in that snapshot, or fails if it was
// replaced.
func TestCall_Replaced(t *testing.T) {
	mcptest.NoLeaks(t)
	r := start(t, Options{}, piped(t, "one", mcptest.Spec{}), piped(t, "kept", mcptest.Spec{}))
	defer r.Close(0)
	before := tried(t, r)
	another := piped(t, "one", mcptest.Spec{})
	another.Definition = "another"
	r.Apply([]Server{another, piped(t, "kept", mcptest.Spec{})}, Options{}, nil)
	now := tried(t, r)
	for _, from := range []*catalog.Snapshot{before, now} {
		for i := range from.Servers {
			_, err := r.Send(t.Context(), &request.Request{To: &from.Servers[i], Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: patience}})
			replaced := (*request.ReplacedError)(nil)
			if want := from == before && from.Servers[i].Name == "one"; errors.As(err, &replaced) != want || (err == nil) == want {
				t.Errorf("%s of %v: %v", from.Servers[i].Name, from == before, err)
			}
		}
	}
}

// TestSend_Begun: if a request continues a call, and its server is unavailable, the error says that the call may have been executed.
func TestSend_Begun(t *testing.T) {
	mcptest.NoLeaks(t)
	down := Server{Definition: "down", Key: Key("down"), Spec: upstream.Spec{Options: transport.Options{
		Name: "down", Type: transport.InProcess, Serve: func(context.Context, io.Reader, io.Writer) error { return errors.New("out of order") },
	}}}
	r := start(t, Options{}, down)
	defer r.Close(0)
	to := &tried(t, r).Servers[0]
	for _, q := range []request.Request{{}, {MayHaveRun: true}, {From: request.From{Input: request.Input{State: json.RawMessage(`"s"`)}}}} {
		q.To, q.Method, q.Params, q.Timeout = to, "tools/call", request.ToolParams("echo", nil), patience
		_, err := r.Send(t.Context(), &q)
		lost, begun := errors.AsType[*request.LostError](err)
		_, unavailable := errors.AsType[*request.UnavailableError](err)
		if begun = begun && lost.MayHaveRun; begun != (q.MayHaveRun || q.Input.State != nil) || begun == unavailable {
			t.Errorf("MayHaveRun %v, state %s: got %#v", q.MayHaveRun, q.Input.State, err)
		}
	}
}

func TestStates(t *testing.T) {
	mcptest.NoLeaks(t)
	off, faulty := never("off"), never("faulty")
	off.Disabled, faulty.Fault = true, "command: must not be empty"
	broken := Server{Spec: upstream.Spec{Options: transport.Options{Name: "broken", Type: transport.Stdio, Launch: transport.Launch{Command: "no-such-program"}}}}
	r := start(t, Options{}, off, faulty, broken, piped(t, "good", mcptest.Spec{}))
	snap := tried(t, r)
	if !slices.Equal(snap.ServerNames(), []string{"broken", "faulty", "good", "off"}) {
		t.Errorf("names %v", snap.ServerNames())
	}
	for name, want := range map[string]struct {
		state  catalog.State
		reason string
	}{
		"off":    {catalog.Disabled, ""},
		"faulty": {catalog.Unavailable, "command: must not be empty"},
		"broken": {catalog.Unavailable, "not found in PATH"},
		"good":   {catalog.Ready, ""},
	} {
		s, _ := snap.Server(name)
		if s.State != want.state || !strings.Contains(s.Reason, want.reason) || (want.reason == "") != (s.Reason == "") {
			t.Errorf("%s: %s, %q", name, s.State, s.Reason)
		}
		_, err := call(r, name, nil, "echo", `{"text":"x"}`)
		if (err == nil) != (name == "good") {
			t.Errorf("%s: call: %v", name, err)
		}
	}
	if _, err := call(r, "nobody", nil, "echo", `{}`); err == nil {
		t.Error("a server that is not there has an answer")
	}
}

// TestApply: Apply restarts only the servers that have changed.
func TestApply(t *testing.T) {
	mcptest.NoLeaks(t)
	keep, change, drop := child(t, "keep", mcptest.Spec{}), child(t, "change", mcptest.Spec{}), child(t, "drop", mcptest.Spec{})
	r := start(t, Options{}, keep, change, drop)
	tried(t, r)
	pid := func(server string) string {
		got, err := call(r, server, nil, "pid", `{}`)
		if err != nil {
			t.Errorf("%s: %v", server, err)
		}
		return got
	}
	before := map[string]string{"keep": pid("keep"), "change": pid("change")}
	open := make(chan error, 1)
	go func() {
		_, err := call(r, "keep", nil, "slow", `{"ms":500}`)
		open <- err
	}()
	change = child(t, "change", mcptest.Spec{Instructions: "new"})
	change.Definition = "change, another way"
	r.Apply([]Server{keep, change, child(t, "add", mcptest.Spec{})}, Options{}, nil)
	snap := tried(t, r)
	if !slices.Equal(snap.ServerNames(), []string{"add", "change", "keep"}) {
		t.Errorf("servers %v", snap.ServerNames())
	}
	if got := pid("keep"); got != before["keep"] {
		t.Errorf("an unchanged server went from process %s to %s", before["keep"], got)
	}
	if got := pid("change"); got == before["change"] {
		t.Error("a changed server kept its process")
	}
	pid("add")
	if _, err := call(r, "drop", nil, "pid", `{}`); err == nil {
		t.Error("a dropped server answers")
	}
	if err := <-open; err != nil {
		t.Errorf("the open call: %v", err)
	}
	r.Close(0)
	r.Apply([]Server{keep}, Options{}, nil) // after Close, Apply starts nothing
}

// TestPerClient: each client with an ID has its own session, which has the client's name and ends with the client.
func TestPerClient(t *testing.T) {
	mcptest.NoLeaks(t)
	// Without NoGET, a stream that opens late would make mcpx read the catalogue again.
	server := mcptest.Spec{NoGET: true}.HTTP(t)
	spec := over(transport.HTTP, "web", server.URL)
	spec.Introduction.Version = "1"
	r := start(t, Options{}, Server{Spec: spec, PerClient: true, SessionIdle: time.Hour})
	tried(t, r)
	for _, client := range []*caller.Client{{ID: "1", Name: "claude"}, {ID: "2", Name: "cursor"}, {ID: "1", Name: "claude"}, {ID: "3"}, nil} {
		if got, err := call(r, "web", client, "echo", `{"text":"x"}`); err != nil || got != "x" {
			t.Errorf("%v: got %q, %v", client, got, err)
		}
	}
	var names []string
	for _, entry := range server.Log().Method("initialize") {
		var m struct {
			Params struct{ ClientInfo struct{ Name string } }
		}
		if err := json.Unmarshal(entry.Message, &m); err != nil {
			t.Fatal(err)
		}
		names = append(names, m.Params.ClientInfo.Name)
	}
	if want := []string{"mcpx", "claude-through-proxy", "cursor-through-proxy", "mcpx"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if n := server.Sessions(); n != 4 {
		t.Errorf("%d sessions", n)
	}
	sessions := map[string]bool{}
	for _, entry := range server.Log().Calls("echo") {
		sessions[entry.Session] = true
	}
	if len(sessions) != 4 {
		t.Errorf("calls on %d sessions, want 4", len(sessions))
	}
	r.ForgetClient("1")
	mcptest.WaitFor(t, "the end of the session of a client that has gone", patience, func() bool { return server.Sessions() == 3 })
	if n := server.Count("tools/list"); n != 1 {
		t.Errorf("the catalogue was read %d times", n)
	}
	r.Close(0)
	if _, err := call(r, "web", &caller.Client{ID: "9"}, "echo", `{"text":"x"}`); err == nil {
		t.Error("a client has a session after Close")
	}
}

func TestPerClientIdle(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		server := piped(t, "one", mcptest.Spec{})
		var sessions atomic.Int32
		serve := server.Spec.Serve
		server.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			sessions.Add(1)
			defer sessions.Add(-1)
			return serve(ctx, in, out)
		}
		server.PerClient, server.SessionIdle = true, time.Minute
		r := start(t, Options{}, server)
		tried(t, r)
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := call(r, "one", &caller.Client{ID: "busy"}, "slow", `{"ms":15000}`); err != nil {
				t.Error(err)
			}
		})
		if _, err := call(r, "one", &caller.Client{ID: "idle"}, "echo", `{"text":"x"}`); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := sessions.Load(); n != 3 {
			t.Errorf("%d sessions at first", n)
		}
		<-time.After(67 * time.Second)
		synctest.Wait()
		if n := sessions.Load(); n != 2 {
			t.Errorf("%d sessions when one was idle", n)
		}
		calls.Wait()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if n := sessions.Load(); n != 1 {
			t.Errorf("%d sessions when both were", n)
		}
	})
}

// TestPerClientForgotten: a call continues after its client has disconnected, because its result may be fetched later. The end
// of the client's session does not interrupt it.
func TestPerClientForgotten(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		server := piped(t, "one", mcptest.Spec{})
		server.PerClient = true
		r := start(t, Options{}, server)
		tried(t, r)
		client := &caller.Client{ID: "gone"}
		ended := make(chan error, 1)
		go func() { // ends with the call
			_, err := call(r, "one", client, "slow", `{"ms":15000}`)
			ended <- err
		}()
		synctest.Wait()
		r.ForgetClient(client.ID)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.retired) > 0 || len(r.clients) > 0 {
			t.Errorf("left: %d sessions that end, %d clients", len(r.retired), len(r.clients))
		}
	})
}

// TestStorm: if a server sends very many list_changed notifications, mcpx lists its tools only a few times, and does nothing
// for the other servers.
func TestStorm(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		r := New([]Server{piped(t, "storm", mcptest.Spec{ListChangedStorm: 1000, ExtraTools: 500}), piped(t, "calm", mcptest.Spec{})}, Options{CacheDir: t.TempDir()})
		var events atomic.Int32
		r.OnChange(func() { events.Add(1) })
		r.Start()
		t.Cleanup(func() { r.Close(0) })
		tried(t, r)
		storm, _ := r.Snapshot().Server("storm")
		<-time.After(5 * time.Second)
		synctest.Wait()
		if n := events.Load(); n > 20 {
			t.Errorf("%d snapshots in five seconds", n)
		}
		after, _ := r.Snapshot().Server("storm")
		if &after.Tools[0] != &storm.Tools[0] {
			t.Error("the catalogue was made anew, though nothing changed")
		}
		if got, err := call(r, "calm", nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
			t.Errorf("calm: got %q, %v", got, err)
		}
	})
}

// TestListChanged: tools that a server adds or removes are soon added to or removed from the snapshot, and the cache on disk.
func TestListChanged(t *testing.T) {
	mcptest.NoLeaks(t)
	options := Options{CacheDir: t.TempDir()}
	server := mcptest.Spec{}.HTTP(t)
	config := Server{Spec: over(transport.HTTP, "web", server.URL), Key: Key("web")}
	r := start(t, options, config)
	tried(t, r)
	mcptest.WaitFor(t, "the listening stream", patience, func() bool {
		for _, entry := range server.Log().Event(mcptest.EventHTTP) {
			if entry.Text == "GET /mcp" {
				return true
			}
		}
		return false
	})
	known := func() []string {
		web, _ := r.Snapshot().Server("web")
		return web.ToolNames()
	}
	server.SetTools(json.RawMessage(`[{"name":"only"}]`))
	mcptest.WaitFor(t, "the new catalogue", patience, func() bool { return slices.Equal(known(), []string{"only"}) })
	r.Close(0)
	next := New([]Server{config}, options)
	defer next.Close(0)
	if web, _ := next.Snapshot().Server("web"); !slices.Equal(web.ToolNames(), []string{"only"}) {
		t.Errorf("on disk: %v", web.ToolNames())
	}
}

// TestDownKeepsItsPlace: a server that goes down stays in the snapshot with its tools.
func TestDownKeepsItsPlace(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	r := start(t, Options{}, Server{Spec: upstream.Spec{
		Options: transport.Options{Name: "web", Type: transport.HTTP, Remote: transport.Remote{URL: server.URL}},
		Health:  conf.Health{Interval: 20 * time.Millisecond, Timeout: patience, Threshold: 1},
	}})
	want := picture(tried(t, r))
	server.Down()
	mcptest.WaitFor(t, "the loss", patience, func() bool {
		web, _ := r.Snapshot().Server("web")
		return web.State == catalog.Unavailable
	})
	if got := picture(r.Snapshot()); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestCloseWithoutStart(t *testing.T) {
	mcptest.NoLeaks(t)
	New([]Server{never("one")}, Options{}).Close(0)
}
