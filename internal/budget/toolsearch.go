package budget

import (
	"mcpx/internal/base/catalog"
	"mcpx/internal/describe"
	"mcpx/internal/tokens"
)

// searching measures the requests of clients that search for tools themselves.
func (m *Meter) searching(snap *catalog.Snapshot) (list []Search) {
	for _, c := range describe.Searchers {
		own, instructions := m.Surface(snap, c.Name)
		one := Search{Client: c.Client}
		for i := range snap.Servers {
			s := &snap.Servers[i]
			one.Direct += tokens.Count(c.Shows(describe.Unloaded{Name: s.Name, Instructions: s.Instructions, Tools: s.Tools}))
		}
		mcpx := describe.Unloaded{Name: "mcpx", Instructions: instructions}
		if c.Loads {
			one.Surface = sumTokens(own)
		} else {
			for _, d := range own {
				mcpx.Tools = append(mcpx.Tools, catalog.Tool{Name: d.Name, Description: d.Description})
			}
		}
		one.Surface += tokens.Count(c.Shows(mcpx))
		list = append(list, one)
	}
	return list
}

// Definitions returns tools as they are in a request to a model.
func Definitions(tools []catalog.Tool) []Definition {
	list := make([]Definition, len(tools))
	for i, t := range tools {
		list[i] = Definition{t.Name, t.Description, t.InputSchema}
	}
	return list
}
