package view

import (
	"encoding/json"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// MCP Apps: a host that shows the user interfaces of tools needs to see these tools themselves, with the URI of the interface
// in _meta, and passes on the calls that an app makes. Hosts hide tools that are only for apps from the model.

// maxApps is the maximum number of tools with apps that are listed next to inspect and exec, because each costs tokens in
// every request to the model. The other tools can be called with exec.
const maxApps = 20

// forApps returns the part of the catalogue that the view shows to a client, including the tools that are only for apps.
func (b *base) forApps(client *caller.Client) *catalog.Snapshot {
	return b.scope().Of(b.executor.Apps(client))
}

// withApps returns a catalogue that has only the tools to list next to inspect and exec. These are the first maxApps tools
// that have an app and, for the servers of these tools, also the tools that only apps may call.
func withApps(snap *catalog.Snapshot) *catalog.Snapshot {
	left := maxApps
	servers := make([]catalog.Server, len(snap.Servers))
	for i := range snap.Servers {
		s := &snap.Servers[i]
		var listed, own []catalog.Tool
		for j := range s.Tools {
			switch t := &s.Tools[j]; {
			case t.AppOnly:
				own = append(own, *t)
			case t.App != "" && left > 0:
				left--
				listed = append(listed, *t)
			}
		}
		if len(listed) > 0 {
			listed = append(listed, own...)
		}
		servers[i] = s.WithTools(listed)
	}
	return catalog.NewSnapshot(servers)
}

// apps returns the tools that are listed for a client next to inspect and exec; nil if there are none.
func (v *TwoTools) apps(client *caller.Client) *natives {
	if !client.ShowsApps() {
		return nil
	}
	return v.appsOf(v.forApps(client))
}

// appsOnly is the key under which catalog.Snapshot.Derived caches the result of withApps.
type appsOnly struct{}

func (v *TwoTools) appsOf(snap *catalog.Snapshot) *natives {
	listed := snap.Derived(appsOnly{}, func() *catalog.Snapshot { return withApps(snap) })
	return v.texts.natives(listed, v.current().Naming)
}

// joined concatenates two JSON arrays. The first array must not be empty.
func joined(a, b json.RawMessage) json.RawMessage {
	if len(b) <= len("[]") {
		return a
	}
	return append(append(append(make(json.RawMessage, 0, len(a)+len(b)), a[:len(a)-1]...), ','), b[1:]...)
}

// linkedApp replaces the URI of the app in a definition by the URI under which clients can read the app through mcpx. The new
// URI contains the name of the server, so it stays the same whatever the servers list.
func linkedApp(s *catalog.Server, raw json.RawMessage) json.RawMessage {
	link := wire.EditText(s.AppURI)
	return wire.Edit(raw, "_meta", func(meta json.RawMessage) json.RawMessage {
		if meta[0] != '{' {
			return meta
		}
		meta = wire.Edit(meta, "ui/resourceUri", link)
		return wire.Edit(meta, "ui", func(ui json.RawMessage) json.RawMessage {
			if ui[0] != '{' {
				return ui
			}
			return wire.Edit(ui, "resourceUri", link)
		})
	})
}

// appNames adds to byName the tools that apps may call, under the names that their servers gave them, because the code of an app
// knows no other names. It leaves out a tool if its name is already in byName, or if several of these tools have the same name.
func appNames(snap *catalog.Snapshot, byName map[string]origin) {
	owners := make(map[string]int)
	each := func(f func(s *catalog.Server, t *catalog.Tool)) {
		for i := range snap.Servers {
			s := &snap.Servers[i]
			for j := range s.Tools {
				if t := &s.Tools[j]; t.AppOnly || t.App != "" {
					f(s, t)
				}
			}
		}
	}
	each(func(_ *catalog.Server, t *catalog.Tool) { owners[t.Name]++ })
	each(func(s *catalog.Server, t *catalog.Tool) {
		if _, taken := byName[t.Name]; !taken && owners[t.Name] == 1 {
			byName[t.Name] = origin{name: t.Name, server: s.Name, tool: t.Name}
		}
	})
}
