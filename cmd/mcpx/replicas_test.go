package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/mcptest"
)

// replicas are several mcpx of one cluster behind a proxy, which sends each request to the next one.
type replicas struct {
	url     string
	daemons []*daemon
	next    atomic.Int64

	mu   sync.Mutex
	gone map[int]bool // those that get no requests any more
}

// startReplicas starts replicas, each with a home of its own, and waits until they know each other.
func startReplicas(t *testing.T, count int, servers map[string]server, global map[string]any) *replicas {
	t.Helper()
	config := map[string]any{"cluster": map[string]any{
		"nats": mcptest.StartNATS(t).URL, "key": "0123456789abcdef0123456789abcdef",
	}}
	for key, value := range global {
		config[key] = value
	}
	r := &replicas{gone: make(map[int]bool)}
	var targets []*url.URL
	for range count {
		h := newHome(t)
		d := h.serveHTTP(t, "--config", h.config(t, servers, config))
		to, err := url.Parse(d.url)
		if err != nil {
			t.Fatal(err)
		}
		r.daemons, targets = append(r.daemons, d), append(targets, to)
	}
	for _, d := range r.daemons {
		mcptest.WaitFor(t, "the replicas know each other", patience, func() bool {
			return strings.Count(d.stderr.String(), "a replica is there") == count-1
		})
	}
	out := new(http.Transport)
	proxy := &httputil.ReverseProxy{
		Transport: out,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(targets[r.pick()])
			p.Out.URL.Path = p.In.URL.Path
			p.SetXForwarded()
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	web := httptest.NewServer(proxy)
	r.url = web.URL + targets[0].Path
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		out.CloseIdleConnections()
	})
	return r
}

// pick returns the replica for the next request.
func (r *replicas) pick() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if at := int(r.next.Add(1)) % len(r.daemons); !r.gone[at] {
			return at
		}
	}
}

// TestReplicas_Pairs: clients of the SDKs of both eras work with three replicas of which each gets every third request, as with one
// mcpx: questions to the client, progress, cancellations, subscriptions. Several clients work at the same time.
func TestReplicas_Pairs(t *testing.T) {
	mcptest.Parallel(t)
	p := &pairing{newHome(t), pairLines(t)}
	servers := make(map[string]server)
	except := make(map[string][]string) // clients of the modern era fail these checks without mcpx too
	for _, line := range p.lines {
		if line.name == "sdk2" || line.name == "ts2" {
			name, entry := p.serve(t, line, "http")
			servers[name], except[name] = entry, pushed
		}
	}
	r := startReplicas(t, 3, servers, map[string]any{"view": "tools"})
	targets := through(servers)
	var clients sync.WaitGroup
	for _, line := range p.lines {
		if line.role || strings.HasPrefix(line.name, "fastmcp") {
			continue
		}
		clients.Go(func() {
			for _, era := range line.eras {
				tries := p.try(t, line, era, line.name+era, targets, "http", r.url)
				if era == "legacy" {
					tries.want(t, line.title+" "+era, nil)
				} else {
					tries.want(t, line.title+" "+era, except)
				}
			}
		})
	}
	clients.Wait()
}
