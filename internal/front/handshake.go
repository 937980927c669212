package front

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/view"
)

// declared are the capabilities that mcpx declares as a server. The order of the fields is fixed, so that the
// answers stay identical, byte for byte, between versions of mcpx.
type declared struct {
	Extensions  map[string]struct{} `json:"extensions,omitempty"`
	Logging     struct{}            `json:"logging"`
	Prompts     *listCapability     `json:"prompts,omitempty"`
	Resources   *listCapability     `json:"resources,omitempty"`
	Tools       listCapability      `json:"tools"`
	Completions *struct{}           `json:"completions,omitempty"`
	Tasks       json.RawMessage     `json:"tasks,omitempty"` // legacy era only
}

// callTasks is the value of the capability tasks: tools can run as tasks, which can be cancelled.
const callTasks = `{"cancel":{},"requests":{"tools":{"call":{}}}}`

type listCapability struct {
	Subscribe   bool `json:"subscribe,omitempty"`
	ListChanged bool `json:"listChanged"`
}

// capabilities returns what mcpx declares to the client of r. A transparent view shows one server as if mcpx were not there, so
// mcpx then also declares those capabilities of the server that mcpx itself does not know.
func (f *Front) capabilities(r *incoming, greeting view.Greeting) json.RawMessage {
	offers := greeting.Offers
	c := declared{Tools: listCapability{ListChanged: true}}
	if offers.Resources {
		c.Resources = &listCapability{Subscribe: offers.Subscribe, ListChanged: true}
	}
	if offers.Prompts {
		c.Prompts = &listCapability{ListChanged: true}
	}
	if offers.Completions {
		c.Completions = &struct{}{}
	}
	if greeting.RunsTasks && !r.modern() {
		c.Tasks = json.RawMessage(callTasks)
	}
	if offers.Tasks && r.modern() {
		c.Extensions = map[string]struct{}{caller.TasksExtension: {}}
	}
	own := wire.Encode(c)
	if others := json.RawMessage(offers.Others); f.view.Traits().Transparent && len(others) > 0 {
		return wire.Merge(others, own)
	}
	return own
}

// ping answers with an empty result.
func ping(_ *Front, _ context.Context, _ *incoming, out []byte) ([]byte, *rpcError) {
	return append(out, "{}"...), nil
}

// discover answers server/discover, the handshake of the modern era.
func (f *Front) discover(_ context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	greeting := f.view.Greeting(r.client)
	return append(out, wire.Encode(struct {
		Meta              json.RawMessage `json:"_meta"`
		ResultType        string          `json:"resultType"`
		TTL               int             `json:"ttlMs"`
		CacheScope        string          `json:"cacheScope"`
		SupportedVersions []string        `json:"supportedVersions"`
		Capabilities      json.RawMessage `json:"capabilities"`
		Instructions      string          `json:"instructions,omitempty"`
	}{f.identity, "complete", 0, "private", Protocols(), f.capabilities(r, greeting), greeting.Instructions})...), nil
}

// initialize answers initialize. It stores in the session what the client has said about itself.
func (f *Front) initialize(_ context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	var p struct {
		ProtocolVersion string
		ClientInfo      json.RawMessage
		Capabilities    json.RawMessage
	}
	if err := json.Unmarshal(orEmpty(r.Params), &p); err != nil {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "invalid params of initialize: " + err.Error()}
	}
	said := caller.Said{
		Name: nameIn(p.ClientInfo), Version: mcp.NegotiateLegacyVersion(p.ProtocolVersion), Capabilities: p.Capabilities,
	}
	client := r.client.Saying(said)
	greeting := f.view.Greeting(&client) // only now, because the instructions depend on the client's name
	record := *r.session.record.Load()
	record.Said = said
	r.session.record.Store(&record)
	r.session.client.Store(&client)
	info := mcp.Implementation{Name: f.options.Name, Version: f.options.Version}
	return append(out, wire.Encode(struct {
		ProtocolVersion string             `json:"protocolVersion"`
		Capabilities    json.RawMessage    `json:"capabilities"`
		ServerInfo      mcp.Implementation `json:"serverInfo"`
		Instructions    string             `json:"instructions,omitempty"`
	}{said.Version, f.capabilities(r, greeting), info, greeting.Instructions})...), nil
}
