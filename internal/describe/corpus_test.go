package describe

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"mcpx/internal/catalog"
	"mcpx/internal/tokens"
)

// corpus reads the tools/list answers in MCPX_CORPUS/tools, one server a file.
func corpus(t testing.TB) []catalog.Server {
	t.Helper()
	dir := os.Getenv("MCPX_CORPUS")
	if dir == "" {
		t.Skip("MCPX_CORPUS is not set: no corpus of real servers")
	}
	files, err := filepath.Glob(filepath.Join(dir, "tools", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tools in %s: %v", dir, err)
	}
	var servers []catalog.Server
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Instructions string `json:"instructions"`
		}
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		page, err := catalog.ReadPage(catalog.Tools, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tools, _ := catalog.DecodeTools(page.Items)
		base := filepath.Base(name)
		servers = append(servers, catalog.Server{
			Name: base[:len(base)-len(".json")], Instructions: list.Instructions,
			Known: true, State: catalog.Ready, Tools: tools,
		})
	}
	return servers
}

// toolsList is a whole answer to tools/list with the descriptions of both
// tools, and schemas, annotations and _meta as design 6 and 7 have them.
func toolsList(inspect string) string {
	tool := func(name, description, schema string) string {
		q, _ := json.Marshal(description)
		return `{"_meta":{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":500000},` +
			`"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true},` +
			`"description":` + string(q) + `,"inputSchema":{"type":"object","properties":{"server_name":{"type":"string"},` + schema + `},"name":"` + name + `"}`
	}
	return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":60000,"cacheScope":"private","tools":[` +
		tool("exec", Exec(Features{}), `"tool_name":{"type":"string"},"arguments":{"type":"object"},"select":{"type":"string","description":"jq filter on the JSON result"}},"required":["server_name","tool_name"]`) + `,` +
		tool("inspect", inspect, `"tool_name":{"type":"string","description":"one, or several with commas"},"query":{"type":"string","description":"what you want to do"}}`) + `]}}`
}

func TestInspect_corpusTargets(t *testing.T) {
	servers := corpus(t)
	for _, s := range servers {
		if len(s.Tools) > 10 {
			s = s.WithTools(s.Tools[:10])
		}
		text := Inspect(catalog.NewSnapshot([]catalog.Server{s}), Budget{}, Features{})
		if n := tokens.Count(toolsList(text)); n > 600 {
			t.Errorf("%s with %d tools: tools/list has %d tokens, want at most 600:\n%s", s.Name, len(s.Tools), n, text)
		}
	}
	for n := 1; n <= len(servers); n++ {
		snap := catalog.NewSnapshot(append([]catalog.Server(nil), servers[:n]...))
		for _, b := range []Budget{{}, {Chars: 2000}, {Tokens: 600}, {Tokens: 8000}} {
			text := Inspect(snap, b, Features{})
			checkBudget(t, text, b)
			checkNamed(t, text, snap)
			list := tokens.Count(toolsList(text))
			if b.Tokens == 0 && list > 2400 {
				t.Errorf("%d servers: tools/list has %d tokens, want at most 2400", n, list)
			}
			if n == len(servers) {
				t.Logf("%d servers, %d tools, %+v: %d tokens, %d characters; tools/list %d tokens", n, snap.Tools(), b, tokens.Count(text), measure(text).chars, list)
			}
		}
	}
}

// TestInspect_corpusMixes holds the targets for tools and servers at random.
func TestInspect_corpusMixes(t *testing.T) {
	servers := corpus(t)
	r := rand.New(rand.NewPCG(15, 16))
	most, mostOfTen := 0, 0
	for range 150 {
		list := append([]catalog.Server(nil), servers...)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:1+r.IntN(len(list))]
		text := Inspect(catalog.NewSnapshot(append([]catalog.Server(nil), list...)), Budget{}, Features{})
		checkBudget(t, text, Budget{})
		most = max(most, tokens.Count(toolsList(text)))

		list = list[:1+r.IntN(min(10, len(list)))]
		for i := range list {
			tools := list[i].Tools
			from, n := r.IntN(len(tools)), max(10/len(list), 1)
			list[i] = list[i].WithTools(tools[from:min(from+n, len(tools))])
		}
		mostOfTen = max(mostOfTen, tokens.Count(toolsList(Inspect(catalog.NewSnapshot(list), Budget{}, Features{}))))
	}
	t.Logf("tools/list has at most %d tokens, of at most ten tools %d", most, mostOfTen)
	if most > 2400 || mostOfTen > 600 {
		t.Errorf("tools/list has %d tokens, want at most 2400; of ten tools %d, want at most 600", most, mostOfTen)
	}
}

// TestAnswers_corpus holds the answers against what they stand for: the
// minified definitions.
func TestAnswers_corpus(t *testing.T) {
	var raw, full, listed, listedRaw, large, count int
	for _, s := range corpus(t) {
		for i := range s.Tools {
			tool := &s.Tools[i]
			plain := *tool
			plain.Annotations = nil
			was, is := tokens.Count(definition(&plain)), tokens.Count(Tool(&s, tool, Options{TypeScript: true}))
			raw, full, count = raw+was, full+is, count+1
			if is > 1000 {
				large++
				t.Logf("%s.%s: %d tokens for %d", s.Name, tool.Name, is, was)
			}
			if is > was {
				t.Errorf("%s.%s: %d tokens stand for %d", s.Name, tool.Name, is, was)
			}
		}
		text, complete := Server(&s, Options{TypeScript: true})
		if !complete {
			listed += tokens.Count(text)
			for i := range s.Tools {
				plain := s.Tools[i]
				plain.Annotations = nil
				listedRaw += tokens.Count(definition(&plain))
			}
		} else if n := tokens.Count(text); n > defaultListingTokens+200 { // and what the server is for
			t.Errorf("%s: complete listing has %d tokens", s.Name, n)
		}
	}
	t.Logf("%d complete tools: %d of %d tokens (%.3f), %d over 1000; listings: %.3f", count, full, raw, float64(full)/float64(raw), large, float64(listed)/float64(listedRaw))
}
