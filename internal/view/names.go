package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/catalog"
	"mcpx/internal/resources"
)

// Naming says how a view names prompts. If the view lists the servers' own tools, Naming also says how it names these tools.
type Naming struct {
	// Separator joins the names of server and tool; "" means two underscores.
	Separator string
	// Prefix says which names begin with the server's name; "" means PrefixAlways.
	Prefix string
	// Transparent means that the view shows a single server as if mcpx were not there: resources and prompts are as the server
	// sent them.
	Transparent bool
}

// The values of [Naming.Prefix]. A view never lists two tools under the same name: with PrefixNever, if several servers have a tool
// of one name, only the first of these tools has no prefix.
const (
	PrefixAlways   = "always"
	PrefixConflict = resources.PrefixConflict // only names that several servers have
	PrefixNever    = resources.PrefixNever
)

// maxName is the maximum length of a name, in characters, because model providers refuse longer names.
const maxName = 64

// origin is the server and the tool to which a listed name belongs.
type origin struct {
	name         string
	server, tool string
}

// names gives a name to each tool of a catalogue, in the catalogue's order. The names depend only on n and the catalogue, so
// they are the same in every process.
func (n Naming) names(snap *catalog.Snapshot) (all []origin, byName map[string]origin) {
	servers := make(map[string]int) // how many servers have a tool of this name
	for i := range snap.Servers {
		for j := range snap.Servers[i].Tools {
			servers[snap.Servers[i].Tools[j].Name]++
		}
	}
	all, byName = make([]origin, 0, snap.Tools()), make(map[string]origin, snap.Tools())
	for i := range snap.Servers {
		s := &snap.Servers[i]
		for j := range s.Tools {
			tool := s.Tools[j].Name
			o := origin{name: tool, server: s.Name, tool: tool}
			_, taken := byName[tool]
			if n.Prefix == "" || n.Prefix == PrefixAlways || n.Prefix == PrefixConflict && servers[tool] > 1 || taken {
				o.name = n.prefixed(s.Name, tool)
			}
			whole := s.Name + "\x00" + tool
			for _, taken := byName[o.name]; taken || utf8.RuneCountInString(o.name) > maxName; _, taken = byName[o.name] {
				o.name = hashed(o.name, whole)
				whole += "\x00" // changes the hash, if another tool already has exactly this name
			}
			byName[o.name] = o
			all = append(all, o)
		}
	}
	return all, byName
}

// prefixed puts the server's name before a tool's name. Dots in the server's name are replaced, because model providers refuse
// them; the tool's own name is not changed.
func (n Naming) prefixed(server, tool string) string {
	separator := n.Separator
	if separator == "" {
		separator = "__"
	}
	return strings.ReplaceAll(server, ".", "_") + separator + tool
}

// hashed shortens a name to at most maxName characters: it keeps the beginning and adds a hash of identity. identity differs
// for each tool, so that different tools get different names.
func hashed(name, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	suffix := "_" + hex.EncodeToString(sum[:4])
	runes := []rune(name)
	return string(runes[:min(len(runes), maxName-len(suffix))]) + suffix
}
