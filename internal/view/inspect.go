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

// inspectArguments returns the names of inspect's arguments that tools/list shows.
func (v *TwoTools) inspectArguments() []string {
	if v.current().ShortNames {
		return []string{"server", "tool", "query"}
	}
	return []string{"server_name", "tool_name", "query"}
}

// inspect reads the arguments of a call of the tool inspect, and answers the call. It refuses unknown arguments.
func (v *TwoTools) inspect(ctx context.Context, call Call, structured bool) *results.Result {
	names := v.inspectArguments()
	g, failure := readArguments(InspectTool, call.Arguments, names)
	if failure == nil {
		failure = g.unknownFailure()
	}
	var q Query
	for i, text := range []*string{&q.Server, &q.Tool, &q.Text} {
		if failure == nil {
			*text, failure = optional(names[i], g.args[i])
		}
	}
	v.needs(q.Server)
	if failure != nil {
		return failure.Result(structured)
	}
	client := call.Client // if the func below used call, all of call would be moved to the heap
	q.shown = func(server string) { v.registry.Expect(client, server) }
	return v.Inspect(ctx, client, q, structured)
}

// Query has the arguments of inspect. Each of them may be empty.
type Query struct {
	Server, Tool, Text string
	// shown is called with each server that the model will probably call next: the answer is about the whole server, or describes
	// one of its tools completely. It is nil if the caller of inspect makes no calls.
	shown func(server string)
}

// show calls q.shown, if set, once for each server of the matches.
func (q Query) show(matches []describe.Match) {
	if q.shown == nil {
		return
	}
	for i, m := range matches {
		if !slices.ContainsFunc(matches[:i], func(before describe.Match) bool { return before.Server.Name == m.Server.Name }) {
			q.shown(m.Server.Name)
		}
	}
}

// Inspect answers a query. Like exec, it waits for a server to which mcpx connects for the first time.
func (v *TwoTools) Inspect(ctx context.Context, client *caller.Client, q Query, structured bool) *results.Result {
	snap := v.named(client)
	r := executor.Request{From: request.From{Client: client}, Scope: v.scope(), Catalogue: snap, Server: q.Server, Tool: q.Tool}
	if q.Server == "" {
		if q.Tool != "" {
			// The value of tool_name may be a list of names, or a name that contains the server's name. Any other name requires
			// server_name.
			if strings.ContainsAny(q.Tool, ",.") || strings.Contains(q.Tool, "__") {
				if named, _ := v.byName(ctx, client, snap, Query{Text: q.Tool}, structured); named != nil {
					return named
				}
			}
			if failure := v.executor.MissingServer(&r, v.inspectArguments()[0]); failure != nil {
				return failure.Result(structured)
			}
			return results.Invalid("/" + v.inspectArguments()[0] + ": is missing; " + v.inspectArguments()[1] + " needs it").Result(structured)
		}
		if q.Text != "" {
			return v.matches(ctx, client, snap, q, structured)
		}
		return result(describe.Servers(snap), structured, func() any { return serversData(snap) })
	}
	snap, s, failure := v.executor.FindServer(ctx, r)
	r.Catalogue = snap
	switch {
	case failure != nil:
		return failure.Result(structured)
	case q.Text == "" || q.Tool != "":
		q.show([]describe.Match{{Server: s}})
	}
	switch {
	case q.Tool != "":
		return v.single(&r, s, structured)
	case q.Text != "":
		return v.matches(ctx, client, snap, q, structured)
	}
	text, complete := describe.Server(s, v.describeOptions(client))
	return result(text, structured, func() any { return serverData(s, complete) })
}

func (v *TwoTools) describeOptions(client *caller.Client) describe.Options {
	s := v.current()
	learned := func(s *catalog.Server, t *catalog.Tool, prefix string) string {
		return v.executor.LearnedType(client, v.scope(), s, t, prefix)
	}
	return describe.Options{
		TypeScript: !s.JSONSchema, MaxDescription: s.MaxDescription, ShortNames: s.ShortNames, LearnedType: learned,
	}
}

// single describes one tool, or several whose names are separated by commas. If the whole text is the name of one tool, a comma
// does not separate names. Unknown names, at most maxMissing, are listed below the tools. If all names are unknown, the answer
// is only about the first.
func (v *TwoTools) single(r *executor.Request, s *catalog.Server, structured bool) *results.Result {
	name, client := r.Tool, r.Client
	if tool, ok := s.Tool(name); ok {
		text := describe.Tool(s, tool, v.describeOptions(client))
		return result(text, structured, func() any { return toolsData(s, []*catalog.Tool{tool}) })
	}
	var tools []*catalog.Tool
	var missing []string
	for one := range strings.SplitSeq(name, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		tool, ok := s.Find(one)
		switch {
		case !ok && len(missing) < maxMissing && !slices.Contains(missing, one):
			missing = append(missing, one)
		case ok && !slices.Contains(tools, tool): // repeated names must not fill the memory
			tools = append(tools, tool)
		}
	}
	switch {
	case len(tools) == 0 && len(missing) == 0:
		return v.executor.ToolNotFound(r, s, name).Result(structured)
	case len(tools) == 0:
		return v.executor.ToolNotFound(r, s, missing[0]).Result(structured)
	}
	text := describe.Tools(s, tools, v.describeOptions(client))
	for _, one := range missing {
		text += "\n// " + v.executor.ToolNotFound(r, s, one).Said()
	}
	return result(text, structured, func() any { return toolsData(s, tools) })
}

// maxMissing is the maximum number of unknown names in an answer, because mcpx searches for similar names for each of them.
const maxMissing = 5

// byName is for a query that is a list of tool names: named is an answer with exactly these tools, and complete reports whether
// every name has a tool. For any other query, named is nil. If too many searches wait, named is the failure for that.
func (v *TwoTools) byName(
	ctx context.Context, client *caller.Client, snap *catalog.Snapshot, q Query, structured bool,
) (named *results.Result, complete bool) {
	index := v.texts.search(snap)
	var hits []search.Hit
	var missing []string
	if !v.search(ctx, client, func() { hits, missing = index.Named(q.Text, search.Options{Server: q.Server}) }) {
		return results.Busy().Result(structured), true
	}
	if len(hits) == 0 {
		return nil, false
	}
	found := matched(snap, hits)
	q.show(found)
	text := describe.Named(found, missing, v.describeOptions(client))
	if len(missing) > 0 {
		text = unsearched(snap, q.Server) + text
	}
	return result(text, structured, func() any { return matchesData(found) }), len(missing) == 0
}

// queryLimit is the maximum number of tools that the answer to a query describes. Further tools are only named, at the end of
// the answer. nameLimit is the maximum number of described and named tools together.
const queryLimit, nameLimit = 10, 30

// The best tool has the score 1. Tools with a score below queryShare are not worth their tokens, so they are not described,
// except among the first queryMinimum tools.
const (
	queryMinimum = 4
	queryShare   = 0.3
	// nameShare is the minimum score of the tools that are named but not described.
	nameShare = 0.2
)

// unsearched returns a line with the names of the servers whose tools are not known yet, since the wanted tool may be there. If
// the parameter server is not empty, the line is only about that server. The line is empty if it would name no server.
func unsearched(snap *catalog.Snapshot, server string) string {
	var names []string
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if !s.Known && s.State != catalog.Disabled && (server == "" || server == s.Name) {
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
	if more := len(names) - maxUnsearched; more > 0 {
		names = append(names[:maxUnsearched], fmt.Sprintf("%d more", more))
	}
	return "// not searched yet: " + strings.Join(names, ", ") + "\n"
}

// maxUnsearched is the maximum number of servers in the line that unsearched returns.
const maxUnsearched = 20

// matches answers a query. If the query is a list of known tool names, it answers at once. Otherwise, unless the query names a
// server, it first waits for servers to which mcpx connects for the first time.
func (v *TwoTools) matches(ctx context.Context, client *caller.Client, snap *catalog.Snapshot, q Query, structured bool) *results.Result {
	named, all := v.byName(ctx, client, snap, q, structured)
	if named != nil && all {
		return named
	}
	if q.Server == "" && v.awaitTools(ctx, client) {
		snap = v.named(client)
		named, _ = v.byName(ctx, client, snap, q, structured)
	}
	if named != nil {
		return named
	}
	index := v.texts.search(snap)
	var found, more []describe.Match
	var weak bool
	if !v.search(ctx, client, func() { found, more, weak = findTools(snap, index, q) }) {
		return results.Busy().Result(structured)
	}
	if len(found) == 0 {
		text := unsearched(snap, q.Server) + fmt.Sprintf("No tool matches %q. inspect without arguments lists the servers.", sanitize.Line(q.Text, 200))
		return result(text, structured, func() any { return listing{Tools: []json.RawMessage{}} })
	}
	if weak {
		text := unsearched(snap, q.Server) + describe.Nearest(q.Text, found)
		return result(text, structured, func() any { return matchesData(found) })
	}
	q.show(found[:min(describe.CompleteMatches, len(found))])
	text := unsearched(snap, q.Server) + describe.Matches(found, more, v.describeOptions(client))
	return result(text, structured, func() any { return matchesData(found) })
}

// search waits for its turn and then runs find. Searches run one at a time, and principals take turns. ok is false if too many
// searches wait, if the turn does not come in time, or if ctx ends.
func (v *TwoTools) search(ctx context.Context, client *caller.Client, find func()) (ok bool) {
	owner := client.On().Key()
	if v.searching.Enter(ctx, owner) != nil {
		return false
	}
	defer v.searching.Leave(owner)
	find()
	return true
}

// findTools searches for the tools that fit a query, the best first. The answer should describe the tools in described, and
// only name those in named. weak means that no tool fits well.
func findTools(snap *catalog.Snapshot, index *search.Index, q Query) (described, named []describe.Match, weak bool) {
	hits := index.Search(q.Text, search.Options{Server: q.Server, Limit: nameLimit})
	end := min(len(hits), queryLimit)
	for i, hit := range hits[:end] {
		if i >= queryMinimum && hit.Score < queryShare {
			end = i
			break
		}
	}
	last := len(hits)
	for last > end && hits[last-1].Score < nameShare {
		last--
	}
	return matched(snap, hits[:end]), matched(snap, hits[end:last]), end > 0 && hits[0].Weak
}

// matched returns the tools of these hits. It leaves out tools that snap does not have.
func matched(snap *catalog.Snapshot, hits []search.Hit) (found []describe.Match) {
	for _, hit := range hits {
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
