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

// The requestState of an upstream goes to the client and comes back in the same request,
// with the answers of the user. An upstream takes all that mcpx sends for one caller's, so
// that mcpx itself binds the state of a principal: to it, to the request and to a time. To
// nobody in particular it goes as the upstream wrote it.

const (
	// boundState begins a requestState that is bound. When it ends, in seconds since 1970, the
	// tag and the upstream's own follow, parted by dots.
	boundState = "mcpx.bound."
	// boundTime is how long it counts. Upstreams have bounds of their own.
	boundTime = 24 * time.Hour
)

// tagsOf makes the tags of the states that a view gives out: another view does not know them.
func tagsOf(secret *state.Secret, view string) *caller.Tags {
	return caller.NewTags(secret, "mcpx requestState 1 "+view)
}

// bound is the state of an upstream as the client of a request gets it.
func (f *Front) bound(r *incoming, written json.RawMessage) json.RawMessage {
	own, ok := wire.Text(written)
	if p := r.client.Principal; p != nil && ok {
		until := strconv.FormatInt(time.Now().Add(boundTime).Unix(), 10)
		return wire.AppendQuoted(nil, boundState+until+"."+f.tags.Of(p, stateValues(r.message, until, own)...)+"."+own)
	}
	return written
}

// unbind gives a request of a principal the state of the upstream back.
func (f *Front) unbind(r *incoming) *rpcError {
	p := r.client.Principal
	written, _ := wire.Text(r.input.State)
	if p == nil || r.input.State == nil || strings.HasPrefix(written, suspendedState) {
		return nil
	}
	rest, ours := strings.CutPrefix(written, boundState)
	until, rest, _ := strings.Cut(rest, ".")
	tag, own, _ := strings.Cut(rest, ".")
	ends, err := strconv.ParseInt(until, 10, 64)
	if !ours || err != nil || !f.tags.Is(tag, p, stateValues(r.message, until, own)...) || time.Now().Unix() > ends {
		return &rpcError{code: mcp.INVALID_PARAMS, message: "requestState: is not one of this request: it belongs to other params, is too old, or was made before a restart or at another endpoint of mcpx. Send the request again without requestState and inputResponses"}
	}
	r.input.State = wire.AppendQuoted(nil, own)
	return nil
}

// stateValues are what a state is bound to, beside the principal.
func stateValues(m *message, until, own string) []string {
	params := paramsOf(m)
	return []string{until, own, string(params[:])}
}
