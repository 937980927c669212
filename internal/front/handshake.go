package front

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// greet lets mcp-go answer the handshake of either era: the revisions, the
// capabilities of the server and its instructions. It answers ping too.
func (f *Front) greet(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	// mcp-go reads ids as float64 and would change a large one: it gets id 1.
	message := append([]byte(`{"jsonrpc":"2.0","id":1,"method":`), wire.Encode(r.Method)...)
	if r.Params != nil {
		message = append(append(message, `,"params":`...), r.Params...)
	}
	greeting := f.view.Greeting(r.client)
	options := []server.ServerOption{
		server.WithToolCapabilities(true), server.WithLogging(), server.WithInstructions(greeting.Instructions),
	}
	offers := greeting.Offers
	if offers.Resources {
		options = append(options, server.WithResourceCapabilities(offers.Subscribe, true))
	}
	if offers.Prompts {
		options = append(options, server.WithPromptCapabilities(true))
	}
	if offers.Completions {
		options = append(options, server.WithCompletions())
	}
	if offers.Tasks && r.modern() {
		options = append(options, server.WithExtensions(map[string]any{caller.TasksExtension: struct{}{}}))
	}
	s := server.NewMCPServer("mcpx", f.options.Version, options...)
	switch answer := s.HandleMessage(ctx, append(message, '}')).(type) {
	case mcp.JSONRPCResponse:
		result := wire.Encode(answer.Result)
		if others := json.RawMessage(offers.Others); f.view.Traits().Transparent && len(others) > 0 {
			result = wire.Edit(result, "capabilities", func(own json.RawMessage) json.RawMessage { return wire.Merge(others, own) })
		}
		return append(out, result...), nil
	case mcp.JSONRPCError:
		return nil, &rpcError{answer.Error.Code, answer.Error.Message, answer.Error.Data}
	}
	return nil, &rpcError{code: mcp.INTERNAL_ERROR, message: r.Method + " has no answer"}
}

// initialize answers initialize and stores the client in its session.
func (f *Front) initialize(ctx context.Context, r *incoming, out []byte) ([]byte, *rpcError) {
	var p struct {
		ProtocolVersion string
		ClientInfo      json.RawMessage
		Capabilities    json.RawMessage
	}
	if err := json.Unmarshal(orEmpty(r.Params), &p); err != nil {
		return nil, &rpcError{code: mcp.INVALID_PARAMS, message: "the params of initialize were not understood: " + err.Error()}
	}
	said := caller.Said{
		Name: nameIn(p.ClientInfo), Version: mcp.NegotiateLegacyVersion(p.ProtocolVersion), Capabilities: p.Capabilities,
	}
	client := r.client.Saying(said)
	named := *r
	named.client = &client // the instructions depend on its name
	out, err := f.greet(ctx, &named, out)
	if err == nil {
		record := *r.session.record.Load()
		record.Said = said
		r.session.record.Store(&record)
		r.session.client.Store(&client)
	}
	return out, err
}
