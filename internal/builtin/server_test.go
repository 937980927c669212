package builtin

import (
	"encoding/json"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/programs"
)

// TestServer_SameSchemas: the schemas of the tools stay where they are in memory. Package arguments finds the compiled form of a schema by
// its address: a schema with a new one is compiled at each call, and pushes out those of other servers in the end.
func TestServer_SameSchemas(t *testing.T) {
	s := New()
	runs := NewPrograms(programs.Limits{}, []*programs.Stored{{Name: "stored", Schema: `{"type":"object"}`}})
	s.Programs = func() *Programs { return runs }
	s.Shown = func() (resources, prompts bool) { return true, true }
	skills, faults := catalog.DecodeItems(catalog.Skills, []json.RawMessage{json.RawMessage(`{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf"}}`)})
	if len(skills) != 1 {
		t.Fatal(faults)
	}
	snap := catalog.NewSnapshot([]catalog.Server{{Name: "a", Known: true, Items: &catalog.Items{Skills: skills}}})
	nothing := func(string) bool { return false }
	one, two := s.Server(snap, true, nothing), s.Server(snap, true, nothing)
	for _, name := range []string{"read_result", SaveTool, RunTool, "stored", "skill_pdf"} {
		first, there := one.Tool(name)
		second, _ := two.Tool(name)
		if !there || &first.InputSchema[0] != &second.InputSchema[0] {
			t.Errorf("%s: there %v, or the schema has moved", name, there)
		}
	}
}
