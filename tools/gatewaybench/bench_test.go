package main

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

func TestMain(m *testing.M) {
	roles()
	os.Exit(m.Run())
}

func TestStatistics(t *testing.T) {
	for _, tt := range []struct {
		values         []float64
		median, p99    float64
		spread         float64
		shown, widened string
	}{
		{[]float64{3}, 3, 3, 0, "3", ""},
		{[]float64{4, 1, 2}, 2, 4, 0.75, "2 ±75%", ""},
		{[]float64{1000, 2000, 1500, 1500}, 1500, 2000, 1.0 / 3, "1,500 ±33%", ""},
		{[]float64{0, 0}, 0, 0, 0, "0", ""},
	} {
		c := &cell{Values: tt.values}
		c.settle()
		if c.Median != tt.median || percentile(tt.values, 0.99) != tt.p99 || math.Abs(c.spread()-tt.spread) > 1e-9 ||
			c.show() != tt.shown {
			t.Errorf("%v: median %v, p99 %v, spread %v, shown as %q", tt.values, c.Median, percentile(tt.values, 0.99), c.spread(),
				c.show())
		}
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(percentile(nil, 0.5)) {
		t.Error("the median of nothing is a number")
	}
}

func TestAgrees(t *testing.T) {
	with := func(values ...float64) *cell { c := &cell{Values: values}; c.settle(); return c }
	for _, tt := range []struct {
		a, b *cell
		want bool
	}{
		{with(10, 12), with(11, 13), true},
		{with(10, 12), with(13, 15), true}, // within the widened ranges
		{with(10, 12), with(15, 17), false},
		{with(10), with(10), true},
		{with(10), with(11), false},
		{&cell{State: failed}, with(10), false},
		{&cell{State: failed, Text: "a"}, &cell{State: failed, Text: "b"}, true},
		{&cell{Text: "kept"}, &cell{Text: "lost"}, false},
	} {
		if got := tt.a.agrees(tt.b, 0); got != tt.want || tt.b.agrees(tt.a, 0) != tt.want {
			t.Errorf("%+v and %+v agree: %v", tt.a, tt.b, got)
		}
	}
	if !with(10, 10).agrees(with(10.9), 0.05) || with(10, 10).agrees(with(11.1), 0.05) {
		t.Error("the least noise is not 5 % on both sides")
	}
}

// TestAgreement: the report lists the cells that differ from an earlier report. It does not compare a cell with a single value,
// because the noise of such a value is unknown.
func TestAgreement(t *testing.T) {
	f := &figure{name: "load", title: "Calls", varies: true}
	with := func(column string, values ...float64) *cell {
		c := &cell{Figure: "load", Column: column, Peer: "mcpx", Transport: overStdio, Values: values}
		c.settle()
		return c
	}
	before := &report{Cells: []*cell{with("p50", 10, 12), with("p99", 10, 12), with("once", 3), {Figure: "load", Column: "word",
		Peer: "mcpx", Transport: overStdio, Text: "answers"}}}
	now := &report{Cells: []*cell{with("p50", 11, 13), with("p99", 20, 22), with("once", 4), with("new", 1, 2), {Figure: "load",
		Column: "word", Peer: "mcpx", Transport: overStdio, Text: "no answer"}}}
	got := now.agreement(before, []*figure{f})
	for _, want := range []string{"| Calls | 1 | 2 | 2 |", "- p99, mcpx, stdio: 11 ±9% before, 21 ±5% now\n",
		"- word, mcpx, stdio: answers before, no answer now\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestReport: the report shows where mcpx is not the best as plainly as where it is. A cell of a peer that lacks the feature, or
// that failed, has a word for it.
func TestReport(t *testing.T) {
	f := &figure{name: "load", title: "Calls", about: "What is measured.", columns: []column{{"calls/s", "",
		more}, {"p50", "µs", less}}}
	r := &report{Peers: []peerReport{{Name: "direct"}, {Name: "mcpx"}, {Name: "quick"}, {Name: "none"}}, Missing: [][2]string{{"other",
		"no registry has it"}}}
	add := func(column, peer, better, state string, values ...float64) {
		c := &cell{Figure: "load", Column: column, Peer: peer, Transport: overStdio, Better: better, State: state, Values: values,
			Log: "logs/" + peer + ".log"}
		c.settle()
		r.Cells = append(r.Cells, c)
	}
	add("calls/s", "direct", more, "", 9000, 9100)
	add("calls/s", "mcpx", more, "", 100, 110)
	add("calls/s", "quick", more, "", 200, 210)
	add("calls/s", "none", more, notOffered)
	add("p50", "direct", less, "", 1)
	add("p50", "mcpx", less, "", 5, 7)
	add("p50", "quick", less, "", 6, 8) // within the noise
	add("p50", "none", less, failed)
	got := r.table(f, true)
	want := `|  | calls/s | p50, µs |
|---|---|---|
| direct, stdio | 9,050 ±1% | 1 |
| mcpx, stdio | 105 ±5% | **6 ±17%** |
| quick, stdio | **205 ±2%** | **7 ±14%** |
| none, stdio | not offered | failed |

Logs: [direct, stdio](logs/direct.log), [mcpx, stdio](logs/mcpx.log), [quick, stdio](logs/quick.log), ` + "[none, stdio](logs/none.log).\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	f.wide = true
	if wide := r.table(f, false); !strings.Contains(wide, "| p50, µs | 1 | **6 ±17%** | **7 ±14%** | failed |") {
		t.Errorf("got\n%s", wide)
	}
	if all := r.markdown([]*figure{f}, true); !strings.Contains(all, "- other: no registry has it.") {
		t.Errorf("the missing are not named:\n%s", all)
	}
	lost := "| 10 tools, stdio | none, 170 | 542 | the first names no tool"
	f.columns = append(f.columns, column{"10 tools", "", less}, column{"neighbour", "", ""})
	add("10 tools", "mcpx", less, "", 542)
	add("10 tools", "none", less, "", 170)
	for peer, word := range map[string]string{"mcpx": "no answer", "quick": "answers"} {
		r.Cells = append(r.Cells, &cell{Figure: "load", Column: "neighbour", Peer: peer, Transport: overStdio, Text: word})
	}
	behind := r.behind([]*figure{f})
	for _, line := range []string{
		"| calls/s, stdio | quick, 205 ±2% | 105 ±5% | nobody has looked yet | not known |\n", lost,
		"| neighbour, stdio | quick, answers | no answer | nobody has looked yet |",
	} {
		if !strings.Contains(behind, line) {
			t.Errorf("%q is not in\n%s", line, behind)
		}
	}
	if strings.Contains(behind, "p50") { // within the noise
		t.Errorf("got\n%s", behind)
	}
}

// TestIdleConnection: a gateway that closes connections between two rounds is asked again over another one.
func TestIdleConnection(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}))
	defer site.Close()
	s, err := newHTTPSession(site.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for range 3 {
		if _, err := s.post(t.Context(), 1, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		site.CloseClientConnections()
	}
}

// TestSearchHits: gateways write the answer to a search in different forms. For each of them, hits returns the names of the tools
// in the answer, in their order, which is the best first.
func TestSearchHits(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		want   []string
	}{
		"mcpx": {"// server_name: git\n// read-only: Shows (all)\ngit_log(repo: string)\n\n// server_name: github\nget_issue(\n a: " +
			"string\n)\nget_issue(b: string)\n" +
			"files: read, write", []string{"git.git_log", "github.get_issue", "files.read", "files.write"}},
		"fastmcp": {`[{"name":"git_git_log","title":"x"},{"name": "files_read"}]`, []string{"git_git_log", "files_read"}},
		"fastmcp-gateway": {"git_git_log(repo: str) -> any\n  Shows (all)\nfiles_read() -> any\n", []string{"git_git_log",
			"files_read"}},
	} {
		peers, err := pick(allPeers(), name, func(p *peer) string { return p.name })
		if err != nil {
			t.Fatal(err)
		}
		if got := peers[0].search.hits(tt.answer); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	if !sameTool("git.git_log", "git_git_log") || sameTool("git.git_log", "git.git_show") {
		t.Error("sameTool")
	}
}

// TestTasks: each task names tools that the servers have.
func TestTasks(t *testing.T) {
	b := &bench{options: options{module: filepath.Join("..", "..")}}
	has := map[string]bool{}
	for _, s := range b.publishedServers() {
		for _, one := range s.Tools {
			var tool tool
			if err := json.Unmarshal(one, &tool); err != nil {
				t.Fatal(err)
			}
			has[s.Server+"."+tool.Name] = true
		}
	}
	var tasks []task
	if err := json.Unmarshal(tasksJSON, &tasks); err != nil || len(tasks) < 50 {
		t.Fatal(len(tasks), err)
	}
	for _, one := range tasks {
		for _, name := range one.Tools {
			if !has[name] {
				t.Errorf("%s: there is no %s", one.Need, name)
			}
		}
	}
}

// TestRun runs the whole bench, from building mcpx to writing the report, but only for two figures and the peers mcpx and direct.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" || !mcptest.Full {
		t.Skip("reads memory and CPU time from /proc, and builds mcpx: MCPX_FULL=1, on Linux")
	}
	module, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(t.Context(), options{quick: true, only: "mcpx", figures: "loss,results", rounds: 1, limit: 60e9,
		module: module, cache: t.TempDir(),
		out: t.TempDir(), tempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	b.measure()
	if err := b.write(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(b.out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	kept := map[string]int{}
	for _, c := range r.Cells {
		if c.State == failed {
			t.Errorf("%s of %s failed: %s", c.Column, c.Peer, c.Text)
		}
		if _, err := os.Stat(filepath.Join(b.out, c.Log)); err != nil {
			t.Errorf("%s of %s has no log: %v", c.Column, c.Peer, err)
		}
		if c.Figure == "loss" && c.Text == "kept" {
			kept[c.Peer]++
		}
		if c.Column == "share of direct" && (c.Peer == "direct") != (c.Median == 1) {
			t.Errorf("%s has %v of direct's tokens", c.Peer, c.Median)
		}
	}
	if n := len(lossCases()); kept["direct"] != n || kept["mcpx"] != n {
		t.Errorf("of %d kinds of results are kept: %v", n, kept)
	}
}

// TestNewBench_Unknown: an unknown name in the flags leaves no folders behind.
func TestNewBench_Unknown(t *testing.T) {
	for _, o := range []options{{figures: "none"}, {only: "none"}} {
		dir := t.TempDir()
		o.cache, o.tempDir, o.module = filepath.Join(dir, "cache"), dir, dir
		if _, err := newBench(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is unknown") {
			t.Errorf("got %v", err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	}
}

// TestRun_Out: the folder of the report is made only if something is written into it. It gets no empty folder for logs.
func TestRun_Out(t *testing.T) {
	dir := t.TempDir()
	out, from := filepath.Join(dir, "out"), filepath.Join(dir, "report.json")
	for _, args := range [][]string{{"--show", "none"}, {"--from", from}} {
		if err := run(t.Context(), append(args, "--out", out)); err == nil {
			t.Errorf("%q: no error", args)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q made the folder", args)
		}
	}
	if err := os.WriteFile(from, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"--from", from, "--out", out}); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadDir(out); err != nil || len(written) != 2 {
		t.Errorf("written: %v, %v", written, err)
	}
}

// TestFreePort: the port of a gateway is not in the range in which systems choose ports.
func TestFreePort(t *testing.T) {
	if port := freePort(); port < 1024 || port > 32767 {
		t.Errorf("got %d", port)
	}
}
