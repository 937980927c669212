package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/budget"
	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
	"mcpx/internal/view"
)

func recorded(t *testing.T, folder string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "internal", "budget", "testdata", folder))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// budgetOf runs mcpx budget --json and returns its report.
func budgetOf(t *testing.T, h *home, args ...string) *budget.Report {
	t.Helper()
	out, stderr, code := h.run(t, "", append([]string{"budget", "--json"}, args...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("%q: exit %d, stderr %q", args, code, stderr)
	}
	var r budget.Report
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return &r
}

func TestBudget_Recorded(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	args := []string{"--tools", recorded(t, "tools"), "--results", recorded(t, "results"), "--exclude", "prose,order"}
	r := budgetOf(t, h, args...)
	if r.Catalogue == nil || r.Results == nil {
		t.Fatalf("a part is missing: %+v", r)
	}
	direct, total := 0, r.Catalogue.Total
	for _, s := range r.Catalogue.Servers {
		direct += s.Direct
	}
	if direct == 0 || total.Direct != direct || total.Tools != 4 || total.Surface < 200 || total.Inspect.Median == 0 {
		t.Errorf("got %+v", r.Catalogue)
	}
	if len(r.Results.Classes) != 1 || r.Results.Total.Documents != 2 || r.Results.Total.TOON != 2 {
		t.Errorf("got %+v", r.Results)
	}

	image := filepath.Join(h.dir, "chart.svg")
	out, stderr, code := h.run(t, "", append([]string{"budget", "--svg", image, "--price", "12.5"}, args...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"o200k_base", "acme-shop", "2 servers", "$12.5 per million", "BREAK-EVEN", "table"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for err == nil {
		_, err = decoder.Token()
	}
	if err != io.EOF {
		t.Errorf("the chart: %v", err)
	}
}

// TestBudget_Settings: recorded tools and results are measured with the settings of a config, if there is one. Its servers do not
// start, and its secrets are not looked up.
func TestBudget_Settings(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	marker := filepath.Join(h.dir, "started")
	touch := server{"command": "touch", "args": []string{marker}, "env": map[string]string{"X": "${command:touch " + marker + "}"}}
	path := h.config(t, map[string]server{"other": touch}, map[string]any{"catalogue_token_budget": 20, "toon_compression_enabled": false})
	args := []string{"--tools", recorded(t, "tools"), "--results", recorded(t, "results")}
	usual, set := budgetOf(t, h, args...), budgetOf(t, h, append(args, "--config", path)...)
	if usual.Catalogue.Total.Direct != set.Catalogue.Total.Direct || usual.Catalogue.Total.Surface <= set.Catalogue.Total.Surface {
		t.Errorf("the budget of the catalogue: %+v, without the config %+v", set.Catalogue.Total, usual.Catalogue.Total)
	}
	if usual.Results.Total.TOON == 0 || set.Results.Total.TOON != 0 {
		t.Errorf("results: %+v, without the config %+v", set.Results.Total, usual.Results.Total)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a command of the config was run")
	}
}

// TestBudget_ResultsAlone: mcpx budget needs no config to measure only recorded results.
func TestBudget_ResultsAlone(t *testing.T) {
	mcptest.Parallel(t)
	r := budgetOf(t, newHome(t), "--results", recorded(t, "results"))
	if r.Catalogue != nil || r.Results == nil || r.Results.Total.Documents != 4 || r.Encoding != "o200k_base" {
		t.Errorf("got %+v", r)
	}
}

// TestBudget_Config: mcpx budget connects to the servers of the config, and its report names unavailable
// servers.
func TestBudget_Config(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	const tool = `{"name":"add","description":"Add two numbers.","inputSchema":{"type":"object"}}`
	path := h.config(t, map[string]server{
		"good": fake(t, mcptest.Spec{Tools: json.RawMessage("[" + tool + "]")}),
		"bad":  {"command": filepath.Join(h.dir, "missing")},
	}, nil)
	r := budgetOf(t, h, "--config", path)
	if len(r.Catalogue.Servers) != 2 || r.Catalogue.Servers[0].Known || r.Catalogue.Total.Tools != 1 {
		t.Errorf("got %+v", r.Catalogue)
	}
	if got, want := r.Catalogue.Servers[1].Direct, tokens.Count(tool); got != want {
		t.Errorf("got %d tokens direct, want %d", got, want)
	}
	if len(r.Catalogue.Notes) != 1 || !strings.HasPrefix(r.Catalogue.Notes[0], "bad: unavailable") {
		t.Errorf("notes: %q", r.Catalogue.Notes)
	}
}

// TestApp_Surface: the tool definitions that mcpx budget measures are those that clients get.
func TestApp_Surface(t *testing.T) {
	mcptest.Parallel(t)
	a, err := app.New(app.Options{Profile: app.Demo, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Registry.Start()
	a.Registry.WaitTried(t.Context())
	snap := a.Registry.Snapshot()
	copied := catalog.NewSnapshot(slices.Clone(snap.Servers))
	var shown []view.Definition
	if err := json.Unmarshal(a.View.Tools(t.Context(), nil), &shown); err != nil {
		t.Fatal(err)
	}
	measured, instructions := a.View.Surface(copied, "")
	if diff := cmp.Diff(shown, measured); len(shown) != 2 || diff != "" || instructions != a.View.Instructions(nil) {
		t.Errorf("%d tools, -shown +measured:\n%s\ninstructions %s", len(shown), diff, instructions)
	}
}

func TestBudget_Faults(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	empty := t.TempDir()
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--price", "-1"}, 80, "--price"},
		{[]string{"--price", "NaN"}, 80, "--price"},
		{[]string{"--demo", "--tools", empty}, 80, "together"},
		{[]string{"--tools", filepath.Join(empty, "none")}, 80, "none"},
		{[]string{"--tools", empty}, 1, "no *.json file"},
		{[]string{"--results", empty}, 1, "no *.json or *.txt"},
		{[]string{"--demo", "--svg", filepath.Join(empty, "none", "x.svg")}, 1, "writing the chart"},
		{nil, 2, "config file not found"},
	}
	for _, test := range tests {
		out, stderr, code := h.run(t, "", append([]string{"budget"}, test.args...)...)
		if code != test.code || !strings.HasPrefix(stderr, "mcpx: error: ") || !strings.Contains(stderr, test.want) || out != "" {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", test.args, code, out, stderr)
		}
	}
}
