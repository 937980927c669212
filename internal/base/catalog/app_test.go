package catalog

import (
	"encoding/json"
	"testing"
)

// TestApp: DecodeTool reads the members about a user interface in both forms.
func TestApp(t *testing.T) {
	for _, test := range []struct {
		meta string
		app  string
		only bool
	}{
		{`{"ui":{"resourceUri":"ui://a/b"}}`, "ui://a/b", false},
		{`{"ui/resourceUri":"ui://a/b"}`, "ui://a/b", false},
		{`{"ui":{"resourceUri":"ui://a/b","visibility":["app"]},"ui/resourceUri":"ui://c"}`, "ui://a/b", true},
		{`{"ui":{"visibility":["model","app"],"resourceUri":"https://a/b"}}`, "", false},
		{`{"ui":{"visibility":[]}}`, "", true},
		{`{"ui":{"visibility":"app","resourceUri":7}}`, "", false},
		{`{"ui":"ui://a"}`, "", false},
		{`[]`, "", false},
	} {
		tool, err := DecodeTool(json.RawMessage(`{"name":"x","_meta":` + test.meta + `}`))
		if err != nil || tool.App != test.app || tool.AppOnly != test.only {
			t.Errorf("%s: %q %t, %v", test.meta, tool.App, tool.AppOnly, err)
		}
	}
	snap := NewSnapshot([]Server{{Name: "a.b"}, {Name: "c"}})
	for _, server := range []string{"a.b", "c"} {
		one, _ := snap.Server(server)
		uri := one.AppURI("ui://x/y?z#1")
		if found, own, err := snap.Resource(uri); err != nil || found.Name != server || own != "ui://x/y?z#1" || uri != "ui://mcpx/"+server+"/x/y?z#1" {
			t.Errorf("%s: %s, %v", uri, own, err)
		}
	}
}
