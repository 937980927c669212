package upstream

import (
	"context"
	"net/http"

	"mcpx/internal/base/wire"
)

// Link carries messages between one session and its server. Its owner starts it once, and closes it.
type Link interface {
	// start lets the server speak. It is called once, before anything else.
	start(in incoming)
	// request sends one request and returns the response to it. Its error is
	// ctx's, or wraps errNotSent, errGone or what broke the link.
	request(ctx context.Context, r outgoing) (wire.Message, error)
	// notify sends a message that has no answer.
	notify(ctx context.Context, message []byte) error
	// agreed tells the link which revision was negotiated.
	agreed(version string)
	// listen opens the stream of a legacy session on which the server sends what
	// belongs to no request, where that has to be asked for: opened is called each
	// time that it is open, none when none is to be expected any more. It returns at
	// once; close ends it.
	listen(opened, none func())
	// traits say of what kind the link is.
	traits() traits
	// Life is the same for as long as the link is.
	Life() *Life
	// Evidence may be nil.
	Evidence() *Evidence
	// close ends the link and everything it started. Idempotent.
	close()
}

// traits are what a session needs to know of the kind of its link.
type traits struct {
	// oneStream: all messages take one way, which breaks for all or for none.
	oneStream bool
	// ownsProcess: the server ends with the link, and no network is between.
	ownsProcess bool
	// connectionPerRequest: an answer comes on the connection of its request, and what
	// breaks one says nothing of the others. In the modern era the end of that
	// connection cancels the request.
	connectionPerRequest bool
	// headers: a modern request says in HTTP headers what it asks for.
	headers bool
	// legacyOnly: the transport is older than the modern era.
	legacyOnly bool
	// sessionless: the server has given no session ID, so that one of the legacy era keeps nothing from one request to
	// the next.
	sessionless bool
}

// outgoing is one request on its way.
type outgoing struct {
	id      int64
	method  string
	message []byte
	// header has what HTTP needs beside the standard headers, may be nil.
	header http.Header
	// answered is called by the reader when it has the response, before it reads
	// on; may be nil.
	answered func()
}

// incoming takes what a server sends on its own: notifications and requests. of is the
// request on whose stream it came, 0 where it came on a stream for all requests. A
// reader calls it, so that it must not block.
type incoming func(m wire.Message, of int64)
