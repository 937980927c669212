package executor

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/builtin"
	"mcpx/internal/mcptest"
)

// TestSkills: the skills of all servers become tools of the built-in server mcpx, each with a unique name. A call of such a
// tool reads the manifest of the skill.
func TestSkills(t *testing.T) {
	bubble(t, func(t *testing.T) {
		raw := func(text string) json.RawMessage { return json.RawMessage(text) }
		skilled := mcptest.Spec{
			Resources: raw(`[{"uri":"skill://pdf/SKILL.md","name":"pdf"}]`),
			MethodResults: map[string]json.RawMessage{
				"initialize":  raw(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}},"serverInfo":{"name":"x","version":"1"}}`),
				"skills/list": raw(`{"skills":[{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"Fills forms."},"resources":[]}]}`),
			},
		}
		first, second := skilled, skilled
		first.Name, second.Name = "first", "second"
		e := executing(t, Options{}, nil, piped(t, "a", first), piped(t, "b", second), piped(t, "c", mcptest.Spec{}))
		e.registry.WaitListed(t.Context(), nil)
		reader := e.Reader(nil, nil, e.Catalogue(nil))
		if reader == nil {
			t.Fatal("there is nothing to read")
		}
		for name, want := range map[string]string{"skill_pdf": "first has skill://pdf/SKILL.md", "skill_b_pdf": "second has skill://pdf/SKILL.md"} {
			if tool, ok := reader.Tool(name); !ok || tool.Description != "Skill: Fills forms." {
				t.Errorf("%s: %+v", name, tool)
			}
			if got := said(t, exec(t, e, Request{Server: builtin.Name, Tool: name})); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if got := said(t, exec(t, e, Request{Server: builtin.Name, Tool: "skill_doc"})); !strings.HasPrefix(got, "TOOL_NOT_FOUND") {
			t.Errorf("got %q", got)
		}
	})
}
