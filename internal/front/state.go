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

// An upstream's requestState goes to the client and comes back with the client's answers. The upstream cannot
// tell mcpx's clients apart, so mcpx itself binds the state to its principal, its request and a time. Without
// a principal it adds the connection instead: the answers may come over another one, but must reach the session
// that asked. Without either the state is passed on unchanged.

const (
	// boundState is the beginning of a bound requestState. It is followed by the time of expiry (Unix seconds),
	// the tag, and the upstream's own state, separated by dots.
	boundState = "mcpx.bound."
	// boundTime is how long a bound state is valid. Upstreams may have shorter limits of their own.
	boundTime = 24 * time.Hour
	// homeState is the beginning of a requestState with a connection. It is followed by the connection's id, the
	// tag, and the upstream's own state, separated by dots.
	homeState = "mcpx.home."
)

// tagsOf returns the signer for the states of one view. States of other views are not accepted.
func tagsOf(secrets []*state.Secret, view string) *caller.Tags {
	return caller.NewTags(secrets, "mcpx requestState 1 "+view)
}

// bound returns an upstream's state in the form for the client of r.
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
	}
	return written
}

// unbind checks the state in a principal's request and replaces it with the upstream's own state.
func (f *Front) unbind(r *incoming) *rpcError {
	p := r.client.Principal
	written, _ := wire.Text(r.input.State)
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

// toHome replaces the state in a request without a principal with the upstream's own state, and gives the request the
// home of the connection that the state names. If the state was made by another process, the request keeps its own
// home.
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

// homeValues returns the values that a state with a connection is bound to. The ids of connections are unique only
// in one process.
func (f *Front) homeValues(r *incoming, id, own string) []string {
	return append(stateValues(r.message, id, own), f.suspended.process)
}

// stateValues returns the values that a state is bound to, besides the principal.
func stateValues(m *message, until, own string) []string {
	params := paramsOf(m)
	return []string{until, own, string(params[:])}
}
