package mcptest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// ProxyMode is what a Proxy does with connections and the bytes on them.
type ProxyMode string

const (
	// ProxyPass forwards everything.
	ProxyPass ProxyMode = "pass"
	// ProxyRefuse resets new connections at once; open connections are not affected.
	ProxyRefuse ProxyMode = "refuse"
	// ProxyStall neither reads nor forwards: data waits until the mode changes.
	ProxyStall ProxyMode = "stall"
	// ProxyHalfOpen reads data from both sides and discards it, as if the other side had vanished. Connections stay
	// open.
	ProxyHalfOpen ProxyMode = "half open"
	// ProxyOneByte forwards one byte at a time, each in a TCP segment of its own.
	ProxyOneByte ProxyMode = "one byte"
)

// Proxy forwards TCP connections to a server, and breaks them when a test asks for it. It does not parse HTTP. A new
// mode also applies to open connections at once. Safe for concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup
	accepted atomic.Int64

	mu      sync.Mutex
	mode    ProxyMode
	changed chan struct{} // closed when mode changes
	pairs   map[*pair]struct{}
	closed  bool
}

// pair is one forwarded connection: the connection from the client and the connection to the server.
type pair struct {
	client, server net.Conn
	once           sync.Once
	done           chan struct{}
}

func (p *pair) close() {
	p.once.Do(func() {
		close(p.done)
		p.client.Close()
		p.server.Close()
	})
}

// NewProxy starts a proxy on a free port of 127.0.0.1. target is the server, as a URL or host:port. The proxy ends
// with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	p := &Proxy{target: hostOf(target), listener: l, mode: ProxyPass, changed: make(chan struct{}), pairs: map[*pair]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		l.Close()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// hostOf returns the host:port of a server. The parameter is a URL or already host:port.
func hostOf(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Host
	}
	return server
}

// to makes the proxy forward to another server.
func (p *Proxy) to(target string) {
	p.mu.Lock()
	p.target = hostOf(target)
	p.mu.Unlock()
	p.Set(ProxyPass)
}

// URL returns the URL of the server with its host replaced by the proxy's.
func (p *Proxy) URL(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// Addr returns the proxy's host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Accepted returns how many connections were made so far, including refused ones.
func (p *Proxy) Accepted() int { return int(p.accepted.Load()) }

// Set changes the mode.
func (p *Proxy) Set(mode ProxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	close(p.changed)
	p.changed = make(chan struct{})
}

// Cut closes all open connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pr := range p.pairs {
		pr.close()
	}
}

// accept accepts connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		p.mu.Lock()
		refuse := p.mode == ProxyRefuse
		p.mu.Unlock()
		if refuse {
			resetConn(client)
			continue
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve forwards one connection until both directions have ended.
func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		resetConn(client)
		return
	}
	pr := &pair{client: client, server: server, done: make(chan struct{})}
	defer pr.close()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.pairs[pr] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.pairs, pr)
		p.mu.Unlock()
	}()
	var both sync.WaitGroup
	both.Go(func() { p.pump(pr, server, client) })
	both.Go(func() { p.pump(pr, client, server) })
	both.Wait()
}

// pump forwards the bytes of one direction.
func (p *Proxy) pump(pr *pair, dst, src net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !p.forward(pr, dst, buf[:n]) {
			pr.close()
			return
		}
		if err == io.EOF {
			if c, ok := dst.(*net.TCPConn); ok && p.current() != ProxyHalfOpen {
				c.CloseWrite()
			}
			return
		}
		if err != nil {
			pr.close()
			return
		}
	}
}

func (p *Proxy) current() ProxyMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// forward sends bytes on in the current mode. It reports false if the connection has ended.
func (p *Proxy) forward(pr *pair, dst net.Conn, data []byte) bool {
	for len(data) > 0 {
		p.mu.Lock()
		mode, changed := p.mode, p.changed
		p.mu.Unlock()
		part := data
		switch mode {
		case ProxyHalfOpen:
			return true
		case ProxyStall:
			select {
			case <-changed:
			case <-pr.done:
				return false
			}
			continue
		case ProxyOneByte:
			part = data[:1]
		}
		n, err := dst.Write(part)
		data = data[n:]
		if err != nil {
			return false
		}
	}
	return true
}
