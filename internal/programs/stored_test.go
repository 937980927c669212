package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseParam_Default: a default is JSON, also if it has brackets, equals signs or spaces.
func TestParseParam_Default(t *testing.T) {
	for _, test := range []struct{ written, name, initial, schema string }{
		{`{integer[]} [a=[1,[2]]] - some`, "a", "[1,[2]]", `{"type":"array","items":{"type":"integer"},"default":[1,[2]],"description":"some"}`},
		{`{object} [o = {"k": "]=\n"} ]`, "o", `{"k": "]=\n"}`, `{"type":"object","default":{"k": "]=\n"}}`},
		{`{string} [s="a b"] [not] a default`, "s", `"a b"`, `{"type":"string","default":"a b","description":"[not] a default"}`},
		{`{string} [s]`, "s", "", `{"type":"string"}`},
		{`{string} [s=]`, "s", "", `{"type":"string"}`},
		{"{string} s - one\n\ntwo", "s", "", `{"type":"string","description":"one\n\ntwo"}`},
		{`{string} s`, "s", "", `{"type":"string"}`},
	} {
		p, fault := parseParam(test.written)
		if fault != "" || p.name != test.name || p.initial != test.initial || p.schema != test.schema {
			t.Errorf("%s: %q %+v", test.written, fault, p)
		}
	}
	for _, written := range []string{`{string} [a=x]`, `{string} [a="x"`, `{integer} [a=1 2]`, `{integer[]} [a=[1]`} {
		if _, fault := parseParam(written); !strings.Contains(fault, "the default must be JSON") {
			t.Errorf("%s: %q", written, fault)
		}
	}
}

func TestReadFolder(t *testing.T) {
	folder := t.TempDir()
	for name, code := range map[string]string{
		"report.js": "/**\n * Counts the issues of a repository.\n * By label.\n *\n * @param {string} repo OWNER/NAME\n * @param {integer} [most=5] how many\n" +
			" * @param {\"open\"|\"closed\"} [state]\n * @param {string[]} labels - those to count\n * @returns {object} the counts\n */\nreturn {repo, most, state, labels}\n",
		"plain.js":    "return 1",
		"type.js":     "/** Does. \n * @param {strin} a\n */",
		"name.js":     "/** Does.\n *\n * @param {string} call\n */",
		"twice.js":    "/** Does.\n * @param {string} a\n * @param {string} a\n */",
		"default.js":  "/** Does.\n * @param {string} [a=x]\n */",
		"silent.js":   "/** @param {string} a */",
		"run.js":      "/** Does. */",
		"a b.js":      "/** Does. */",
		".hidden.js":  "x",
		"other.txt":   "x",
		"nothing.mjs": "x",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, faults := ReadFolder(folder, true, []string{"run"})
	if len(all) != 1 || all[0].Name != "report" || all[0].Parameters != "{repo,most,state,labels}" || string(all[0].Defaults) != `{"most":5}` ||
		all[0].Description != "Counts the issues of a repository.\nBy label.\nReturns {object} the counts" {
		t.Fatalf("got %+v", all)
	}
	want := `{"type":"object","properties":{"repo":{"type":"string","description":"OWNER/NAME"},"most":{"type":"integer","default":5,"description":"how many"},` +
		`"state":{"enum":["open","closed"]},"labels":{"type":"array","items":{"type":"string"},"description":"those to count"}},"required":["repo","labels"],"additionalProperties":false}`
	if all[0].Schema != want {
		t.Errorf("got  %s\nwant %s", all[0].Schema, want)
	}
	var got []string
	for _, f := range faults {
		got = append(got, strings.TrimPrefix(f.String(), folder+string(filepath.Separator)))
	}
	wantFaults := `a b.js: its name may have letters, digits, _ and - only, at most 64
default.js:2: @param a: the default must be JSON, such as 5 or "text"
name.js:3: @param "call": the name must be an identifier of JavaScript
plain.js:1: does not begin with a JSDoc comment (/** … */), which describes the tool
run.js: the server mcpx has another tool of this name
silent.js:1: its comment has no description
twice.js:3: @param a is there twice
type.js:2: @param a: the type "strin" is not known; there are string, number, integer, boolean, object, array, any, TYPE[] and "a"|"b"`
	if strings.Join(got, "\n") != wantFaults {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), wantFaults)
	}
	if all, faults := ReadFolder(filepath.Join(folder, "none"), false, nil); all != nil || faults != nil {
		t.Errorf("a folder that is not there: %v %v", all, faults)
	}
	before := Print(folder)
	if err := os.WriteFile(filepath.Join(folder, "more.js"), nil, 0o600); err != nil || Print(folder) == before {
		t.Errorf("a new program does not change the folder: %v", err)
	}
	r := watch(t)
	out, err := r.Run(t.Context(), "", Program{Code: all[0].Code, Parameters: all[0].Parameters, Arguments: []byte(`{"repo":"a/b","most":12345678901234567890}`), Limits: patient}, echo)
	if got := shown(out, err); got != `{"repo":"a/b","most":12345678901234567890}` {
		t.Errorf("got %s", got)
	}
	if f := r.Check(t.Context(), "/** x */\nconst a = 1;\nreturn ;;) 5"); f == nil || fmt.Sprint(f.Line, " ", f.Text) != "3 SyntaxError: unexpected token in expression: ')', column 10" {
		t.Errorf("got %v", f)
	}
	if f := r.Check(t.Context(), "/** x */\nif (1) {\n  return 1"); f == nil || f.Line != 3 || !strings.HasSuffix(f.Text, "or closes a bracket too many") {
		t.Errorf("got %v", f)
	}
	if f := r.Check(t.Context(), "return await call('a', 'b')"); f != nil {
		t.Errorf("got %v", f)
	}
}
