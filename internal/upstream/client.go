package upstream

import (
	"cmp"
	"context"
	"encoding/json"
)

// Client is who sends a request: one connection of one program or, where the
// protocol has no sessions, one request. front makes it; view, executor and
// upstream hand it on and change nothing in it. What belongs to a single request
// (its progress token, the level of its log messages) is not here. A nil *Client
// is nobody in particular.
type Client struct {
	// ID is unique to one client. A client without one uses shared sessions only.
	ID string
	// Name is the clientInfo.name that the client gave.
	Name string
	// Peer identifies the connection. Modern requests over HTTP have no session;
	// those of one connection share a Peer. Empty = ID.
	Peer string
	// Version is the protocol revision that the client speaks.
	Version string
	// Capabilities is the raw object that the client declared; nil where it
	// declared none.
	Capabilities json.RawMessage
	// Principal is on whose behalf the client acts; empty where nobody asked.
	Principal string
	// Notify sends a notification that belongs to no request. It does not block:
	// a client that does not read loses it. Nil where there is no way to the client
	// but the answer.
	Notify func(method string, params json.RawMessage)
	// Ask sends a request to the client and waits for its result, until ctx ends.
	// Nil where the transport cannot.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// peer is the same for requests that surely come from one program.
func (c *Client) peer() string {
	if c == nil {
		return ""
	}
	return cmp.Or(c.Peer, c.ID)
}
