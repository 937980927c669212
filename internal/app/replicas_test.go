package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// gated is an upstream server that answers nothing while its gate is closed. It is open at first.
type gated struct {
	url string

	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

func newGated(t *testing.T, spec mcptest.Spec) *gated {
	t.Helper()
	behind, err := url.Parse(spec.HTTP(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &gated{open: make(chan struct{})}
	close(g.open)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	proxy.FlushInterval, proxy.ErrorLog = -1, slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		open := g.open
		g.mu.Unlock()
		select {
		case <-open:
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		g.release()
		web.CloseClientConnections()
		web.Close()
	})
	g.url = web.URL + behind.Path
	return g
}

func (g *gated) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gated) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// replica is one of several processes with the same config, and a cache folder of its own.
type replica struct {
	*App
	tools view.View // all tools, under their own names
}

// newReplica starts a replica. folder has its caches. peers are for a config without a cluster; they may be nil.
func newReplica(t *testing.T, cfg *config.Config, folder string, peers func(ctx context.Context, key string) []byte) *replica {
	t.Helper()
	for _, variable := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME", "LocalAppData", "AppData"} {
		t.Setenv(variable, folder)
	}
	options := Options{Config: cfg, Profile: Hosted, Log: slog.New(slog.DiscardHandler)}
	if cfg.Cluster == nil {
		options.state = newClientState(0)
		options.state.catalogues = peers
	}
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.start(0)
	return &replica{a, a.views.get(config.ViewTools).view}
}

// lists returns the two answers to tools/list, as a client gets them now.
func (r *replica) lists(t *testing.T) [2]string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	who := &caller.Client{ID: "lists"}
	return [2]string{string(r.View.Tools(ctx, who)), string(r.tools.Tools(ctx, who))}
}

// connected waits until the replica has connected to these servers, and read all their lists.
func (r *replica) connected(t *testing.T, names ...string) {
	t.Helper()
	mcptest.WaitFor(t, "the servers", patience, func() bool {
		for _, name := range names {
			if status, _ := r.Registry.Status(name); status.State != catalog.Ready || !status.Listed {
				return false
			}
		}
		return true
	})
	r.Registry.Refresh()
}

// replicaServers returns servers and the config that names them. more are further keys of the config.
func replicaServers(t *testing.T, more string) (servers map[string]*gated, cfg *config.Config) {
	servers = make(map[string]*gated)
	urls := make(map[string]string)
	for i, name := range []string{"alpha", "beta", "gamma"} {
		servers[name] = newGated(t, mcptest.Spec{
			Name: name, Instructions: "Everything about " + name + ".",
			Tools: fmt.Appendf(nil, `[{"name":"same","description":"The same name in each server.","inputSchema":{"type":"object"}},
				{"name":"own%d","description":"A tool of %s.","inputSchema":{"type":"object"}}]`, i, name),
		})
		urls[name] = servers[name].url
	}
	return servers, configOf(t, urls, everybody, `,"startup_wait":0.2`+more)
}

var allServers = []string{"alpha", "beta", "gamma"}

// TestReplicas_Catalogue: replicas with the same config list the same bytes in both views, whatever the order in which their
// servers become ready, and whether they find a catalogue on disk.
func TestReplicas_Catalogue(t *testing.T) {
	servers, cfg := replicaServers(t, "")
	warm := t.TempDir()
	first := newReplica(t, cfg, warm, nil)
	first.connected(t, allServers...)
	want := first.lists(t)
	for _, name := range allServers {
		if !strings.Contains(want[0], name) || !strings.Contains(want[1], name) {
			t.Fatalf("%s is not listed: %s", name, want)
		}
	}
	first.Close() // writes the catalogues
	orders := [][]string{{"gamma", "beta", "alpha"}, {"beta", "alpha", "gamma"}}
	for _, folder := range []string{warm, ""} {
		for _, order := range orders {
			for _, one := range servers {
				one.shut()
			}
			used := folder
			if used == "" {
				used = t.TempDir()
			}
			r := newReplica(t, cfg, used, nil)
			if got := r.lists(t); folder != "" && got != want {
				t.Errorf("%v: before the first server is ready: %s", order, differing(got, want))
			}
			for _, name := range order {
				servers[name].release()
				r.connected(t, name)
			}
			if got := r.lists(t); got != want {
				t.Errorf("%v, with files: %t: %s", order, folder != "", differing(got, want))
			}
			r.Close()
		}
	}
}

func differing(got, want [2]string) string {
	for i := range got {
		at := 0
		for at < min(len(got[i]), len(want[i])) && got[i][at] == want[i][at] {
			at++
		}
		if got[i] != want[i] {
			return fmt.Sprintf("view %d, byte %d: …%.300q, want …%.300q", i, at, got[i][max(0, at-80):], want[i][max(0, at-80):])
		}
	}
	return "equal"
}

// TestReplicas_CatalogueInCluster: a replica that joins a cluster lists what the others list, before any of its servers answers.
func TestReplicas_CatalogueInCluster(t *testing.T) {
	servers, cfg := replicaServers(t, clusterAt(mcptest.StartNATS(t).URL, clusterKey))
	first := newReplica(t, cfg, t.TempDir(), nil)
	first.connected(t, allServers...)
	want := first.lists(t)
	for _, one := range servers {
		one.shut()
	}
	for range 2 { // the third replica may ask the second, which itself has the catalogues only from the first
		if got := newReplica(t, cfg, t.TempDir(), nil).lists(t); got != want {
			t.Error(differing(got, want))
		}
	}
}

// TestReplicas_Peers: a replica without files lists what the others list, before any of its servers answers, and announces
// nothing when they do. A peer that answers nonsense, or never, does no harm.
func TestReplicas_Peers(t *testing.T) {
	servers, cfg := replicaServers(t, "")
	first := newReplica(t, cfg, t.TempDir(), nil)
	first.connected(t, allServers...)
	want := first.lists(t)
	for _, one := range servers {
		one.shut()
	}
	asked := func(_ context.Context, key string) []byte { return first.Registry.Saved(key) }
	second := newReplica(t, cfg, t.TempDir(), asked)
	if got := second.lists(t); got != want {
		t.Errorf("with a peer: %s", differing(got, want))
	}
	// The second replica passes on the catalogues that it got from the first, although no server has answered it yet.
	third := newReplica(t, cfg, t.TempDir(), func(_ context.Context, key string) []byte { return second.Registry.Saved(key) })
	if got := third.lists(t); got != want {
		t.Errorf("with a peer that has a peer: %s", differing(got, want))
	}
	var told []catalog.Kind
	var mu sync.Mutex
	detach := third.tools.Attach(&caller.Client{ID: "listens"}, view.Attachment{Changed: func(kind catalog.Kind) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, kind)
	}})
	defer detach()
	for _, name := range slices.Backward(allServers) {
		servers[name].release()
		third.connected(t, name)
	}
	if got := third.lists(t); got != want {
		t.Errorf("after the servers were ready: %s", differing(got, want))
	}
	third.Close() // waits for the announcements that have begun
	mu.Lock()
	defer mu.Unlock()
	if len(told) > 0 {
		t.Errorf("announced: %v", told)
	}
	for name, answer := range map[string]func(ctx context.Context, key string) []byte{
		"nonsense": func(context.Context, string) []byte { return []byte(`{"format":1,"tools":[{"name":7}]}`) },
		"nothing":  func(context.Context, string) []byte { return nil },
		"tried":    func(context.Context, string) []byte { return []byte(`{"format":2,"tools":[]}`) },
		"silence": func(ctx context.Context, _ string) []byte {
			<-ctx.Done()
			return nil
		},
	} {
		r := newReplica(t, cfg, t.TempDir(), answer)
		r.connected(t, allServers...)
		if got := r.lists(t); got != want {
			t.Errorf("%s: %s", name, differing(got, want))
		}
	}
	if first.Registry.Saved("") != nil || first.Registry.Saved("unknown") != nil {
		t.Error("there is a catalogue for an unknown key")
	}
}

// TestReplicas_Ready: a replica is ready only after it has tried to connect to every server, even to a server whose catalogue it
// got from a peer. If a server is down, the replica still becomes ready. If a server is added later, the replica stays ready.
func TestReplicas_Ready(t *testing.T) {
	servers, cfg := replicaServers(t, "")
	first := newReplica(t, cfg, t.TempDir(), nil)
	first.connected(t, allServers...)
	if is, _ := first.ready(); !is.Ready {
		t.Errorf("%+v", is)
	}
	servers["beta"].shut()
	second := newReplica(t, cfg, t.TempDir(), func(_ context.Context, key string) []byte { return first.Registry.Saved(key) })
	second.connected(t, "alpha", "gamma")
	if is, _ := second.ready(); is.Ready {
		t.Errorf("beta is listed and was not tried: %+v", is)
	}
	servers["beta"].release()
	second.connected(t, "beta")
	if is, _ := second.ready(); !is.Ready {
		t.Errorf("all servers are ready: %+v", is)
	}

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	down := newReplica(t, configOf(t, map[string]string{"alpha": servers["alpha"].url, "down": gone.URL}, everybody, ""), t.TempDir(), nil)
	mcptest.WaitFor(t, "the end of the first attempt", patience, func() bool {
		is, _ := down.ready()
		return is.Ready
	})
	servers["beta"].shut()
	more := configOf(t, map[string]string{"alpha": servers["alpha"].url, "down": gone.URL, "beta": servers["beta"].url}, everybody, "")
	if err := down.reload(more); err != nil {
		t.Fatal(err)
	}
	if status, _ := down.Registry.Status("beta"); status.State != catalog.Connecting {
		t.Errorf("beta is %s", status.State)
	}
	if is, _ := down.ready(); !is.Ready {
		t.Errorf("a server was added: %+v", is)
	}
	away := true
	down.clusterAway = func() bool { return away }
	if is, _ := down.ready(); !is.Ready || !slices.Equal(is.Degraded, []string{"cluster: NATS away"}) {
		t.Errorf("%+v", is)
	}
	away = false
	if is, _ := down.ready(); !is.Ready || is.Degraded != nil {
		t.Errorf("%+v", is)
	}
}
