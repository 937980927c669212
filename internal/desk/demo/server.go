package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
)

// server is an MCP server that has only tools. It is written here because the server of mcp-go compiles the metaschemas of JSON
// Schema before main, which takes as long as the rest of the start of mcpx.
type server struct {
	name, instructions string
	tools              []definition
	answers            map[string]tool // by the name of the tool
}

// maxLine is the maximum size, in bytes, of a message that serve reads. After a longer message serve returns an error.
const maxLine = 4 << 20

// serve implements [Server.Serve].
func (s *server) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	defer context.AfterFunc(ctx, func() {
		for _, end := range []any{in, out} {
			if c, ok := end.(io.Closer); ok {
				c.Close()
			}
		}
	})()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		answer := s.answer(lines.Bytes())
		if answer == nil {
			continue
		}
		if _, err := out.Write(append(answer, '\n')); err != nil && ctx.Err() == nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return lines.Err()
}

// answer returns the response to one message, or nil if it needs none.
func (s *server) answer(line []byte) []byte {
	m, err := wire.Parse(line)
	var response struct {
		Version string                   `json:"jsonrpc"`
		ID      json.RawMessage          `json:"id"`
		Result  json.RawMessage          `json:"result,omitempty"`
		Error   *mcp.JSONRPCErrorDetails `json:"error,omitempty"`
	}
	response.Version, response.ID = mcp.JSONRPC_VERSION, m.ID
	switch {
	case err != nil || !m.Valid:
		response.Error = &mcp.JSONRPCErrorDetails{Code: mcp.PARSE_ERROR, Message: "not a JSON-RPC message"}
	case m.ID == nil || m.Method == "":
		return nil
	default:
		response.Result, response.Error = s.result(m)
	}
	return wire.Encode(response)
}

// result returns the result of a request. In revision 2026-07-28, a request names its revision, and a result has further members.
func (s *server) result(m wire.Message) (json.RawMessage, *mcp.JSONRPCErrorDetails) {
	info := mcp.Implementation{Name: s.name, Version: "1.0.0"}
	members := map[string]any{}
	version := wire.MemberText(wire.Member(m.Params, "_meta"), mcp.MetaKeyProtocolVersion)
	if version != "" {
		members["_meta"] = map[string]any{mcp.MetaKeyServerInfo: info}
		members["resultType"] = "complete"
	}
	cached := func() {
		if version != "" {
			members["ttlMs"], members["cacheScope"] = 0, "private"
		}
	}
	capabilities := map[string]any{"tools": struct{}{}}
	switch m.Method {
	case "ping":
	case "initialize":
		members["protocolVersion"] = mcp.NegotiateLegacyVersion(wire.MemberText(m.Params, "protocolVersion"))
		members["capabilities"], members["serverInfo"], members["instructions"] = capabilities, info, s.instructions
	case "server/discover":
		cached()
		members["supportedVersions"], members["capabilities"], members["instructions"] = mcp.ValidProtocolVersions, capabilities, s.instructions
	case "tools/list":
		cached()
		members["tools"] = s.tools
	case "tools/call":
		name := wire.MemberText(m.Params, "name")
		call := s.answers[name]
		if call == nil {
			return nil, &mcp.JSONRPCErrorDetails{Code: mcp.INVALID_PARAMS, Message: "no tool " + name}
		}
		result, err := call(wire.Member(m.Params, "arguments"))
		if err != nil {
			return nil, &mcp.JSONRPCErrorDetails{Code: mcp.INTERNAL_ERROR, Message: err.Error()}
		}
		return wire.Merge(wire.Encode(result), wire.Encode(members)), nil
	default:
		return nil, &mcp.JSONRPCErrorDetails{Code: mcp.METHOD_NOT_FOUND, Message: "no method " + m.Method}
	}
	return wire.Encode(members), nil
}
