package front

import (
	"encoding/json"
	"slices"

	"mcpx/internal/base/wire"
	"mcpx/internal/results"
)

// appendResult appends a tool result as JSON, in the form of the client's era.
func (f *Front) appendResult(out []byte, result *results.Result, r *incoming) []byte {
	if result.Whole != nil {
		return f.appendWhole(out, result.Whole, r)
	}
	size := len(result.Structured) + len(result.Meta) + 192
	for _, block := range result.Content {
		size += len(block) + 1
	}
	out = append(slices.Grow(out, size), `{"content":[`...)
	for i, block := range result.Content {
		if i > 0 {
			out = append(out, ',')
		}
		if block[0] != '{' {
			// SDKs refuse an answer with a content block that is not an object.
			block = wire.TextBlock(string(block))
		}
		out = append(out, block...)
	}
	out = append(out, ']')
	out = appendStructured(out, result.Structured, r.modern())
	if result.IsError {
		out = append(out, `,"isError":true`...)
	}
	return f.complete(out, r, result.Meta)
}

// appendWhole appends a result that is not a tool result, such as a created task. Apart from _meta, and from requestState (see
// bound), the result stays as the upstream server wrote it.
func (f *Front) appendWhole(out []byte, result json.RawMessage, r *incoming) []byte {
	out = append(out, '{')
	var meta json.RawMessage
	_ = wire.Members(result, func(name string, written, value []byte) bool {
		if name == "_meta" {
			meta = value
		} else {
			if name == "requestState" {
				value = f.bound(r, value)
			}
			out = append(append(append(append(out, written...), ':'), value...), ',')
		}
		return true
	})
	return append(append(append(out, `"_meta":`...), f.identified(meta)...), '}')
}

// appendStructured appends structuredContent. In the legacy era SDKs refuse an answer in which it is not an object, so null is
// left out, and other values are wrapped in an object.
func appendStructured(out []byte, value json.RawMessage, modern bool) []byte {
	const member = `,"structuredContent":`
	switch {
	case len(value) == 0:
		return out
	case modern || value[0] == '{':
		return append(append(out, member...), value...)
	case string(value) == "null":
		return out
	}
	return append(append(append(out, member+`{"result":`...), value...), '}')
}

// complete ends a result object that has at least one member already. For a modern client it first adds
// resultType and the name of the server, which that era requires (SEP-2322, SEP-2575).
func (f *Front) complete(out []byte, r *incoming, meta json.RawMessage) []byte {
	if r.modern() {
		out = append(out, `,"resultType":"complete"`...)
		meta = f.identified(meta)
	}
	if len(meta) > 0 {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}')
}

// metaServer is the key in _meta whose value names the server.
const metaServer = "io.modelcontextprotocol/serverInfo"

// selfDescription returns a _meta object that names the server.
func selfDescription(name, version string) json.RawMessage {
	return json.RawMessage(`{"` + metaServer + `":{"name":` + string(wire.Encode(name)) + `,"version":` + string(wire.Encode(version)) + `}}`)
}

// identified adds mcpx as the server to a _meta object that names no server yet. It replaces a _meta that is missing or no
// object.
func (f *Front) identified(meta json.RawMessage) json.RawMessage {
	named, members := false, 0
	if len(meta) > 0 && meta[0] == '{' {
		_ = wire.Fields(meta, func(name string, _ []byte) bool {
			named = named || name == metaServer
			members++
			return true
		})
	}
	switch {
	case named:
		return meta
	case members == 0:
		return f.identity
	}
	out := append(slices.Clone(meta[:len(meta)-1]), ',')
	return append(out, f.identity[1:]...)
}
