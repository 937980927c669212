package httpd

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"

	"mcpx/internal/base/conf"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
)

// crowd is an in-memory listener. Its connections can pretend to come from any address.
type crowd struct {
	ended chan struct{}
	conns chan net.Conn
}

// from is the server's end of a connection that pretends to come from address.
type from struct {
	net.Conn
	address net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.address }

// Accept implements net.Listener.
func (l *crowd) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *crowd) Close() error {
	close(l.ended)
	return nil
}

// Addr implements net.Listener.
func (l *crowd) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 99), Port: 80} }

// accept returns a new connection that a listener around l has accepted.
func (l *crowd) accept(t *testing.T, from *connections) *connection {
	t.Helper()
	go l.dial(t, "192.0.2.1") // ends when Accept returns
	c, err := from.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*connection)
}

// dial opens a connection that pretends to come from address. It is closed when the test ends.
func (l *crowd) dial(t *testing.T, address string) net.Conn {
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	l.conns <- from{far, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}
	return near
}

const (
	token    = "Authorization: Bearer mcpx_a\r\n"
	mcpHead  = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
	halfHead = "POST /mcp HTTP/1.1\r\nHost: loc"
	probing  = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
)

// ask sends a request over a connection and returns the status, or "closed".
func ask(c net.Conn, request string) string {
	_, _ = io.WriteString(c, request+"\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "closed"
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return strconv.Itoa(answer.StatusCode)
}

// guardedCrowd serves connections of a crowd, with limits, until stop is called. stop fails the test if Serve
// returned an error.
func guardedCrowd(t *testing.T, o conf.Limits) (l *crowd, stop func()) {
	l = &crowd{ended: make(chan struct{}), conns: make(chan net.Conn)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	v := verifierOf(guardedBy(t, "", "a"))
	go func() { // ends when stop is called
		served <- Serve(ctx, l, Options{
			Endpoint: whoami, Identity: v.Verifier, Logger: slog.New(slog.DiscardHandler), Limits: limits.New(o),
		})
	}()
	return l, func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// TestConnections_HalfOpen: however many half-open connections strangers hold, from one address or from many,
// requests with a valid token and probes are served, even from the same address, and connections of good clients stay
// open. The number of strangers stays bounded nevertheless.
func TestConnections_HalfOpen(t *testing.T) {
	const most, ofAddress = 80, 10 // a quarter of most, so 20, may be strangers
	one := func(int) string { return "192.0.2.1" }
	for name, address := range map[string]func(int) string{
		"one address": one, "many addresses": func(i int) string { return fmt.Sprintf("198.51.%d.%d", i/250, i%250) },
		"this machine": func(int) string { return "127.0.0.1" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, stop := guardedCrowd(t, conf.Limits{Connections: most, AddressConnections: ofAddress})
				good := l.dial(t, address(0))
				if got := ask(good, mcpHead+token); got != "200" {
					t.Fatal(got)
				}
				prober := l.dial(t, "127.0.0.1")
				if got := ask(prober, probing); got != "200" {
					t.Fatal(got)
				}
				ended := make(chan struct{}, 1000)
				attack := func() {
					for i := range 200 {
						c := l.dial(t, address(i))
						go func() { // ends when the connection is closed
							_, _ = io.WriteString(c, halfHead)
							_, _ = io.Copy(io.Discard, c)
							ended <- struct{}{}
						}()
					}
					synctest.Wait()
				}
				attack()
				if open := 200 - len(ended); open > 20 {
					t.Errorf("%d half-open connections", open)
				}
				for _, place := range []string{address(0), address(7), "127.0.0.1", "203.0.113.9"} {
					if got := ask(l.dial(t, place), mcpHead+token); got != "200" {
						t.Errorf("a good token from %s: %s", place, got)
					}
					if got := ask(l.dial(t, place), probing); got != "200" {
						t.Errorf("a probe from %s: %s", place, got)
					}
				}
				attack()
				if got := ask(good, mcpHead+token); got != "200" {
					t.Errorf("the good client: %s", got)
				}
				if got := ask(prober, probing); got != "200" && name != "this machine" {
					t.Errorf("the probe of this machine: %s", got)
				}
				stop()
			})
		})
	}
}

// TestConnections: if there are too many proved connections, a request over another connection waits until one of
// them ends; probes are served meanwhile. A connection that ends while waiting takes no slot.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop := guardedCrowd(t, conf.Limits{Connections: 2, AddressConnections: 2})
		const place = "192.0.2.1"
		known := []net.Conn{l.dial(t, place), l.dial(t, place)}
		for _, c := range known {
			if got := ask(c, mcpHead+token); got != "200" {
				t.Fatal(got)
			}
		}
		answers := make(chan string, 2)
		third, fourth := l.dial(t, place), l.dial(t, place)
		for _, c := range []net.Conn{third, fourth} {
			go func() { answers <- ask(c, mcpHead+token) }() // ends when the answer has come
			synctest.Wait()
		}
		if len(answers) > 0 {
			t.Errorf("the third: %s", <-answers)
		}
		if got := ask(l.dial(t, place), probing); got != "200" { // the third connection is closed to make room
			t.Errorf("a probe: %s", got)
		}
		if got := <-answers; got != "closed" {
			t.Errorf("the third: %s", got)
		}
		known[0].Close()
		if got := <-answers; got != "200" {
			t.Errorf("the fourth, after the first: %s", got)
		}
		if got := ask(known[1], mcpHead+token); got != "200" {
			t.Errorf("the second: %s", got)
		}
		stop()
	})
}

// TestConnections_Certificate: a client certificate proves a connection, even if tokens decide who the principal is. Who opens many
// connections with one certificate leaves places for other certificates.
func TestConnections_Certificate(t *testing.T) {
	mcptest.NoLeaks(t)
	ours := newAuthority(t, "ours")
	files := tlsFiles(t)
	files.Identity = false
	writePair(t, files, ours.forServer(t))
	write(t, files.ClientCA, ours.pem())
	certificates, err := LoadTLS(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	v := verifierOf(guardedBy(t, "", "a"))
	s := serve(t, Options{
		Endpoint: whoami, Identity: v.Verifier, TLS: certificates, Limits: limits.New(conf.Limits{Connections: 20, AddressConnections: 2}),
	})
	roots := x509.NewCertPool()
	roots.AddCert(ours.certificate)
	with := func(pair tls.Certificate) net.Conn {
		return tls.Client(s.dial(t), &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{pair}})
	}
	pair := ours.forClient(t, func(c *x509.Certificate) { c.DNSNames = []string{"a.example.com"} })
	client := with(pair)
	if got := ask(client, probing); got != "200" {
		t.Fatal(got)
	}
	for range 10 {
		_, _ = s.dial(t).Write([]byte{22})
	}
	mcptest.WaitFor(t, "another client", patience, func() bool {
		return ask(with(pair), probing) == "200"
	})
	for range 3 {
		if got := ask(client, probing); got != "200" {
			t.Errorf("the proved one: %s", got)
		}
	}
	for many := 0; ask(with(pair), probing) == "200"; many++ {
		if many == 20 {
			t.Fatal("one certificate has all places")
		}
	}
	another := ours.forClient(t, func(c *x509.Certificate) { c.DNSNames = []string{"b.example.com"} })
	if got := ask(with(another), probing); got != "200" {
		t.Errorf("another certificate: %s", got)
	}
}

// TestConnections_ProvedOnce: requests that prove the same connection at the same time take one slot together. When
// the connection is closed, the slot is free for another connection.
func TestConnections_ProvedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := &crowd{ended: make(chan struct{}), conns: make(chan net.Conn)}
		v := verifierOf(guardedBy(t, "", "a"))
		o := &Options{Identity: v.Verifier, Limits: limits.New(conf.Limits{Connections: 2})}
		l := o.connections(crowd)
		defer l.Close()
		full, twice, other := crowd.accept(t, l), crowd.accept(t, l), crowd.accept(t, l)
		if !full.prove(t.Context(), "a") || !l.take(t.Context(), nil) {
			t.Fatal("no place")
		}
		proved := make(chan bool, 2)
		for range 2 {
			go func() { proved <- twice.prove(t.Context(), "a") }()
		}
		synctest.Wait()
		full.Close()
		l.leave()
		for range 2 {
			if !<-proved {
				t.Error("a request did not prove its connection")
			}
		}
		if n := len(l.slots); n != 1 {
			t.Errorf("one connection has %d places", n)
		}
		for _, c := range []*connection{twice, other} {
			if !c.prove(t.Context(), "a") {
				t.Error("not proved")
			}
			c.Close()
		}
		if n := len(l.slots); n != 0 || len(l.of) != 0 {
			t.Errorf("%d places are never given back; %v", n, l.of)
		}
	})
}

// TestConnections_Kept: a principal that opens as many connections as it can leaves places for others.
func TestConnections_Kept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := &crowd{ended: make(chan struct{}), conns: make(chan net.Conn)}
		v := verifierOf(guardedBy(t, "", "a"))
		o := &Options{Identity: v.Verifier, Limits: limits.New(conf.Limits{Connections: 20})}
		l := o.connections(crowd)
		defer l.Close()
		var greedy []*connection
		for range 20 {
			if c := crowd.accept(t, l); c.prove(t.Context(), "greedy") {
				greedy = append(greedy, c)
			}
		}
		if len(greedy) != 18 {
			t.Errorf("one principal has %d of 20 places", len(greedy))
		}
		for range 2 {
			if !crowd.accept(t, l).prove(t.Context(), "another") {
				t.Error("another has no place")
			}
		}
		greedy[0].Close()
		if c := crowd.accept(t, l); c.prove(t.Context(), "greedy") || !c.prove(t.Context(), "third") {
			t.Error("the place that became free is not for others")
		}
	})
}

// TestConnections_Files: where the process may have fewer open files, the bounds of connections are lower.
func TestConnections_Files(t *testing.T) {
	for _, test := range []struct{ most, room, want int }{{20_000, 512, 512}, {100, 512, 100}, {0, 512, 0}, {20_000, 0, 20_000}} {
		if got := fitting(test.most, test.room); got != test.want {
			t.Errorf("%d with room for %d: %d, want %d", test.most, test.room, got, test.want)
		}
	}
}
