package front

import (
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/executor"
	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

// rawCall is a tools/call request of which only the envelope was read.
type rawCall struct {
	requestMeta
	name      string
	arguments json.RawMessage
}

// requestMeta is what the _meta of a request says of the request itself.
type requestMeta struct {
	version string              // protocol revision; empty in the legacy era
	client  *mcp.Implementation // as the request says, modern era only
	capable bool                // modern era: says what the client can do, as it must
	token   json.RawMessage     // progressToken, nil where absent
	level   mcp.LoggingLevel    // modern era: of log messages, empty = none
	trace   []upstream.MetaMember
}

func (m *requestMeta) modern() bool { return mcp.IsModernProtocol(m.version) }

// served reports whether a request of the modern era is one that is answered
// here; mcp-go says what is wrong with the others (SEP-2575).
func (m *requestMeta) served() bool { return m.capable && mcp.IsValidProtocolVersion(m.version) }

// readCall reads the params of tools/call; ok is false where mcp-go shall say
// what is wrong with them.
func readCall(params json.RawMessage) (c rawCall, ok bool) {
	var meta json.RawMessage
	if len(params) == 0 {
		return c, false
	}
	err := wire.Fields(params, func(key string, value []byte) bool {
		switch key {
		case "name":
			c.name, ok = wire.Text(value)
		case "arguments":
			c.arguments = value
		case "_meta":
			meta = value
		}
		return true
	})
	if err != nil || !ok || c.name == "" {
		return c, false
	}
	c.requestMeta, ok = readMeta(meta)
	return c, ok
}

// readMeta reads the _meta of a request, which may be absent.
func readMeta(meta json.RawMessage) (m requestMeta, ok bool) {
	if len(meta) == 0 || meta[0] != '{' {
		return m, len(meta) == 0 || string(meta) == "null"
	}
	err := wire.Fields(meta, func(key string, value []byte) bool {
		switch key {
		case mcp.MetaKeyProtocolVersion:
			m.version, _ = wire.Text(value)
		case mcp.MetaKeyClientInfo:
			var info mcp.Implementation
			if json.Unmarshal(value, &info) == nil {
				m.client = &info
			}
		case mcp.MetaKeyClientCapabilities:
			var can mcp.ClientCapabilities
			m.capable = value[0] == '{' && json.Unmarshal(value, &can) == nil
		case mcp.MetaKeyLogLevel:
			if level, _ := wire.Text(value); slices.Contains(upstream.LogLevels, mcp.LoggingLevel(level)) {
				m.level = mcp.LoggingLevel(level)
			}
		case "progressToken":
			m.token = append(json.RawMessage(nil), value...)
		case "traceparent", "tracestate", "baggage":
			m.trace = append(m.trace, upstream.MetaMember{Name: key, Value: json.RawMessage(value)})
		}
		return true
	})
	return m, err == nil
}

// encodeResult is a tool result as JSON. In the modern era it says that it is
// complete, and who answers (SEP-2322, SEP-2575).
func (f *Front) encodeResult(r *executor.Result, modern bool) json.RawMessage {
	size := len(r.Structured) + len(r.Meta) + 192
	for _, block := range r.Content {
		size += len(block) + 1
	}
	out := append(make([]byte, 0, size), `{"content":[`...)
	for i, block := range r.Content {
		if i > 0 {
			out = append(out, ',')
		}
		if block[0] != '{' {
			// No revision has such a block, and SDKs refuse the whole answer for it.
			block = wire.TextBlock(string(block))
		}
		out = append(out, block...)
	}
	out = append(out, ']')
	if structured := structuredFor(r.Structured, modern); structured != nil {
		out = append(append(out, `,"structuredContent":`...), structured...)
	}
	if r.IsError {
		out = append(out, `,"isError":true`...)
	}
	meta := r.Meta
	if modern {
		out = append(out, `,"resultType":"complete"`...)
		meta = f.identified(meta)
	}
	if len(meta) > 0 {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}')
}

// structuredFor is structuredContent as a revision allows it: before the modern
// era objects only, and SDKs refuse a whole answer for anything else.
func structuredFor(value json.RawMessage, modern bool) json.RawMessage {
	switch {
	case len(value) == 0:
		return nil
	case modern || value[0] == '{':
		return value
	case string(value) == "null":
		return nil
	}
	return append(append([]byte(`{"result":`), value...), '}')
}

// identified adds mcpx as the server to a _meta that names none.
func (f *Front) identified(meta json.RawMessage) json.RawMessage {
	const key = "io.modelcontextprotocol/serverInfo"
	named, members := false, 0
	if len(meta) > 0 && meta[0] == '{' {
		_ = wire.Fields(meta, func(name string, _ []byte) bool {
			named = named || name == key
			members++
			return true
		})
	}
	if named {
		return meta
	}
	out := []byte{'{'}
	if members > 0 {
		out = append(append(out[:0], meta[:len(meta)-1]...), ',')
	}
	out = append(append(out, wire.Encode(key)...), `:{"name":"mcpx","version":`...)
	return append(append(out, wire.Encode(f.options.Version)...), '}', '}')
}
