package caller

import (
	"context"
	"encoding/json"
	"net/http"
)

// Every Client is made in this file, so that a new field of [Client] needs to be filled only here.

// Place has what all messages of a client have in common, because it depends only on where the client is connected.
type Place struct {
	// ID, Peer, View, Transparent, Apps, Notify and Request mean the same as in a [Client].
	ID, Peer, View    string
	Transparent, Apps bool
	Notify            func(method string, params json.RawMessage)
	Request           Ask
	// Principal and Headers are from the HTTP request that opened the connection; nil on other transports.
	Principal *Principal
	Headers   http.Header
}

// Ask is a func that sends a request to a client and waits for the result; see [Client.Request].
type Ask func(ctx context.Context, method string, params json.RawMessage, progress func(params json.RawMessage)) (json.RawMessage, error)

// Said is what a client says about itself: a legacy client says it in initialize, a modern client in each message.
type Said struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
}

// New makes the client at a place. info is what the client has said about itself. It is empty for a legacy client before
// initialize.
func New(place Place, info Said) Client {
	c := Client{
		ID: place.ID, Peer: place.Peer, View: place.View, Transparent: place.Transparent, Apps: place.Apps, Principal: place.Principal,
		Headers: place.Headers, Notify: place.Notify, Request: place.Request,
	}
	return c.Saying(info)
}

// Saying returns a copy of c with said, which the client says about itself in its newest message. For a modern client, the copy has
// no Request: mcpx sends it no requests, but puts the questions of servers into the answers to the client's own requests
// (SEP-2322).
func (c *Client) Saying(said Said) Client {
	next := *c
	next.Name, next.Version, next.Capabilities = said.Name, said.Version, said.Capabilities
	if next.Modern() {
		next.Request = nil
	}
	return next
}

// Sending returns a copy of c as the sender of one HTTP request, with the principal and headers of this request. Other requests of
// the session may have different headers, and a renewed token may have different rights.
func (c *Client) Sending(p *Principal, headers http.Header) Client {
	next := *c
	next.Principal, next.Headers = p, headers
	return next
}

// Asked returns a copy of c to which requests are sent with ask, and not over the connection of c.
func (c *Client) Asked(ask Ask) *Client {
	next := *c
	next.Request = ask
	return &next
}

// AsPrincipal returns a client that represents the principal of c. This client owns the sessions with servers that all clients of
// the principal share. It is none of these clients itself, so it can be neither asked nor notified. c must have a principal.
func (c *Client) AsPrincipal() *Client {
	next := &Client{Principal: c.Principal}
	next.Home = &Home{of: *next, ofPrincipal: true}
	next.ID = next.Home.Key()
	return next
}

// Viewer returns a client that sees the same as c, but cannot be asked or notified.
func (c *Client) Viewer() *Client { return &Client{Principal: c.Principal, View: c.View} }
