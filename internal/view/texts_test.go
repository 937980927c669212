package view

import (
	"testing"

	"mcpx/internal/catalog"
)

// TestSameCatalogue: texts are made anew for each change that they show, and only
// for these.
func TestSameCatalogue(t *testing.T) {
	tools := []catalog.Tool{{Name: "one"}}
	base := catalog.Server{Name: "s", Known: true, Title: "A title", Instructions: "What it is for.", State: catalog.Ready, Tools: tools}
	for name, test := range map[string]struct {
		change func(*catalog.Server)
		same   bool
	}{
		"nothing":          {func(*catalog.Server) {}, true},
		"a state":          {func(s *catalog.Server) { s.State = catalog.Unavailable }, true},
		"a reason":         {func(s *catalog.Server) { s.Reason = "gone" }, true},
		"disabled":         {func(s *catalog.Server) { s.State = catalog.Disabled }, false},
		"a name":           {func(s *catalog.Server) { s.Name = "other" }, false},
		"a title":          {func(s *catalog.Server) { s.Title = "Another title" }, false},
		"a purpose":        {func(s *catalog.Server) { s.Instructions = "For another thing." }, false},
		"not known":        {func(s *catalog.Server) { s.Known = false }, false},
		"a list like it":   {func(s *catalog.Server) { s.Tools = []catalog.Tool{{Name: "one"}} }, false},
		"no tool any more": {func(s *catalog.Server) { s.Tools = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := base
			test.change(&changed)
			before, after := &catalog.Snapshot{Servers: []catalog.Server{base}}, &catalog.Snapshot{Servers: []catalog.Server{changed}}
			if got := sameCatalogue(before, after); got != test.same {
				t.Errorf("got %t", got)
			}
		})
	}
}
