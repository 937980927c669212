package schemats

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// oracleCase is one text that testdata/npm/check-types.mjs checks.
type oracleCase struct {
	ID          string          `json:"id"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Draft       string          `json:"draft,omitempty"`
	Declaration string          `json:"declaration,omitempty"`
	Types       string          `json:"types,omitempty"`
	Member      string          `json:"member,omitempty"`
	// Args and Result are the schemas of the tool's arguments and result. Types and Member are the TypeScript for them.
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	// Open and Null say what the header of the tool says once, instead of the types at each place. Open: objects accept keys that
	// are not listed. Null: optional properties may be null. "all" means everywhere, "inside" everywhere but at the arguments
	// object itself; "" means that the header does not say it.
	Open string `json:"open,omitempty"`
	Null string `json:"null,omitempty"`
}

type oracleReport struct {
	Cases, Members, Checked, Valid, Invalid, Skipped, Disagreements int
	Errors, Uncompiled, Disagree                                    []string
}

// runOracle lets the oracle, check-types.mjs, check the cases. The parameter most limits the instances that it makes for each
// schema.
func runOracle(t *testing.T, most int, cases []oracleCase) oracleReport {
	t.Helper()
	input, err := json.Marshal(map[string]any{"cases": cases})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cases.json")
	if err := os.WriteFile(file, input, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := mcptest.Node(t, "typescript", "--max-old-space-size=4096", "check-types.mjs", file, strconv.Itoa(most))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running check-types.mjs: %v\n%s", err, stderr.String())
	}
	var r oracleReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("reading the report: %v", err)
	}
	return r
}

func draftOf(schema json.RawMessage) string {
	s := string(schema)
	if strings.Contains(s, "draft-07") || strings.Contains(s, "draft-04") || strings.Contains(s, `"items":[`) {
		return "07"
	}
	return ""
}

// oracle returns the marks in the form that the oracle reads.
func (m marks) oracle() (open, null string) {
	word := func(inside, all marks) string {
		switch {
		case m&all != 0:
			return "all"
		case m&inside != 0:
			return "inside"
		}
		return ""
	}
	return word(openInside, openAll), word(nullInside, nullAll)
}

// schemaCase returns the case that checks the declaration of a schema with instances of the schema.
func schemaCase(id string, schema json.RawMessage) oracleCase {
	return oracleCase{ID: id, Schema: schema, Draft: draftOf(schema), Declaration: Declaration(schema, nil, full)}
}

// toolCases returns the cases that check all texts of one tool.
func toolCases(id string, x Tool) []oracleCase {
	var out []oracleCase
	for _, s := range []struct {
		name string
		raw  json.RawMessage
	}{{"input", x.Input}, {"output", x.Output}} {
		if s.raw != nil {
			out = append(out, schemaCase(id+" "+s.name, s.raw))
		}
	}
	for _, most := range []int{0, 100, 20} {
		o := full
		o.MaxResult = most
		a, list := newAnswer([]Tool{x}, o, length)
		_, types, _, after, _ := a.parts(&list[0])
		text := complete(x, o, length)
		member, ok := strings.CutPrefix(text, types)
		if !ok {
			member, types, after = text, "", ""
		}
		if member, ok = strings.CutSuffix(member, after); ok {
			types += after
		}
		c := oracleCase{ID: fmt.Sprintf("%s complete %d", id, most), Types: types, Member: member}
		if most == 0 {
			c.Draft, c.Args, c.Result = draftOf(append(slices.Clone(x.Input), x.Output...)), x.Input, x.Output
			c.Open, c.Null = list[0].marks.oracle()
		}
		out = append(out, c)
	}
	for _, most := range []int{1000, 200} {
		text := Along(x.Input, [][]string{{"id"}, {"body", "items", "0", "name"}, {"zzz"}}, full, most, length)
		if text != "" {
			out = append(out, oracleCase{ID: fmt.Sprintf("%s along %d", id, most), Declaration: text})
		}
	}
	return append(out,
		oracleCase{ID: id + " listing", Member: Listing(x)},
		oracleCase{ID: id + " both", Declaration: Declaration(x.Input, x.Output, full)},
		oracleCase{ID: id + " bare", Declaration: Declaration(x.Input, x.Output, Options{MaxDescription: 40})},
	)
}

// TestTypeScriptOracle: the TypeScript compiler and a JSON Schema validator check what this package writes.
func TestTypeScriptOracle(t *testing.T) {
	mcptest.OneGoroutine(t)
	tools := loadTools(t, "testdata/tools")
	tools = append(tools, loadTools(t, "testdata/openapi")...)
	if c := os.Getenv("MCPX_CORPUS"); c != "" {
		tools = append(tools, loadTools(t, filepath.Join(c, "tools"))...)
	}
	var cases []oracleCase
	for i, x := range mcptest.Part(t, tools, len(tools)/6) {
		cases = append(cases, toolCases(fmt.Sprintf("%d %s %s", i, x.file, x.Name), x.Tool)...)
	}
	for i, s := range edgeSchemas {
		cases = append(cases, toolCases(fmt.Sprintf("edge %d", i), Tool{Name: "get-sum", Description: "Adds */ two.", Input: json.RawMessage(s)})...)
	}
	for i, s := range mcptest.Part(t, fuzzSchemas(300), 60) {
		cases = append(cases, toolCases(fmt.Sprintf("fuzz %d", i), Tool{Name: "fuzz", Input: s})...)
	}
	r := runOracle(t, 12, cases)
	t.Logf("%d cases, %d members, %d instances (%d valid, %d invalid), %d disagree, %d with unlisted keys left out, %d schemas not compiled by ajv",
		r.Cases, r.Members, r.Checked, r.Valid, r.Invalid, r.Disagreements, r.Skipped, len(r.Uncompiled))
	for _, e := range r.Errors {
		t.Errorf("TypeScript error: %s", e)
	}
	for _, e := range r.Uncompiled {
		t.Logf("not compiled: %s", e)
	}
	for _, e := range r.Disagree {
		t.Logf("disagree: %s", e)
	}
	if r.Checked < 1000 || r.Valid < r.Checked/5 || r.Invalid < r.Checked/5 {
		t.Errorf("too few instances to say anything")
	}
	if r.Disagreements*1000 > r.Checked {
		t.Errorf("%d of %d verdicts differ, more than 0.1 %%", r.Disagreements, r.Checked)
	}
}

// TestTypeScriptOracle_Controls: the oracle reports texts that are wrong. An oracle that accepts everything would prove
// nothing.
func TestTypeScriptOracle_Controls(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`)
	r := runOracle(t, 60, []oracleCase{
		{ID: "wide", Schema: schema, Declaration: "type Args = {a?: unknown};"},
		{ID: "narrow", Schema: schema, Declaration: "type Args = {a: number};"},
		{ID: "member", Args: schema, Member: "f(a: number)"},
		{ID: "apart", Args: schema, Types: "type Args = {a: number};", Member: "f"},
		{ID: "property", Args: schema, Member: "f: {a: number}"},
		{ID: "result", Result: schema, Member: "f(): {a: number}"},
		{ID: "named", Args: schema, Types: "type T = number;", Member: "f(a: T)"},
		{ID: "null", Args: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"}}}`),
			Member: "f(a?: string, b?: string, c?: string, d?: string, e?: string)", Null: "all"},
		{ID: "not null", Args: json.RawMessage(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`), Member: "f(a?: string)"},
		{ID: "open", Args: json.RawMessage(`{"type":"object","properties":{"p":{}},"additionalProperties":false}`), Member: "f(p?: unknown)", Open: "all"},
		{ID: "syntax", Member: "get-sum(a: string)"},
		{ID: "circular", Declaration: "type A = A | string;\ntype Args = A;"},
		{ID: "index", Declaration: "type Args = {a?: string; [k: string]: number};"},
	})
	for _, id := range []string{"wide", "narrow", "member", "apart", "property", "result", "named", "null", "not null", "open"} {
		if !slices.ContainsFunc(r.Disagree, func(s string) bool { return strings.HasPrefix(s, id+":") }) {
			t.Errorf("%s: not found out", id)
		}
	}
	for _, id := range []string{"syntax", "circular", "index"} {
		if !slices.ContainsFunc(r.Errors, func(s string) bool { return strings.HasPrefix(s, id+" ") }) {
			t.Errorf("%s: not found out", id)
		}
	}
}
