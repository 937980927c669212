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
	// Select is a jq filter for the JSON of the result. Grep is a regular expression: the client gets only the items or lines that
	// match it. They are searched for in the result's texts or, if Select is set, in the output of the filter. Select and Grep may
	// be empty. For a result that is an error, neither is used.
	Select, Grep string
	// Type says how inspect shows the type of the tool's results. The filter in Select was written for the type that inspect shows.
	// Without Select, Type is not used.
	Type Type
	// Untouched means that the result is not compressed, not searched with Grep and not cut. Links still applies. If a filter is
	// applied (Select), Untouched has no effect on its output.
	Untouched bool
	// Learn gets a sample of the JSON or text that a filter would be applied to. It is not called if the result is an
	// error. May be nil.
	Learn func(Sample)
	// Links replaces the URIs of resources in the blocks by URIs under which the client can read these resources; may be nil.
	Links func(ctx context.Context, blocks []wire.Block)
	// Task converts a result that is itself a task (as protocol version 2026-07-28 has it), so that the client can follow the task
	// through mcpx. Task is nil if the client does not accept tasks.
	Task func(raw json.RawMessage) json.RawMessage
	// Created converts the member "task" of a result (as protocol version 2025-11-25 has it), so that the client can follow the
	// task through mcpx. Created is nil if the client did not ask for a task.
	Created func(task json.RawMessage) json.RawMessage
}
