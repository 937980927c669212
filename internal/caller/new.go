package caller

import (
	"context"
	"encoding/json"
	"net/http"
)

// All clients are made here, so that a new field of [Client] has one place to be filled.

// Place is where a client is connected: what its messages have in common.
type Place struct {
	// ID, Peer, View, Alone, Apps, Notify and Request are the fields of [Client].
	ID, Peer, View string
	Alone, Apps    bool
	Notify         func(method string, params json.RawMessage)
	Request        Ask
	// Principal and Headers are of the request over HTTP that opened the place.
	Principal *Principal
	Headers   http.Header
}

// Ask is the type of [Client.Request].
type Ask func(ctx context.Context, method string, params json.RawMessage, progress func(params json.RawMessage)) (json.RawMessage, error)

// Said is what a client says of itself: a legacy one in initialize, a modern one in each message.
type Said struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
}

// New makes the client at a place. A legacy one says nothing before initialize.
func New(at Place, said Said) Client {
	c := Client{
		ID: at.ID, Peer: at.Peer, View: at.View, Alone: at.Alone, Apps: at.Apps, Principal: at.Principal, Headers: at.Headers,
		Notify: at.Notify, Request: at.Request,
	}
	return c.Saying(said)
}

// Saying returns c as it names itself now. A modern client gets no requests: it is asked by the answers to its own
// (SEP-2322).
func (c *Client) Saying(said Said) Client {
	next := *c
	next.Name, next.Version, next.Capabilities = said.Name, said.Version, said.Capabilities
	if next.Modern() {
		next.Request = nil
	}
	return next
}

// Sending returns c as the sender of one request over HTTP: another one of the session may have other headers, and a
// renewed token other rights.
func (c *Client) Sending(p *Principal, headers http.Header) Client {
	next := *c
	next.Principal, next.Headers = p, headers
	return next
}

// Asked returns c as a client that is asked by ask, in place of its connection.
func (c *Client) Asked(ask Ask) *Client {
	next := *c
	next.Request = ask
	return &next
}

// Viewer returns a client that sees what c sees, and can do nothing else.
func (c *Client) Viewer() *Client { return &Client{Principal: c.Principal, View: c.View} }
