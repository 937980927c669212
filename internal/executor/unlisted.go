package executor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/pattern"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
)

// Some servers change their tools without a notification. So before mcpx says that a tool does not exist, it asks the server for
// its tools again.

// relistTimeout is how long mcpx waits for the new list of a server's tools.
const relistTimeout = 5 * time.Second

// lookAgain asks the server of a request for its tools again, renews the request's catalogue, and finds the tool there. If the
// tool is not there, the error is a notFoundError. lookAgain takes the same time whether the tool is hidden from the caller or
// does not exist, so the time does not reveal hidden tools. The tools of the built-in server are known, so it is not asked.
func (e run) lookAgain(ctx context.Context, r *Request) (*catalog.Server, *catalog.Tool, error) {
	if r.Server == builtin.Name {
		s := e.own(r.Client, r.Scope, r.Catalogue)
		return s, nil, e.toolNotFound(r, s, r.Tool)
	}
	bounded, cancel := context.WithTimeout(ctx, e.waitLeft(r))
	defer cancel()
	e.Relist(bounded, r.Client, r.Server)
	r.Catalogue = e.visible(r)
	s, err := e.findServer(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if found, ok := s.Tool(r.Tool); ok {
		return s, found, nil
	}
	return s, nil, e.toolNotFound(r, s, r.Tool)
}

// Relist asks a server for its tools again, unless that was done very recently, and waits for at most relistTimeout.
func (e *Executor) Relist(ctx context.Context, client *caller.Client, server string) {
	bounded, cancel := context.WithTimeout(ctx, relistTimeout)
	defer cancel()
	e.registry.Relist(bounded, client, server)
}

// lacks reports whether a server lacks a tool. The parameter names has the name of one tool, or the names of several tools with
// commas between them; then lacks reports whether the server lacks any of these tools.
func lacks(s *catalog.Server, names string) bool {
	if _, ok := s.Tool(names); ok {
		return false
	}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if _, ok := s.Tool(name); !ok {
			return true
		}
	}
	return false
}

// unknownTool matches the messages in which SDKs say that a server does not have a tool.
var unknownTool = pattern.New(`(?i)\b(?:unknown|no such|invalid) tool\b|\btool\b.*\b(?:not found|unknown|does not exist|is not available|disabled)\b`)

// longestUnknown is the maximum size, in bytes, of a result that only says that a tool is unknown. Looking for isError in a large
// result would take a tenth of the time of the call.
const longestUnknown = 16 << 10

// unknownThere reports whether an answer, either a result or an error, says that the server does not know the tool. The tool itself
// may have written such a text. Then unknownThere is wrong, but mcpx only lists the tools once more than necessary.
func unknownThere(raw json.RawMessage, err error, tool string) bool {
	says := func(text string) bool {
		return len(text) < 500+len(tool) && strings.Contains(text, tool) && unknownTool.MatchString(text)
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
		return says(rpc.Message)
	}
	if err != nil || len(raw) > longestUnknown || !isError(raw) {
		return false
	}
	var result struct{ Content []struct{ Text string } }
	return json.Unmarshal(raw, &result) == nil && len(result.Content) == 1 && says(result.Content[0].Text)
}
