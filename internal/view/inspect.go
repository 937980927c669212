package view

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/caller"
	"mcpx/internal/describe"
	"mcpx/internal/executor"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/search"
)

// inspectArguments returns the advertised names of inspect's arguments.
func (v *TwoTools) inspectArguments() []string {
	if v.current().ShortNames {
		return []string{"server", "tool", "query"}
	}
	return []string{"server_name", "tool_name", "query"}
}

// inspect answers a call of inspect.
func (v *TwoTools) inspect(ctx context.Context, call Call, structured bool) *results.Result {
	names := v.inspectArguments()
	args, failure := readArguments(InspectTool, call.Arguments, names)
	var q Query
	for i, text := range []*string{&q.Server, &q.Tool, &q.Text} {
		if failure == nil {
			*text, failure = optional(names[i], args[i])
		}
	}
	v.needs(q.Server)
	if failure != nil {
		return failure.Result(structured)
	}
	return v.Inspect(ctx, call.Client, q, structured)
}

// Query has the arguments of inspect. All may be empty.
type Query struct {
	Server, Tool, Text string
}

// Inspect answers a query (design 6). Like exec it waits for a server that connects for the first time.
func (v *TwoTools) Inspect(ctx context.Context, client *caller.Client, q Query, structured bool) *results.Result {
	snap := v.named(client)
	if q.Server == "" {
		if q.Tool != "" {
			if failure := v.executor.MissingServer(snap, q.Tool); failure != nil {
				return failure.Result(structured)
			}
			return results.Invalid("/" + v.inspectArguments()[0] + ": is missing; " + v.inspectArguments()[1] + " needs it").Result(structured)
		}
		if q.Text != "" {
			return v.matches(snap, q, structured)
		}
		return result(describe.Servers(snap), structured, func() any { return serversData(snap) })
	}
	snap, s, failure := v.executor.FindServer(ctx, executor.Request{
		From: request.From{Client: client}, Scope: v.scope(), Catalogue: snap, Server: q.Server, Tool: q.Tool,
	})
	switch {
	case failure != nil:
		return failure.Result(structured)
	case q.Tool != "":
		return v.single(snap, s, q.Tool, structured)
	case q.Text != "":
		return v.matches(snap, q, structured)
	}
	text, complete := describe.Server(s, v.describeOptions())
	return result(text, structured, func() any { return serverData(s, complete) })
}

func (v *TwoTools) describeOptions() describe.Options {
	s := v.current()
	return describe.Options{TypeScript: !s.JSONSchema, MaxDescription: s.MaxDescription, ShortNames: s.ShortNames}
}

// single describes one tool, or several whose names are separated by commas. A tool whose own name contains the commas comes first.
func (v *TwoTools) single(snap *catalog.Snapshot, s *catalog.Server, name string, structured bool) *results.Result {
	if tool, ok := s.Tool(name); ok {
		return result(describe.Tool(s, tool, v.describeOptions()), structured, func() any { return toolsData(s, []*catalog.Tool{tool}) })
	}
	var tools []*catalog.Tool
	for _, one := range strings.Split(name, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		tool, ok := s.Tool(one)
		if !ok {
			return v.executor.ToolNotFound(snap, s, one).Result(structured)
		}
		if !slices.Contains(tools, tool) { // repeated names must not fill the memory
			tools = append(tools, tool)
		}
	}
	if len(tools) == 0 {
		return v.executor.ToolNotFound(snap, s, name).Result(structured)
	}
	return result(describe.Tools(s, tools, v.describeOptions()), structured, func() any { return toolsData(s, tools) })
}

// queryLimit bounds the tools in the answer to a query.
const queryLimit = 10

// After queryLeast hits, the answer omits those that score less than queryShare of the best: they are not worth their tokens.
const (
	queryLeast = 4
	queryShare = 0.3
)

// unsearched names the servers whose tools are not known yet, as they may have the tool that was not found.
func unsearched(snap *catalog.Snapshot, only string) string {
	var names []string
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if !s.Known && s.State != catalog.Disabled && (only == "" || only == s.Name) {
			state := string(s.State)
			if s.Reason != "" {
				state += ": " + sanitize.Line(s.Reason, 80)
			}
			names = append(names, fmt.Sprintf("%s (%s)", sanitize.Line(s.Name, 0), state))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "\n// not searched, tools unknown: " + strings.Join(names, ", ")
}

func (v *TwoTools) matches(snap *catalog.Snapshot, q Query, structured bool) *results.Result {
	v.searching.Lock()
	found := found(snap, v.texts.search(snap), q)
	v.searching.Unlock()
	if len(found) == 0 {
		text := fmt.Sprintf("No tool matches %q. inspect without arguments lists the servers.", sanitize.Line(q.Text, 200)) + unsearched(snap, q.Server)
		return result(text, structured, func() any { return listing{Tools: []json.RawMessage{}} })
	}
	text := describe.Matches(found, v.describeOptions()) + unsearched(snap, q.Server)
	return result(text, structured, func() any { return matchesData(found) })
}

// found returns the tools in the answer to a query, best first.
func found(snap *catalog.Snapshot, index *search.Index, q Query) (found []describe.Match) {
	for i, hit := range index.Search(q.Text, search.Options{Server: q.Server, Limit: queryLimit}) {
		if i >= queryLeast && hit.Score < queryShare {
			break
		}
		s, ok := snap.Server(hit.Server)
		if !ok {
			continue
		}
		if tool, ok := s.Tool(hit.Tool); ok {
			found = append(found, describe.Match{Server: s, Tool: tool, Also: hit.Also})
		}
	}
	return found
}
