package caller

import (
	"context"
	"fmt"
	"sync"
)

// Home identifies a program whose requests are clients of their own, as the modern era over HTTP has no sessions. Requests
// with the same home share their sessions with PerClient servers. The program is known by its principal, else by its
// connection, and by its name and capabilities: a session declares these once. Safe for concurrent use.
type Home struct {
	of         Client
	connection *Connection
	once       sync.Once
	key, owner string
}

// Key is the same for all requests of the program.
func (h *Home) Key() string {
	h.once.Do(func() { // most requests do not need it
		if h.owner = "principal " + h.of.Principal.Key(); h.of.Principal == nil {
			h.owner = fmt.Sprint("connection ", h.connection.ID)
		}
		h.key = fmt.Sprintf("%q %q %s", h.owner, h.of.Name, h.of.Relayed())
	})
	return h.key
}

// Owner is the principal or the connection alone. One owner may claim any number of names.
func (h *Home) Owner() string {
	h.Key()
	return h.owner
}

// Life ends with the connection; nil if the home belongs to a principal.
func (h *Home) Life() context.Context {
	if h.of.Principal != nil {
		return nil
	}
	return h.connection.Life
}

// Connection is a client's connection over HTTP. No two connections of a process have the same ID.
type Connection struct {
	ID   uint64
	Life context.Context // ends with the connection
}

type connectionKey struct{}

// Over returns a context for the requests of a connection.
func Over(ctx context.Context, c *Connection) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// ConnectionOf returns the connection of the request that ctx belongs to; nil if it is unknown.
func ConnectionOf(ctx context.Context) *Connection {
	c, _ := ctx.Value(connectionKey{}).(*Connection)
	return c
}

// AtHome returns c, the sender of one request, with its home. Without a principal that is the connection; if that is nil
// too, because it is unknown or may serve several clients, c has no home.
func (c *Client) AtHome(connection *Connection) Client {
	next := *c
	if c.Principal != nil || connection != nil {
		next.Home = &Home{of: *c, connection: connection}
	}
	return next
}

// HomeKey identifies the client whose sessions with PerClient servers c uses: its home, else c itself; empty for a nil client.
func (c *Client) HomeKey() string {
	switch {
	case c == nil:
		return ""
	case c.Home != nil:
		return c.Home.Key()
	}
	return c.ID
}

// Remembered returns what a session may remember of c after its request: a client at home cannot be reached then.
func (c *Client) Remembered() *Client {
	if c.Home == nil {
		return c
	}
	next := *c
	next.ID, next.Peer, next.Headers, next.Request = c.Home.Key(), "", nil, nil
	return &next
}
