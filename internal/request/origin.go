package request

import (
	"bytes"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// Origin is the member of _meta that says from which server a notification or a listed item comes. In a notification its value is
// the name of the server. In a listed item it is an object, with the member server and the uri or name that the server gave the
// item.
const Origin = "mcpx/origin"

// Originated puts the server's name into _meta of the params of a server's notification; params may be nil. Params that are not an
// object stay unchanged.
func Originated(server string, params json.RawMessage) json.RawMessage {
	if params = bytes.TrimSpace(params); len(params) > 0 && params[0] != '{' {
		return params
	}
	return WithMeta(params, Origin, wire.Encode(server))
}

// WithMeta puts the member key into _meta of an object. If the server has written this member itself, WithMeta replaces it, because
// only mcpx may set it. It also replaces a _meta that is not an object. A nil object is treated as {}.
func WithMeta(object json.RawMessage, key string, value []byte) json.RawMessage {
	meta := wire.Without(wire.Member(object, "_meta"), key)
	return wire.WithMember(wire.Without(object, "_meta"), "_meta", wire.WithMember(meta, key, value))
}
