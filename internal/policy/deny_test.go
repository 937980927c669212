package policy

import (
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
)

// TestDeny: if a rule takes something away, no other rule can give it back. The names in the rule may be written in another way.
func TestDeny(t *testing.T) {
	ann := &caller.Principal{ID: "1", Name: "Ann@login.example.com", Groups: []string{"Staff"}, Scopes: []string{"write"}}
	const all = "git.get_file git.put_file mail.read mail.send new"
	take := func(globs ...string) conf.Right { return conf.Right{Principals: []string{"*"}, TakeAway: globs} }
	for _, test := range []struct {
		name string
		rule conf.Right
		want string
	}{
		{"a server", take("git"), "mail.read mail.send new"},
		{"a server in other letters", take("GIT"), "mail.read mail.send new"},
		{"a server by a glob", take("[g]i?"), "mail.read mail.send new"},
		{"a tool", take("git.put_file"), "git.get_file mail.read mail.send new"},
		{"a tool in other letters", take("Git.PUT_*"), "git.get_file mail.read mail.send new"},
		{"a tool in full-width letters", take("git.ｐｕｔ_file"), "git.get_file mail.read mail.send new"},
		{"a tool of every server", take("*.read"), "git.get_file git.put_file mail.send new"},
		{"several", take("mail", "git.get*"), "git.put_file new"},
		{"a server that has not listed its tools", take("new"), "git.get_file git.put_file mail.read mail.send"},
		{"all tools of a server", take("git.*"), "mail.read mail.send new"},
		{"everything", take("*"), ""},
		{"everything, by a range", take("[^_]*"), ""},
		{"a name that only begins so", take("gi", "git.put"), all},
		{"the tool alone", take("put_file"), all},
		{"by the principal", conf.Right{Principals: []string{"ann@login.example.com"}, TakeAway: []string{"git"}}, "mail.read mail.send new"},
		{"by its first part", conf.Right{Principals: []string{"ann"}, TakeAway: []string{"git"}}, "mail.read mail.send new"},
		{"by its group", conf.Right{Groups: []string{"STAFF"}, TakeAway: []string{"git"}}, "mail.read mail.send new"},
		{"by its group, with a space", conf.Right{Groups: []string{"staff "}, TakeAway: []string{"git"}}, "mail.read mail.send new"},
		{"by its scope", conf.Right{Scopes: []string{"Write"}, TakeAway: []string{"git"}}, "mail.read mail.send new"},
		{"of another principal", conf.Right{Principals: []string{"bob*"}, TakeAway: []string{"git"}}, all},
		{"of another group", conf.Right{Groups: []string{"guests"}, Principals: []string{"*"}, TakeAway: []string{"git"}}, all},
	} {
		// The order of the rules does not matter, and neither does what gives: all, the tools by name, or being an admin.
		gives := []conf.Right{{Principals: []string{"*"}}, {Groups: []string{"Staff"}, Allow: []string{"git.*", "mail.*", "new.*"}}, {Principals: []string{"*"}, Admin: true}}
		for _, rules := range [][]conf.Right{append([]conf.Right{test.rule}, gives...), append(gives, test.rule)} {
			for _, view := range []string{"two_tools", "servers/git", "groups/x"} {
				rights := NewRights(rules, nil)
				var seen []string
				snap := rights.Of(ann, view).Of(forge())
				for i := range snap.Servers {
					s := &snap.Servers[i]
					if !s.Known {
						seen = append(seen, s.Name)
					}
					for _, tool := range s.ToolNames() {
						seen = append(seen, s.Name+"."+tool)
					}
				}
				if got := strings.Join(seen, " "); got != test.want {
					t.Errorf("%s, %s: %s, want %s", test.name, view, got, test.want)
				}
				if out := test.want == ""; rights.Admin(ann) == out || rights.Out(ann) != out {
					t.Errorf("%s: admin %v, out %v", test.name, rights.Admin(ann), rights.Out(ann))
				}
			}
		}
	}
}

// TestDeny_Letters: a deny rule applies to a principal even if it writes the name in another case or in another Unicode form. It
// does not apply to a principal whose name has different letters that only look the same.
func TestDeny_Letters(t *testing.T) {
	for _, test := range []struct {
		written, name string
		want          bool
	}{
		{"\u039d\u03af\u03ba\u03bf\u03c2", "\u039d\u038a\u039a\u039f\u03a3", true}, {"\u039d\u038a\u039a\u039f\u03a3", "\u03bd\u03af\u03ba\u03bf\u03c2", true},
		{"Alic\u00e9", "alice\u0301", true}, {"ALIC\u00c9", "alic\u00e9@login.example.com", true}, {"\uff41lice", "Alice", true}, {" alice", "alice", true},
		{"\u212aim", "kim", true}, {"alice", "alic\u00e9", false}, {"alice", "\u0430lice", false},
		{"ann@login.example.com", "ann@login.example.com@evil.example", true}, {"ann@evil.example", "ann@login.example.com", false},
		{"ann@*", "ann@login.example.com", true}, {"*@login.example.com", "ann@LOGIN.example.com", true},
	} {
		rights := NewRights([]conf.Right{{Principals: []string{"*"}}, {Principals: []string{test.written}, TakeAway: []string{"*"}}}, nil)
		if got := rights.Out(&caller.Principal{ID: "1", Name: test.name}); got != test.want {
			t.Errorf("deny %q, %q: %v", test.written, test.name, got)
		}
	}
}

// TestDeny_Rest: if a rule takes away a tool of a server, the principal also loses the server's resources, prompts and unknown
// methods, since they may belong to the tool. If it takes away the server, the view of the server does not exist for the
// principal. A rule that takes something away gives nothing.
func TestDeny_Rest(t *testing.T) {
	ann := &caller.Principal{ID: "1", Name: "ann"}
	everybody := []string{"*"}
	rights := NewRights([]conf.Right{{Principals: everybody}, {Principals: everybody, TakeAway: []string{"git.put_file", "mail"}}}, nil)
	seen := rights.Of(ann, "tools").Of(forge())
	git, _ := seen.Server("git")
	if git == nil || !git.Limited || git.Offers.Resources || git.Offers.Prompts || git.Items != nil && len(git.Items.Resources) > 0 {
		t.Errorf("%+v", git)
	}
	if _, there := seen.Server("mail"); there {
		t.Error("a server that was taken away is there")
	}
	for server, want := range map[string]bool{"git": true, "mail": false} {
		if rights.Opens(ann, "servers/"+server, &Scope{Servers: []string{server}}) != want {
			t.Errorf("the view of %s: %v", server, !want)
		}
	}
	alone := NewRights([]conf.Right{{Principals: everybody, TakeAway: []string{"mail"}}}, nil)
	if len(alone.Of(ann, "tools").Of(forge()).Servers) != 0 || alone.Names(ann) || alone.Admin(ann) {
		t.Error("a rule that takes away gives something")
	}
}

// TestDeny_Names: a rule can take away a tool by each name of the tool and of its server, even if a name contains glob
// characters.
func TestDeny_Names(t *testing.T) {
	ann := &caller.Principal{ID: "1", Name: "ann"}
	odd := server("odd_srv", "renamed")
	odd.Tools[0].Own = "drop[1]"
	for _, glob := range []string{"odd_srv.renamed", "odd srv.renamed", `odd_srv.drop\[1\]`, "odd srv.drop*", "odd_srv.drop[1]", "Odd Srv", "odd_srv"} {
		rights := NewRights([]conf.Right{{Principals: []string{"*"}}, {Principals: []string{"*"}, TakeAway: []string{glob}}}, map[string]string{"odd_srv": "odd srv"})
		if seen := rights.Of(ann, "tools").Of(snapshot(nil, odd)); len(seen.Servers) != 0 {
			t.Errorf("%s: %v", glob, seen.Servers[0].ToolNames())
		}
	}
}

// TestDeny_Own: a rule can also take away the tools of mcpx itself, and a server with which the principal has dialled in.
func TestDeny_Own(t *testing.T) {
	ann := &caller.Principal{ID: "1", Name: "ann"}
	for glob, want := range map[string]bool{"mcpx.run": true, "MCPX": true, "*": true, "*.run": true, "git": false, "mcpx.read_*": false} {
		rights := NewRights([]conf.Right{{Principals: []string{"*"}}, {Principals: []string{"*"}, TakeAway: []string{glob}}}, nil)
		if got := rights.Of(ann, "tools").Denies(&catalog.Server{Name: "mcpx"}, "run"); got != want {
			t.Errorf("%s: %v", glob, got)
		}
	}
	dialled := []Dialled{{Server: "laptop", Owner: "1", For: conf.DialSelf}}
	own := server("laptop", "shell")
	for glob, want := range map[string]int{"laptop": 0, "*": 0, "laptop.shell": 0, "other": 1} {
		rights := NewRights([]conf.Right{{Principals: []string{"*"}, TakeAway: []string{glob}}}, nil).With(dialled)
		if n := len(rights.Of(ann, "tools").Of(snapshot(nil, own)).Servers); n != want {
			t.Errorf("%s: %d servers", glob, n)
		}
	}
}
