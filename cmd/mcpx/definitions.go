package main

import (
	"fmt"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/terminal"
	"mcpx/internal/budget"
)

// definitions says how many tokens of tool definitions each request to the model contains, if the client puts all definitions into
// it.
type definitions struct {
	Direct int `json:"direct"` // without mcpx: the client is connected to each server
	MCPX   int `json:"mcpx"`
}

// definitionsOf counts the tokens for the servers whose tools are known. It returns nil if no tools are known.
func definitionsOf(a *app.App) *definitions {
	meter := &budget.Meter{Surface: surfaceOf(a)}
	d := &definitions{}
	if d.Direct, d.MCPX = meter.Totals(a.Executor.Catalogue(nil)); d.Direct == 0 {
		return nil
	}
	return d
}

// surfaceOf returns a function for [budget.Meter]. That function returns mcpx's own tools and instructions, which a client of mcpx
// gets in place of the servers' tools and instructions.
func surfaceOf(a *app.App) func(*catalog.Snapshot, string) ([]budget.Definition, string) {
	return func(snap *catalog.Snapshot, client string) (tools []budget.Definition, instructions string) {
		list, instructions := a.View.Surface(snap, client)
		for _, d := range list {
			tools = append(tools, budget.Definition(d))
		}
		return tools, instructions
	}
}

func (d *definitions) String() string {
	return fmt.Sprintf("tool definitions in every request: %s tokens directly, %s through mcpx (%+.1f %%); clients that search for tools "+
		"themselves carry less", terminal.Number(d.Direct), terminal.Number(d.MCPX), 100*(float64(d.MCPX)/float64(d.Direct)-1))
}
