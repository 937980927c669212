package resources

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sort"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// Page is one page of the items of a kind (resources, templates or prompts), as clients see them. It has at most pageItems items.
type Page struct {
	Items []json.RawMessage
	// Next is the cursor of the next page, empty after the last page.
	Next string
}

// pageItems is the number of items of a full page. It is large because some clients read only the first page.
const pageItems = 1000

// List returns one page of the items of a kind, server by server, in the order in which each server lists them. It leaves out
// servers that are down. ok is false if the cursor is invalid.
func (s *Servers) List(ctx context.Context, kind catalog.Kind, cursor string) (page Page, ok bool) {
	at, ok := readCursor(kind, cursor)
	if !ok {
		return Page{}, false
	}
	if cursor == "" {
		s.awaitLists(ctx, s.ListWait)
	}
	snap := s.Catalogue()
	first := sort.Search(len(snap.Servers), func(i int) bool { return snap.Servers[i].Name >= at.Server })
	for i := first; i < len(snap.Servers); i++ {
		server := &snap.Servers[i]
		items := server.Items.Of(kind)
		if !up(server) {
			continue
		}
		n := 0
		if server.Name == at.Server {
			n = at.after(items)
		}
		for ; n < len(items); n++ {
			if len(page.Items) == pageItems {
				page.Next = position{kind, server.Name, n, items[n].Name}.cursor()
				return page, true
			}
			page.Items = append(page.Items, s.item(snap, server, kind, items[n]))
		}
	}
	return page, true
}

// item returns an item as clients see it. It is as its server sent it, but with a unique URI or name, and with the server and the
// server's own URI or name in _meta (request.Origin). In a transparent view nothing is added or changed.
func (s *Servers) item(snap *catalog.Snapshot, server *catalog.Server, kind catalog.Kind, item catalog.Item) json.RawMessage {
	if s.Transparent {
		return item.Raw
	}
	name, own := s.named(snap, server, kind, item.Name), "uri"
	if kind == catalog.Prompts {
		own = "name"
	}
	raw := wire.Edit(item.Raw, kind.Member(), wire.EditText(func(string) string { return name }))
	origin := wire.WithMember(nil, "server", wire.Encode(server.Name))
	origin = wire.WithMember(origin, own, wire.Encode(item.Name))
	return request.WithMeta(raw, request.Origin, origin)
}

// named returns the URI or name by which clients know an item. own is the one that the server gave it.
func (s *Servers) named(snap *catalog.Snapshot, server *catalog.Server, kind catalog.Kind, own string) string {
	if kind == catalog.Prompts {
		if s.bare(snap, own) == server {
			return own
		}
		return snap.PromptName(server, own, s.separator())
	}
	return snap.URI(kind, server, own)
}

// position says where a page begins. It is all that a cursor contains, so a cursor stays valid after a restart and in other
// processes.
type position struct {
	Kind   catalog.Kind
	Server string
	Index  int
	Item   string // the URI or name of the item at Index when the cursor was made
}

func (p position) cursor() string {
	return base64.RawURLEncoding.EncodeToString(wire.Encode(p))
}

// readCursor reads a cursor. An empty cursor means the beginning of the first page. ok is false if the cursor is invalid.
func readCursor(kind catalog.Kind, cursor string) (p position, ok bool) {
	if cursor == "" {
		return p, true
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return p, false
	}
	return p, p.Kind == kind && p.Server != "" && p.Index >= 0
}

// after returns the index in items of the first item of the page. If the list has changed since the cursor was made, the page still
// begins with the same item, if the list still has it.
func (p position) after(items []catalog.Item) int {
	if p.Index < len(items) && items[p.Index].Name == p.Item {
		return p.Index
	}
	if i := slices.IndexFunc(items, func(item catalog.Item) bool { return item.Name == p.Item }); i >= 0 {
		return i
	}
	return min(p.Index, len(items))
}
