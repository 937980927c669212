package executor_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// dialledSpec returns a fake server that has dialled in, with mcpx dial.
func dialledSpec(t *testing.T, name string) upstream.Spec {
	t.Helper()
	fake := mcptest.Spec{}
	if strings.HasSuffix(name, "modern") {
		fake.Era = mcptest.EraModern
	}
	hub := dial.New(dial.Options{
		Current: func() *conf.Dial {
			return &conf.Dial{Allow: []conf.DialRule{{Names: []string{"*"}, For: conf.DialSelf}}}
		},
		Taken: func(string) bool { return false }, Changed: func() {}, MaxMessage: 64 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	board := httptest.NewServer(hub)
	t.Cleanup(board.Close)
	t.Cleanup(hub.Close)
	command, args, env := fake.Stdio(t)
	text, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"fake": map[string]any{"command": command, "args": args, "env": env}}, "learn": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("c.json", text, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	offered, view := app.Offered(cfg, []string{"fake"})
	a, err := app.New(app.Options{Config: offered, Profile: app.Command, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { // ends with stop
		ended <- a.DialOut(ctx, strings.Replace(board.URL, "http", "ws", 1)+dial.Path+name, "", view, func(string) {})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	mcptest.WaitFor(t, "the server dials in", time.Minute, func() bool { return len(hub.Servers()) == 1 })
	s := hub.Servers()[0]
	return upstream.Spec{Options: transport.Options{Name: name, Type: transport.WebSocket, Connect: s.Connect, Arrived: s.Arrived}}
}

// TestOracle_Dialled compares random results of servers that have dialled in with what the servers sent.
func TestOracle_Dialled(t *testing.T) {
	for _, folder := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "HOME"} {
		t.Setenv(folder, t.TempDir())
	}
	mcptest.NoLeaks(t)
	names := []string{"dialled-legacy", "dialled-modern"}
	servers := make([]registry.Server, len(names))
	for i, name := range names {
		servers[i].Spec = dialledSpec(t, name)
	}
	a := assembleServers(t, servers, executor.Options{TOON: true})
	o := &oracle{}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			o.run(t, uint64(200+i), anyPolicy, func(n int, structured results.Structured, direct string) answered {
				got := a.exec(t, name, direct, structured)
				got.sdk, got.meta = true, withoutServerInfo(t, got.meta) // the session between the two mcpx is modern
				return got
			})
		})
	}
	t.Logf("%d results, %d blocks the same, %d texts shrunk", o.results, o.same, o.shrunk)
}
