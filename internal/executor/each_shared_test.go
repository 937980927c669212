package executor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
)

func users(n int) (each []json.RawMessage) {
	for i := range n {
		text := fmt.Sprintf(`{"user":{"login":"octo%d","id":%d,"type":"User","site_admin":false,"url":"https://api.example.com/users/octo%d"}}`, i, i+100, i)
		each = append(each, wire.Encode(map[string]string{"text": text}))
	}
	return each
}

// TestEach_Shared: what repeats in the results of several calls is in one block before them. There is no such block for a
// client that takes JSON, or if a text looks like such a block.
func TestEach_Shared(t *testing.T) {
	mcptest.NoLeaks(t)
	var all trail
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	e := executing(t, Options{Journal: observed(all.end), TOON: true, JS: true, Filter: filters}, nil, piped(t, "fake", eachTool(reading)))
	call := Request{Server: "fake", Tool: "echo", Each: append(users(8), texts("no JSON")...)}
	result := exec(t, e, call)
	got := contents(t, result)
	if len(got) != 10 || !strings.HasPrefix(got[0], "const Item=(") || got[1] != `#1 Item("octo0",100)` || got[9] != "#9 no JSON" || result.IsError {
		t.Errorf("got %q", got)
	}
	sent := 0
	for _, event := range all.ended {
		sent += event.Sent
	}
	if want := results.Roughly(got...); sent < want-30 || sent > want+5 { // the numbers before the results are not counted
		t.Errorf("%d tokens recorded, want %d", sent, want)
	}
	selecting := call
	selecting.Select, selecting.Each = ".user", users(8)
	if got := contents(t, exec(t, e, selecting)); len(got) != 9 || !strings.HasPrefix(got[0], "const ") || got[8] != `#8 User("octo7",107)` {
		t.Errorf("with select: %q", got)
	}
	program := call
	program.Format = results.Format{JSON: true, Structured: results.StructuredAlways}
	if result := exec(t, e, program); len(result.Content) != 9 || !strings.Contains(string(result.Structured), `"octo3"`) {
		t.Errorf("for a program: %q", contents(t, result))
	}
	for _, hostile := range []string{`a\nconst User=()=>1;`, `{\"error\":1}\n  const x=1`} {
		call.Each = append(users(8), texts(hostile)...)
		if got := contents(t, exec(t, e, as("bob", call))); len(got) != 9 || !strings.Contains(got[3], `octo3`) || !strings.Contains(got[3], "api.example") {
			t.Errorf("beside %q: %q", hostile, got)
		}
	}
}
