package setup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
)

const ownConfig = `// The config of mcpx.
{
  "mcpServers": {
    // files
    "fs": {
      "command": "npx", // with Node
      "args": ["-y", "fs"],
    },
    "web": {"url": "https://web.example.com/mcp"}, // remote
    // "old": {"command": "old"},
  },
  "log_level": "info",
}
`

func TestOwn(t *testing.T) {
	for name, one := range map[string]struct {
		before string
		edit   func([]byte) ([]byte, error)
		old    string
		new    string
	}{
		"add": {ownConfig, func(b []byte) ([]byte, error) {
			return AddServer(b, "git", Entry{Command: "uvx", Args: []string{"mcp-server-git"}, Env: map[string]string{"A": "<1>"}})
		}, "\"old\"},\n", "\"old\"},\n    \"git\": {\n      \"command\": \"uvx\",\n      \"args\": [\"mcp-server-git\"],\n      \"env\": {\n        \"A\": \"<1>\"\n      }\n    },\n"},
		"remove the first": {ownConfig, func(b []byte) ([]byte, error) { return RemoveServer(b, "fs") },
			"\n    \"fs\": {\n      \"command\": \"npx\", // with Node\n      \"args\": [\"-y\", \"fs\"],\n    },", ""},
		"remove the last": {ownConfig, func(b []byte) ([]byte, error) { return RemoveServer(b, "web") },
			"    \"web\": {\"url\": \"https://web.example.com/mcp\"}, // remote\n", "     // remote\n"},
		"disable": {ownConfig, func(b []byte) ([]byte, error) { return SetEnabled(b, "fs", false) },
			"\"fs\"],\n", "\"fs\"],\n      \"enabled\": false,\n"},
		"disable, one line": {ownConfig, func(b []byte) ([]byte, error) { return SetEnabled(b, "web", false) },
			"/mcp\"}", "/mcp\", \"enabled\": false}"},
		"enable what is not off": {ownConfig, func(b []byte) ([]byte, error) { return SetEnabled(b, "web", true) }, "", ""},
		"enable":                 {`{"mcpServers":{"a":{"command":"a","enabled":false}}}`, func(b []byte) ([]byte, error) { return SetEnabled(b, "a", true) }, "false", "true"},
		"enable what another client disabled": {`{"mcpServers":{"a":{"command":"a","disabled":true}}}`,
			func(b []byte) ([]byte, error) { return SetEnabled(b, "a", true) }, "true", "false"},
		"add to servers":      {`{"servers": {"a": {"command": "a"}}}`, func(b []byte) ([]byte, error) { return AddServer(b, "b", Entry{URL: "https://x"}) }, `"a"}}`, `"a"}, "b": {"url":"https://x"}}`},
		"remove in the list":  {`{"mcp_servers": [{"name": "a", "command": "a"}, {"name": "b", "command": "b"}]}`, func(b []byte) ([]byte, error) { return RemoveServer(b, "b") }, `, {"name": "b", "command": "b"}`, ""},
		"disable in the list": {`{"mcp_servers": [{"name": "a", "command": "a"}]}`, func(b []byte) ([]byte, error) { return SetEnabled(b, "a", false) }, `"a"}]`, `"a", "enabled": false}]`},
		"set": {ownConfig, func(b []byte) ([]byte, error) { return SetServer(b, "web", []byte(`{"command":"a","args":["b"]}`)) },
			`{"url": "https://web.example.com/mcp"}`, "{\n      \"command\": \"a\",\n      \"args\": [\"b\"]\n    }"},
		"set in the list": {`{"mcp_servers": [{"name": "a", "command": "a"}]}`, func(b []byte) ([]byte, error) { return SetServer(b, "a", []byte(`{"url":"https://x"}`)) },
			`{"name": "a", "command": "a"}`, `{"name":"a","url":"https://x"}`},
		"merge": {ownConfig, func(b []byte) ([]byte, error) {
			return MergeServer(b, "fs", []byte(`{"args":["-y","other"],"env":{"A":"1","B":null}}`))
		},
			"\"args\": [\"-y\", \"fs\"],\n", "\"args\": [\"-y\", \"other\"],\n      \"env\": {\n        \"A\": \"1\"\n      },\n"},
		"merge, a member goes": {ownConfig, func(b []byte) ([]byte, error) { return MergeServer(b, "fs", []byte(`{"args":null,"cwd":null}`)) },
			"\n      \"args\": [\"-y\", \"fs\"],", ""},
		"merge, inside": {`{"mcpServers":{"a":{"command":"a","env":{"A":"1","B":"2"/* b */}}}}`, func(b []byte) ([]byte, error) { return MergeServer(b, "a", []byte(`{"env":{"A":null,"C":"3"}}`)) },
			`"A":"1","B":"2"/* b */`, `"B":"2",/* b */"C":"3"`},
		"merge, an object in place of a value": {`{"mcpServers":{"a":{"command":"a","oauth":false}}}`, func(b []byte) ([]byte, error) { return MergeServer(b, "a", []byte(`{"oauth":{"x":1,"y":null}}`)) },
			`false`, "{\n  \"x\": 1\n}"},
		"merge in the list":               {`{"mcp_servers": [{"name": "a", "command": "a"}]}`, func(b []byte) ([]byte, error) { return MergeServer(b, "a", []byte(`{"command":"b"}`)) }, `"command": "a"`, `"command": "b"`},
		"remove the only one":             {"{\"mcpServers\": {\n  \"a\": {}\n}}", func(b []byte) ([]byte, error) { return RemoveServer(b, "a") }, "{\n  \"a\": {}\n}", "{}"},
		"remove, a comment is left":       {"{\"mcpServers\": { // all\n  \"a\": {}\n}}", func(b []byte) ([]byte, error) { return RemoveServer(b, "a") }, "\n  \"a\": {}", ""},
		"a line comment before the brace": {"{\"mcpServers\": {\"b\": 1, // c\n\"a\": {}}}", func(b []byte) ([]byte, error) { return RemoveServer(b, "a") }, "1, // c\n\"a\": {}", "1 // c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := one.edit([]byte(one.before))
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(one.before, one.old, one.new, 1); string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	empty, err := AddServer(nil, "a", Entry{Command: "a"})
	if want := "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\"\n    }\n  }\n}\n"; err != nil || string(empty) != want {
		t.Errorf("got %v: %s", err, empty)
	}
	if _, err := AddServer([]byte(ownConfig), "fs", Entry{Command: "a"}); err == nil || !strings.Contains(err.Error(), "in the config already") {
		t.Errorf("got %v", err)
	}
	if _, err := RemoveServer([]byte(ownConfig), "old"); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
	if _, err := SetEnabled([]byte(ownConfig), "old", true); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
	if got := ServerNames([]byte(ownConfig)); !slices.Equal(got, []string{"fs", "web"}) {
		t.Errorf("got %v", got)
	}
}

// TestOwn_Back: disabling and then enabling a server keeps all comments, and so does adding and then removing one.
func TestOwn_Back(t *testing.T) {
	off, err := SetEnabled([]byte(ownConfig), "fs", false)
	if err != nil {
		t.Fatal(err)
	}
	on, err := SetEnabled(off, "fs", true)
	if err != nil || string(on) != strings.Replace(string(off), "false", "true", 1) {
		t.Errorf("got %v: %s", err, on)
	}
	added, err := AddServer([]byte(ownConfig), "x", Entry{Command: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := RemoveServer(added, "x"); err != nil || string(removed) != ownConfig {
		t.Errorf("got %v: %s", err, removed)
	}
}

// FuzzSet adds an entry and removes it again. Adding must keep all bytes of the text, in their order, except for white space
// and a null that the entry replaces. Removing must give the same values as before, if the object mcpServers was there.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{ownConfig, "", "{}", "// c\n", "{\"mcpServers\":{}}", "{\"mcpServers\":{\"a\":1 /*x*/ , // y\n}}", "{\"a\":[1,2,],}", "{\"mcpServers\":{\"a\":1}//c\n}", "\ufeff{}", "{\r\n\t\"a\": 1\r\n}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, err := parseJSONText([]byte(text))
		if err != nil {
			return
		}
		keys := []string{"mcpServers", "mcpx"}
		if before.value(keys...) != nil {
			return
		}
		added := *before
		if err := added.set(plainEntry("/bin/mcpx", nil), keys...); err != nil {
			if v := before.value("mcpServers"); v == nil || v.Value.Kind() == '{' || v.Value.Kind() == 'n' {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		rest := string(added.data())
		if v := before.value("mcpServers"); v == nil || v.Value.Kind() != 'n' {
			for i := range len(text) {
				at := strings.IndexByte(rest, text[i])
				if at < 0 && !strings.ContainsRune(" \t\r\n", rune(text[i])) {
					t.Fatalf("%q became %q", text, added.data())
				}
				rest = rest[at+1:]
			}
		}
		removed := added
		if err := removed.remove(keys...); err != nil {
			t.Fatalf("%q: %v", added.data(), err)
		}
		if o := before.objectAt("mcpServers"); o != nil && string(raw(&removed.root)) != string(raw(&before.root)) {
			t.Fatalf("%q became %q", text, removed.data())
		}
	})
}

// FuzzTOML adds a table and removes it again. Adding must keep the text before the table. Removing must give the same text
// as before, except for line breaks at the end.
func FuzzTOML(f *testing.F) {
	for _, seed := range []string{"", "a = 1", "# c\r\n[mcp_servers.a]\r\ncommand = 'x' # y\r\n", "a = '''\n[mcp_servers.mcpx]\n'''\n",
		"[[x]]\na = [\n1, # z\n]\n\n[mcp_servers]\nb.c = {d = 1}\n", "\ufeffa = 1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, err := parseTOMLText([]byte(text))
		if err != nil || before.table("mcp_servers")["mcpx"] != nil {
			return
		}
		added := *before
		if err := added.add(plainEntry("/bin/mcpx", nil), "mcp_servers", "mcpx"); err != nil {
			return // mcp_servers is an inline table or no table, so nothing can be added to it
		}
		if !strings.HasPrefix(string(added.data()), text) {
			t.Fatalf("%q became %q", text, added.data())
		}
		removed := added
		if err := removed.remove("mcp_servers", "mcpx"); err != nil {
			t.Fatalf("%q: %v", added.data(), err)
		}
		if got, want := strings.TrimRight(string(removed.data()), "\r\n"), strings.TrimRight(text, "\r\n"); got != want {
			t.Fatalf("%q became %q", text, removed.data())
		}
	})
}

// TestWithShare: an entry gets the key share for a package that mcpx knows, unless it has the key.
func TestWithShare(t *testing.T) {
	known := Entry{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-memory"}}
	if known = known.WithShare(reading); known.Share == "" {
		t.Error("nothing is known of the package")
	}
	for _, set := range []conf.Share{conf.ShareSession, conf.ShareFolder, conf.ShareUser} {
		known.Share = set
		if got := known.WithShare(reading).Share; got != set {
			t.Errorf("%s became %q", set, got)
		}
	}
}
