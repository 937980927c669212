package httpd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// bounded serves the whole of mcpx with one upstream, which runs in another process, to two principals, whose tokens
// are mcpx_a and mcpx_b. It returns the address.
func bounded(b *testing.B, o conf.Limits) string {
	b.Helper()
	command, args, env := mcptest.Spec{}.Stdio(b)
	spec := upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.Stdio, Launch: transport.Launch{Command: command, Args: args}}}
	for variable, value := range env {
		spec.Launch.Env = append(spec.Launch.Env, variable+"="+value)
	}
	l := limits.New(o)
	r := registry.New([]registry.Server{{Spec: spec}}, registry.Options{SessionLimit: l.ServerSession})
	e := executor.New(r, executor.Options{TOON: true, TypeScript: true})
	r.Use(e.Chain(nil, l.Limit)...)
	two := view.NewTwoTools(r, e, view.Options{})
	f := front.New(two, front.Options{Version: "1", Admission: l})
	r.Start()
	r.WaitTried(context.Background())
	listener, err := Listen(context.Background(), "127.0.0.1:0", false)
	if err != nil {
		b.Fatal(err)
	}
	v := verifierOf(guardedBy(b, "", "a", "b"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { // ends when cancel is called
		ended <- Serve(ctx, listener, Options{Endpoint: f, Identity: v.Verifier, Limits: l, Logger: slog.New(slog.DiscardHandler)})
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
		f.Close()
		two.Close()
		r.Close(time.Second)
	})
	return listener.Addr().String()
}

// attacks are what hostile clients do. Each of the connections calls do over and over until ctx ends.
var attacks = []struct {
	name        string
	connections int
	do          func(ctx context.Context, c net.Conn, in *bufio.Reader) error
}{
	{"forged tokens", 50, send("Authorization: Bearer mcpx_forged", ping)},
	{"a principal over its limits", 20, send("Authorization: Bearer mcpx_b\r\nMcp-Protocol-Version: "+modernVersion+"\r\nMcp-Method: tools/call\r\nMcp-Name: exec", echoStart+meta+","+echoRest)},
	{"nested bodies", 10, send("Authorization: Bearer mcpx_b", strings.Repeat("[", 100_000))},
	{"large bodies", 4, send("Authorization: Bearer mcpx_b", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("x", 4<<20)+`"}}`)},
	{"claims too large", 20, func(ctx context.Context, c net.Conn, in *bufio.Reader) error {
		fmt.Fprint(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer mcpx_b\r\nContent-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n")
		return answered(in)
	}},
	{"half headers", 300, func(ctx context.Context, c net.Conn, _ *bufio.Reader) error {
		fmt.Fprint(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ")
		<-ctx.Done()
		return ctx.Err()
	}},
	{"half bodies", 300, func(ctx context.Context, c net.Conn, _ *bufio.Reader) error {
		fmt.Fprint(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer mcpx_b\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")
		<-ctx.Done()
		return ctx.Err()
	}},
}

// send returns a function that sends a message and reads the answer.
func send(header, body string) func(context.Context, net.Conn, *bufio.Reader) error {
	request := rawRequest(body, header)
	return func(_ context.Context, c net.Conn, in *bufio.Reader) error {
		if _, err := c.Write(request); err != nil {
			return err
		}
		return answered(in)
	}
}

func answered(in *bufio.Reader) error {
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// attack opens this many connections, and calls do on each of them again and again until the caller calls end. end returns how
// often do was called.
func attack(addr string, connections int, do func(context.Context, net.Conn, *bufio.Reader) error) (end func() (rounds int)) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var all sync.WaitGroup
	rounds := 0
	for range connections {
		all.Go(func() { // ends when cancel is called
			for ctx.Err() == nil {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				closing := context.AfterFunc(ctx, func() { c.Close() })
				for in := bufio.NewReader(c); err == nil && ctx.Err() == nil; {
					if err = do(ctx, c, in); err == nil {
						mu.Lock()
						rounds++
						mu.Unlock()
					}
				}
				closing()
				c.Close()
			}
		})
	}
	return func() int {
		cancel()
		all.Wait()
		return rounds
	}
}

// BenchmarkBeside measures the calls of a client that makes one every 5 ms, with and without hostile clients at the
// same time. The hostile clients run on the same machine, so the result includes the time that their own work takes.
func BenchmarkBeside(b *testing.B) {
	addr := bounded(b, conf.Limits{AddressRequests: 100, AddressConnections: 1000, Principal: conf.Quota{
		CallsPerMinute: 30_000, Burst: 500, RequestsPerSecond: 1000, ConcurrentCalls: 256, BodyBytes: 256 << 20, BodyPace: 4 << 20, Pace: 5000,
	}})
	good := rawRequest(echoStart+meta+","+echoRest, "Authorization: Bearer mcpx_a", "Mcp-Protocol-Version: "+modernVersion, "Mcp-Method: tools/call", "Mcp-Name: exec")
	beside := func(name string, which ...int) {
		b.Run(name, func(b *testing.B) {
			client := rawConnect(b, addr)
			var ends []func() int
			for _, i := range which {
				ends = append(ends, attack(addr, attacks[i].connections, attacks[i].do))
			}
			took := make([]time.Duration, 0, b.N)
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			began := time.Now()
			for b.Loop() {
				<-pace.C
				began := time.Now()
				client.do(b, good, false)
				took = append(took, time.Since(began))
			}
			lasted, rounds := time.Since(began), 0
			for _, end := range ends {
				rounds += end()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(rounds)/lasted.Seconds(), "hostile/s")
			b.ReportMetric(0, "ns/op")
		})
	}
	beside("none")
	all := make([]int, len(attacks))
	for i := range attacks {
		beside(attacks[i].name, i)
		all[i] = i
	}
	beside("all", all...)
	beside("none again")
}
