package executor

import (
	"encoding/json"

	"mcpx/internal/aggregate"
	"mcpx/internal/catalog"
	"mcpx/internal/policy"
	"mcpx/internal/upstream"
)

// Beside are the servers of a part of the catalogue, nil = all, with all that they have
// beside tools.
func (e *Executor) Beside(client *upstream.Client, part *policy.Part) *aggregate.Servers {
	options := e.current.Load()
	return &aggregate.Servers{
		Registry:    e.registry,
		Catalogue:   func() *catalog.Snapshot { return part.Of(e.Catalogue(client)) },
		Has:         part.Has,
		Separator:   options.Separator,
		NoResources: options.NoResources, NoPrompts: options.NoPrompts,
		Wait: options.ExecWait,
	}
}

// Failure is the failure of a request to a server that ended with err.
func (e *Executor) Failure(server, method string, err error) *Failure {
	return e.begin().failure(Request{Server: server, Tool: method}, target{}, err)
}

// Data is the failure as a JSON object: its code, message, and what else it carries.
func (f *Failure) Data() json.RawMessage {
	data, _ := append(object{{"code", f.Code}, {"message", f.Message}}, f.fields...).MarshalJSON()
	return data
}
