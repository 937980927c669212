package results

import (
	"context"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// Answer says how an upstream's result becomes the answer to a client.
type Answer struct {
	Pages
	Format Format
	// Select is a jq filter for the result's JSON. Grep is a regular expression for the lines of its texts, or of the selection.
	// Empty = none.
	Select, Grep string
	// Untouched leaves the content unchanged. Verbatim does not compress texts, but cuts those that are too long.
	Untouched, Verbatim bool
	// Links replaces the URIs of resources in the blocks by those under which the client can read them; may be nil.
	Links func(ctx context.Context, blocks []wire.Block)
	// Task converts a result that is a task; nil = the client does not accept tasks.
	Task func(raw json.RawMessage) json.RawMessage
	// Created converts the task in the result of a legacy server; nil = the client did not ask for one.
	Created func(task json.RawMessage) json.RawMessage
	// Saw gets the kind of the result, unless that is an error; nil = it need not be known.
	Saw func(Kind)
}
