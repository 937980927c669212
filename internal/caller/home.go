package caller

import (
	"context"
	"fmt"
	"sync"
)

// Home identifies a client program. It is needed because modern requests over HTTP have no session, so each request of a program is
// a separate [Client]. Requests with the same home share their sessions with PerClient servers. A program is identified by its name
// and capabilities, and by its principal or, without a principal, by its connection. The capabilities are part of it because mcpx
// declares them only once in each session with a server. Several goroutines may use a Home at the same time.
type Home struct {
	of          Client
	ofPrincipal bool // true for the home that all programs of the principal share
	connection  *Connection
	once        sync.Once
	key, owner  string
}

// Key returns the key of the home, which is the same for all requests of the program.
func (h *Home) Key() string {
	h.once.Do(func() { // computed only now, because most requests do not need the key
		if h.owner = "principal " + h.of.Principal.Key(); h.of.Principal == nil {
			h.owner = fmt.Sprint("connection ", h.connection.ID)
		}
		if h.key = fmt.Sprintf("%q", h.owner); !h.ofPrincipal {
			h.key += fmt.Sprintf(" %q %s", h.of.Name, h.of.Relayed())
		}
	})
	return h.key
}

// Owner returns a key for the principal or, without a principal, for the connection. Unlike Key, it does not contain the name of
// the program, because a client can use any number of names.
func (h *Home) Owner() string {
	h.Key()
	return h.owner
}

// Connection returns the id of the connection; 0 if the home belongs to a principal.
func (h *Home) Connection() uint64 {
	if h.of.Principal != nil {
		return 0
	}
	return h.connection.ID
}

// At returns the home that the same program has on an earlier connection, whose ID is connection. With this home, a request over
// the connection of h finds the sessions that the program opened over the earlier connection, and that end with it. If there are
// none any more, the request opens new sessions, which end with the connection of h.
func (h *Home) At(connection uint64) *Home {
	return &Home{of: h.of, connection: &Connection{ID: connection, Life: h.connection.Life}}
}

// Life returns a context that ends with the connection; nil if the home belongs to a principal.
func (h *Home) Life() context.Context {
	if h.of.Principal != nil {
		return nil
	}
	return h.connection.Life
}

// Connection is a client's connection over HTTP. Its ID is unique within this process.
type Connection struct {
	ID   uint64
	Life context.Context // ends with the connection
}

type connectionKey struct{}

// Over returns a context for the requests that come over the connection c.
func Over(ctx context.Context, c *Connection) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// ConnectionOf returns the connection of the request that ctx belongs to; nil if it is unknown.
func ConnectionOf(ctx context.Context) *Connection {
	c, _ := ctx.Value(connectionKey{}).(*Connection)
	return c
}

// AtHome returns a copy of c, the sender of one request, with its Home. The home belongs to the principal or, without a principal,
// to the connection. connection is nil if the connection is unknown or may serve several clients. Then a client without a principal
// gets no home.
func (c *Client) AtHome(connection *Connection) Client {
	next := *c
	if c.Principal != nil || connection != nil {
		next.Home = &Home{of: *c, connection: connection}
	}
	return next
}

// IsPrincipal reports whether c represents a principal and not a client program; see [Client.AsPrincipal].
func (c *Client) IsPrincipal() bool { return c != nil && c.Home != nil && c.Home.ofPrincipal }

// PrincipalHomeKey returns a key for the principal of c. Servers with one session for each principal use it as the key of that
// session. Without a principal it is empty. It is never equal to the HomeKey of a client program.
func (c *Client) PrincipalHomeKey() string {
	if c.On() == nil {
		return ""
	}
	return HomeKeyOfPrincipal(c.Principal.ID)
}

// HomeKeyOfPrincipal returns what PrincipalHomeKey returns for clients whose principal has this ID.
func HomeKeyOfPrincipal(id string) string { return fmt.Sprintf("%q", "principal "+id) }

// HomeKey returns a key for the owner of the sessions that c has with PerClient servers: the home of c or, if c has none, c
// itself. The key is empty for a nil client.
func (c *Client) HomeKey() string {
	switch {
	case c == nil:
		return ""
	case c.Home != nil:
		return c.Home.Key()
	}
	return c.ID
}

// Remembered returns what a session with a server may keep of c when the request of c has ended. If c has a home, this is a copy of
// c without Peer, Headers and Request, whose ID is the key of the home. Otherwise it is c itself.
func (c *Client) Remembered() *Client {
	if c.Home == nil {
		return c
	}
	next := *c
	next.ID, next.Peer, next.Headers, next.Request = c.Home.Key(), "", nil, nil
	return &next
}
