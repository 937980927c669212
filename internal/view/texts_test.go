package view

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/policy"
)

// TestSameCatalogue: the texts of a catalogue are created again after each change that they show, and only then.
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

// TestTexts_Several: the texts of each of several catalogues are created only once. The cache is limited in the number of
// catalogues and of tools.
func TestTexts_Several(t *testing.T) {
	of := func(name string, tools int) *catalog.Snapshot {
		list := make([]catalog.Tool, tools)
		for i := range list {
			list[i].Name = fmt.Sprint(name, i)
		}
		return catalog.NewSnapshot([]catalog.Server{catalog.Server{Name: name, Known: true}.WithTools(list)})
	}
	var kept texts
	a, b := of("a", 1), of("b", 2)
	how := (&Settings{}).profile("").shown
	first, other := kept.list(a, how), kept.list(b, how)
	if first.inspect == other.inspect || kept.list(a, how) != first || kept.list(b, how) != other || kept.search(a) == kept.search(b) {
		t.Error("texts are made anew, or are those of another catalogue")
	}
	for i := range maxTexts {
		kept.forCatalogue(of(fmt.Sprint("c", i), 1))
	}
	if len(kept.made) != maxTexts || kept.list(a, how) == first {
		t.Errorf("the texts of %d catalogues are kept", len(kept.made))
	}
	for i := range 4 {
		kept.forCatalogue(of(fmt.Sprint("d", i), maxTextTools/2))
	}
	if len(kept.made) != 2 {
		t.Errorf("the texts of %d large catalogues are kept", len(kept.made))
	}
	if kept.forCatalogue(of("e", maxTextTools+1)); len(kept.made) != 1 {
		t.Errorf("beside one that is too large %d are kept", len(kept.made))
	}
}

// BenchmarkTexts_Rights measures tools/list for three principals in turn. Each has a catalogue of 500 tools, all different.
func BenchmarkTexts_Rights(b *testing.B) {
	var tools []catalog.Tool
	for i := range 500 {
		tool, err := catalog.DecodeTool(fmt.Appendf(nil, `{"name":"tool_%d","description":"Lists the repositories of user %d, with filters for language and topic.","inputSchema":{"type":"object","properties":{"owner_%d":{"type":"string"}}}}`, i, i, i%50))
		if err != nil {
			b.Fatal(err)
		}
		tools = append(tools, tool)
	}
	all := catalog.NewSnapshot([]catalog.Server{catalog.Server{Name: "s", Known: true}.WithTools(tools)})
	rights := policy.NewRights([]conf.Right{{Principals: []string{"a"}}, {Principals: []string{"b"}, Deny: []string{"*.tool_1*"}}, {Principals: []string{"c"}, Allow: []string{"*.tool_1*"}}}, nil)
	who := []*caller.Principal{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	var kept texts
	how, n := (&Settings{}).profile("").shown, 0
	for b.Loop() {
		kept.list(rights.Of(who[n%3], "two_tools").Of(all), how)
		n++
	}
}

// TestTexts_Idle: the texts of a catalogue from before a reload go after textsIdle, because nobody uses them any more.
func TestTexts_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept texts
		of := func(name string) *catalog.Snapshot { return catalog.NewSnapshot([]catalog.Server{{Name: name}}) }
		for _, name := range []string{"before", "after", "others"} {
			kept.forCatalogue(of(name))
		}
		time.Sleep(textsIdle)
		if kept.forCatalogue(of("others")); len(kept.made) != 3 {
			t.Errorf("%d are kept for textsIdle, want 3", len(kept.made))
		}
		kept.forCatalogue(of("after"))
		time.Sleep(time.Second)
		if kept.forCatalogue(of("after")); len(kept.made) != 2 {
			t.Errorf("%d are kept after that, want 2", len(kept.made))
		}
	})
}
