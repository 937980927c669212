// Package demo has the sample servers of mcpx demo, in the process: about
// thirty tools with schemas and answers such as real servers have. Everything
// is deterministic, and nothing is kept beyond the process.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Server is one sample server. Its state belongs to the value that [Servers]
// returned: sessions share it, one after another or at the same time.
type Server struct {
	Name string
	// Description is what the server is for, in one sentence.
	Description string
	// Serve speaks newline-delimited JSON-RPC on in and out until in ends or ctx
	// is done, both eras of the protocol. When ctx is done, in and out are closed
	// where they are io.Closers, since nothing else ends a blocked read or write.
	// At the end of in, open requests are answered before it returns.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error
}

// start is the time at which the demo takes place.
var start = time.Date(2026, time.January, 15, 9, 0, 0, 0, time.UTC)

// Servers makes the sample servers, sorted by name, in their first state.
func Servers() []Server {
	return []Server{
		sample("cities", "Facts about 365 large cities of the world: population, place, time zone; search, ranking, distance, statistics.", newCities().tools()),
		sample("notes", "A personal notebook: create, search, tag and organise short Markdown notes.", newNotes().tools()),
		sample("tasks", "The issue board of a small team: issues with labels, assignees, milestones and comments.", newTasks().tools()),
		sample("units", "Exact conversion between units of measure, number bases and time formats.", unitTools()),
		sample("weather", "Synthetic but plausible weather for any place: current conditions, forecasts, climate and air quality.", weatherTools()),
	}
}

func sample(name, description string, tools []server.ServerTool) Server {
	s := server.NewMCPServer(name, "1.0.0",
		server.WithToolCapabilities(false), server.WithInstructions(description), server.WithRecovery())
	s.AddTools(tools...)
	var sessions atomic.Int64
	return Server{Name: name, Description: description, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		return serve(ctx, s, strconv.FormatInt(sessions.Add(1), 10), in, out)
	}}
}

// The annotations of the tools.
var (
	readOnly = mcp.ToolAnnotation{ReadOnlyHint: new(true), DestructiveHint: new(false), IdempotentHint: new(true), OpenWorldHint: new(false)}
	adds     = mcp.ToolAnnotation{ReadOnlyHint: new(false), DestructiveHint: new(false), IdempotentHint: new(false), OpenWorldHint: new(false)}
	changes  = mcp.ToolAnnotation{ReadOnlyHint: new(false), DestructiveHint: new(false), IdempotentHint: new(true), OpenWorldHint: new(false)}
	destroys = mcp.ToolAnnotation{ReadOnlyHint: new(false), DestructiveHint: new(true), IdempotentHint: new(true), OpenWorldHint: new(false)}
)

// tool makes a tool whose arguments are decoded into A. What run returns becomes
// pretty-printed JSON in a text block, as most real servers send it; a string
// stays text, and an error becomes a result with isError.
func tool[A any](name, title string, hints mcp.ToolAnnotation, description, schema string, run func(A) (any, error)) server.ServerTool {
	t := mcp.NewToolWithRawSchema(name, description, json.RawMessage(schema))
	t.Annotations = hints
	t.Annotations.Title = title
	return server.ServerTool{Tool: t, Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args A
		if err := r.BindArguments(&args); err != nil {
			return mcp.NewToolResultError("invalid arguments: " + err.Error()), nil
		}
		value, err := run(args)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		if text, ok := value.(string); ok {
			return mcp.NewToolResultText(text), nil
		}
		text, err := pretty(value)
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(text), nil
	}}
}

// withOutput declares the shape of the result; it is then sent as structuredContent too.
func withOutput(t server.ServerTool, schema string) server.ServerTool {
	t.Tool.RawOutputSchema = json.RawMessage(schema)
	handler := t.Handler
	t.Handler = func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result, err := handler(ctx, r)
		if err == nil && !result.IsError {
			result.StructuredContent = json.RawMessage(result.Content[0].(mcp.TextContent).Text)
		}
		return result, err
	}
	return t
}

func pretty(value any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return "", fmt.Errorf("encoding the result: %w", err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// none are the arguments of a tool that takes none.
type none struct{}

// orDefault is v, or def where v is the zero value, as for an argument left out.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
