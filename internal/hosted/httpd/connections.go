package httpd

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"mcpx/internal/caller"
)

// connections is a listener that bounds the number of open connections, because each connection uses memory and a file descriptor,
// even if it is silent.
//
// A connection is a stranger until it is proved: until a request with a valid credential has come over it, or its client
// certificate was verified. Strangers never keep other connections out. If there are too many strangers, the one that has been
// silent for the longest time is closed. So good clients and probes can always connect, even if an attacker holds many half-open
// connections. For strangers on this machine there is only the bound per address.
//
// Proved connections have a bound of their own, the number of slots. If all slots are taken, the next request that would prove a
// connection waits. The last tenth of the slots is only for principals with few connections, so that no principal can keep out all
// others. Without auth, all connections count as proved, and Accept waits for a slot.
type connections struct {
	net.Listener
	slots        chan struct{} // holds one element per proved connection; nil means no bound
	maxStrangers int           // how many strangers from other machines there may be; 0 means no bound
	perAddress   func() int    // returns how many strangers one address may have; 0 means no bound
	auth         func() bool   // whether credentials are needed
	ended        chan struct{} // closed by Close
	once         sync.Once
	last         atomic.Uint64 // the ID of the newest connection

	mu        sync.Mutex
	strangers list.List // *connection of strangers from other machines; the one silent for longest is first
	addresses map[netip.Addr]*list.List
	of        map[string]int // how many proved connections, and connections being proved, each principal has
}

func (o *Options) connections(listener net.Listener) *connections {
	l := &connections{
		Listener: listener, ended: make(chan struct{}), addresses: make(map[netip.Addr]*list.List), of: make(map[string]int),
	}
	files := openFiles()
	if set, ofAddress := o.Limits.Connections(); set > 0 {
		most := fitting(set, files/2)
		if most < set {
			o.Logger.Warn("the limit of open files (ulimit -Hn) is too low for limits.connections; fewer clients can connect",
				"files", files, "limits.connections", set, "used", most)
		}
		l.slots = make(chan struct{}, most)
		l.maxStrangers = fitting(max(most/4, ofAddress), files/4)
	}
	l.auth = func() bool { return o.Identity.Options() != nil }
	l.perAddress = func() int {
		_, most := o.Limits.Connections()
		return fitting(most, files/8)
	}
	return l
}

// fitting returns the smaller one of two bounds of connections. most is a bound of the config; 0 means no bound. room is the part
// of the open files of this process that may be used for connections, because sessions with servers need files too. If room is 0,
// it is not known, and fitting returns most.
func fitting(most, room int) int {
	if room == 0 {
		return most
	}
	return min(most, room)
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, of: l}
	c.caller.ID = l.last.Add(1)
	c.caller.Life, c.end = context.WithCancel(context.Background())
	if l.auth() {
		l.admit(c)
		return c, nil
	}
	if !l.take(context.Background(), nil) {
		c.end()
		accepted.Close()
		return nil, net.ErrClosed
	}
	c.proved.Store(true)
	return c, nil
}

// Close implements net.Listener.
func (l *connections) Close() error {
	l.once.Do(func() { close(l.ended) })
	return l.Listener.Close()
}

// take waits for a slot for a proved connection. It returns false if ctx ends, gone is closed or the listener is closed before it
// gets one.
func (l *connections) take(ctx context.Context, gone <-chan struct{}) bool {
	if l.slots == nil {
		return true
	}
	select {
	case l.slots <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-gone:
	case <-l.ended:
	}
	return false
}

// claim counts a connection that a principal is about to prove. It returns false if only the last tenth of the slots is left, and
// the principal has more than one connection and more than a hundredth of all slots.
func (l *connections) claim(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := cap(l.slots)
	if kept := most / 10; kept > 0 && len(l.slots) >= most-kept && l.of[who] > max(1, most/100) {
		return false
	}
	l.of[who]++
	return true
}

// unclaim subtracts a connection that claim has counted. The caller holds mu.
func (l *connections) unclaim(who string) {
	if l.of[who]--; l.of[who] == 0 {
		delete(l.of, who)
	}
}

// admit adds a stranger. If there are then too many strangers, it closes old ones.
func (l *connections) admit(c *connection) {
	remote := c.RemoteAddr().String()
	c.address = AddressOf(remote)
	host, _ := netip.ParseAddrPort(remote)
	here := host.Addr().Unmap().IsLoopback()
	if here {
		c.address = netip.IPv6Unspecified() // a single address for all connections from this machine
	}
	var over []*connection
	l.mu.Lock()
	for most, of := l.perAddress(), l.addresses[c.address]; most > 0 && of != nil && of.Len() >= most; {
		over = append(over, l.forget(of.Front().Value.(*connection)))
	}
	for !here && l.maxStrangers > 0 && l.strangers.Len() >= l.maxStrangers {
		over = append(over, l.forget(l.strangers.Front().Value.(*connection)))
	}
	of := l.addresses[c.address]
	if of == nil {
		of = list.New()
		l.addresses[c.address] = of
	}
	c.ofAddress = of.PushBack(c)
	if !here {
		c.stranger = l.strangers.PushBack(c)
	}
	l.mu.Unlock()
	for _, one := range over {
		one.Close()
	}
}

// forget removes a connection from the lists of strangers, if it is in them, and returns the connection. The caller holds mu.
func (l *connections) forget(c *connection) *connection {
	if c.ofAddress != nil {
		of := l.addresses[c.address]
		if of.Remove(c.ofAddress); of.Len() == 0 {
			delete(l.addresses, c.address)
		}
	}
	if c.stranger != nil {
		l.strangers.Remove(c.stranger)
	}
	c.ofAddress, c.stranger = nil, nil
	return c
}

// connection is an accepted connection, until Close.
type connection struct {
	net.Conn
	of      *connections
	address netip.Addr
	proved  atomic.Bool // written while of.mu is held
	// Life ends with the connection. The context of a request cannot replace Life: that context notices the end of the connection
	// only when the body was read.
	caller caller.Connection
	end    context.CancelFunc // ends caller.Life

	// These fields are guarded by of.mu. ofAddress is the connection's element in its list in of.addresses, and stranger is its
	// element in of.strangers. Both are nil if the connection is not a stranger. For a connection from this machine, stranger is
	// always nil.
	ofAddress, stranger *list.Element
	closed              bool
	principal           string // who has proved the connection; empty without auth
}

// prove marks the connection as proved by a principal. For this it needs a slot. It returns false if the principal has too many
// connections, if no slot becomes free before ctx ends, or if the connection is closed. c may be nil; prove then returns true.
func (c *connection) prove(ctx context.Context, who string) bool {
	if c == nil || c.proved.Load() {
		return true
	}
	if !c.of.claim(who) {
		return false
	}
	taken := c.of.take(ctx, c.caller.Life.Done())
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if !taken || c.closed || c.proved.Load() { // while prove waited, c was closed or proved by another request
		if c.of.unclaim(who); taken {
			c.of.leave()
		}
		return taken && !c.closed
	}
	c.of.forget(c)
	c.principal = who
	c.proved.Store(true)
	return true
}

// noPlace answers a request whose connection cannot be proved, because it got no slot.
func noPlace(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many connections; try again", http.StatusServiceUnavailable)
}

// heard notes that the connection was not silent: a complete request header has come over it. c may be nil.
func (c *connection) heard() {
	if c == nil || c.proved.Load() {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.ofAddress != nil {
		c.of.addresses[c.address].MoveToBack(c.ofAddress)
	}
	if c.stranger != nil {
		c.of.strangers.MoveToBack(c.stranger)
	}
}

func (l *connections) leave() {
	if l.slots != nil {
		<-l.slots
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.end() // after the connection was closed: a request that still waits for a slot can no longer be answered
	c.of.mu.Lock()
	first := !c.closed
	c.closed = true
	c.of.forget(c)
	if first && c.principal != "" {
		c.of.unclaim(c.principal)
	}
	c.of.mu.Unlock()
	if first && c.proved.Load() {
		c.of.leave()
	}
	return c.Conn.Close()
}

// CloseWrite closes the sending half. net/http uses it so that the client can still read the last response.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

// withConnection adds the connection to the context of its requests ([http.Server.ConnContext]).
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secret, ok := c.(interface{ NetConn() net.Conn }); ok { // c is a TLS connection around the *connection
		c = secret.NetConn()
	}
	own, ok := c.(*connection)
	if ok {
		ctx = caller.Over(ctx, &own.caller)
	}
	return context.WithValue(ctx, connectionKey{}, own)
}

// connectionOf returns the connection of a request, or nil if it is unknown.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
