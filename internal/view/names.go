package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/catalog"
	"mcpx/internal/resources"
)

// Naming says how a view names prompts and, if it shows them all, tools.
type Naming struct {
	// Separator joins the names of server and tool; empty = two underscores.
	Separator string
	// Prefix says which names begin with the server's name; empty = PrefixAlways.
	Prefix string
	// Transparent means that the view passes one server through as if mcpx were not there: resources and prompts are as
	// the server sent them.
	Transparent bool
}

// The values of [Naming.Prefix]. Two tools never share a name: under PrefixNever, only the first of several tools with the same name
// has no prefix.
const (
	PrefixAlways   = "always"
	PrefixConflict = resources.PrefixConflict // names that several servers have
	PrefixNever    = resources.PrefixNever
)

// maxName bounds a name, in characters: model providers refuse longer ones.
const maxName = 64

// origin is the tool behind a name.
type origin struct {
	name         string
	server, tool string
}

// names names all tools of a catalogue, in its order. The names depend only on the catalogue, so they are the same in every
// process.
func (n Naming) names(snap *catalog.Snapshot) (all []origin, byName map[string]origin) {
	servers := make(map[string]int) // how many servers have a tool of that name
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
				whole += "\x00" // another tool may have this very name
			}
			byName[o.name] = o
			all = append(all, o)
		}
	}
	return all, byName
}

// prefixed puts the server's name in front of a tool's. Model providers refuse dots, which server names may contain; the tool's
// own name stays unchanged.
func (n Naming) prefixed(server, tool string) string {
	separator := n.Separator
	if separator == "" {
		separator = "__"
	}
	return strings.ReplaceAll(server, ".", "_") + separator + tool
}

// hashed shortens a name to at most maxName characters: its beginning, and a hash of the whole.
func hashed(name, whole string) string {
	sum := sha256.Sum256([]byte(whole))
	suffix := "_" + hex.EncodeToString(sum[:4])
	runes := []rune(name)
	return string(runes[:min(len(runes), maxName-len(suffix))]) + suffix
}
