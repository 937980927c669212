package executor

import (
	"bytes"
	"context"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/policy"
	"mcpx/internal/resources"
	"mcpx/internal/results"
)

// Resources returns the resources and prompts that a client may see. The func part returns the part of the catalogue to which
// they are limited, or nil for the whole catalogue; it is called on every use.
func (e *Executor) Resources(client *caller.Client, part func() *policy.Scope) *resources.Servers {
	options := e.current()
	catalogue := func() *catalog.Snapshot { return part().Of(e.Catalogue(client)) }
	return &resources.Servers{
		Registry:  e.registry,
		Catalogue: catalogue,
		Scope:     part,
		Has: func(server string) bool {
			_, ok := catalogue().Server(server)
			return ok
		},
		Untag:       e.untag(client),
		Replicas:    e.replica != "",
		Separator:   options.Separator,
		NoResources: options.NoResources, NoPrompts: options.NoPrompts,
		Wait: options.ExecWait, ListWait: options.ExecWait,
	}
}

// Kinds reports whether mcpx shows resources, and whether it shows prompts.
func (e *Executor) Kinds() (shown struct{ Resources, Prompts bool }) {
	options := e.current()
	shown.Resources, shown.Prompts = !options.NoResources, !options.NoPrompts
	return shown
}

// beforeTag separates the id of a task from its signature, the tag. No tag contains it.
const beforeTag = "~"

// tagOf returns a func that signs the id of a task for the client's principal, so that no other principal can use the id. It
// returns nil if the client has no principal.
func (e *Executor) tagOf(client *caller.Client) func(id string) string {
	if client == nil || client.Principal == nil {
		return nil
	}
	return func(id string) string { return beforeTag + e.tags.Of(client.Principal, id) }
}

// untag returns a func that removes the tag from the id of a task, and reports whether the tag was made for the client's
// principal. It returns nil if the client has no principal.
func (e *Executor) untag(client *caller.Client) func(tagged string) (id string, ok bool) {
	if client == nil || client.Principal == nil {
		return nil
	}
	return func(tagged string) (id string, ok bool) {
		at := max(0, strings.LastIndex(tagged, beforeTag))
		tag, ok := strings.CutPrefix(tagged[at:], beforeTag)
		return tagged[:at], ok && e.tags.Is(tag, client.Principal, tagged[:at])
	}
}

// Failure returns the failure for an error of a request that is not a call. Its text has the method in place of a tool's name.
func (e *Executor) Failure(server, method string, err error) *results.Failure {
	return e.begin().failure(&Request{Server: server, Tool: method}, target{}, err)
}

// nameLinks replaces the URIs of resources in a server's content blocks by the URIs under which the client can read them. It
// needs the server's list of resources to know which URIs are resources, and waits up to ExecWait for that list if it is not
// there yet.
func (e run) nameLinks(ctx context.Context, blocks []wire.Block, r *Request, server *catalog.Server) {
	if e.options.NoResources || server == nil || !server.Offers.Resources {
		return
	}
	snap := r.Catalogue
	for i, b := range blocks {
		if b.IsText {
			continue
		}
		if !server.Listed && snap == r.Catalogue {
			bounded, cancel := context.WithTimeout(ctx, e.options.ExecWait)
			e.registry.WaitListedOne(bounded, server.Name)
			cancel()
			snap = e.visible(r)
			if now, ok := snap.Server(server.Name); ok {
				server = now
			}
		}
		if named := resources.Block(snap, server, b.Raw); !bytes.Equal(named, b.Raw) {
			blocks[i] = wire.ReadBlock(named)
		}
	}
}
