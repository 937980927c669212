package describe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/tokens"
)

// expand returns the names in a list that byPrefix wrote.
func expand(list string) map[string]bool {
	names := map[string]bool{}
	for list != "" {
		item, rest := list, ""
		end := strings.IndexAny(list, "{,")
		if end >= 0 && list[end] == '{' {
			end = strings.IndexByte(list, '}') + 1
		}
		if end >= 0 {
			item, rest = list[:end], list[end:]
		}
		list = strings.TrimPrefix(rest, ", ")
		prefix, inside, grouped := strings.Cut(strings.TrimSuffix(item, "}"), "{")
		if !grouped {
			names[item] = true
			continue
		}
		for _, name := range strings.Split(inside, ", ") {
			names[prefix+name] = true
		}
	}
	return names
}

// TestServer_Listing: the more tools a server has, the less detail the answer about it has, so that it stays within 6000
// tokens, unless even the names take more. It always names every tool.
func TestServer_Listing(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"account":{"type":"string"},"filter":{"type":"string","enum":["newest","oldest","largest","smallest"]},"page":{"type":"number"}},"required":["account"]}`)
	for _, tt := range []struct {
		tools       int
		start, line string
		bounded     bool
	}{
		{100, "// Types only. Before exec inspect with tool_name", `crm_list_contacts_0(account: string, filter?: "newest"`, true},
		{300, "// Parameter names only. Before exec inspect with tool_name, several as \"a,b\", or with query.\n", "crm_list_contacts_0(account, filter?, page?)\n", true},
		{700, "// 700 tools, names only. For more inspect with tool_name, several as \"a,b\", or with query.\n", "crm_list_contacts_0, mail_send_messages_1, ", true},
		{1000, "// 1000 tools, names only: a_{b, c} is a_b and a_c. For more inspect with tool_name, several as \"a,b\", or with query.\n", "crm_list_contacts_{0, 2, ", true},
		{5000, "// 5000 tools, names only: a_{b, c}", "crm_list_contacts_{0, 2, ", false},
	} {
		s := catalog.Server{Name: "s", Known: true, State: catalog.Ready}
		for i := range tt.tools {
			name := [...]string{"crm_list_contacts_", "mail_send_messages_"}[i%2] + fmt.Sprint(i)
			s.Tools = append(s.Tools, catalog.Tool{Name: name, Description: "Does one thing for an account, and then says what it did, so that it can be undone.", InputSchema: schema})
		}
		text, complete := Server(&s, Options{TypeScript: true})
		if complete || !strings.HasPrefix(text, tt.start) || !strings.Contains(text, tt.line) {
			t.Errorf("%d tools: got %.300s", tt.tools, text)
		}
		if n := tokens.Count(text); n > 6000 && tt.bounded || n < 1500 {
			t.Errorf("%d tools: %d tokens", tt.tools, n)
		}
		named := func(name string) bool { return strings.Contains(text, "\n"+name+"(") }
		if strings.Contains(tt.start, "names only") && !strings.Contains(tt.start, "Parameter") {
			all := expand(text[strings.IndexByte(text, '\n')+1:])
			named = func(name string) bool { return all[name] }
		}
		for i := range s.Tools {
			if !named(s.Tools[i].Name) {
				t.Errorf("%d tools: %s is not named", tt.tools, s.Tools[i].Name)
				break
			}
		}
	}
}

func TestByPrefix(t *testing.T) {
	for _, tt := range []struct{ names, want string }{
		{"a_b a_c d", "a_{b, c}, d"},
		{"a_b_c a_b_d a_b", "a_{b_c, b_d, b}"},
		{"x.list x.get y", "x.{list, get}, y"},
		{"repo-a repo- repo", "repo-a, repo-, repo"},
		{"_a _b", "_{a, b}"},
		{"a", "a"},
		{"listOrders getOrder", "listOrders, getOrder"},
	} {
		if got := byPrefix(strings.Fields(tt.names)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.names, got, tt.want)
		}
	}
}
