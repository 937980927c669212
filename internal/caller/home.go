package caller

import (
	"context"
	"fmt"
)

// Home identifies a program whose requests are clients of their own, as the modern era over HTTP has no sessions. Requests
// with the same home share their sessions with PerClient servers.
type Home struct {
	// Key identifies the program: the principal, else the connection, with the client's name and capabilities. The
	// capabilities are part of it because a session declares them once.
	Key string
	// Owner is the principal or the connection alone. One owner may claim any number of names.
	Owner string
	// Life ends with the connection; nil if the home belongs to a principal.
	Life context.Context
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
	home := &Home{}
	switch {
	case c.Principal != nil:
		home.Owner = "principal " + c.Principal.Key()
	case connection != nil:
		home.Owner, home.Life = fmt.Sprint("connection ", connection.ID), connection.Life
	default:
		return next
	}
	home.Key = fmt.Sprintf("%q %q %s", home.Owner, c.Name, c.Relayed())
	next.Home = home
	return next
}

// HomeKey identifies the client whose sessions with PerClient servers c uses: its home, else c itself; empty for a nil client.
func (c *Client) HomeKey() string {
	switch {
	case c == nil:
		return ""
	case c.Home != nil:
		return c.Home.Key
	}
	return c.ID
}

// Remembered returns what a session may remember of c after its request: a client at home cannot be reached then.
func (c *Client) Remembered() *Client {
	if c.Home == nil {
		return c
	}
	next := *c
	next.ID, next.Peer, next.Headers, next.Request = c.Home.Key, "", nil, nil
	return &next
}
