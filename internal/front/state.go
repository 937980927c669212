package front

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// An upstream's requestState goes to the client and comes back with the client's answers. The upstream cannot tell mcpx's clients
// apart, so mcpx signs the state: it is valid only for the same principal and request, and for a limited time. For a client without
// a principal, mcpx adds the id of the client's connection (from caller.Client.Home) to the state instead. Then the answers reach
// the server session that asked, even if they come over another connection. If the client has neither a principal nor a Home, mcpx
// passes the state on unchanged. There is one exception: if the upstream is another mcpx, its state begins like a state of this
// mcpx. This mcpx then puts homeState before it, so that it is not taken for a state of this mcpx.

const (
	// boundState is the beginning of a requestState that is signed for a principal. It is followed by the time of expiry (Unix
	// seconds), the tag (the signature), and the upstream's own state, separated by dots.
	boundState = "mcpx.bound."
	// boundTime is how long a requestState with boundState is valid. Upstreams may have shorter limits of their own.
	boundTime = 24 * time.Hour
	// homeState is the beginning of a requestState that names a connection. It is followed by the connection's id, the tag, and the
	// upstream's own state, separated by dots. The id and the tag are empty for a client without a Home, whose requestState gets
	// homeState only because the upstream's own state begins with stateOfMcpx.
	homeState = "mcpx.home."
	// stateOfMcpx is what all these states, and suspendedState, begin with.
	stateOfMcpx = "mcpx."
)

// tagsOf returns the signer for the states of one view. States of other views are not accepted.
func tagsOf(secrets []*state.Secret, view string) *caller.Tags {
	return caller.NewTags(secrets, "mcpx requestState 1 "+view)
}

// bound returns the requestState that the client of r gets in place of the upstream's own requestState, the parameter written.
func (f *Front) bound(r *incoming, written json.RawMessage) json.RawMessage {
	own, ok := wire.Text(written)
	switch p := r.client.Principal; {
	case !ok:
		return written
	case p != nil:
		until := strconv.FormatInt(time.Now().Add(boundTime).Unix(), 10)
		return wire.AppendQuoted(nil, boundState+until+"."+f.tags.Of(p, stateValues(r.message, until, own)...)+"."+own)
	case r.client.Home != nil:
		id := strconv.FormatUint(r.client.Home.Connection(), 10)
		return wire.AppendQuoted(nil, homeState+id+"."+f.tags.Of(nil, f.homeValues(r, id, own)...)+"."+own)
	case strings.HasPrefix(own, stateOfMcpx):
		return wire.AppendQuoted(nil, homeState+".."+own)
	}
	return written
}

// unbind checks the requestState of a request and replaces it with the upstream's own state. written is the requestState as the
// client sent it. If it is not valid for this request, unbind returns the error for the client. The requestState of a suspended
// call stays as it is. If the client has no principal, unbind only calls toHome.
func (f *Front) unbind(r *incoming, written string) *rpcError {
	p := r.client.Principal
	if p == nil {
		f.toHome(r, written)
		return nil
	}
	if r.input.State == nil || strings.HasPrefix(written, suspendedState) {
		return nil
	}
	rest, ours := strings.CutPrefix(written, boundState)
	until, rest, _ := strings.Cut(rest, ".")
	tag, own, _ := strings.Cut(rest, ".")
	ends, err := strconv.ParseInt(until, 10, 64)
	if !ours || err != nil || !f.tags.Is(tag, p, stateValues(r.message, until, own)...) || time.Now().Unix() > ends {
		return &rpcError{code: mcp.INVALID_PARAMS, message: "requestState: is not valid for this request: it belongs to other params, is too old, or was made before a restart or at another endpoint of mcpx. Send the request again without requestState and inputResponses"}
	}
	r.input.State = wire.AppendQuoted(nil, own)
	return nil
}

// toHome replaces a requestState that begins with homeState with the upstream's own state. The requestState also names a
// connection. The client of the request gets the Home of that connection, so that the request uses the same server sessions.
// But if the tag is wrong, as when another process has made the requestState, the client keeps its own Home.
func (f *Front) toHome(r *incoming, written string) {
	rest, ours := strings.CutPrefix(written, homeState)
	if !ours {
		return
	}
	id, rest, _ := strings.Cut(rest, ".")
	tag, own, _ := strings.Cut(rest, ".")
	r.input.State = wire.AppendQuoted(nil, own)
	connection, err := strconv.ParseUint(id, 10, 64)
	if err == nil && r.client.Home != nil && f.tags.Is(tag, nil, f.homeValues(r, id, own)...) {
		r.client.Home = r.client.Home.At(connection)
	}
}

// homeValues returns what the tag (the signature) covers in a requestState that names a connection. It includes the name of the
// process, because the ids of connections are unique only in one process.
func (f *Front) homeValues(r *incoming, id, own string) []string {
	return append(stateValues(r.message, id, own), f.suspended.process)
}

// stateValues returns what the tag (the signature) of a requestState covers: the scope, the upstream's own state, and a hash of
// the method and the params. The scope is the time of expiry or the id of the connection.
func stateValues(m *message, scope, upstreamState string) []string {
	params := paramsOf(m)
	return []string{scope, upstreamState, string(params[:])}
}
