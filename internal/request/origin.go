package request

import (
	"bytes"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// Origin is the member of _meta that says from which server a notification or a listed item comes. In a notification it is the
// name of the server. In a listed item it is an object with the member server and the item's own uri or name.
const Origin = "mcpx/origin"

// Originated puts the server's name into _meta of the params of a server's notification; params may be nil. Params that are not an
// object stay unchanged.
func Originated(server string, params json.RawMessage) json.RawMessage {
	if params = bytes.TrimSpace(params); len(params) > 0 && params[0] != '{' {
		return params
	}
	return WithMeta(params, Origin, wire.Encode(server))
}

// WithMeta puts a member into _meta of an object. If the server has written that member itself, it is replaced, because only mcpx
// may set it. A _meta that is not an object is replaced too. A nil object is treated as {}.
func WithMeta(object json.RawMessage, key string, value []byte) json.RawMessage {
	meta := wire.Without(wire.Member(object, "_meta"), key)
	return wire.WithMember(wire.Without(object, "_meta"), "_meta", wire.WithMember(meta, key, value))
}
