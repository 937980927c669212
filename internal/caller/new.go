package caller

import (
	"context"
	"encoding/json"
	"net/http"
)

// All clients are made in this file, so that a new field of [Client] is filled in one place.

// Place is where a client is connected: what all of its messages have in common.
type Place struct {
	// ID, Peer, View, Transparent, Apps, Notify and Request are the fields of [Client].
	ID, Peer, View    string
	Transparent, Apps bool
	Notify            func(method string, params json.RawMessage)
	Request           Ask
	// Principal and Headers come from the HTTP request that opened the connection.
	Principal *Principal
	Headers   http.Header
}

// Ask is the type of [Client.Request].
type Ask func(ctx context.Context, method string, params json.RawMessage, progress func(params json.RawMessage)) (json.RawMessage, error)

// Said is what a client says about itself: a legacy client in initialize, a modern client in each message.
type Said struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
}

// New makes the client at a place. A legacy client has said nothing before initialize.
func New(at Place, said Said) Client {
	c := Client{
		ID: at.ID, Peer: at.Peer, View: at.View, Transparent: at.Transparent, Apps: at.Apps, Principal: at.Principal, Headers: at.Headers,
		Notify: at.Notify, Request: at.Request,
	}
	return c.Saying(said)
}

// Saying returns c with what it says about itself now. A modern client gets no requests: questions travel in the answers to
// its own requests (SEP-2322).
func (c *Client) Saying(said Said) Client {
	next := *c
	next.Name, next.Version, next.Capabilities = said.Name, said.Version, said.Capabilities
	if next.Modern() {
		next.Request = nil
	}
	return next
}

// Sending returns c as the sender of one HTTP request: other requests of the session may carry other headers, and a renewed
// token may carry other rights.
func (c *Client) Sending(p *Principal, headers http.Header) Client {
	next := *c
	next.Principal, next.Headers = p, headers
	return next
}

// Asked returns c with ask in place of its connection for requests.
func (c *Client) Asked(ask Ask) *Client {
	next := *c
	next.Request = ask
	return &next
}

// Viewer returns a client that sees what c sees, and can do nothing else.
func (c *Client) Viewer() *Client { return &Client{Principal: c.Principal, View: c.View} }
