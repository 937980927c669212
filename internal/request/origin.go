package request

import (
	"bytes"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// Origin is the member of _meta that says from which server a notification or a listed item comes. In a notification it is the
// name of the server. In a listed item it is an object with the member server and the item's own uri or name.
const Origin = "mcpx/origin"

// Originated puts the server's name into _meta of the params of a server's notification; params may be nil. If the server has
// written that member itself, it is replaced, because only mcpx may set it. Params that are not an object stay unchanged.
func Originated(server string, params json.RawMessage) json.RawMessage {
	if params = bytes.TrimSpace(params); len(params) > 0 && params[0] != '{' {
		return params
	}
	without := func(object json.RawMessage, key string) json.RawMessage {
		return wire.Filter(object, func(name string, _ []byte) bool { return name != key })
	}
	meta := wire.WithMember(without(wire.Member(params, "_meta"), Origin), Origin, wire.Encode(server))
	return wire.WithMember(without(params, "_meta"), "_meta", meta)
}
