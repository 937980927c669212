package executor_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/compress"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/programs"
	"mcpx/internal/results"
)

// TestOracle_Program compares random results that a program got by call, and returned, with what the server sent. A program gets
// one value: structuredContent, else what the texts have, else the blocks.
func TestOracle_Program(t *testing.T) {
	mcptest.OneGoroutine(t)
	mcptest.NoLeaks(t)
	runner := programs.New(0, nil)
	t.Cleanup(runner.Close)
	a := assemble(t, executor.Options{TOON: true, ProgramOptions: executor.ProgramOptions{Runner: runner, Programs: builtin.NewPrograms(programs.Limits{}, nil)}})
	kinds := make(map[string]int)
	for i, name := range upstreams {
		t.Run(name, func(t *testing.T) {
			g := newGenerator(uint64(200 + i))
			for n := range mcptest.Rounds(t, rounds, 10) {
				direct := g.result()
				if g.chance(8) {
					direct = g.echoing()
				}
				kind, want := programGets(readJSON(direct))
				got := a.throughProgram(t, name, direct)
				kinds[kind]++
				if !slices.Contains(want, got) {
					t.Fatalf("result %d, %s\n got  %.2000s\n want %.2000q\n sent %.3000s", n, kind, got, want, direct)
				}
			}
		})
	}
	t.Log(kinds)
	for _, kind := range []string{"an error", "structuredContent", "texts", "blocks"} {
		if !t.Failed() && kinds[kind] < 3 {
			t.Errorf("%s: only %d results", kind, kinds[kind])
		}
	}
}

// throughProgram returns what a program gets, as jsForm writes it.
func (a *assembly) throughProgram(t *testing.T, server, direct string) string {
	t.Helper()
	code := fmt.Sprintf(`try { return {value: await call(%q, "raw", %s)} } catch (e) { return {code: e.code, message: e.message} }`, server, rawArguments(direct))
	result, err := a.executor.Exec(t.Context(), executor.Request{
		Server: builtin.Name, Tool: builtin.RunTool, Arguments: wire.Encode(map[string]string{"code": code}), Format: results.Format{JSON: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := readJSON(wire.ReadBlock(result.Content[0]).Text)
	if got == nil || len(result.Content) != 1 {
		t.Fatalf("got %.2000s for %.3000s", result.Content, direct)
	}
	return jsForm(got)
}

// programGets returns what a program may get from a result, as jsForm writes it, and of which kind it is. If the texts say the
// same as structuredContent, the value may be either; JSON in a text may be the value or stay a string.
func programGets(root *node) (kind string, values []string) {
	blocks, _ := blocksOf(root.last("content"))
	var texts, said []string // said are the texts of an error
	for _, block := range blocks {
		// A text with a lone surrogate cannot be changed, so it is a block like an image.
		if text := textOf(block); text != nil && !halves.MatchString(spell(text.text)) {
			texts, said = append(texts, text.text), append(said, text.text)
		} else if text := embedded(block); text != nil && !halves.MatchString(spell(text.text)) {
			said = append(said, text.text)
		}
	}
	add := func(value string) { values = append(values, `{"value":`+value+`}`) }
	structured := root.last("structuredContent")
	switch isError := root.last("isError"); {
	case isError != nil && isError.raw == "true":
		if structured != nil && structured.raw != "null" && !saysSame(blocks, structured) {
			said = append(said, structured.raw)
		}
		said = slices.DeleteFunc(said, func(text string) bool { return strings.TrimSpace(text) == "" })
		message := cmp.Or(strings.TrimSpace(strings.Join(said, "\n")), "the tool reports an error without a text")
		return "an error", []string{`{"code":"TOOL_ERROR","message":` + spell(message) + `}`}
	case structured != nil && (structured.raw != "null" || len(texts) == 0):
		add(jsForm(structured))
		if structured.kind == '"' {
			structured = &node{kind: '[', kids: []*node{structured}}
		}
		if len(structured.kids) == 1 && (structured.kind == '[' || saysSame(blocks, structured)) {
			for _, value := range textGives(structured.kids[0]) {
				add(value)
			}
		}
		return "structuredContent", values
	case len(texts) == 0:
		raws := make([]string, len(blocks))
		for i, block := range blocks {
			raws[i] = jsForm(block)
		}
		add("[" + strings.Join(raws, ",") + "]")
		return "blocks", values
	}
	for _, value := range textsGive(texts) {
		add(value)
	}
	return "texts", values
}

// embedded returns the text of an embedded resource, or nil.
func embedded(block *node) *node {
	text := block.last("resource").last("text")
	if kind := block.last("type"); kind == nil || kind.kind != '"' || kind.text != "resource" || text == nil || text.kind != '"' {
		return nil
	}
	return text
}

// textsGive returns the values that a program may get from several texts: the only value, the array of all values, or the array
// of the values that are arrays or objects.
func textsGive(texts []string) (values []string) {
	all, containers := []string{""}, []string{""}
	count := 0
	for _, text := range texts {
		gives := textGives(&node{kind: '"', text: text})
		all = joined(all, gives)
		if of := slices.DeleteFunc(gives, func(v string) bool { return v[0] != '{' && v[0] != '[' }); len(of) > 0 {
			containers = joined(containers, of)
			count++
		}
	}
	if count > 0 {
		values = append(values, bracketed(containers, count > 1)...)
	}
	return append(values, bracketed(all, len(texts) > 1)...)
}

func joined(before, next []string) (all []string) {
	for _, b := range before {
		for _, n := range next {
			all = append(all, b+","+n)
		}
	}
	return all
}

func bracketed(lists []string, several bool) (values []string) {
	for _, list := range lists {
		if list = list[1:]; several {
			list = "[" + list + "]"
		}
		values = append(values, list)
	}
	return values
}

// textGives returns what a program may get from one value, or from a text as a JSON string: the value itself, the JSON that the
// text is, or the JSON within the text.
func textGives(value *node) (gives []string) {
	if value.kind != '"' {
		return []string{jsForm(value)}
	}
	if read := readJSON(value.text); read != nil && !strings.Contains(value.text, tooDeep) {
		gives = append(gives, jsForm(read))
		if read.kind == '{' || read.kind == '[' {
			return gives // whole JSON is never given as a string
		}
		if read.kind == '"' {
			gives = append(gives, textGives(read)...)
		}
	}
	gives = append(gives, spell(value.text))
	if lines := documentsIn(value.text); len(lines) > 1 {
		forms := make([]string, len(lines))
		for i, line := range lines {
			forms[i] = jsForm(line)
		}
		return append(gives, "["+strings.Join(forms, ",")+"]")
	}
	if python, _, ok := compress.Value(value.text); ok {
		gives = append(gives, jsForm(readJSON(string(python))))
	}
	if _, pieces := compress.Pieces(value.text); len(pieces) > 0 {
		forms := make([]string, len(pieces))
		for i, piece := range pieces {
			forms[i] = jsForm(readJSON(string(piece.Value)))
		}
		if gives = append(gives, "["+strings.Join(forms, ",")+"]"); len(forms) == 1 {
			gives = append(gives, forms[0])
		}
	}
	return gives
}

// jsForm writes a value as JavaScript sees it: integers exactly, other numbers as float64, of members with the same name the last
// one, without their order.
func jsForm(n *node) string {
	switch n.kind {
	case '"':
		return spell(n.text)
	case '0':
		f, _ := strconv.ParseFloat(n.raw, 64)
		switch {
		case !strings.ContainsAny(n.raw, ".eE") && math.Abs(f) >= 1<<53:
			return n.raw
		case math.IsInf(f, 0):
			return "null" // JSON has no infinity
		case f == 0:
			return "0"
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case '[':
		forms := make([]string, len(n.kids))
		for i, kid := range n.kids {
			forms[i] = jsForm(kid)
		}
		return "[" + strings.Join(forms, ",") + "]"
	case '{':
		members := make(map[string]string)
		for i, key := range n.keys {
			members[spell(key)] = jsForm(n.kids[i])
		}
		out := make([]string, 0, len(members))
		for key, value := range members {
			out = append(out, key+":"+value)
		}
		slices.Sort(out)
		return "{" + strings.Join(out, ",") + "}"
	}
	return n.raw
}
