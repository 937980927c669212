package builtin

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// The skills of all servers (SEP-2640) are presented as tools of the built-in server. The catalogue lists their
// names within its token budget, inspect and search find them, and a call of such a tool reads the skill's
// manifest.

// skill is a skill of a server, and the tool by which clients read the skill.
type skill struct {
	tool   catalog.Tool
	server *catalog.Server
	uri    string // the URI of the manifest on its server
}

// skillSchema is the schema of all skills. All share this one value, because package arguments finds the compiled form of a schema
// by the schema's address.
var skillSchema = json.RawMessage(`{"type":"object"}`)

// skills returns the skills of the servers in snap, under unique names. It returns nil if the config hides resources.
func (m *Server) skills(snap *catalog.Snapshot) (all []skill) {
	if shown, _ := m.Shown(); !shown {
		return nil
	}
	taken := make(map[string]bool)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		for _, item := range s.Items.Of(catalog.Skills) {
			about := wire.Member(item.Raw, "frontmatter")
			own := cmp.Or(wire.MemberText(about, "name"), path.Base(path.Dir(item.Name)))
			name := "skill_" + own
			if taken[name] {
				name = "skill_" + s.Name + "_" + own
			}
			if taken[name] {
				continue // the server lists the same skill twice
			}
			taken[name] = true
			tool := m.all.Tools[0] // a copy, for its annotations
			tool.Name, tool.InputSchema = name, skillSchema
			tool.Description = "Skill: " + strings.TrimSpace(wire.MemberText(about, "description"))
			all = append(all, skill{tool, s, item.Name})
		}
	}
	return all
}

// withSkills adds skills as tools to the server.
func withSkills(s *catalog.Server, skills []skill) *catalog.Server {
	var tools []catalog.Tool
	for _, one := range skills {
		tools = append(tools, one.tool)
	}
	return with(s, tools)
}

// skillURI returns the arguments with which the tool read_resource reads the manifest of the skill with this name.
func (m *Server) skillURI(snap *catalog.Snapshot, name string) json.RawMessage {
	for _, one := range m.skills(snap) {
		if one.tool.Name == name {
			return wire.WithMember(nil, "uri", wire.Encode(snap.Link(one.server, one.uri)))
		}
	}
	return json.RawMessage(`{}`) // the skill was removed a moment ago
}
