package httpd

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// connections is a listener that bounds its connections, as each, even a silent one, uses memory and a descriptor.
// Connections over the bound wait in the system's queue until others end; silent ones end soon by their timeouts. A
// second bound, per address, is for connections without an authenticated request so far: above it, new ones are
// closed at once.
type connections struct {
	net.Listener
	slots     chan struct{} // holds one element per connection; nil = no bound
	ofAddress func() int    // the bound for one address; 0 = no bound
	ended     chan struct{} // closed by Close
	once      sync.Once

	mu      sync.Mutex
	unknown map[netip.Addr]int // connections without an authenticated request
}

func (o *Options) connections(listener net.Listener) *connections {
	l := &connections{Listener: listener, ended: make(chan struct{}), unknown: make(map[netip.Addr]int)}
	if most, _ := o.Limits.Connections(); most > 0 {
		l.slots = make(chan struct{}, most)
	}
	l.ofAddress = func() int {
		if o.Identity.Options() == nil {
			return 0
		}
		_, most := o.Limits.Connections()
		return most
	}
	return l
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
		case <-l.ended:
			return nil, net.ErrClosed
		}
	}
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			l.leave()
			return nil, err
		}
		c := &connection{Conn: accepted, of: l, address: addressOf(accepted.RemoteAddr().String())}
		if l.enter(c) {
			return c, nil
		}
		accepted.Close()
	}
}

// Close implements net.Listener.
func (l *connections) Close() error {
	l.once.Do(func() { close(l.ended) })
	return l.Listener.Close()
}

// enter counts a connection, and reports false if its address has too many.
func (l *connections) enter(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.ofAddress(); most > 0 && l.unknown[c.address] >= most {
		return false
	}
	l.unknown[c.address]++
	return true
}

func (l *connections) leave() {
	if l.slots != nil {
		<-l.slots
	}
}

// connection is a connection of connections, until Close.
type connection struct {
	net.Conn
	of      *connections
	address netip.Addr
	known   atomic.Bool // an authenticated request came over it, or it is closed
	once    sync.Once
}

// know notes that an authenticated request came over the connection, which may be nil.
func (c *connection) know() {
	if c == nil || c.known.Load() || !c.known.CompareAndSwap(false, true) {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.unknown[c.address]--; c.of.unknown[c.address] == 0 {
		delete(c.of.unknown, c.address)
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.know()
		c.of.leave()
	})
	return c.Conn.Close()
}

// CloseWrite lets net/http close a connection in such a way that the client can read the last answer.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

// withConnection adds the connection to the context of its requests ([http.Server.ConnContext]).
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secret, ok := c.(interface{ NetConn() net.Conn }); ok { // over TLS
		c = secret.NetConn()
	}
	own, _ := c.(*connection)
	return context.WithValue(ctx, connectionKey{}, own)
}

// connectionOf returns the connection of a request; nil if unknown.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
