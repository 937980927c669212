package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/catalog"
	"mcpx/internal/resources"
)

// Naming says how a view names tools, if it shows them all, and prompts.
type Naming struct {
	// Separator stands between the name of a server and that of its tool; empty = two
	// underscores.
	Separator string
	// Prefix says which names begin with that of the server; empty = PrefixAlways.
	Prefix string
	// Alone means that the view shows one server as if nothing stood before it: its
	// resources and prompts are as it sent them.
	Transparent bool
}

// The values of [Naming.Prefix]. Two tools never have one name: the names that
// PrefixNever would give twice have a prefix all the same, but for the first.
const (
	PrefixAlways   = "always"
	PrefixConflict = resources.PrefixConflict // names that several servers have
	PrefixNever    = resources.PrefixNever
)

// maxName bounds a name, in characters: providers of models refuse longer ones.
const maxName = 64

// origin is the tool behind a name.
type origin struct {
	name         string
	server, tool string
}

// names are the names of all tools of a catalogue, in its order. They depend on nothing
// but the catalogue: every process gives a tool the same name.
func (n Naming) names(snap *catalog.Snapshot) (all []origin, byName map[string]origin) {
	servers := make(map[string]int) // of a tool's name
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
				whole += "\x00" // a tool may be named like the hash of another
			}
			byName[o.name] = o
			all = append(all, o)
		}
	}
	return all, byName
}

// prefixed is a name with that of the server. Providers of models refuse dots, which
// server names may have; a tool's own name stays as it is.
func (n Naming) prefixed(server, tool string) string {
	separator := n.Separator
	if separator == "" {
		separator = "__"
	}
	return strings.ReplaceAll(server, ".", "_") + separator + tool
}

// hashed is a name of at most maxName characters that tells what it stands for: the
// beginning of a name, and a hash of the whole.
func hashed(name, whole string) string {
	sum := sha256.Sum256([]byte(whole))
	suffix := "_" + hex.EncodeToString(sum[:4])
	runes := []rune(name)
	return string(runes[:min(len(runes), maxName-len(suffix))]) + suffix
}
