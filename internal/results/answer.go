package results

import (
	"context"
	"encoding/json"

	"mcpx/internal/base/wire"
)

// Answer says how the result of one call becomes the answer to its client.
type Answer struct {
	Pages
	Format Format
	// Select is a jq filter on the result's JSON, Grep a regular expression for the lines of its texts, or of the
	// selection; empty = none.
	Select, Grep string
	// Untouched leaves the content as it was received. Verbatim leaves the texts so, but cuts the ones that are too long.
	Untouched, Verbatim bool
	// Links gives the resources that blocks link or embed the URIs by which the client can read them; nil = they keep
	// theirs.
	Links func(ctx context.Context, blocks []wire.Block)
	// Task makes the result that is a task fit for the client; nil = the client takes no tasks.
	Task func(raw json.RawMessage) json.RawMessage
}
