package budget

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/terminal"
	"mcpx/internal/compress"
	"mcpx/internal/describe"
	"mcpx/internal/tokens"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// surface returns two tools like those of mcpx: one grows with the number of servers.
func surface(snap *catalog.Snapshot, client string) ([]Definition, string) {
	return []Definition{
		{Name: "inspect", Description: "Servers: " + strings.Join(snap.ServerNames(), ", ")},
		{Name: "exec", Description: "Call a tool.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}, "Tools of " + client + "\nand more."
}

func newMeter() *Meter {
	return &Meter{Price: 3, Surface: surface, Describe: describe.Options{TypeScript: true}, Compress: compress.Options{TOON: true}}
}

// measured returns the report of testdata, with a server that is down.
func measured(t *testing.T) *Report {
	t.Helper()
	m := newMeter()
	snap, notes, err := ReadTools(os.DirFS("testdata/tools"))
	if err != nil {
		t.Fatal(err)
	}
	down := catalog.Server{Name: "zdown", State: catalog.Unavailable, Reason: "starting\nnpx: not found"}
	r := m.Report()
	r.Catalogue = m.Catalogue(catalog.NewSnapshot(append(snap.Servers, down)), notes)
	if r.Results, err = m.Results(os.DirFS("testdata/results"), nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// sized is a terminal of this size.
func sized(columns, rows int, colour bool) terminal.Screen {
	return terminal.New(func() (int, int) { return columns, rows }, colour, true)
}

func TestGolden(t *testing.T) {
	r := measured(t)
	table := func(s terminal.Screen, all bool) []byte {
		var out bytes.Buffer
		if err := WriteTable(&out, r, s, all); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/golden/report.txtar"
	got := txtar.Format(&txtar.Archive{
		Comment: []byte("The report of testdata/tools and testdata/results.\n"),
		Files: []txtar.File{
			{Name: "piped", Data: table(terminal.Screen{}, false)},
			{Name: "80x24", Data: table(sized(80, 24, false), false)}, {Name: "100x30", Data: table(sized(100, 30, false), false)},
			{Name: "100x30 --all", Data: table(sized(100, 30, false), true)},
			{Name: "json", Data: append(data, '\n')}, {Name: "svg", Data: Chart(r)},
		},
	})
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("(-want +got)\n%s", cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
}

// TestMeter_Catalogue computes the figures in another way.
func TestMeter_Catalogue(t *testing.T) {
	const definition = `{"name":"t","description":"a < b","inputSchema":{"type":"object","x":1.10}}`
	const raw = `{"name":"t","description":"a < b","inputSchema":{"type":"object","x":1.10},"annotations":{"readOnlyHint":true}}`
	tool, err := catalog.DecodeTool(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	server := catalog.Server{Name: "s", Known: true, State: catalog.Ready, Tools: []catalog.Tool{tool}}
	snap := catalog.NewSnapshot([]catalog.Server{server})
	c := newMeter().Catalogue(snap, nil)
	mine := tokens.Count(`{"name":"inspect","description":"Servers: s","inputSchema":{}}`) +
		tokens.Count(`{"name":"exec","description":"Call a tool.","inputSchema":{"type":"object"}}`)
	lookup := tokens.Count(describe.Tool(&server, &tool, describe.Options{TypeScript: true}))
	direct := tokens.Count(definition)
	want := Server{
		Name: "s", Known: true, Tools: 1, Direct: direct, Raw: tokens.Count(raw), Surface: mine,
		Definition: Spread{direct, direct, direct}, Inspect: Spread{lookup, lookup, lookup}, BreakEven: max(0, float64(direct-mine)/float64(lookup)),
		Cost: Cost{float64(direct) * 0.003, float64(mine) * 0.003, float64(lookup) * 0.003},
	}
	if diff := cmp.Diff(want, c.Servers[0], cmp.Comparer(near)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want.Name = ""
	if diff := cmp.Diff(want, c.Total, cmp.Comparer(near)); diff != "" {
		t.Errorf("total (-want +got)\n%s", diff)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// TestMeter_StateCostsNothing checks that the state of a server does not change the figures.
func TestMeter_StateCostsNothing(t *testing.T) {
	snap, _, err := ReadTools(os.DirFS("testdata/tools"))
	if err != nil {
		t.Fatal(err)
	}
	up := newMeter().Catalogue(snap, nil)
	broken := append([]catalog.Server(nil), snap.Servers...)
	for i := range broken {
		broken[i].State, broken[i].Reason = catalog.Unavailable, "exit status 1"
	}
	down := newMeter().Catalogue(catalog.NewSnapshot(broken), nil)
	if diff := cmp.Diff(up, down); diff != "" {
		t.Errorf("(-up +down)\n%s", diff)
	}
}

func TestDerive_BreakEven(t *testing.T) {
	for _, test := range []struct {
		direct, surface int
		lookups         []int
		want            float64
	}{
		{1000, 400, []int{100, 50, 200}, 6},
		{1000, 400, []int{100, 50}, 8},
		{300, 400, []int{100}, 0},
		{1000, 400, nil, 0},
	} {
		s := Server{Direct: test.direct, Surface: test.surface}
		newMeter().derive(&s, nil, test.lookups)
		if s.BreakEven != test.want {
			t.Errorf("%d direct, %d mcpx, lookups %v: got %v, want %v", test.direct, test.surface, test.lookups, s.BreakEven, test.want)
		}
	}
}

func TestSpread(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	for _, test := range []struct {
		in   []int
		want Spread
	}{
		{nil, Spread{}},
		{[]int{7}, Spread{7, 7, 7}},
		{[]int{9, 2}, Spread{5, 9, 11}},
		{[]int{5, 1, 3}, Spread{3, 5, 9}},
		{hundred, Spread{50, 95, 5050}},
	} {
		if got := spread(test.in); got != test.want {
			t.Errorf("spread(%v) = %v, want %v", test.in, got, test.want)
		}
	}
}

func TestSteps(t *testing.T) {
	for n, want := range map[int][]int{
		0: nil, 1: {1}, 2: {1, 2}, 6: {1, 6}, 7: {1, 5, 7}, 23: {1, 5, 10, 23}, 100: {1, 5, 10, 50, 100}, 120: {1, 5, 10, 50, 120},
	} {
		if diff := cmp.Diff(want, steps(n)); diff != "" {
			t.Errorf("steps(%d): (-want +got)\n%s", n, diff)
		}
	}
}

func TestMeter_Results(t *testing.T) {
	r, err := newMeter().Results(os.DirFS("testdata/results"), []string{"order"})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("testdata/results", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	orders, stock, note := read("table--orders.json"), read("table--stock.json"), read("prose--note.txt")
	sent := func(text string) int { return tokens.Count(compress.Text(text, compress.Options{TOON: true}).Text) }
	table := Class{
		Name: "table", Documents: 2, TOON: 2, Sent: sent(orders) + sent(stock),
		Received: tokens.Count(orders) + tokens.Count(stock),
		Minified: tokens.Count(compress.Text(orders, compress.Options{}).Text) + tokens.Count(compress.Text(stock, compress.Options{}).Text),
	}
	for _, text := range []string{orders, stock} {
		toon, ok := plainTOON(text)
		if table.PlainTOON += tokens.Count(toon); !ok {
			t.Errorf("no TOON of %s", text)
		}
	}
	n := tokens.Count(note)
	want := []Class{table, {Name: "prose", Documents: 1, Received: n, Minified: n, PlainTOON: n, Sent: n}}
	if diff := cmp.Diff(want, r.Classes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if table.Sent >= table.Minified || table.Minified >= table.Received {
		t.Errorf("the tables show nothing: %+v", table)
	}
}

// TestPlainTOON: only a JSON array or object can be written as TOON; its members keep their order.
func TestPlainTOON(t *testing.T) {
	for text, want := range map[string]string{
		`[{"b":1,"a":"x"},{"b":2,"a":"y"}]`: "[2]{b,a}:\n  1,x\n  2,y",
		`{"b":{"z":1.10},"a":[]}`:           "b:\n  z: 1.1\na[0]:",
		`"text"`:                            "", `1`: "", `{"a":1} x`: "", `{"a":`: "", "prose": "", "": "",
		strings.Repeat("[", 100) + strings.Repeat("]", 100): "",
	} {
		if got, ok := plainTOON(text); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", text, got, ok, want)
		}
	}
}

// TestMeter_ToolSearch checks what the requests of each client carry.
func TestMeter_ToolSearch(t *testing.T) {
	long := strings.Repeat("word ", 600)
	servers := []catalog.Server{
		{Name: "a", Known: true, Instructions: "First.\nSecond.", Tools: []catalog.Tool{{Name: "x", Description: "Does\n x."}, {Name: "y", Description: long}}},
		{Name: "b", Known: true, Tools: []catalog.Tool{{Name: "z"}}},
	}
	tools, _ := surface(catalog.NewSnapshot(servers), "")
	own := tools[0].Tokens() + tools[1].Tokens()
	want := []Search{
		{"Claude Code", tokens.Count("First.\nSecond.\nmcp__a__x\nmcp__a__y") + tokens.Count("\nmcp__b__z"), own + tokens.Count("Tools of claude-code\nand more.")},
		{"Codex", tokens.Count("- mcp__a: First.") + tokens.Count("- mcp__b"), tokens.Count("- mcp__mcpx: Tools of codex-mcp-client")},
		{
			"Qwen Code", tokens.Count("First.\nSecond.\n#### a\n- \"mcp__a__x\": \"Does x.\"\n- \"mcp__a__y\": \""+long[:157]+"...\"") + tokens.Count("\n#### b\n- \"mcp__b__z\": \"\""),
			tokens.Count("Tools of qwen-cli-mcp-client-mcpx\nand more.\n#### mcpx\n- \"mcp__mcpx__inspect\": \"Servers: a, b\"\n- \"mcp__mcpx__exec\": \"Call a tool.\""),
		},
	}
	if diff := cmp.Diff(want, newMeter().searching(catalog.NewSnapshot(servers))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestResults_Nothing(t *testing.T) {
	dir := fstest.MapFS{"a.md": {Data: []byte("x")}, "b--c.json": {Data: []byte("{}")}}
	if _, err := newMeter().Results(dir, []string{"b"}); err == nil {
		t.Error("no error for a folder without results")
	}
}

func TestReadTools(t *testing.T) {
	snap, notes, err := ReadTools(os.DirFS("testdata/tools"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"acme-shop", "clock"}, snap.ServerNames()); diff != "" {
		t.Errorf("names (-want +got)\n%s", diff)
	}
	shop := snap.Servers[0]
	if shop.Version != "1.2.0" || shop.Purpose() != "Orders and customers of a shop." || len(shop.Tools) != 3 || !shop.Known {
		t.Errorf("got %+v", shop)
	}
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "clock.json: has a nextCursor") || !strings.HasPrefix(notes[1], "shop.json: tool 4: the name") {
		t.Errorf("notes: %q", notes)
	}
}

func TestReadTools_Refuses(t *testing.T) {
	for name, dir := range map[string]fstest.MapFS{
		"no *.json":             {"a.txt": {Data: []byte("x")}},
		"a.json: reading":       {"a.json": {Data: []byte("{")}},
		`a.json: no "tools"`:    {"a.json": {Data: []byte(`{"result":{"tools":[]}}`)}},
		`b.json: server "twin"`: {"a.json": {Data: []byte(`{"server":"twin","tools":[]}`)}, "b.json": {Data: []byte(`{"server":"twin","tools":[]}`)}},
		"a.json: reading tools": {"a.json": {Data: []byte(`{"tools":{}}`)}},
	} {
		if _, _, err := ReadTools(dir); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("got %v, want %s...", err, name)
		}
	}
}

// TestWriteTable_Width checks that long names and large figures fit into the columns.
func TestWriteTable_Width(t *testing.T) {
	r := measured(t)
	long := strings.Repeat("näme-", 30)
	for i := range r.Catalogue.Servers {
		r.Catalogue.Servers[i].Name += long
	}
	t1 := &r.Catalogue.Total
	t1.Direct, t1.Raw, t1.Surface, t1.BreakEven, t1.Cost.Direct = 12_345_678, 23_456_789, 22_400, 123_456, 37_037.03
	r.Results.Classes[0].Name = long + "\x1b[31m\nforged"
	r.Catalogue.Notes = append(r.Catalogue.Notes, strings.Repeat("word ", 60), strings.Repeat("x", 300))
	for _, width := range []int{80, 100, 120} {
		for _, all := range []bool{false, true} {
			var out bytes.Buffer
			if err := WriteTable(&out, r, sized(width, 24, false), all); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > width || strings.ContainsRune(line, 0x1b) {
					t.Errorf("%d columns of %d: %q", n, width, line)
				}
			}
		}
	}
}

// TestWriteTable_OneScreen checks that the totals of many servers fit on one screen.
func TestWriteTable_OneScreen(t *testing.T) {
	r := measured(t)
	r.Results, r.Catalogue.Notes = nil, nil
	for i := range 40 {
		r.Catalogue.Servers = append(r.Catalogue.Servers, Server{Name: fmt.Sprintf("s%d", i), Known: true, Direct: i})
	}
	for _, height := range []int{24, 30} {
		var out bytes.Buffer
		if err := WriteTable(&out, r, sized(80, height, true), false); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n >= height || n < height-4 {
			t.Errorf("%d lines on %d rows:\n%s", n, height, out.String())
		}
		if !strings.Contains(out.String(), "s39") || strings.Contains(out.String(), "s0 ") || !strings.Contains(out.String(), "more") {
			t.Errorf("not the most expensive servers:\n%s", out.String())
		}
	}
}

func TestFormats(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{breakEven(9.99), "9.9"}, {breakEven(0), "0.0"}, {breakEven(1785.3), "1,785"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
