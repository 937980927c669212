package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// having returns a server with resources, templates and prompts of these names.
func having(name string, resources, templates, prompts string) Server {
	items := func(names string) (all []Item) {
		for _, one := range strings.Fields(names) {
			all = append(all, Item{Name: one})
		}
		return all
	}
	return Server{
		Name: name, Listed: true, Offers: Offers{Resources: resources+templates != "", Prompts: prompts != ""},
		Items: &Items{Resources: items(resources), Templates: items(templates), Prompts: items(prompts)},
	}
}

// TestNames_reversible: every name that a client gets is resolved to the same server and item, and no two servers'
// items have the same name.
func TestNames_reversible(t *testing.T) {
	snap := NewSnapshot([]Server{
		having("a", "x://1 x://1 s://1 s://2 made://by-b mcpx://b/x://9", "t://{n} u://{n} made://{+all}", "p b__c"),
		having("a__b", "y://1 s://1", "t://{n}", "c p"),
		having("b", "made://one x://9", "made://{id}", "p __q"),
		{Name: "empty"},
	})
	seen := make(map[string]string)
	for i := range snap.Servers {
		s := &snap.Servers[i]
		for _, kind := range []Kind{Resources, ResourceTemplates} {
			find := snap.Resource
			if kind == ResourceTemplates {
				find = snap.Template
			}
			for _, item := range s.Items.Of(kind) {
				name := snap.URI(kind, s, item.Name)
				found, own, err := find(name)
				if err != nil || found.Name != s.Name || own != item.Name {
					t.Errorf("%s of %s is %s, which is %s of %v (%v)", item.Name, s.Name, name, own, found, err)
				}
				if was := seen[name]; was != "" && was != s.Name {
					t.Errorf("%s is of %s and %s", name, was, s.Name)
				}
				seen[name] = s.Name
			}
		}
		for _, item := range s.Items.Of(Prompts) {
			name := snap.PromptName(s, item.Name, "__")
			if found, own, ok := snap.Prompt(name, "__"); !ok || found.Name != s.Name || own != item.Name {
				t.Errorf("%s of %s is %s, which is %s of %v", item.Name, s.Name, name, own, found)
			}
			if was := seen["prompt "+name]; was != "" {
				t.Errorf("%s is of %s and %s", name, was, s.Name)
			}
			seen["prompt "+name] = s.Name
		}
	}
	// A name that only one server has stays unchanged. A template that matches a resource of another server gets the
	// name of its server.
	for name, server := range map[string]string{"y://1": "a__b", "s://2": "a", "u://{n}": "a", "mcpx://a/s://1": "a", "mcpx://b/made://{id}": "b", "mcpx://a/made://{+all}": "a", "prompt a__p": "a"} {
		if seen[name] != server {
			t.Errorf("%s is of %q", name, seen[name])
		}
	}
}

// TestNames_unlisted: a URI that no server lists belongs to the server with a matching template, or to the only server
// with resources. Otherwise the error suggests names.
func TestNames_unlisted(t *testing.T) {
	one, two := having("one", "x://1", "x://{n}/t{?q,r} f:///{+path}", ""), having("two", "y://1", "y://{n} g://{a}.{b}", "")
	snap := NewSnapshot([]Server{one, two, {Name: "tools"}})
	for _, c := range []struct{ uri, server, own, candidates string }{
		{uri: "x://7/t", server: "one"},
		{uri: "x://7/t?q=1&r=2", server: "one"},
		{uri: "f:///a b/ü.md", server: "one"},
		{uri: "g://1.2", server: "two"},
		{uri: "y://7/8", server: ""}, // a value in the template y://{n} has no slash
		{uri: "mcpx://two/x://1", server: "two", own: "x://1"},
		{uri: "mcpx://three/x://1"},
		{uri: "mcpx://two/"},
		{uri: "nothing"},
	} {
		found, own, err := snap.Resource(c.uri)
		if c.own == "" {
			c.own = c.uri
		}
		if uriErr, ok := errors.AsType[*URIError](err); c.server == "" && !ok || c.server != "" && (ok || found.Name != c.server || own != c.own) {
			t.Errorf("%s: %v, %q, %v", c.uri, found, own, uriErr)
		}
	}
	if found, own, err := NewSnapshot([]Server{one, {Name: "tools"}}).Resource("any://thing"); err != nil || found.Name != "one" || own != "any://thing" {
		t.Errorf("the only one: %v %q %v", found, own, err)
	}
	both := NewSnapshot([]Server{one, having("too", "", "f:///{p}", "")})
	_, _, err := both.Resource("f:///x")
	if uri, _ := errors.AsType[*URIError](err); uri == nil || !slices.Equal(uri.Candidates, []string{"mcpx://one/f:///x", "mcpx://too/f:///x"}) {
		t.Errorf("both: %v", err)
	}
}

// TestNames_forged: a server may list a name that mcpx made for another server's resource. Clients then get that name
// with the listing server's name before it, and the other resource keeps its name.
func TestNames_forged(t *testing.T) {
	snap := NewSnapshot([]Server{
		having("evil", "s://1 mcpx://victim/s://1 ui://mcpx/victim/app", "t://{n} mcpx://victim/t://{n} mcpx://victim/{+all}", ""),
		having("victim", "s://1 ui://app", "t://{n}", ""),
	})
	for uri, own := range map[string]string{
		"mcpx://victim/s://1": "s://1", "ui://mcpx/victim/app": "ui://app", "mcpx://victim/new://1": "new://1",
	} {
		if found, name, err := snap.Resource(uri); err != nil || found.Name != "victim" || name != own {
			t.Errorf("%s is %q of %v (%v)", uri, name, found, err)
		}
	}
	if found, own, err := snap.Template("mcpx://victim/t://{n}"); err != nil || found.Name != "victim" || own != "t://{n}" {
		t.Errorf("the template is %q of %v (%v)", own, found, err)
	}
	evil := &snap.Servers[0]
	for _, kind := range []Kind{Resources, ResourceTemplates} {
		find := snap.Resource
		if kind == ResourceTemplates {
			find = snap.Template
		}
		for _, item := range evil.Items.Of(kind) {
			names := map[string]string{"listed": snap.URI(kind, evil, item.Name)}
			if kind == Resources {
				names["linked"] = snap.Link(evil, item.Name)
			}
			for how, name := range names {
				if found, own, err := find(name); err != nil || found.Name != "evil" || own != item.Name {
					t.Errorf("%s, %s as %s, leads to %q of %v (%v)", item.Name, how, name, own, found, err)
				}
			}
		}
	}
}

// TestLink: a URI in a result stays unchanged if it is resolved to the same server. Otherwise Link returns a name that is
// resolved to this server.
func TestLink(t *testing.T) {
	snap := NewSnapshot([]Server{having("one", "x://1 s://1 https://a/", "x://{n}?t", ""), having("two", "s://1", "", ""), {Name: "tools"}})
	of := func(name string) *Server { s, _ := snap.Server(name); return s }
	for _, c := range []struct{ server, own, want string }{
		{"one", "x://1", "x://1"}, {"one", "x://2?t", "x://2?t"}, {"one", "s://1", "mcpx://one/s://1"}, {"one", "new://1", "mcpx://one/new://1"},
		{"two", "x://1", "mcpx://two/x://1"}, {"two", "https://b/", "https://b/"}, {"two", "https://a/", "mcpx://two/https://a/"},
		{"tools", "x://1", "x://1"},
	} {
		got := snap.Link(of(c.server), c.own)
		if got != c.want {
			t.Errorf("%s of %s is %s", c.own, c.server, got)
		}
		if found, own, err := snap.Resource(got); c.server != "tools" && !strings.HasPrefix(got, "https") && (err != nil || found.Name != c.server || own != c.own) {
			t.Errorf("%s leads to %s of %v (%v)", got, own, found, err)
		}
	}
	alone := NewSnapshot([]Server{having("two", "s://1", "", "")})
	if got := alone.Link(&alone.Servers[0], "new://1"); got != "new://1" {
		t.Errorf("alone: %s", got)
	}
}

// TestTemplate_hostile: no template makes Resource panic or take long.
func TestTemplate_hostile(t *testing.T) {
	mcptest.OneGoroutine(t)
	for _, template := range []string{"{", "}", "{}", "a{", "{+", "a}b", "{*}", "{?}", strings.Repeat("{a}", 300), strings.Repeat("{+a}", 500), "\\E{x}(", "{|x}"} {
		snap := NewSnapshot([]Server{having("one", "", template, ""), having("two", "y://1", "y://{n}", "")})
		_, _, _ = snap.Resource(strings.Repeat("a", 10_000))
	}
}
