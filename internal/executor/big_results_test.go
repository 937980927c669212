package executor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// bigResult is a long result of a kind that real tools return.
type bigResult struct {
	name string
	text string
	// filter is one that a model can write after it has read the first part; "" if the result is not JSON.
	filter string
}

// bigResults returns results of 78 KB to 1.6 MB, the same ones on each call.
func bigResults() []bigResult {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("retry the upload after a timeout when server returns empty body and client keeps session open for next request cache misses token refresh fails with unknown issuer queue is full worker stopped index rebuilt page not found schema changed")
	say := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[r.IntN(len(words))]
		}
		return strings.Join(out, " ")
	}
	list := func(n int, between string, item func(i int) string) string {
		out := make([]string, n)
		for i := range out {
			out[i] = item(i)
		}
		return strings.Join(out, between)
	}
	user := func(i int) string {
		return fmt.Sprintf(`{"login":"user%d","id":%d,"url":"https://api.example.com/users/user%d","site_admin":false}`, i, 90000+i, i)
	}
	issue := func(i int) string {
		labels := list(r.IntN(3), ",", func(int) string { return fmt.Sprintf(`{"name":"%s","color":"d73a4a"}`, words[r.IntN(9)]) })
		return fmt.Sprintf(`{"number":%d,"title":"%s","state":"%s","user":%s,"labels":[%s],"comments":%d,"body":"%s"}`,
			i, say(6), []string{"open", "closed"}[r.IntN(2)], user(r.IntN(40)), labels, r.IntN(30), say(60))
	}
	pretty := func(text string) string { return indented(text) }
	return []bigResult{
		{"search of issues", `{"total_count":900,"incomplete_results":false,"items":[` + list(900, ",", issue) + `]}`, ".items[:3][].title"},
		{"GraphQL", pretty(`{"data":{"repository":{"name":"shop","issues":{"totalCount":300,"pageInfo":{"hasNextPage":true,"endCursor":"Y3Vyc29y"},"nodes":[` + list(300, ",", issue) + `]}}}}`), ".data.repository.issues.nodes[0].title"},
		{"JSON Lines", list(4000, "\n", func(i int) string {
			if i%40 == 7 {
				return fmt.Sprintf(`{"level":50,"time":%d,"pid":7,"msg":"%s","err":{"type":"Error","message":"%s","stack":"%s"}}`, 1700000000000+i, say(4), say(5), say(30))
			}
			return fmt.Sprintf(`{"level":30,"time":%d,"pid":7,"req":{"id":%d,"method":"GET","url":"/items/%d"},"res":{"statusCode":200},"responseTime":%d,"msg":"request completed"}`, 1700000000000+i, i, r.IntN(999), r.IntN(300))
		}), `[.[]|select(.level==50)]|length`},
		{"a table", "[" + list(5000, ",\n", func(i int) string {
			return fmt.Sprintf(`{"id": %d, "sku": "A-%05d", "name": "%s", "price": %d.%02d, "stock": %d, "active": %t}`, i, r.IntN(99999), say(3), r.IntN(500), r.IntN(100), r.IntN(50), r.IntN(5) > 0)
		}) + "]", "map(.stock)|add"},
		{"a lock file", pretty(`{"name":"app","lockfileVersion":3,"requires":true,"packages":{` + list(1200, ",", func(i int) string {
			return fmt.Sprintf(`"node_modules/pack-%d":{"version":"%d.%d.0","resolved":"https://registry.example.org/pack-%d.tgz","integrity":"sha512-%x","dependencies":{"pack-%d":"^1.0.0"}}`, i, r.IntN(9), r.IntN(20), i, r.Uint64(), r.IntN(1200))
		}) + `}}`), `.packages["node_modules/pack-7"].version`},
		{"an API document", pretty(`{"openapi":"3.1.0","info":{"title":"Shop","version":"2"},"paths":{` + list(400, ",", func(i int) string {
			return fmt.Sprintf(`"/things/%d":{"get":{"operationId":"get%d","description":"%s","parameters":[{"name":"id","in":"path","schema":{"type":"string"}}],"responses":{"200":{"description":"%s"}}}}`, i, i, say(20), say(4))
		}) + `},"components":{"schemas":{` + list(500, ",", func(i int) string {
			return fmt.Sprintf(`"Thing%d":{"type":"object","description":"%s","properties":{"id":{"type":"string"},"name":{"type":"string"},"size":{"type":"integer"}}}`, i, say(9))
		}) + `}}}`), ".paths|length"},
		{"a page of records with wide rows", pretty(`{"results":[` + list(100, ",", func(i int) string {
			return "{" + list(80, ",", func(j int) string { return fmt.Sprintf(`"field_%d":"%s"`, j, say(2)) }) + "}"
		}) + `],"next":"https://api.example.com/records?page=2","count":4000}`), ".results[0].field_3"},
		{"a command's output", `{"exit_code":0,"stdout":"` + list(3000, `\n`, func(i int) string { return fmt.Sprintf("step %d: %s", i, say(8)) }) + `","stderr":""}`, ".exit_code"},
		{"nested data without a list", pretty(`{"a":` + nested(r.IntN, 7) + `,"b":` + nested(r.IntN, 7) + `}`), ".a|keys|length"},
		{"two lists of one size", `{"users":[` + list(700, ",", user) + `],"issues":[` + list(150, ",", issue) + `]}`, ".users|length"},
		{"items as blocks", list(600, "\n", issue), "map(.comments)|add"},
		{"a log", list(6000, "\n", func(i int) string {
			return fmt.Sprintf("2026-01-02T03:%02d:%02d.%03dZ %-5s [worker-%d] %s", i/60%60, i%60, r.IntN(1000), []string{"INFO", "INFO", "WARN", "ERROR"}[r.IntN(4)], r.IntN(8), say(9))
		}), ""},
		{"CSV", "id,name,city,amount,note\n" + list(8000, "\n", func(i int) string {
			return fmt.Sprintf("%d,%s,Town %d,%d.%02d,%s", i, say(2), r.IntN(90), r.IntN(900), r.IntN(100), say(4))
		}), ""},
		{"one endless line", list(30000, " ", func(int) string { return words[r.IntN(len(words))] }), ""},
	}
}

func nested(random func(int) int, depth int) string {
	if depth == 0 {
		return fmt.Sprintf(`"value %d"`, random(1000))
	}
	members := make([]string, 4)
	for i := range members {
		members[i] = fmt.Sprintf(`"key_%d_%d":%s`, depth, i, nested(random, depth-1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestBigResults: for a long result of any kind, the first answer shows as much of it as possible in about PreviewTokens, and how
// to read on; for JSON also its shape, from which a model can write a filter. Ten such answers cost 32,000 tokens at most.
func TestBigResults(t *testing.T) {
	mcptest.OneGoroutine(t)
	mcptest.NoLeaks(t)
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	options := executor.Options{TOON: true, ResultTokens: 20_000, PreviewTokens: 3000, Filter: filters}
	r := &reader{assembly: inProcess(t, options), oracle: &oracle{}, limit: options.ResultTokens}
	sum, of := 0, 0
	for _, big := range mcptest.Part(t, bigResults(), 4) {
		direct := `{"content":[{"type":"text","text":` + spell(big.text) + `}]}`
		if big.name == "items as blocks" {
			direct = `{"content":[` + inBlocks(big.text) + `]}`
		}
		text := textOf(mustRead(t, r.send(t, direct, "", results.StructuredNone).Content[0])).text
		n := tokens.Count(text)
		t.Logf("%-35s %8d bytes %7d tokens, first look %6d", big.name, len(big.text), tokens.Count(big.text), n)
		if _, left := takeNote(t, text); left == nil || left.left == 0 || left.arguments == "" {
			t.Errorf("%s: is not cut", big.name)
		}
		sum += n
		of++
		if n < 1000 || n > 3300 || (big.filter != "") != strings.Contains(text, "\n[shape: ") {
			t.Errorf("%s: %d tokens: %.200s", big.name, n, text)
		}
		if big.filter == "" {
			if end := big.text[len(big.text)-200:]; !strings.Contains(text, end) {
				t.Errorf("%s: does not show its end: %.200s", big.name, text)
			}
			continue
		}
		selected := textOf(mustRead(t, r.send(t, direct, big.filter, results.StructuredNone).Content[0])).text
		if strings.Contains(selected, "null") || tokens.Count(selected) > 100 {
			t.Errorf("%s: %s gives %.300s", big.name, big.filter, selected)
		}
	}
	if t.Logf("ten of them %d", 10*sum/of); 10*sum > of*32_000 {
		t.Errorf("%d tokens for ten", 10*sum/of)
	}
}

// inBlocks puts each line of a text into its own text block.
func inBlocks(text string) string {
	var blocks []string
	for line := range strings.SplitSeq(text, "\n") {
		blocks = append(blocks, `{"type":"text","text":`+spell(indented(line))+`}`)
	}
	return strings.Join(blocks, ",")
}

// indented returns JSON with the indentation that programs use for human readers.
func indented(text string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
		panic(err)
	}
	return out.String()
}
