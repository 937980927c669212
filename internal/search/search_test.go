package search

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
)

// tool makes a tool whose parameters are the words of params.
func tool(name, description, params string) catalog.Tool {
	properties := map[string]any{}
	for p := range strings.FieldsSeq(params) {
		properties[p] = map[string]any{"type": "string"}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		panic(err)
	}
	return catalog.Tool{Name: name, Description: description, InputSchema: schema}
}

// sample is a small catalogue of the kinds of servers that people run.
func sample() *catalog.Snapshot {
	return catalog.NewSnapshot([]catalog.Server{
		{Name: "filesystem", Instructions: "Read, write and search files under the allowed folders.", Tools: []catalog.Tool{
			tool("read_text_file", "Read the complete contents of a file as text.", "path head tail"),
			tool("write_file", "Create a new file or completely overwrite an existing file.", "path content"),
			tool("list_directory", "Get a listing of all files and directories in a path.", "path"),
			tool("delete_file", "Delete a file.", "path"),
			tool("search_files", "Recursively find files that match a pattern.", "path pattern"),
			tool("create_directory", "Create a new directory.", "path"),
		}},
		{Name: "github", Instructions: "GitHub repositories, issues and pull requests.", Tools: []catalog.Tool{
			tool("list_pull_requests", "List pull requests in a repository.", "owner repo state"),
			tool("merge_pull_request", "Merge a pull request.", "owner repo pullNumber"),
			tool("create_issue", "Create a new issue in a repository.", "owner repo title body"),
			tool("searchCode", "Search for code across repositories.", "q"),
			tool("fork_repository", "Fork a repository to an account.", "owner repo"),
		}},
		{Name: "weather", Instructions: "Weather forecasts and alerts.", Tools: []catalog.Tool{
			tool("get_forecast", "Get the weather forecast for a location.", "latitude longitude days"),
			tool("get_alerts", "Get weather alerts for a state.", "state"),
		}},
		{Name: "charts", Instructions: "Draws charts.", Tools: []catalog.Tool{
			tool("generate_bar_chart", "Generate a bar chart to compare values between categories.", "data title"),
			tool("generate_line_chart", "Generate a line chart to show trends over time.", "data title"),
			tool("generate_pie_chart", "Generate a pie chart to show proportions.", "data title"),
		}},
		{Name: "excel", Instructions: "Reads and writes MS Excel workbooks.", Tools: []catalog.Tool{
			tool("excel_read_sheet", "Read values from an Excel sheet.", "fileAbsolutePath sheetName range"),
			tool("excel_write_to_sheet", "Write values to an Excel sheet.", "fileAbsolutePath sheetName values"),
		}},
		{Name: "slack", Instructions: "Slack workspace access.", Tools: []catalog.Tool{
			tool("slack_post_message", "Post a new message to a channel.", "channel_id text"),
			tool("slack_list_channels", "List public channels of the workspace.", "limit cursor"),
			tool("slack_get_users", "Get all users of the workspace.", "limit"),
		}},
		{Name: "browser", Instructions: "Automates a web browser.", Tools: []catalog.Tool{
			tool("browser_navigate", "Navigate to a URL.", "url"),
			tool("browser_take_screenshot", "Take a screenshot of the current page.", "fullPage"),
			tool("browser_click", "Click an element of a web page.", "selector"),
		}},
		{Name: "postgres", Instructions: "Read-only access to a PostgreSQL database.", Tools: []catalog.Tool{
			tool("query", "Run a read-only SQL query.", "sql"),
			tool("list_tables", "List the tables of the database.", "schema"),
		}},
		{Name: "trends", Instructions: "全网热点趋势一站式聚合服务", Tools: []catalog.Tool{
			tool("get-weibo-trending", "获取微博热搜榜，包含时事热点、社会现象、娱乐新闻", ""),
			tool("get-bbc-news", "获取 BBC 新闻，提供全球新闻、商业、科技资讯", ""),
		}},
		{Name: "погода-ру", Tools: []catalog.Tool{
			tool("прогноз", "Возвращает прогноз погоды для российских городов.", "город"),
		}},
	})
}

// first are the names of the first n hits.
func first(hits []Hit, n int) []string {
	var names []string
	for _, h := range hits[:min(n, len(hits))] {
		names = append(names, h.Tool)
	}
	return names
}

func TestSearch_BestTool(t *testing.T) {
	x := New(sample())
	tests := []struct{ query, want string }{
		// names as they are written in the catalogue
		{"write_file", "write_file"},
		{"searchCode", "searchCode"},
		{"filesystem.read_text_file", "read_text_file"},
		{"generateBarChart", "generate_bar_chart"},
		// synonyms, stems, plurals, acronyms
		{"show PRs", "list_pull_requests"},
		{"list open MRs: the pull requests of a repo", "list_pull_requests"},
		{"remove a document", "delete_file"},
		{"make a new folder", "create_directory"},
		{"forking repositories", "fork_repository"},
		{"report a bug: new issue", "create_issue"},
		{"dm somebody on slack", "slack_post_message"},
		{"will it rain tomorrow in Paris?", "get_forecast"},
		{"piechart of the expenses", "generate_pie_chart"},
		{"open https://example.com/pricing", "browser_navigate"},
		{"people in the slack workspace", "slack_get_users"},
		// a path is read or written
		{"summarize /tmp/notes.txt", "read_text_file"},
		{"put the weather forecast into /tmp/weather.txt", "write_file"},
		// other languages
		{"读取文件", "read_text_file"},
		{"请帮我删除这个文件", "delete_file"},
		{"巴黎明天的天气预报", "get_forecast"},
		{"創建目錄", "create_directory"},
		{"微博热搜", "get-weibo-trending"},
		{"微博", "get-weibo-trending"},
		{"ファイルを検索してください", "search_files"},
		{"スクリーンショットを撮る", "browser_take_screenshot"},
		{"파일을 삭제해 주세요", "delete_file"},
		{"удали файл", "delete_file"},
		{"отправить сообщение в канал slack", "slack_post_message"},
		{"прогноз погоды для городов России", "прогноз"},
		{"احذف الملف", "delete_file"},
		// world news in English finds a Chinese description
		{"latest BBC headlines", "get-bbc-news"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			hits := x.Search(tt.query, Options{Limit: 3})
			if len(hits) == 0 || hits[0].Tool != tt.want {
				t.Errorf("got %v, want %s first", hits, tt.want)
			}
		})
	}
}

func TestSearch_SeveralNeeds(t *testing.T) {
	x := New(sample())
	tests := []struct {
		query string
		want  []string // the tool must be within the first 4 hits
	}{
		{"read the csv, then plot it as a bar chart", []string{"read_text_file", "generate_bar_chart"}},
		{"Get the weather forecast for Berlin and post it to the team channel on Slack", []string{"get_forecast", "slack_post_message"}},
		{"Take a screenshot of https://example.com. Create an issue about what is broken.", []string{"browser_take_screenshot", "create_issue"}},
		{"Summarize the open pull requests and save the report to /tmp/report.md", []string{"list_pull_requests", "write_file"}},
		{"Read the sales in /data/sales.xlsx and draw a pie chart", []string{"excel_read_sheet", "generate_pie_chart"}},
		{"查询巴黎的天气预报，然后把结果保存到/tmp/weather.txt", []string{"get_forecast", "write_file"}},
		{"Прочитай файл notes.txt, затем отправь сообщение в slack", []string{"read_text_file", "slack_post_message"}},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			got := first(x.Search(tt.query, Options{}), 4)
			for _, want := range tt.want {
				if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+want+" ") {
					t.Errorf("got %v, want %s among the first 4", got, want)
				}
			}
		})
	}
}

// TestSearch_VerbsOfTwoWords: "turn off" is a verb, although "off" alone is a word that helps nothing.
func TestSearch_VerbsOfTwoWords(t *testing.T) {
	x := New(catalog.NewSnapshot(append(sample().Servers, catalog.Server{Name: "billing", Tools: []catalog.Tool{
		tool("enable_renewal", "Enable the renewal of a subscription.", "id"),
		tool("disable_renewal", "Disable the renewal of a subscription.", "id"),
	}})))
	for query, want := range map[string]string{
		"turn off the renewal": "disable_renewal", "switch off the renewal": "disable_renewal",
		"turn on the renewal": "enable_renewal", "switch on the renewal": "enable_renewal",
	} {
		if got := first(x.Search(query, Options{}), 1)[0]; got != want {
			t.Errorf("%s: got %s first, want %s", query, got, want)
		}
	}
}

func TestSearch_HarmfulToolsNeedAnAct(t *testing.T) {
	x := New(catalog.NewSnapshot(append(sample().Servers, catalog.Server{Name: "crm", Tools: []catalog.Tool{
		tool("delete_customer", "Delete a customer.", "id"),
		tool("customer_update", "Change what is known of a person who buys, such as the address.", "id"),
	}})))
	if got := first(x.Search("customer", Options{}), 1)[0]; got != "customer_update" {
		t.Errorf("customer: got %s first, want customer_update", got)
	}
	if got := first(x.Search("remove the customer", Options{}), 1)[0]; got != "delete_customer" {
		t.Errorf("remove the customer: got %s first, want delete_customer", got)
	}
}

func TestSearch_NeedsThatAsk(t *testing.T) {
	yes, no := true, false
	board := func(reads, creates *bool) *Index {
		list, add := tool("card_index", "Cards of the board.", "board"), tool("create_card", "Create cards of the board.", "board")
		list.Hints.ReadOnly, add.Hints.ReadOnly = reads, creates
		return New(catalog.NewSnapshot(append(sample().Servers, catalog.Server{Name: "board", Tools: []catalog.Tool{list, add}})))
	}
	tests := []struct {
		query string
		x     *Index
		want  string
	}{
		{"what new cards are on the board?", board(nil, nil), "card_index"},
		{"show new cards of the board", board(nil, nil), "card_index"},
		{"create a card and show the board", board(nil, nil), "create_card"},
		{"new card", board(nil, nil), "create_card"},
		// an annotation overrides a name
		{"show new cards of the board", board(&no, &yes), "create_card"},
	}
	for _, tt := range tests {
		if got := first(tt.x.Search(tt.query, Options{}), 1)[0]; got != tt.want {
			t.Errorf("%s: got %s first, want %s", tt.query, got, tt.want)
		}
	}
}

func TestSearch_QuotedValuesWeighLess(t *testing.T) {
	x := New(sample())
	for _, q := range []string{`post a message "merge pull request" to a channel`, "post a message 'merge pull request' to a channel", "post a message “merge pull request” to a channel"} {
		if got := first(x.Search(q, Options{}), 1)[0]; got != "slack_post_message" {
			t.Errorf("%s: got %s first, want slack_post_message", q, got)
		}
	}
}

func TestSearch_SameToolOnce(t *testing.T) {
	read := tool("read_page", "Read a page.", "url")
	other := tool("read_page", "Read a page of a book.", "url")
	x := New(catalog.NewSnapshot(append(sample().Servers,
		catalog.Server{Name: "a", Tools: []catalog.Tool{read}},
		catalog.Server{Name: "b", Tools: []catalog.Tool{other, read}},
		catalog.Server{Name: "c", Instructions: "Pages to read.", Tools: []catalog.Tool{read}},
	)))
	hits := x.Search("read a page", Options{Limit: 2})
	if len(hits) != 2 || hits[0].Server != "c" || !slices.Equal(hits[0].Also, []string{"a", "b"}) || hits[1].Server != "b" || hits[1].Also != nil {
		t.Errorf("got %v, want the tool of c, also on a and b, then the other one of b", hits)
	}
	hits = x.Search("read a page", Options{Server: "a"})
	if len(hits) != 1 || hits[0].Server != "a" || hits[0].Also != nil {
		t.Errorf("server a: got %v", hits)
	}
}

func TestSearch_Options(t *testing.T) {
	x := New(sample())
	for _, h := range x.Search("read", Options{Server: "excel"}) {
		if h.Server != "excel" {
			t.Errorf("got a hit of %s, want only excel", h.Server)
		}
	}
	if got := x.Search("read", Options{Server: "nowhere"}); len(got) != 0 {
		t.Errorf("unknown server: got %v, want nothing", got)
	}
	if got := x.Search("get list of files", Options{Limit: 2}); len(got) != 2 {
		t.Errorf("got %d hits, want 2", len(got))
	}
	if got := x.Search("get list read create write", Options{}); len(got) != 10 {
		t.Errorf("got %d hits, want 10 by default", len(got))
	}
	for _, q := range []string{"", "   ", "xyzzy qwortz", "the of and", "?!…", "\x00"} {
		if got := x.Search(q, Options{}); len(got) != 0 {
			t.Errorf("%q: got %v, want nothing", q, got)
		}
	}
	if got := New(catalog.NewSnapshot(nil)).Search("read a file", Options{}); len(got) != 0 {
		t.Errorf("empty catalogue: got %v", got)
	}
}

func TestSearch_ScoresFall(t *testing.T) {
	hits := New(sample()).Search("weather in Paris and a chart", Options{Limit: 100})
	if len(hits) < 5 || hits[0].Score != 1 {
		t.Fatalf("got %v, want several hits, the first with score 1", hits)
	}
	seen := map[toolID]bool{}
	for i, h := range hits {
		if h.Score < 0.1 || i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("hit %d has score %v after %v", i, h.Score, hits[max(i-1, 0)].Score)
		}
		id := toolID{h.Server, h.Tool}
		if seen[id] {
			t.Errorf("%v twice", id)
		}
		seen[id] = true
	}
}

func TestSearch_Deterministic(t *testing.T) {
	queries := []string{"read the csv, then plot it", "get list show", "天气 weather погода", "save the report to /tmp/a.md"}
	want := map[string][]Hit{}
	x := New(sample())
	for _, q := range queries {
		want[q] = x.Search(q, Options{Limit: 50})
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			y := New(sample())
			for _, q := range queries {
				for _, ix := range []*Index{x, y} {
					if got := ix.Search(q, Options{Limit: 50}); !reflect.DeepEqual(got, want[q]) {
						t.Errorf("%q: got %v, want %v", q, got, want[q])
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestSearch_Hostile uses queries and catalogues of extreme sizes and contents. The
// bound is far above what they take, so that a slow machine passes and a
// quadratic search does not.
func TestSearch_Hostile(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 5000) + "{}" + strings.Repeat("}}", 5000)
	bad := []catalog.Server{{Name: "bad", Title: "\xff\xfe", Instructions: strings.Repeat("\x00 read ", 100000), Tools: []catalog.Tool{
		{Name: strings.Repeat("aB", 1<<19), Description: strings.Repeat("\xed\xa0\x80", 1<<18)},
		{Name: "", InputSchema: json.RawMessage(deep)},
		{Name: "read", InputSchema: json.RawMessage(`{"properties":5}`)},
		{Name: "read", InputSchema: json.RawMessage(`{"properties":{"x":{"enum":[1,null,{}]}}}`)},
	}}}
	start := time.Now()
	x := New(catalog.NewSnapshot(append(bad, sample().Servers...)))
	queries := map[string]string{
		"one word":   strings.Repeat("a", 1<<20),
		"words":      strings.Repeat("read the file and ", 1<<16),
		"clauses":    strings.Repeat("a. b; ", 1<<18),
		"NULs":       strings.Repeat("\x00", 1<<20),
		"not UTF-8":  strings.Repeat("\xff\xc0read", 1<<18),
		"Han":        strings.Repeat("读取文件", 1<<17),
		"marks":      "a" + strings.Repeat("\u0301", 1<<19),
		"capitals":   strings.Repeat("Ab", 1<<19),
		"paths":      strings.Repeat("/a.md ", 1<<17),
		"case":       strings.Repeat("İßﬁ", 1<<17),
		"brackets":   strings.Repeat("(", 1<<20),
		"half a Han": "读取文件"[:10],
	}
	for name, q := range queries {
		for _, h := range x.Search(q, Options{}) {
			if h.Score <= 0 {
				t.Errorf("%s: got %v", name, h)
			}
		}
	}
	if d := time.Since(start); d > 2*time.Minute {
		t.Errorf("took %v", d)
	}
}

func FuzzSearch(f *testing.F) {
	x := New(sample())
	for _, s := range []string{"read /tmp/a.md, then plot", "读取文件 to https://a.com/b", "PRs of HTTPServer2", "a@b.c ~/x \xff", "и отправь، ثم", "...", "C:\\a.txt"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		for _, ix := range []*Index{x, New(catalog.NewSnapshot([]catalog.Server{{Name: text, Tools: []catalog.Tool{
			{Name: text, Description: text, InputSchema: json.RawMessage(text)}, {Name: "read", Description: "Read."},
		}}}))} {
			hits := ix.Search(query, Options{Limit: 5})
			if len(hits) > 5 {
				t.Fatalf("%d hits", len(hits))
			}
			for i, h := range hits {
				if !(h.Score > 0 && h.Score <= 1) || i > 0 && h.Score > hits[i-1].Score {
					t.Fatalf("scores of %v", hits)
				}
			}
			if again := ix.Search(query, Options{Limit: 5}); !reflect.DeepEqual(hits, again) {
				t.Fatalf("got %v, then %v", hits, again)
			}
		}
	})
}

// many returns a catalogue of n tools in n/30 servers. Their words are random, with a fixed seed, and as frequent
// as words in a language.
func many(n int) *catalog.Snapshot {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		k := int(float64(6000) * rnd.Float64() * rnd.Float64() * rnd.Float64())
		syllables := []string{"ba", "co", "du", "fe", "gi", "lo", "mu", "ne", "pi", "ra", "se", "ti"}
		var b strings.Builder
		for k += 12; k > 0; k /= 12 {
			b.WriteString(syllables[k%12])
		}
		return b.String()
	}
	text := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = word()
		}
		return strings.Join(words, " ")
	}
	acts := strings.Fields("get list create update delete search read write send")
	var servers []catalog.Server
	for len(servers)*30 < n {
		s := catalog.Server{Name: fmt.Sprintf("%s-%d", word(), len(servers)), Instructions: "Server for " + text(15) + "."}
		for range 30 {
			properties := map[string]any{}
			for range 4 {
				properties[word()] = map[string]string{"type": "string", "description": text(8)}
			}
			schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
			if err != nil {
				panic(err)
			}
			s.Tools = append(s.Tools, catalog.Tool{Name: acts[rnd.IntN(len(acts))] + "_" + word() + "_" + word(),
				Description: "Get the " + text(12) + ". " + text(15) + ".", InputSchema: schema})
		}
		servers = append(servers, s)
	}
	return catalog.NewSnapshot(servers)
}
