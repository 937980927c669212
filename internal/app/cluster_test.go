package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
)

const (
	clusterKey = "0123456789abcdef0123456789abcdef"
	newKey     = "fedcba9876543210fedcba9876543210"
)

func clusterAt(url, key string) string {
	return `,"cluster":{"nats":"` + url + `","key":"` + key + `"}`
}

// TestCluster_Away: a replica with the key of another cluster does not start. While NATS is down, clients can use their sessions
// at both replicas, ended sessions stay ended, and /readyz reports that NATS is away.
func TestCluster_Away(t *testing.T) {
	mcptest.NoLeaks(t)
	n := mcptest.StartNATS(t)
	one, _ := workshop(t, everybody, clusterAt(n.URL, clusterKey))
	two := serving(t, one.cfg)
	foreign, err := config.Parse("c.json", []byte(`{"mcpServers":{}`+clusterAt(n.URL, strings.Repeat("x", 32))+`}`), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := New(Options{Config: foreign, Profile: Hosted, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("another cluster: %v", err)
		if err == nil {
			a.Close()
		}
	}
	at := func(v *visitor, e *endpoint) *visitor {
		moved := *v
		moved.endpoint = e
		return &moved
	}
	alice, ended := one.visitor(t, "alice", legacyEra, false), one.visitor(t, "alice", legacyEra, false)
	alice.ask(t, "/mcp", "ping", "")
	ended.ask(t, "/mcp", "ping", "")
	hers := map[string]string{"Mcp-Session-Id": ended.sessions["/mcp"]}
	ended.http(t, "DELETE", "/mcp", "", hers)
	ping := func(v *visitor) string { said := v.ask(t, "/mcp", "ping", ""); return said[:4] }
	mcptest.WaitFor(t, "the end is known", patience, func() bool { return ping(at(ended, two)) == "404 " })
	ready := func(e *endpoint) string {
		status, said, _ := at(alice, e).http(t, "GET", "/readyz", "", nil)
		return fmt.Sprint(status, " ", strings.Contains(said, "cluster: NATS away"))
	}
	n.Kill()
	mcptest.WaitFor(t, "both say it", patience, func() bool { return ready(one) == "200 true" && ready(two) == "200 true" })
	late := one.visitor(t, "alice", legacyEra, false)
	if got := late.ask(t, "/mcp", "ping", "")[:4] + ping(alice) + ping(at(alice, two)) + ping(at(late, two)) + ping(at(ended, two)); got != "200 200 200 200 404 " {
		t.Errorf("without NATS: %s", got)
	}
	if said := at(alice, two).ask(t, "/mcp", "tools/call", execute("fake", "echo", `{"text":"x"}`)); !strings.HasPrefix(said, "200 ") || strings.Contains(said, `"isError":true`) {
		t.Errorf("a call without NATS: %s", said)
	}
	n.Start()
	mcptest.WaitFor(t, "both are ready", patience, func() bool { return ready(one) == "200 false" && ready(two) == "200 false" })
	if got := ping(at(alice, two)) + ping(at(ended, one)); got != "200 404 " {
		t.Errorf("with NATS again: %s", got)
	}
}

// BenchmarkCall_Cluster compares a call at one of two replicas with a call at mcpx alone.
func BenchmarkCall_Cluster(b *testing.B) {
	fake := mcptest.Spec{}.HTTP(b)
	ownFolders(b)
	n := mcptest.StartNATS(b)
	serve := func(b *testing.B, more string) string {
		cfg, err := config.Parse("c.json", []byte(`{"mcpServers":{"fake":{"url":"`+fake.URL+`"}},"limits":{"calls_per_minute":100000000}`+more+`}`), config.Options{})
		if err != nil {
			b.Fatal(err)
		}
		a, err := New(Options{Config: cfg, Profile: Hosted, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- a.ServeHTTP(ctx, listener) }() // ends with stop
		b.Cleanup(func() { stop(); <-served })
		a.Registry.Need()
		a.Registry.WaitTried(b.Context())
		return "http://" + listener.Addr().String() + "/mcp"
	}
	call := func(b *testing.B, url string) {
		b.ReportAllocs()
		for b.Loop() {
			request, _ := http.NewRequest("POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+modernEra+`","io.modelcontextprotocol/clientInfo":{"name":"b","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`+execute("fake", "echo", `{"text":"x"}`)+`}}`))
			for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": modernEra, "Mcp-Method": "tools/call", "Mcp-Name": "exec"} {
				request.Header.Set(name, value)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				b.Fatal(err)
			}
			data, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != 200 || strings.Contains(string(data), `"isError":true`) {
				b.Fatalf("%d %s", response.StatusCode, data)
			}
		}
	}
	alone := serve(b, "")
	b.Run("alone", func(b *testing.B) { call(b, alone) })
	first := serve(b, clusterAt(n.URL, clusterKey))
	serve(b, clusterAt(n.URL, clusterKey))
	b.Run("cluster", func(b *testing.B) { call(b, first) })
}

// TestCluster_End: when a client gets the answer to the DELETE of its session, no replica serves the session any more. This holds
// also for a replica that has an open stream of the session.
func TestCluster_End(t *testing.T) {
	mcptest.NoLeaks(t)
	one, _ := workshop(t, everybody, clusterAt(mcptest.StartNATS(t).URL, clusterKey))
	two := serving(t, one.cfg)
	meet(t, one, two)
	for i := range 30 {
		here := one.visitor(t, "alice", legacyEra, false)
		here.ask(t, "/mcp", "ping", "")
		there := *here
		there.endpoint = two
		id := map[string]string{"Mcp-Session-Id": here.sessions["/mcp"]}
		var stream *http.Response
		if i%2 == 0 { // the other replica has an open stream of the session
			var err error
			if stream, err = there.send(t.Context(), "GET", "/mcp", "", id); err != nil || stream.StatusCode != 200 {
				t.Fatal(err)
			}
			defer stream.Body.Close()
		}
		if status, said, _ := here.http(t, "DELETE", "/mcp", "", id); status != 200 {
			t.Fatalf("the end: %d %s", status, said)
		}
		if said := there.ask(t, "/mcp", "ping", ""); !strings.HasPrefix(said, "404 ") {
			t.Fatalf("after the end, the other replica answers %s", said)
		}
		if stream == nil {
			continue
		}
		if _, err := io.ReadAll(stream.Body); err != nil { // returns only if the stream has ended
			t.Error(err)
		}
	}
}
