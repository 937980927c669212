package policy

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

// forge returns a catalogue of three servers, one of which has not listed its tools yet.
func forge() *catalog.Snapshot {
	yes := true
	git, mail := server("git", "get_file", "put_file"), server("mail", "read", "send")
	for _, s := range []*catalog.Server{&git, &mail} {
		s.Tools[0].Hints.ReadOnly = &yes
		s.Listed, s.Offers = true, catalog.Offers{Resources: true, Prompts: true, Tasks: true, Others: "{}"}
		s.Items = &catalog.Items{Resources: []catalog.Item{{Name: "x://1"}}}
	}
	return snapshot(nil, git, mail, catalog.Server{Name: "new", State: catalog.Connecting})
}

func TestRights_Of(t *testing.T) {
	dev := &caller.Principal{ID: "1", Name: "dev-ann", Groups: []string{"dev"}, Scopes: []string{"write"}}
	for _, test := range []struct {
		name  string
		rules []conf.Right
		view  string
		want  map[string][]string // the expected tools by server; a nil list means that they are not known yet
	}{
		{"no rules", nil, "tools", map[string][]string{"git": {"get_file", "put_file"}, "mail": {"read", "send"}, "new": nil}},
		{"no rule for it", []conf.Right{{Principals: []string{"ops-*"}}}, "tools", map[string][]string{}},
		{"everything", []conf.Right{{Principals: []string{"dev-*"}}}, "tools", map[string][]string{"git": {"get_file", "put_file"}, "mail": {"read", "send"}, "new": nil}},
		{"by group", []conf.Right{{Groups: []string{"x", "dev"}, Servers: []string{"g*"}}}, "tools", map[string][]string{"git": {"get_file", "put_file"}}},
		{"by scope", []conf.Right{{Scopes: []string{"write"}, Servers: []string{"mail"}}}, "tools", map[string][]string{"mail": {"read", "send"}}},
		{"needs all that it names", []conf.Right{{Groups: []string{"dev"}, Scopes: []string{"admin"}}}, "tools", map[string][]string{}},
		{"no servers", []conf.Right{{Servers: []string{}}}, "tools", map[string][]string{}},
		{"read-only", []conf.Right{{ReadOnly: true, Servers: []string{"git", "mail"}}}, "tools", map[string][]string{"git": {"get_file"}, "mail": {"read"}}},
		{"allow", []conf.Right{{Allow: []string{"*.get_*", "new.x"}}}, "tools", map[string][]string{"git": {"get_file"}, "new": nil}},
		{"allow of a server alone", []conf.Right{{Allow: []string{"mail.se*"}}}, "tools", map[string][]string{"mail": {"send"}}},
		{"allow without a server", []conf.Right{{Allow: []string{"*"}, Servers: []string{"mail"}}}, "tools", map[string][]string{"mail": {"read", "send"}}},
		{"deny wins", []conf.Right{{Allow: []string{"git.*"}, Deny: []string{"*.put*"}}}, "tools", map[string][]string{"git": {"get_file"}}},
		{"nothing left", []conf.Right{{Servers: []string{"git"}, Deny: []string{"*"}}}, "tools", map[string][]string{}},
		{"rules add up", []conf.Right{{Servers: []string{"git"}, Deny: []string{"*.put*"}}, {Allow: []string{"git.put_file"}}, {Servers: []string{"mail"}, ReadOnly: true}}, "tools",
			map[string][]string{"git": {"get_file", "put_file"}, "mail": {"read"}}},
		{"in one view", []conf.Right{{Servers: []string{"git"}, Views: []string{"groups/*"}}, {Servers: []string{"mail"}}}, "groups/a", map[string][]string{"git": {"get_file", "put_file"}, "mail": {"read", "send"}}},
		{"in another view", []conf.Right{{Servers: []string{"git"}, Views: []string{"groups/*"}}, {Servers: []string{"mail"}}}, "tools", map[string][]string{"mail": {"read", "send"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rights, snap := NewRights(test.rules, nil), forge()
			got := rights.Of(dev, test.view).Of(snap)
			seen := make(map[string][]string)
			for i := range got.Servers {
				s := &got.Servers[i]
				seen[s.Name] = nil
				if s.Known {
					seen[s.Name] = s.ToolNames()
				}
				if s.Hidden != "" {
					t.Errorf("%s says what it hides: %s", s.Name, s.Hidden)
				}
			}
			if fmt.Sprint(seen) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", seen, test.want)
			}
			if rights.Of(dev, test.view).Of(snap) != got {
				t.Error("one catalogue has two parts")
			}
			if nobody := rights.Of(nil, test.view); nobody.Of(snap) != snap {
				t.Error("mcpx itself does not see everything")
			}
		})
	}
}

// TestRights_Resources: a principal sees the resources and prompts of a server only if a rule without tools.allow and
// tools.deny permits the server. Only a principal that may call every tool of a server, and need not confirm any call, may send
// it requests that mcpx does not know.
func TestRights_Resources(t *testing.T) {
	for _, test := range []struct {
		name               string
		rules              []conf.Right
		resources, limited bool
	}{
		{"no rules", nil, true, false},
		{"everything", []conf.Right{{}}, true, false},
		{"read-only", []conf.Right{{ReadOnly: true}}, true, true},
		{"confirmed", []conf.Right{{Confirm: conf.ConfirmDestructive}}, true, true},
		{"allow", []conf.Right{{Allow: []string{"git.*"}}}, false, true},
		{"deny", []conf.Right{{Deny: []string{"x.*"}}}, false, true},
		{"added up", []conf.Right{{Deny: []string{"x.*"}}, {Servers: []string{"git"}}}, true, false},
		{"of another server", []conf.Right{{Allow: []string{"git.*"}}, {Servers: []string{"mail"}}}, false, true},
	} {
		git := of(t, NewRights(test.rules, nil).Of(&caller.Principal{Name: "a"}, "tools").Of(forge()), "git")
		if got := git.Items != nil; got != test.resources || git.Offers.Resources != test.resources || !git.Offers.Tasks || !git.Listed {
			t.Errorf("%s: %+v", test.name, git)
		}
		if git.Limited != test.limited {
			t.Errorf("%s: limited is %t", test.name, git.Limited)
		}
	}
}

// TestRights_Shared: a thousand principals with three sets of rules share three catalogues. Unchanged lists stay
// the same in the catalogue of the next snapshot.
func TestRights_Shared(t *testing.T) {
	rights := NewRights([]conf.Right{{Groups: []string{"a"}, Deny: []string{"*.put*"}}, {Groups: []string{"b"}, ReadOnly: true}, {Principals: []string{"p1*"}, Servers: []string{"mail"}}}, nil)
	first := forge()
	seen := make(map[*catalog.Snapshot]int)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range 1000 {
		all.Go(func() {
			got := rights.Of(&caller.Principal{ID: fmt.Sprint(i), Name: fmt.Sprint("p", 2+i%7), Groups: [][]string{{"a"}, {"b"}, {"a", "b"}}[i%3]}, "tools").Of(first)
			mu.Lock()
			defer mu.Unlock()
			seen[got]++
		})
	}
	all.Wait()
	if len(seen) != 3 {
		t.Errorf("%d catalogues", len(seen))
	}
	ann := &caller.Principal{Name: "x", Groups: []string{"a"}}
	before := rights.Of(ann, "tools").Of(first)
	next := catalog.NewSnapshot(slices.Clone(first.Servers))
	if after := rights.Of(ann, "tools").Of(next); after == before || !oneList(of(t, before, "git"), of(t, after, "git")) {
		t.Error("the same tools are another list")
	}
}

func TestRights_Confirms(t *testing.T) {
	git := forge().Servers[0]
	rights := NewRights([]conf.Right{
		{Principals: []string{"a*"}, ReadOnly: true}, {Principals: []string{"ab"}, Confirm: conf.ConfirmDestructive, Servers: []string{"git"}},
		{Principals: []string{"abc"}, Confirm: conf.ConfirmAll, Servers: []string{"mail"}}, {Principals: []string{"all"}, Confirm: conf.ConfirmAll, Allow: []string{"git.put*"}},
	}, nil)
	for name, want := range map[string][2]conf.Confirm{
		"a": {conf.ConfirmNone, conf.ConfirmNone}, "ab": {conf.ConfirmDestructive, conf.ConfirmDestructive}, "abc": {conf.ConfirmNone, conf.ConfirmNone}, "all": {conf.ConfirmNone, conf.ConfirmAll},
	} {
		g := rights.Of(&caller.Principal{Name: name}, "tools")
		if got := [2]conf.Confirm{g.Confirms(&git, &git.Tools[0]), g.Confirms(&git, &git.Tools[1])}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if (*Permissions)(nil).Confirms(&git, &git.Tools[0]) != conf.ConfirmNone {
		t.Error("without rights somebody is asked")
	}
}

func TestRights_Opens(t *testing.T) {
	rights := NewRights([]conf.Right{
		{Principals: []string{"all"}}, {Principals: []string{"git"}, Servers: []string{"git"}},
		{Principals: []string{"two"}, Views: []string{"two_tools"}}, {Principals: []string{"boss"}, Admin: true, Servers: []string{}},
	}, nil)
	git, both, every := &Scope{Servers: []string{"git"}}, &Scope{Servers: []string{"mail", "git"}}, &Scope{}
	for _, test := range []struct {
		who, view string
		part      *Scope
		want      bool
	}{
		{"all", "two_tools", nil, true}, {"all", "servers/git", git, true},
		{"git", "servers/git", git, true}, {"git", "groups/both", both, true}, {"git", "groups/every", every, true},
		{"git", "servers/mail", &Scope{Servers: []string{"mail"}}, false}, {"git", "groups/none", &Scope{Servers: []string{}}, false},
		{"two", "two_tools", nil, true}, {"two", "tools", nil, false}, {"two", "servers/git", git, false},
		{"nobody", "two_tools", nil, true}, {"nobody", "servers/git", git, false}, {"nobody", "groups/every", every, false},
		{"boss", "two_tools", nil, true}, {"boss", "servers/git", git, false},
	} {
		if got := rights.Opens(&caller.Principal{Name: test.who}, test.view, test.part); got != test.want {
			t.Errorf("%s opens %s: %t", test.who, test.view, got)
		}
	}
	if rights.Opens(nil, "two_tools", nil) || NewRights(nil, nil).Opens(nil, "two_tools", nil) {
		t.Error("somebody unknown comes in where principals are asked")
	}
	if !(*Rights)(nil).Opens(nil, "two_tools", nil) || !NewRights(nil, nil).Opens(&caller.Principal{}, "servers/git", git) {
		t.Error("without rules a view is closed")
	}
	for _, test := range []struct {
		rights *Rights
		who    *caller.Principal
		want   bool
	}{
		{nil, nil, true}, {NewRights(nil, nil), nil, false}, {NewRights(nil, nil), &caller.Principal{Name: "boss"}, false},
		{rights, nil, false}, {rights, &caller.Principal{Name: "boss"}, true}, {rights, &caller.Principal{Name: "all"}, false},
	} {
		if got := test.rights.Admin(test.who); got != test.want {
			t.Errorf("%+v is an admin: %t", test.who, got)
		}
	}
}

func TestBegins(t *testing.T) {
	for glob, want := range map[string]bool{
		"git.*": true, "git.x": true, "git.": false, "git": false, "*": true, "*.x": true, "g*": true, "gi?.x": true, "*x": true, "gits.x": false,
		"[a-g]it.x": true, "[^a-g]it.x": false, `\git.x`: true, "git.[a]": true, "*.*.x": true, "?": false, "mail.*": false, "git?": false, "git??": true,
	} {
		if got := Begins(glob, "git."); got != want {
			t.Errorf("%s: %t", glob, got)
		}
	}
}

func TestFits(t *testing.T) {
	for _, test := range []struct {
		glob, name string
		want       bool
	}{
		{"*", "ci", true}, {"*", "ann@issuer.example", true}, {"*", "DNS:x", true}, {"ci-*", "ci-1", true}, {"ci", "ci-1", false},
		{"ci-*", "ci-1@issuer.example", false}, {"DNS:*", "DNS:x@issuer.example", false}, {"spiffe://x/*", "spiffe://x/y/z", true}, {"spiffe://x/*", "spiffe://x/y@issuer.example", false},
		{"*@issuer.example", "ann@issuer.example", true}, {"*@issuer.example", "ann@x@issuer.example", true}, {"*@*", "ann@issuer.example", true}, {"*@*", "ci", false},
		{"ann@issuer.example", "bob@issuer.example", false}, {"*@issuer.example/*", "ann@issuer.example/realm", true}, {"*@issuer.example/*", "ann@issuer.example/x@evil.example", false},
		{"*@issuer.example", "ann@issuer.example@evil.example", false}, {"auth0|*@issuer.example", "auth0|1@issuer.example", true},
	} {
		if got := fits(test.glob, test.name); got != test.want {
			t.Errorf("%s, %s: %t", test.glob, test.name, got)
		}
	}
}

// TestRights_NamesInFile: a rule uses the server names of the config file. If a name becomes free and another
// server is served under it, the rule does not pass to that server.
func TestRights_NamesInFile(t *testing.T) {
	tool := []catalog.Tool{{Name: "get"}, {Name: "rm", Own: "remove"}}
	before := map[string]string{"team_a": "team/a", "team_a_2": "team a", "a_1_": "a[1]"}
	after := map[string]string{"team_a": "team a", "a_1_": "a[1]"} // "team/a" was deleted
	sees := func(one conf.Right, names map[string]string, served string) (tools string) {
		one.Principals = []string{"*"}
		rights := NewRights([]conf.Right{one}, names)
		snap := catalog.NewSnapshot([]catalog.Server{{Name: served, Known: true, Tools: tool}})
		s, _ := rights.Of(&caller.Principal{Name: "a"}, "servers/"+served).Of(snap).Server(served)
		if s != nil {
			for _, t := range s.Tools {
				tools += t.Name + " "
			}
		}
		return tools
	}
	for name, tt := range map[string]struct {
		rule                        conf.Right
		first, second, second2, odd string // what the rule permits of "team/a", of "team a" before and after, of "a[1]"
	}{
		"the first":           {conf.Right{Servers: []string{"team/a"}}, "get rm ", "", "", ""},
		"the second":          {conf.Right{Servers: []string{"team a"}}, "", "get rm ", "get rm ", ""},
		"a served name":       {conf.Right{Servers: []string{"team_a"}}, "", "", "", ""},
		"tools of the first":  {conf.Right{Allow: []string{"team/a.g*"}}, "get ", "", "", ""},
		"tools of the second": {conf.Right{Allow: []string{"team a.g*"}}, "", "get ", "get ", ""},
		"a served tool":       {conf.Right{Allow: []string{"team_a.*"}}, "", "", "", ""},
		"a view":              {conf.Right{Views: []string{"servers/team/a"}}, "get rm ", "", "", ""},
		"a served view":       {conf.Right{Views: []string{"servers/team_a"}}, "", "", "", ""},
		"denied":              {conf.Right{Deny: []string{"team/a.rm"}}, "get ", "get rm ", "get rm ", "get rm "},
		"denied as served":    {conf.Right{Deny: []string{"team_a.rm"}}, "get ", "get rm ", "get ", "get rm "},
		"denied by own name":  {conf.Right{Deny: []string{"team/a.remove"}}, "get ", "get rm ", "get rm ", "get rm "},
		"own name, as served": {conf.Right{Deny: []string{"team_a.remove"}}, "get ", "get rm ", "get ", "get rm "},
		"globs":               {conf.Right{Servers: []string{"team*"}}, "get rm ", "get rm ", "get rm ", ""},
		"like a glob":         {conf.Right{Servers: []string{"a[1]"}, Allow: []string{"a[1].get"}}, "", "", "", "get "},
	} {
		got := [4]string{sees(tt.rule, before, "team_a"), sees(tt.rule, before, "team_a_2"), sees(tt.rule, after, "team_a"), sees(tt.rule, after, "a_1_")}
		if want := [4]string{tt.first, tt.second, tt.second2, tt.odd}; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestMayDial: a rule without principals, groups and scopes is for everybody, also without authentication; any other only for whom it names.
func TestMayDial(t *testing.T) {
	rules := []conf.DialRule{
		{Principals: []string{"ci"}, Names: []string{"build-*"}}, {Groups: []string{"ops"}, Names: []string{"*"}}, {Names: []string{"open"}},
	}
	for _, test := range []struct {
		who  *caller.Principal
		name string
		want *conf.DialRule
	}{
		{&caller.Principal{Name: "ci"}, "build-1", &rules[0]}, {&caller.Principal{Name: "ci"}, "other", nil}, {&caller.Principal{Name: "ci"}, "open", &rules[2]},
		{&caller.Principal{Name: "ann"}, "build-1", nil}, {&caller.Principal{Name: "ann", Groups: []string{"ops"}}, "build-1", &rules[1]},
		{nil, "build-1", nil}, {nil, "open", &rules[2]},
	} {
		if got := MayDial(rules, test.who, test.name); got != test.want {
			t.Errorf("%v, %s: got %+v", test.who, test.name, got)
		}
	}
}
