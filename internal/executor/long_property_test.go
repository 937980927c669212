package executor_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// inProcess returns mcpx with one fake server in this process.
func inProcess(t *testing.T, options executor.Options) *assembly {
	t.Helper()
	spec := upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.InProcess, Serve: mcptest.Spec{}.Serve(t, nil)}}
	return assembleServers(t, []registry.Server{{Spec: spec}}, options)
}

// noteLine matches the last line of a cut result, which says how much is left and how to read on.
var noteLine = regexp.MustCompile(`(?:^|\n)\[(\d+) of (\d+) (items|lines|rows|pieces|text blocks|matching (?:items|lines))(?: of (\..*?))?( of this item)?(?: left| shortened)(?:; [^{]*)?(?:, \d+ shortened \(whole at offset 0\))?(, the line goes on)?: exec (\{.*\})(?:; it also takes (?:offset, )?limit, grep \(regex\), select \(jq\)\. \{"\$result":handle\} passes the whole on as an argument)?\]$`)

// matchLine matches the line that says how much a grep has found, when nothing is left to read.
var matchLine = regexp.MustCompile(`(?:^|\n)\[(?:\d+ shown, )?(\d+) of (\d+) (?:items|lines)(?: of \..*?)? match[^\n]*\]$`)

// shapeLine matches the line that describes the shape of a JSON value, before the first noteLine.
var shapeLine = regexp.MustCompile(`(?:^|\n)\[shape: [^\n]*\]$`)

// note is a parsed noteLine.
type note struct {
	left, total int
	what, path  string
	ofItem      bool
	arguments   string
}

// takeNote removes the last line of a cut result, which says what was left out, and the line about the shape of the result if
// there is one. It returns what was before them, and the parsed last line; n is nil if the text has no such line.
func takeNote(t *testing.T, text string) (body string, n *note) {
	t.Helper()
	m := noteLine.FindStringSubmatchIndex(text)
	if m == nil {
		if m = matchLine.FindStringIndex(text); m != nil {
			text = text[:m[0]]
		}
		return text, nil
	}
	part := func(i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return text[m[2*i]:m[2*i+1]]
	}
	call := readJSON(part(7))
	if call == nil || call.last("server_name").text != "mcpx" || call.last("tool_name").text != "read_result" {
		t.Fatalf("the call cannot be copied: %s", part(0))
	}
	n = &note{what: part(3), path: part(4), ofItem: part(5) != "", arguments: call.last("arguments").raw}
	fmt.Sscan(part(1), &n.left)
	fmt.Sscan(part(2), &n.total)
	body = text[:m[0]]
	if at := shapeLine.FindStringIndex(body); at != nil {
		body, m[0] = body[:at[0]], at[0]
	}
	if part(6) == "" && body != "" && strings.HasPrefix(text[m[0]:], "\n") && !strings.HasSuffix(n.what, "items") {
		body += "\n"
	}
	return body, n
}

// reader reads long results to their end by making the calls that their notes suggest.
type reader struct {
	*assembly
	oracle *oracle
	limit  int
	pages  int
}

// check fails the test if all texts of an answer together exceed the limit by more than 2 %. It counts exact tokens.
func (r *reader) check(t *testing.T, result *results.Result, arguments string) {
	t.Helper()
	n := 0
	for _, block := range result.Content {
		if text := textOf(mustRead(t, block)); text != nil {
			n += tokens.Count(text.text)
		}
	}
	if n > r.limit+r.limit/50 {
		t.Errorf("%d tokens, the limit is %d, for %s:\n%.3000s", n, r.limit, arguments, result.Content)
	}
}

// read calls read_result and returns the text of its answer.
func (r *reader) read(t *testing.T, arguments string) string {
	t.Helper()
	result, err := r.executor.Exec(t.Context(), executor.Request{
		Server: "mcpx", Tool: "read_result", Arguments: json.RawMessage(arguments),
	})
	if err != nil || result.IsError || len(result.Content) != 1 {
		t.Fatalf("reading %s: %v, %s", arguments, err, result.Content)
	}
	r.check(t, result, arguments)
	if r.pages++; r.pages > 20_000 {
		t.Fatalf("no end of pages, now %s", arguments)
	}
	return textOf(mustRead(t, result.Content[0])).text
}

// lines reads a text to its end and returns the whole.
func (r *reader) lines(t *testing.T, text string) string {
	t.Helper()
	var whole strings.Builder
	for {
		body, n := takeNote(t, text)
		whole.WriteString(body)
		if n == nil {
			return whole.String()
		}
		text = r.read(t, n.arguments)
	}
}

// document reads a stored JSON value to its end and compares it with value. text is the text of the first answer. asLines means
// that the value is in it as JSON Lines.
func (r *reader) document(t *testing.T, text string, value *node, asLines bool) {
	t.Helper()
	_, n := takeNote(t, text)
	switch {
	case n == nil:
		r.same(t, text, value, asLines)
	case strings.HasSuffix(n.what, "items"):
		list := value.find(t, n)
		r.items(t, text, list.kids, n.ofItem, func(kids []*node, first bool) *node {
			part := &node{kind: list.kind, kids: kids, keys: list.keysOf(kids)}
			if first {
				return value.with(list, part)
			}
			return part
		}, asLines)
	case n.path != "":
		list := value.find(t, n)
		body, _ := takeNote(t, text)
		rest := r.lines(t, r.read(t, n.arguments))
		if !strings.HasSuffix(list.text, rest) {
			t.Fatalf("the lines end with something else: %.300q", rest)
		}
		r.same(t, body, value.with(list, &node{kind: '"', text: strings.TrimSuffix(list.text, rest)}), false)
	default:
		whole := r.lines(t, text)
		r.same(t, whole, value, asLines)
	}
}

// items reads a list page by page and compares it with want. The func page returns the value that a page with some of the items
// should have.
func (r *reader) items(t *testing.T, text string, want []*node, ofItem bool, page func(items []*node, first bool) *node, asLines bool) {
	t.Helper()
	for first := true; ; first = false {
		body, n := takeNote(t, text)
		shown, arguments := len(want), ""
		if n != nil && n.ofItem == ofItem {
			if n.left >= len(want) && n.left > 0 && body != "" {
				t.Fatalf("no progress: %d left of %d: %.300s", n.left, len(want), text)
			}
			shown, arguments = len(want)-n.left, n.arguments
		} else if n != nil {
			body = text // the note is about the last item, not about the list
		}
		if _, of := takeNote(t, body); of != nil {
			if !of.ofItem || shown == 0 {
				t.Fatalf("a note for %d items: %.300s", shown, body)
			}
			r.document(t, body, page(want[:shown], first), false)
		} else if shown > 0 || body != "" && !strings.HasPrefix(body, "[none of ") && !strings.HasPrefix(body, "[0 ") {
			r.same(t, body, page(want[:shown], first), asLines)
		}
		if want = want[shown:]; arguments == "" {
			if len(want) > 0 {
				t.Fatalf("%d items are missing", len(want))
			}
			return
		}
		text, ofItem = r.read(t, arguments), false
	}
}

// same fails the test if the text of a page does not have the expected value.
func (r *reader) same(t *testing.T, body string, value *node, asLines bool) {
	t.Helper()
	want := value.canonical()
	got := readJSON(body)
	if values := documentsIn(body); asLines && values != nil && (got == nil || got.kind == '{') {
		got = &node{kind: '[', kids: values}
	}
	if got == nil {
		r.oracle.toon = append(r.oracle.toon, toonText{TOON: body, JSON: want, where: t.Name()})
	} else if got.canonical() != want {
		t.Fatalf("the page says something else:\ngot  %.600s\nwant %.600s", body, want)
	}
}

// find returns the list that a note is about, by the path in the note.
func (n *node) find(t *testing.T, about *note) *node {
	t.Helper()
	is := func(n *node) bool { return n.kind == '"' && about.path != "" || len(n.kids) == about.total }
	found := []*node{n}
	for path := strings.Replace(about.path, ".[", "[", 1); path != ""; {
		var inner []*node
		var step string
		switch m := regexp.MustCompile(`^(?:\.(\w+)|\[(\d+|".*?[^\\]"|"")\])`).FindStringSubmatch(path); {
		case m == nil:
			t.Fatalf("no path: %s", about.path)
		default:
			path = path[len(m[0]):]
			if step = m[1]; m[2] != "" && m[2][0] == '"' {
				step = readJSON(m[2]).text
			}
			for _, one := range found {
				for i, kid := range one.kids {
					if m[1] == "" && m[2][0] != '"' || one.kind == '{' && one.keys[i] == step {
						inner = append(inner, kid)
					}
				}
			}
		}
		found = inner
	}
	for i := 0; i < len(found); i++ {
		if is(found[i]) {
			return found[i]
		}
		if about.path == "" { // a path that would be too long is left out of the note
			found = append(found, found[i].kids...)
		}
	}
	t.Fatalf("no list of %d at %q", about.total, about.path)
	return nil
}

// with returns a copy of n in which other replaces part.
func (n *node) with(part, other *node) *node {
	if n == part {
		return other
	}
	out := *n
	out.kids = nil
	for _, kid := range n.kids {
		out.kids = append(out.kids, kid.with(part, other))
	}
	return &out
}

// keysOf returns the keys of those members of n whose values are in kids.
func (n *node) keysOf(kids []*node) (keys []string) {
	for i, kid := range n.kids {
		if n.kind == '{' && isOneOf(kid, kids) {
			keys = append(keys, n.keys[i])
		}
	}
	return keys
}

// send calls the tool whose result is the JSON in direct.
func (r *reader) send(t *testing.T, direct, filter string, structured results.Structured) *results.Result {
	t.Helper()
	result, err := r.executor.Exec(t.Context(), executor.Request{
		Server: "fake", Tool: "raw", Arguments: rawArguments(direct), Format: results.Format{Structured: structured}, Select: filter,
	})
	if err != nil || result.IsError {
		t.Fatalf("calling: %v, %s for %.600s", err, result.Content, direct)
	}
	r.check(t, result, direct[:min(len(direct), 300)])
	return result
}

func textResult(g *generator, text string) string {
	return `{"content":[{"type":"text","text":` + whole(g, text) + `}]}`
}

// whole returns text as a JSON string literal that has no lone surrogates.
func whole(g *generator, text string) string {
	for {
		if s := g.literal(text); readJSON(s).text == text {
			return s
		}
	}
}

// longList returns a JSON array with items of very different sizes.
func longList(g *generator) string {
	items := make([]string, 2+g.IntN(60))
	for i := range items {
		switch {
		case g.chance(12):
			items[i] = `{"id":1,"body":` + whole(g, longText(g)) + `}`
		case g.chance(12):
			items[i] = "[" + strings.Repeat(g.number()+", ", 1+g.IntN(900)) + "0]"
		case g.chance(2):
			items[i] = fmt.Sprintf(`{"id": %d, "name": %s, "price": 1.10}`, i, whole(g, g.plain()))
		default:
			items[i] = g.value(3, white{colon: " "})
		}
	}
	return g.white(true).join("[", items, "]")
}

// longText returns a long text of a random kind.
func longText(g *generator) string {
	if g.chance(5) {
		return strings.Repeat(pick(g, "x", "QUJD", "é", "中文", "😀", "0123456789", "-", "\u202e", "ab,"), 1+g.IntN(2000))
	}
	end := pick(g, "\n", "\n", "\r\n")
	var out strings.Builder
	if g.chance(5) {
		rows := make([]string, 1+g.IntN(200))
		for i := range rows {
			rows[i] = fmt.Sprintf("{'id': %d, 'at': date(2024, 1, 1), 'body': '%s'}", i, strings.Repeat(g.plain(), g.IntN(4)))
		}
		out.WriteString("[" + strings.Join(rows, pick(g, ", ", ",")) + "]" + end)
	}
	for range g.IntN(300) {
		switch {
		case g.chance(8):
		case g.chance(40):
			out.WriteString(strings.Repeat(g.plain()+" ", g.IntN(900)))
		case g.chance(4):
			out.WriteString(strings.ReplaceAll(g.odd(), "\n", " "))
		default:
			out.WriteString(g.plain() + " " + fmt.Sprint(g.IntN(1000)))
		}
		out.WriteString(end)
	}
	return out.String() + pick(g, "", "no end")
}

// limits are the result limits, in tokens, with which the tests run.
var limits = []int{400, 900, 4000}

// eachLimit runs a test once for each of the limits.
func eachLimit(t *testing.T, run func(t *testing.T, r *reader, g *generator)) {
	t.Helper()
	mcptest.NoLeaks(t)
	o := &oracle{}
	for _, limit := range mcptest.Part(t, limits, 1) {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			filters := jq.New(jq.Limits{Time: time.Minute}, nil)
			t.Cleanup(filters.Close)
			r := &reader{assembly: inProcess(t, executor.Options{TOON: true, ResultTokens: limit, Filter: filters}), oracle: o, limit: limit}
			run(t, r, newGenerator(uint64(limit)))
			t.Logf("%d pages", r.pages)
		})
	}
	t.Run("reference decoder", o.reference)
}

// TestLong_Items: a long array can be read to its end, and nothing is lost.
func TestLong_Items(t *testing.T) {
	mcptest.OneGoroutine(t) // one call at a time
	eachLimit(t, func(t *testing.T, r *reader, g *generator) {
		for range 5 {
			list := longList(g)
			result := r.send(t, textResult(g, list), "", anyPolicy(g))
			if len(result.Content) != 1 {
				t.Fatalf("%d blocks", len(result.Content))
			}
			r.document(t, textOf(mustRead(t, result.Content[0])).text, readJSON(list), false)
		}
	})
}

// TestLong_Lines: a long text can be read to its end and is the same, byte for byte.
func TestLong_Lines(t *testing.T) {
	mcptest.OneGoroutine(t) // one call at a time
	eachLimit(t, func(t *testing.T, r *reader, g *generator) {
		for range 6 {
			text := longText(g)
			result := r.send(t, textResult(g, text), "", anyPolicy(g))
			got := r.lines(t, textOf(mustRead(t, result.Content[0])).text)
			if got == text {
				continue
			}
			before := len(r.oracle.toon)
			if fault := r.oracle.sameText(text, got); fault != "" {
				t.Fatalf("the text %s\nsent %.2000q\ngot  %.2000q", fault, text, got)
			}
			for i := range r.oracle.toon[before:] {
				r.oracle.toon[before+i].where = t.Name()
			}
		}
	})
}

// TestLong_Documents: long objects can be read to their end: with one list, with several lists, with lists inside other
// objects, and with long strings.
func TestLong_Documents(t *testing.T) {
	mcptest.OneGoroutine(t) // one call at a time
	eachLimit(t, func(t *testing.T, r *reader, g *generator) {
		for range 12 {
			text := longDocument(g)
			if strings.Contains(readJSON(text).canonical(), `\ud`) {
				continue // a jq path cannot name a key with a lone surrogate
			}
			result := r.send(t, textResult(g, text), "", anyPolicy(g))
			if len(result.Content) != 1 {
				t.Fatalf("%d blocks", len(result.Content))
			}
			r.document(t, textOf(mustRead(t, result.Content[0])).text, readJSON(text), false)
		}
	})
}

// longDocument returns a long JSON object.
func longDocument(g *generator) string {
	member := func(key, value string) string { return spell(key) + ":" + g.white(true).colon + value }
	small := member("n", g.number()) + "," + member("next page", whole(g, g.plain()))
	list := longList(g)
	switch g.IntN(8) {
	case 0:
		return `{"a":1,"rows":` + list + `}`
	case 1:
		return "{" + small + `,"data":{"rows":` + list + `,"x":null}}`
	case 2:
		return `[{` + small + "," + member("a b", list) + `}]`
	case 3:
		return "{" + member("a", list) + "," + member("b", longList(g)) + "}"
	case 4:
		return "{" + small + "," + member("text", whole(g, longText(g))) + "," + member("end", "true") + "}"
	case 5:
		return "{" + member("in", "["+whole(g, longText(g))+"]") + "}"
	}
	members := make([]string, 2+g.IntN(40))
	for i := range members {
		members[i] = member(fmt.Sprintf("key %d/%s", i, g.plain()), g.value(3, g.white(true)))
		if g.chance(5) {
			members[i] = member(fmt.Sprintf("list_%d", i), longList(g))
		}
	}
	if g.chance(2) {
		return "{" + small + `,"m":{` + strings.Join(members, ",") + "}}"
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestLong_JSONLines: long JSON Lines can be read to their end.
func TestLong_JSONLines(t *testing.T) {
	mcptest.OneGoroutine(t) // one call at a time
	eachLimit(t, func(t *testing.T, r *reader, g *generator) {
		for range 6 {
			lines := make([]string, 40+g.IntN(200))
			uniform := g.chance(2)
			for i := range lines {
				lines[i] = fmt.Sprintf(`{"id":%d,"name":%s,"price":1.10}`, i, whole(g, g.plain()))
				if !uniform && g.chance(3) {
					lines[i] = "{" + whole(g, g.plain()) + ":" + g.value(2, white{}) + "}"
				}
				if g.chance(60) {
					lines[i] = `{"id":1,"body":` + whole(g, longText(g)) + `}`
				}
			}
			text := strings.Join(lines, pick(g, "\n", "\n\n", "\r\n")) + pick(g, "", "\n")
			result := r.send(t, textResult(g, text), "", anyPolicy(g))
			r.document(t, textOf(mustRead(t, result.Content[0])).text, readJSON("["+strings.Join(lines, ",")+"]"), true)
		}
	})
}

// TestLong_Blocks: results with several long blocks can be read to their end, and so can what is only in structuredContent.
func TestLong_Blocks(t *testing.T) {
	mcptest.OneGoroutine(t) // one call at a time
	eachLimit(t, func(t *testing.T, r *reader, g *generator) {
		for range 2 {
			var blocks []string
			for range 2 + g.IntN(10) {
				blocks = append(blocks, pick(g, `{"type":"image","data":"AA==","mimeType":"image/png"}`,
					`{"type":"text","text":`+whole(g, longText(g))+`}`, `{"type":"text","text":"short"}`))
			}
			structured := `{"only":` + whole(g, longText(g)) + `}`
			direct := `{"content":[` + strings.Join(blocks, ",") + `],"structuredContent":` + structured + `}`
			sent := readJSON(direct)
			result := r.send(t, direct, "", results.StructuredNone)
			r.blocks(t, result.Content, sent.last("content").kids, sent.last("structuredContent"))
		}
	})
}

func (r *reader) blocks(t *testing.T, content []json.RawMessage, want []*node, structured *node) {
	t.Helper()
	last := textOf(mustRead(t, content[len(content)-1])).text
	r.document(t, strings.TrimPrefix(last, "\n"), structured, false)
	var texts []*node
	at := 0
	for _, raw := range content[:len(content)-1] {
		got := mustRead(t, raw)
		text := textOf(got)
		if text == nil {
			continue
		}
		for at < len(want) && textOf(want[at]) == nil {
			at++
		}
		if _, n := takeNote(t, text.text); n != nil && n.what == "text blocks" {
			for _, one := range want[at:] {
				if textOf(one) != nil {
					texts = append(texts, one)
				}
			}
			r.document(t, r.read(t, n.arguments), &node{kind: '[', kids: texts}, false)
			return
		}
		if got := r.lines(t, text.text); got != textOf(want[at]).text {
			t.Fatalf("block %d reads as something else: %.300q", at, got)
		}
		at++
	}
	for _, one := range want[at:] {
		if textOf(one) != nil {
			t.Fatal("a text block is gone")
		}
	}
}

// TestLong_Arguments: the arguments offset, limit, grep and select of read_result return what they should.
func TestLong_Arguments(t *testing.T) {
	mcptest.OneGoroutine(t) // one call at a time
	eachLimit(t, func(t *testing.T, r *reader, g *generator) {
		list, rows := "", make([]string, 400)
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"id":%d,"name":%s,"tags":["%s"]}`, i, spell(g.plain()), pick(g, "red", "green"))
		}
		list = "[" + strings.Join(rows, ",\n") + "]"
		text := "open " + strings.Join(rows, "\n") + "\nend"
		asItems := r.handle(t, textResult(g, list))
		asLines := r.handle(t, textResult(g, text))
		for range 12 {
			args := map[string]any{"handle": asItems}
			which := []int{}
			pattern := pick(g, "", "", `"red"`, "alpha|beta", `"id":1\d*,`, "no such thing")
			for i, row := range rows {
				if regexp.MustCompile(pattern).MatchString(row) {
					which = append(which, i)
				}
			}
			if pattern != "" {
				args["grep"] = pattern
			}
			total := fmt.Sprintf("%d of %d ", len(which), len(rows))
			if g.chance(2) {
				offset := g.IntN(450)
				args["offset"], which = offset, which[min(offset, len(which)):]
			}
			if g.chance(2) {
				limit := 1 + g.IntN(300)
				args["limit"], which = limit, which[:min(limit, len(which))]
			}
			if g.chance(3) {
				args["select"] = pick(g, ".", ".[]", "map(.)")
			}
			var items []*node
			var lines []string
			for _, i := range which {
				value := readJSON(rows[i])
				line := rows[i]
				if pattern != "" {
					line = fmt.Sprintf("%d:%s", i+1, line)
				}
				items, lines = append(items, value), append(lines, line)
			}
			first := r.read(t, mustEncode(t, args))
			if last := first[strings.LastIndex(first, "\n")+1:]; pattern != "" && !strings.Contains(last, total) {
				t.Fatalf("%v: no %q in %s", args, total, last)
			}
			r.items(t, first, items, false, func(items []*node, _ bool) *node { return &node{kind: '[', kids: items} }, false)
			if args["select"] != nil || len(which) == 0 || which[0] == 0 {
				continue
			}
			args["handle"] = asLines
			want := strings.Join(lines, "\n")
			got := strings.TrimSuffix(strings.TrimSuffix(r.lines(t, r.read(t, mustEncode(t, args))), "end"), "\n")
			if got != want {
				t.Fatalf("%v:\ngot  %.900s\nwant %.900s", args, got, want)
			}
		}
	})
}

func (r *reader) handle(t *testing.T, direct string) string {
	t.Helper()
	_, n := takeNote(t, textOf(mustRead(t, r.send(t, direct, "", results.StructuredNone).Content[0])).text)
	if n == nil {
		t.Fatal("the result was not cut")
	}
	return readJSON(n.arguments).last("handle").text
}

func mustEncode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSelect_Identity: the jq filter "." returns an equal value. Only the order of keys may differ; numbers keep their
// spelling.
func TestSelect_Identity(t *testing.T) {
	mcptest.OneGoroutine(t)
	mcptest.NoLeaks(t)
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	o := &oracle{}
	r := &reader{assembly: inProcess(t, executor.Options{TOON: true, Filter: filters}), oracle: o, limit: 1 << 30}
	g := newGenerator(9)
	for n := range 250 {
		value := g.object(4, g.white(false))
		if strings.Contains(readJSON(value).canonical(), `\ud`) {
			continue // jq strings cannot contain a lone surrogate
		}
		direct := textResult(g, value)
		if g.chance(2) {
			direct = `{"content":[],"structuredContent":` + value + `}`
		}
		result := r.send(t, direct, ".", results.StructuredAlways)
		got := mustRead(t, result.Structured).last("result")
		if want := readJSON(value).sortedDeep(); got == nil || got.sortedDeep().canonical() != want.canonical() {
			t.Fatalf("result %d:\nsent %.900s\ngot  %.900s", n, value, result.Structured)
		}
		text := textOf(mustRead(t, result.Content[0])).text
		if fault := o.sameText(got.raw, text); text != got.raw && fault != "" {
			t.Fatalf("result %d: the text %s: %.600s", n, fault, text)
		}
	}
	t.Run("reference decoder", o.reference)
}

// sortedDeep returns n with the members of all objects sorted by key. If a key occurs twice, it keeps the last one.
func (n *node) sortedDeep() *node {
	out := &node{kind: n.kind, raw: n.raw, text: n.text}
	if n.kind == '{' {
		out = n.sorted()
	} else {
		out.kids = append(out.kids, n.kids...)
	}
	for i, kid := range out.kids {
		out.kids[i] = kid.sortedDeep()
	}
	return out
}

// TestLong_GrepAsShown: grep finds an item by the text that the model has seen of it.
func TestLong_GrepAsShown(t *testing.T) {
	r := &reader{assembly: inProcess(t, executor.Options{ResultTokens: 400}), limit: 400}
	rows := make([]string, 300)
	for i := range rows {
		rows[i] = fmt.Sprintf("{\n  \"id\": %d,\n  \"path\": \"a\\/caf\\u00e9\"\n}", i)
	}
	handle := r.handle(t, textResult(newGenerator(1), "["+strings.Join(rows, ", ")+"]"))
	for _, pattern := range []string{`"id":7,"path":"a/café"`, `"id": 7,\n`} {
		got := r.read(t, mustEncode(t, map[string]any{"handle": handle, "grep": pattern}))
		if got != `[{"id":7,"path":"a/café"}]`+"\n[1 of 300 items match, offset 7]" {
			t.Errorf("%s: got %s", pattern, got)
		}
	}
}

// TestLong_Preview: if the first answer shows only a preview, the result can be read completely under its handle from offset 0.
func TestLong_Preview(t *testing.T) {
	mcptest.OneGoroutine(t)
	mcptest.NoLeaks(t)
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	o := &oracle{}
	r := &reader{assembly: inProcess(t, executor.Options{TOON: true, ResultTokens: 2000, PreviewTokens: 900, Filter: filters}), oracle: o, limit: 2000}
	g := newGenerator(24)
	read := 0
	for n := range mcptest.Rounds(t, 60, 30) {
		text := longList(g)
		if n%3 == 1 {
			text = longDocument(g)
		} else if n%3 == 2 {
			text = longText(g)
		}
		if value := readJSON(text); value != nil && strings.Contains(value.canonical(), `\ud`) {
			continue // a jq path cannot name a key with a lone surrogate
		}
		first := textOf(mustRead(t, r.send(t, textResult(g, text), "", results.StructuredNone).Content[0])).text
		_, left := takeNote(t, first)
		if left == nil {
			continue
		}
		read++
		whole := r.read(t, `{"handle":"`+readJSON(left.arguments).last("handle").text+`"}`)
		if n%3 != 2 {
			r.document(t, whole, readJSON(text), false)
		} else if got := r.lines(t, whole); got != text {
			if fault := o.sameText(text, got); fault != "" {
				t.Fatalf("the text %s\nsent %.2000q\ngot  %.2000q", fault, text, got)
			}
		}
	}
	if read < 10 {
		t.Errorf("only %d results were cut", read)
	}
	t.Run("reference decoder", o.reference)
}
