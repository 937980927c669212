package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/files"
	"mcpx/internal/results"
)

// SaveTool is the tool that writes a stored result to a file. Only callers that may use files see it.
const SaveTool = "save_result"

const saveSchema = `{"type":"object","properties":{"handle":{"type":"string"},` +
	`"path":{"type":"string","description":"of a new file; in arguments of any tool {\"$file\": path} is the text of a file"},` +
	`"select":{"type":"string","description":"jq filter with one output"}},` +
	`"required":["handle","path"],"additionalProperties":false}`

// saving returns the definition of the tool save_result.
func saving() catalog.Tool {
	no := false
	return catalog.Tool{
		Name: SaveTool, InputSchema: json.RawMessage(saveSchema),
		Description: "Save a kept result, or a part of it, as a new file; never replaces a file.",
		Hints:       catalog.Hints{ReadOnly: &no, Destructive: &no, Idempotent: &no, OpenWorld: &no},
		Annotations: json.RawMessage(`{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":false}`),
	}
}

// save runs the tool save_result.
func (c *Caller) save(ctx context.Context, given json.RawMessage) (json.RawMessage, error) {
	var args struct{ Handle, Path, Select string }
	if err := json.Unmarshal(given, &args); err != nil {
		return nil, arguments.Invalid("/: handle, path and select must be strings")
	}
	open, err := c.Files(ctx)
	if err != nil {
		return nil, pathError(err)
	}
	data, err := c.Data(ctx, args.Handle, args.Select)
	if none, ok := errors.AsType[*results.ValueError](err); ok {
		return nil, arguments.Invalid("/" + none.Member + ": " + none.Reason)
	}
	if err != nil {
		return nil, err
	}
	at, err := open.Create(args.Path, data)
	if err != nil {
		return nil, pathError(err)
	}
	return toolResult([]json.RawMessage{wire.TextBlock(fmt.Sprintf("saved %d bytes as %s", len(data), at))}), nil
}

// pathError turns the refusal of a path into an error about invalid arguments.
func pathError(err error) error {
	if refused, ok := errors.AsType[*files.Error](err); ok {
		return arguments.Invalid("/path: " + refused.Reason)
	}
	return err
}
