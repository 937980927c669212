// Package resources presents the resources, prompts and completions of many servers as those of one: it lists them under
// unique names, and passes requests on to the right server. It keeps no state between requests.
package resources

import (
	"context"
	"slices"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
)

// Servers are the servers that one view shows.
type Servers struct {
	Registry *registry.Registry
	// Catalogue returns the newest catalogue that the caller may see.
	Catalogue func() *catalog.Snapshot
	// Scope returns the part of the catalogue that the view shows now; nil means all of it.
	Scope func() *policy.Scope
	// Has reports whether the view shows a server; if nil, it shows all servers.
	Has func(server string) bool
	// Explain turns the error of a message to a server into the error that the client gets. If Explain is nil, the client gets err
	// itself.
	Explain func(method string, err *ServerError) error
	// Separator stands between the name of a server and the name of its prompt, in the names that clients see.
	Separator string
	// Prefix says which prompts get the name of their server as a prefix; empty means all. With PrefixNever, a prompt still gets
	// the prefix in two cases: a server that comes before its own in the catalogue has a prompt of the same name, or another prompt
	// has this name together with its prefix.
	Prefix string
	// Untag removes the tag from the id of a task ([Task]). ok says whether the tag is valid for the client. If Untag is nil, ids
	// have no tag.
	Untag func(tagged string) (id string, ok bool)
	// Replicas means that the ids of tasks also name the replica, a process of mcpx, that has made them ([Task]).
	Replicas bool
	// NoResources and NoPrompts hide the resources or prompts of all servers.
	NoResources, NoPrompts bool
	// Transparent means that the view passes one server through as if mcpx were not there: names and definitions are as the server
	// sent them.
	Transparent bool
	// Wait is how long a request waits for a server that is starting, at most. ListWait is how long the method List waits, at most,
	// for servers that mcpx tries for the first time.
	Wait, ListWait time.Duration
}

// The values of [Servers.Prefix] other than "".
const (
	PrefixConflict = "conflict" // only prompts whose name several servers have
	PrefixNever    = "never"
)

// Shows reports whether clients see items of a kind. NoResources and NoPrompts hide them.
func (s *Servers) Shows(kind catalog.Kind) bool {
	if kind == catalog.Prompts {
		return !s.NoPrompts
	}
	return !s.NoResources
}

// Offers returns what the servers offer besides tools, all taken together. If the offers of a server are not known yet, it is taken
// to offer resources, subscriptions, prompts and completions, because the handshake with the client does not wait for the server.
func (s *Servers) Offers() (offers catalog.Offers) {
	snap := s.Catalogue()
	for i := range snap.Servers {
		server := &snap.Servers[i]
		one := server.Offers
		if !server.Listed && !server.Tried && up(server) {
			one = catalog.Offers{Resources: true, Subscribe: true, Prompts: true, Completions: true}
		}
		offers.Others = one.Others // used only if there is a single server
		offers.Resources = offers.Resources || one.Resources && !s.NoResources
		offers.Subscribe = offers.Subscribe || one.Subscribe && !s.NoResources
		offers.Prompts = offers.Prompts || one.Prompts && !s.NoPrompts
		offers.Tasks = offers.Tasks || one.Tasks
		offers.Completions = offers.Completions || one.Completions && !(s.NoResources && s.NoPrompts)
	}
	return offers
}

// Listed returns the servers that have items of a kind and to which requests can be sent.
func (s *Servers) Listed(kind catalog.Kind) []*catalog.Server {
	var all []*catalog.Server
	snap := s.Catalogue()
	for i := range snap.Servers {
		if one := &snap.Servers[i]; s.Shows(kind) && up(one) && len(one.Items.Of(kind)) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// Starting reports whether any server has not listed its items yet. It ignores servers that are down, and servers that mcpx has
// tried already at an earlier start.
func (s *Servers) Starting() bool { return anyUnlisted(s.Catalogue()) }

func anyUnlisted(snap *catalog.Snapshot) bool {
	return slices.ContainsFunc(snap.Servers, func(s catalog.Server) bool { return !s.Listed && !s.Tried && up(&s) })
}

// separator returns the separator for prompt names. It returns an empty string in a transparent view, where prompts keep their
// names.
func (s *Servers) separator() string {
	if s.Transparent {
		return ""
	}
	return s.Separator
}

// bare returns the server of the prompt that clients see under its own name, without a prefix. It returns nil if there is no such
// prompt.
func (s *Servers) bare(snap *catalog.Snapshot, name string) *catalog.Server {
	if s.Prefix == "" {
		return nil
	}
	if _, _, another := snap.Prompt(name, s.separator()); another {
		return nil // with its prefix, another prompt has this name
	}
	var first *catalog.Server
	for i := range snap.Servers {
		one := &snap.Servers[i]
		if !slices.ContainsFunc(one.Items.Of(catalog.Prompts), func(item catalog.Item) bool { return item.Name == name }) {
			continue
		}
		if first != nil && s.Prefix == PrefixConflict {
			return nil
		}
		if first == nil {
			first = one
		}
	}
	return first
}

// awaitLists waits until the servers have listed their items or cannot do so now, but at most for limit. It does not wait for
// servers that mcpx has already tried at an earlier start.
func (s *Servers) awaitLists(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.Registry.WaitListed(ctx, s.Has)
}

// up reports whether requests can be sent to a server. The server may still be starting, or may start only when a request comes.
func up(s *catalog.Server) bool {
	return s.State != catalog.Unavailable && s.State != catalog.Disabled
}
