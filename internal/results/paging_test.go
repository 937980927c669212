package results

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestNotSelected: the line names the members that say that there is more, and no others.
func TestNotSelected(t *testing.T) {
	for _, tt := range []struct{ name, value, filter, shown, want string }{
		{"cursor and total", `{"issues":[{},{}],"total":640,"next_cursor":"bzoy"}`, ".issues[].key", `"A-1"`, `[not selected: .total 640, .next_cursor "bzoy"]`},
		{"flag in an object", `{"results":[{}],"paging":{"page":1,"per_page":10,"total":215,"has_more":true}}`, ".results", `[{}]`, `[not selected: .paging.total 215, .paging.has_more true]`},
		{"total of a search", `{"total_count":45,"incomplete_results":false,"items":[{},{}]}`, ".items[].id", `1`, `[not selected: .total_count 45]`},
		{"offsets", `{"startAt":0,"maxResults":50,"total":120,"issues":[{}]}`, ".issues", `[{}]`, `[not selected: .total 120]`},
		{"link in an object", `{"results":[{}],"paging":{"next":{"after":"25","link":"?after=25"}}}`, ".results", `[{}]`, `[not selected: .paging.next.after "25", .paging.next.link "?after=25"]`},
		{"a key that is no name", `{"value":[{}],"@odata.nextLink":"https://x.example/2"}`, ".value", `[{}]`, `[not selected: ["@odata.nextLink"] "https://x.example/2"]`},
		{"GraphQL", `{"data":{"repo":{"issues":{"nodes":[{}],"pageInfo":{"hasNextPage":true,"endCursor":"Y3"}}}}}`, ".data.repo.issues.nodes", `[{}]`, `[not selected: .data.repo.issues.pageInfo.hasNextPage true, .data.repo.issues.pageInfo.endCursor "Y3"]`},
		{"a long cursor", `{"items":[{}],"nextPageToken":"` + strings.Repeat("a", 200) + `"}`, ".items", `[{}]`, `[not selected: .nextPageToken]`},
		{"the filter names it", `{"issues":[{}],"total":640,"next_cursor":"bzoy"}`, "{n: .total, k: [.issues[].key]}", `{"n":640}`, ""},
		{"the output has it", `{"issues":[{}],"next_cursor":"bzoy"}`, ".", `{"issues":[{}],"next_cursor":"bzoy"}`, ""},
		{"last page of Notion", `{"results":[{}],"has_more":false,"next_cursor":null}`, ".results", `[{}]`, ""},
		{"last page of GraphQL", `{"nodes":[{}],"pageInfo":{"hasNextPage":false,"endCursor":"Y3"}}`, ".nodes", `[{}]`, ""},
		{"cursor without a flag", `{"nodes":[{}],"pageInfo":{"endCursor":"Y3"}}`, ".nodes", `[{}]`, ""},
		{"all are here", `{"total_count":2,"items":[{},{}]}`, ".items", `[{},{}]`, ""},
		{"an amount", `{"lines":[{}],"total":1250}`, ".lines", `[{}]`, ""},
		{"no list", `{"state":"open","next":"review","total_count":3}`, ".state", `"open"`, ""},
		{"in the items", `{"items":[{"next":"x","has_more":true,"comments":[{}]}]}`, ".items", `[]`, ""},
		{"an array", `[{"next_cursor":"x"}]`, ".[]", `{}`, ""},
		{"no JSON", `x`, ".", ``, ""},
		{"nothing", ``, ".", ``, ""},
	} {
		if got := notSelected(json.RawMessage(tt.value), tt.filter, tt.shown); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
