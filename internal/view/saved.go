package view

import (
	"encoding/json"
	"slices"
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/describe"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// Saved implements [View]. The definitions of the servers' tools count as saved, the definitions of mcpx's own tools as spent. A
// client that searches for tools itself would send its model only a line for each tool or server, not the definitions. So for such
// a client, only the tokens of these lines count as saved.
func (v *TwoTools) Saved(client *caller.Client) func() []request.Saving {
	snap, how, searches := v.named(client), v.how(client, name(client)), v.searcher(client)
	var apps json.RawMessage
	if listed := v.apps(client); listed != nil {
		apps = listed.tools
	}
	return sync.OnceValue(func() []request.Saving {
		list := v.texts.list(snap, how)
		own, instructions := definitions(list.inspect, list.exec, how.features), ""
		direct, spent := v.texts.direct(snap), 0
		if searches != nil {
			direct, instructions = unloaded(snap, searches), v.texts.instructions(snap, how)
		}
		mcpx := describe.Unloaded{Name: builtin.Name, Instructions: instructions}
		for _, d := range own {
			if searches == nil || searches.Loads {
				spent += tokens.Estimate(string(wire.Encode(d)))
			} else {
				mcpx.Tools = append(mcpx.Tools, catalog.Tool{Name: d.Name, Description: d.Description})
			}
		}
		if searches != nil {
			spent += tokens.Estimate(searches.Shows(mcpx))
		}
		if len(apps) > len("[]") { // the tools with apps, which are listed next to inspect and exec
			spent += tokens.Estimate(string(apps))
		}
		return append(slices.Clip(direct), request.Saving{Server: builtin.Name, Tokens: -spent})
	})
}

// searcher returns how the client searches for tools itself; nil if it does not.
func (v *TwoTools) searcher(client *caller.Client) *describe.Searcher {
	found := describe.SearcherNamed(name(client))
	if found != nil && found.Loads && !v.current().profile(name(client)).shown.features.Brief {
		return nil // the config says that this client's search is turned off
	}
	return found
}

// counted reports whether a client would list the tools of s if it were connected to s without mcpx.
func counted(s *catalog.Server) bool {
	return s.Known && s.State != catalog.Disabled && s.Name != builtin.Name
}

// direct returns, for each server, how many tokens the definitions of its tools take in a request to a model.
func (t *texts) direct(snap *catalog.Snapshot) []request.Saving {
	c := t.forCatalogue(snap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.direct != nil {
		return c.direct
	}
	c.direct = []request.Saving{}
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if !counted(s) {
			continue
		}
		one := request.Saving{Server: s.Name}
		for j := range s.Tools {
			d := Definition{s.Tools[j].Name, s.Tools[j].Description, s.Tools[j].InputSchema}
			one.Tokens += tokens.Estimate(string(wire.Encode(d)))
		}
		c.direct = append(c.direct, one)
	}
	return c.direct
}

// unloaded is for a client that searches for tools itself. It returns, for each server, the tokens of the text about the server
// that the client shows its model.
func unloaded(snap *catalog.Snapshot, searcher *describe.Searcher) (all []request.Saving) {
	for i := range snap.Servers {
		if s := &snap.Servers[i]; counted(s) {
			shown := describe.Unloaded{Name: s.Name, Instructions: s.Instructions, Tools: s.Tools}
			all = append(all, request.Saving{Server: s.Name, Tokens: tokens.Estimate(searcher.Shows(shown))})
		}
	}
	return all
}

// lookedUp counts the tokens of an answer of inspect as spent, because the answer contains definitions. It counts none for a
// client that searches for tools itself, because this client would have loaded the same definitions without mcpx.
func (v *TwoTools) lookedUp(call Call, answer *results.Result) {
	if call.Event == nil || v.searcher(call.Client) != nil {
		return
	}
	content := answer.Content
	call.Event.Definitions = sync.OnceValue(func() []request.Saving {
		spent := 0
		for _, raw := range content {
			spent += results.Roughly(wire.ReadBlock(raw).Text)
		}
		return []request.Saving{{Server: builtin.Name, Tool: InspectTool, Tokens: -spent}}
	})
}
