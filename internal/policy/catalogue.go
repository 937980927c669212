package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"mcpx/internal/base/catalog"
)

// Catalogues computes what callers may see of a snapshot of the registry, which holds all servers and their tools. The zero value
// is ready for use. Several goroutines may use it at the same time.
//
// The same snapshot always gives the same catalogue. If a new snapshot has a server with the same tools and rules, the server keeps
// its list of tools. So caches can recognize the list by its pointer.
type Catalogues struct {
	// Apps means that the catalogue also has those tools that only the user interfaces of their servers (MCP Apps) may call.
	Apps bool

	mu   sync.Mutex
	from *catalog.Snapshot // the snapshot from which made was computed
	made *catalog.Snapshot
}

// Of returns what a caller may see of a snapshot: everything except the tools that the rules of the snapshot hide.
func (c *Catalogues) Of(snap *catalog.Snapshot) *catalog.Snapshot { return c.of(snap, c.Apps) }

func (c *Catalogues) of(snap *catalog.Snapshot, apps bool) *catalog.Snapshot {
	return snap.Derived(c, func() *catalog.Snapshot { return c.make(snap, apps) })
}

func (c *Catalogues) make(snap *catalog.Snapshot, apps bool) *catalog.Snapshot {
	rules := snap.Rules
	if rules == nil {
		rules = &Rules{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	same := c.from != nil && sameFilters(snap.Rules, c.from.Rules)
	servers := make([]catalog.Server, len(snap.Servers))
	own, _ := rules.(*Rules)
	for i := range snap.Servers {
		servers[i] = c.server(&snap.Servers[i], rules, apps, same)
		servers[i].Limited = servers[i].Limited || own.limits(servers[i].Name)
	}
	c.from, c.made = snap, catalog.NewSnapshot(servers)
	c.made.Empty = snap.Empty
	return c.made
}

// sameFilters reports whether two sets of rules are equal, apart from the rights of principals.
func sameFilters(a, b catalog.Rules) bool {
	one, ok1 := a.(*Rules)
	other, ok2 := b.(*Rules)
	if !ok1 || !ok2 || one == nil || other == nil {
		return reflect.DeepEqual(a, b)
	}
	x, y := *one, *other
	x.Rights, y.Rights = nil, nil
	return reflect.DeepEqual(x, y)
}

// server returns the visible part of a server. unchanged means that the rules are the same as in the last call. If the tools are
// also the same, server returns the list of tools that it made in the last call.
func (c *Catalogues) server(s *catalog.Server, rules catalog.Rules, apps, unchanged bool) catalog.Server {
	if unchanged {
		was, known := c.from.Server(s.Name)
		if known && catalog.SameTools(was.Tools, s.Tools) {
			made, _ := c.made.Server(s.Name)
			kept := s.WithToolsOf(made)
			kept.Hidden = made.Hidden
			return kept
		}
	}
	var by []string
	kept, asSent := make([]catalog.Tool, 0, len(s.Tools)), true
	for i := range s.Tools {
		tool, setting := see(s, &s.Tools[i], rules, apps)
		asSent = asSent && tool == &s.Tools[i]
		if setting == "" {
			kept = append(kept, *tool)
		} else if !slices.Contains(by, setting) {
			by = append(by, setting)
		}
	}
	if asSent {
		return *s
	}
	visible := s.WithTools(kept)
	if len(kept) == 0 {
		visible.Hidden = hidden(s, by)
	}
	return visible
}

// see returns the tool as callers see it, or the reason why it is hidden: the result of rules.See. If apps is true, tools that are
// only for apps are visible too.
func see(s *catalog.Server, t *catalog.Tool, rules catalog.Rules, apps bool) (seen *catalog.Tool, hiddenBy string) {
	if !apps || !t.AppOnly {
		return rules.See(s, t)
	}
	forAll := *t
	forAll.AppOnly = false
	if seen, hiddenBy = rules.See(s, &forAll); hiddenBy != "" {
		return nil, hiddenBy
	}
	if seen == &forAll {
		return t, ""
	}
	seen.AppOnly = true
	return seen, ""
}

// hidden returns a text that explains why no tool of a server is visible. by has the config keys that hide its tools. If the
// caller's rights hide tools, the text is empty, because the caller must not learn of these tools.
func hidden(s *catalog.Server, by []string) string {
	if slices.Contains(by, byRights) {
		return ""
	}
	text := fmt.Sprintf("its %d tools are all hidden by %s", len(s.Tools), strings.Join(by, ", "))
	if len(s.Tools) == 1 {
		text = "its only tool is hidden by " + by[0]
	}
	if slices.Contains(by, ByReadOnly) {
		text += " (a tool counts as read-only if it declares readOnlyHint)"
	}
	if slices.Contains(by, ByPin) {
		text += " (mcpx lock approves them)"
	}
	if slices.Contains(by, byDial) {
		text += " (an admin approves them: /api/dialled/" + s.Name + ")"
	}
	if slices.Contains(by, ByVisibility) {
		text += " (meant for its own app)"
	}
	return text
}
