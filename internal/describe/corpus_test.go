package describe

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// corpus reads the files in MCPX_CORPUS/tools; each has the tools/list answer of one server. It
// skips the test if MCPX_CORPUS is not set.
func corpus(t testing.TB) []catalog.Server {
	t.Helper()
	dir := os.Getenv("MCPX_CORPUS")
	if dir == "" {
		t.Skip("MCPX_CORPUS is not set: no corpus of real servers")
	}
	return toolLists(t, filepath.Join(dir, "tools"))
}

func toolLists(t testing.TB, dir string) []catalog.Server {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
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

// toolsList returns an answer of mcpx to tools/list, in which inspect is the description of the tool inspect. It is about as
// long as the answer of package view, which may have other schemas.
func toolsList(inspect string) string {
	tool := func(name, description, schema string) string {
		q, _ := json.Marshal(description)
		return `{"_meta":{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":500000},` +
			`"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true},` +
			`"description":` + string(q) + `,"inputSchema":{"type":"object","properties":{"server_name":{"type":"string"},` + schema + `},"name":"` + name + `","title":"Call a tool"}`
	}
	return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":60000,"cacheScope":"private","tools":[` +
		tool("exec", execUsage(Features{}), `"tool_name":{"type":"string"},"arguments":{"type":"object","additionalProperties":true},"select":{"type":"string","description":"jq filter on the JSON result"},"grep":{"type":"string","description":"regex: only matching lines"}},"required":["server_name","tool_name"]`) + `,` +
		tool("inspect", inspect, `"tool_name":{"type":"string","description":"one, or several with commas"},"query":{"type":"string","description":"what you want to do"}}`) + `]}}`
}

func TestInspect_corpusTargets(t *testing.T) {
	servers := corpus(t)
	for _, s := range servers {
		if len(s.Tools) > 10 {
			s = s.WithTools(s.Tools[:10])
		}
		text := Inspect(catalog.NewSnapshot([]catalog.Server{s}), Budget{}, Features{})
		if n := tokens.Count(toolsList(text)); n > 660 {
			t.Errorf("%s with %d tools: tools/list has %d tokens, want at most 660:\n%s", s.Name, len(s.Tools), n, text)
		}
	}
	for n := 1; n <= len(servers); n++ {
		snap := catalog.NewSnapshot(append([]catalog.Server(nil), servers[:n]...))
		for _, b := range []Budget{{}, {Chars: 2000}, {Tokens: 600}, {Tokens: 8000}} {
			text, exec := Descriptions(snap, b, Features{})
			checkBudget(t, text, b)
			checkNamed(t, text, exec, snap)
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

// TestInspect_corpusMixes: with random servers and tools of the corpus, the answer to tools/list (see toolsList) has at most
// 2400 tokens, and at most 660 if there are about ten tools.
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
	if most > 2400 || mostOfTen > 660 {
		t.Errorf("tools/list has %d tokens, want at most 2400; of ten tools %d, want at most 660", most, mostOfTen)
	}
}

// answers compares the tokens of complete tools in the answers of inspect with the tokens of
// their minified {name, description, inputSchema, outputSchema}. raw and one are sums over
// answers with one tool, fiveRaw and five over answers with five successive tools. To print
// them: `go test -run Answers -v ./internal/describe`; with MCPX_CORPUS set to the folder of the
// corpus, also for the corpus.
type answers struct{ tools, raw, one, fiveRaw, five int }

func (a *answers) String() string {
	return fmt.Sprintf("%d tools, %d tokens: one %d (%.4f), five %.4f", a.tools, a.raw, a.one, a.single(), a.several())
}

func (a *answers) single() float64  { return float64(a.one) / float64(a.raw) }
func (a *answers) several() float64 { return float64(a.five) / float64(a.fiveRaw) }

func (a *answers) measure(t *testing.T, s *catalog.Server) {
	o := Options{TypeScript: true}
	list := make([]*catalog.Tool, len(s.Tools))
	raw := make([]int, len(s.Tools))
	for i := range s.Tools {
		list[i] = &s.Tools[i]
		raw[i] = tokens.Count(bare(list[i]))
		text := Tool(s, list[i], o)
		one := tokens.Count(text)
		if one > raw[i] {
			t.Errorf("%s.%s: %d tokens stand for %d", s.Name, list[i].Name, one, raw[i])
		}
		if strings.Contains(text, "[+") {
			t.Errorf("%s.%s: a description is cut", s.Name, list[i].Name)
		}
		a.tools, a.raw, a.one = a.tools+1, a.raw+raw[i], a.one+one
	}
	for i := 0; i+5 <= len(list); i += 5 {
		a.five += tokens.Count(Tools(s, list[i:i+5], o))
		for _, n := range raw[i : i+5] {
			a.fiveRaw += n
		}
	}
}

// bare returns the definition of t with which the texts of inspect are compared: without annotations.
func bare(t *catalog.Tool) string {
	plain := *t
	plain.Annotations = nil
	return definition(&plain)
}

// TestAnswers_OpenAPI: the answers about tools generated from OpenAPI documents stay within
// their bounds. These tools have repeated objects, open objects, and optional properties that
// may be null. make.py in the folder of the tools generates them.
func TestAnswers_OpenAPI(t *testing.T) {
	mcptest.OneGoroutine(t)
	var sum answers
	for _, s := range toolLists(t, "../schemats/testdata/openapi") {
		sum.measure(t, &s)
	}
	t.Log(&sum)
	// The tokens that version dd4640d of mcpx printed for the same tools, one tool in each answer, with descriptions cut at 300
	// characters. Without the cut they were 58,435.
	const before = 55_022
	if sum.single() > 0.63 || sum.several() > 0.50 || sum.one*10 > before*9 {
		t.Errorf("above 0.63, 0.50 or nine tenths of %d: %s", before, &sum)
	}
}

// TestAnswers_corpus: the answers about the tools of the corpus stay within their bounds, which
// are shares of the tokens of the raw definitions. The descriptions, which cannot be shortened,
// have 0.437 of these tokens, so the bound for one tool is near the least possible.
func TestAnswers_corpus(t *testing.T) {
	var sum answers
	var listed, listedRaw int
	for _, s := range corpus(t) {
		sum.measure(t, &s)
		text, complete := Server(&s, Options{TypeScript: true})
		n := tokens.Count(text)
		if complete {
			if n > defaultListingTokens+200 { // 200 tokens for the purpose of the server
				t.Errorf("%s: complete listing has %d tokens", s.Name, n)
			}
			continue
		}
		if n > listingOver*defaultListingTokens {
			t.Errorf("%s: listing has %d tokens", s.Name, n)
		}
		listed += n
		last := text[strings.LastIndexByte(text, '\n')+1:] // all names, if the listing has only names
		for i := range s.Tools {
			if name := s.Tools[i].Name; !strings.Contains(text, name) && !expand(last)[name] {
				t.Errorf("%s: %s is not in its listing", s.Name, s.Tools[i].Name)
			}
			listedRaw += tokens.Count(bare(&s.Tools[i]))
		}
	}
	t.Logf("%s; listings %.3f", &sum, float64(listed)/float64(listedRaw))
	if sum.single() > 0.611 || sum.several() > 0.614 || listed*5 > listedRaw {
		t.Errorf("above 0.611, 0.614 or 0.20 for listings: %s, %d of %d", &sum, listed, listedRaw)
	}
}
