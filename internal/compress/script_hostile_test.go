package compress

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
)

// hostileToJS returns documents that JavaScript could read differently than JSON. Each has repeated parts, so that JavaScript
// could be shorter.
func hostileToJS() (docs []sample) {
	rows := func(name, row string) {
		var all []string
		for i := range 8 {
			all = append(all, strings.ReplaceAll(row, "#", fmt.Sprint(i+10)))
		}
		docs = append(docs, sample{name, "[" + strings.Join(all, ",") + "]"})
	}
	const long = `"same":"the same long text in every one of the rows"`
	rows("constructor", `{"constructor":"c#","toString":"t#","valueOf":#,"hasOwnProperty":"/c#/x",`+long+`}`)
	rows("script end", `{"a":"</script><!--#-->","b":"<script>#","c":"-->",`+long+`}`)
	rows("backtick", "{\"a\":\"x#\",\"b\":\"`x#` and more of it\",\"c\":\"`\","+long+"}")
	rows("dollar", `{"a":"x#","b":"${x#} and more","c":"$x#{a}","d":"$","e":"costs $x#",`+long+`}`)
	rows("address", `{"a":"k#","b":"https://example.com/${a}/k#","c":"https://example.com/\"q/z#","d":"https://example.com/x/y#?z=`+"`"+`",`+long+`}`)
	rows("separators", "{\"a\":\"\u2028#\",\"b\":\"x\u2029#\u2028#\",\"\u2028k\":#,"+long+"}")
	rows("lone", `{"a":"\ud800#","b":"x\udfff",`+long+`}`)
	rows("escapes", `{"a":"#\n","b":"https://example.com/#\n#","c":"\\#","d":"\u0000#\u200b","e":"\"#\"",`+long+`}`)
	rows("numbers", `{"a":1.10,"b":-0,"c":9007199254740993#,"d":1e3,"e":"id 9007199254740993#","f":"n -0","g":0.#,"h":"v0.#",`+long+`}`)
	rows("overflow", `{"a":1e400,"b":#,`+long+`}`)
	rows("proto", `{"__proto__":{"a":#},"b":#,`+long+`}`)
	rows("escaped proto", `{"__pro\u0074o__":{"a":#},"b":#,`+long+`}`)
	rows("twice", `{"a":#,"a":2,`+long+`}`)
	rows("escaped twice", `{"\u200b":#,"`+"\u200b"+`":2,`+long+`}`)
	rows("integer keys", `{"b":#,"1":2,`+long+`}`)
	rows("integer keys in order", `{"1":2,"2":#,"10":3,`+long+`}`)
	rows("large integer keys", `{"4294967296":#,"5":3,`+long+`}`)
	rows("reserved", `{"class":"c#","new":#,"eval":"e#","arguments":1#,"undefined":#,"NaN":#,"await":#,"async":#,"get":#,"let":#,"static":"s#",`+long+`}`)
	rows("like names", `{"Item":#,"item1":"#","r1":#,"same1":"x#",`+long+`,"Row":{"Item":"i#","q":#}}`)
	rows("no identifiers", `{"a b":"x#","a-b":"y#","ab":"z#","":"e#","é":"f#","1a":"g#","$":#,"_":"u#",`+long+`}`)
	rows("nested alike", `{"v":{"v":{"v":"k#","w":"k#"}},"w":"https://example.com/k#/k#","x":["k#",{"v":"k#"}],`+long+`}`)
	rows("empty", `{"a":"","b":"x#","c":{},"d":[],"e":[[]],"f":null,"g":"#",`+long+`}`)
	docs = append(docs,
		sample{"deep", strings.Repeat(`{"a":[`, 31) + `1` + strings.Repeat(`],"b":"text that repeats","c":"text that repeats"}`, 31)},
		sample{"deeper", strings.Repeat(`[`, 100) + `"text that repeats","text that repeats"` + strings.Repeat(`]`, 100)},
		sample{"first empty", `[{"a":"","b":"x"},{"a":"yy","b":"xyy"},{"a":"","b":"x"},` + strings.Repeat(`{"a":"k","b":"xk"},`, 30) + `1]`})
	var kinds []string
	for i := range 100_000 {
		kinds = append(kinds, fmt.Sprintf(`{"%x":1}`, i))
	}
	docs = append(docs, sample{"100,000 kinds", "[" + strings.Join(kinds, ",") + "]"}, sample{"20,000 kinds", "[" + strings.Join(kinds[:20_000], ",") + "]"})
	var wide []string
	for i := range 3000 {
		wide = append(wide, fmt.Sprintf(`"k%d":"v%d"`, i, i))
	}
	docs = append(docs, sample{"wide", "[{" + strings.Join(wide, ",") + "},{" + strings.Join(wide, ",x") + "},{" + strings.Replace(strings.Join(wide, ","), "v", "w", -1) + "}]"})
	return docs
}

// staysJSON is true for the hostile documents for which there is no JavaScript, because it would not evaluate to the same value
// or would save nothing.
var staysJSON = map[string]bool{
	"lone": false, "overflow": true, "proto": true, "escaped proto": true, "twice": true, "escaped twice": true, "integer keys": true,
	"large integer keys": true, "deeper": true, "100,000 kinds": true,
}

func TestScript_Hostile(t *testing.T) {
	mcptest.OneGoroutine(t)
	for _, d := range hostileToJS() {
		script := checkScript(t, d.name, d.text)
		if staysJSON[d.name] && script != "" {
			t.Errorf("%s: became\n%s", d.name, script)
		}
		if again := checkScript(t, d.name, d.text); again != script {
			t.Errorf("%s: other bytes the second time", d.name)
		}
	}
}

// randomDocument is a document whose parts repeat in many ways.
func randomDocument(r *rand.Rand, levels int) string {
	words := []string{"a", "id", "1", "url", "https://x.example/a/", "a-b", "`", "${a}", "é", "", "__proto", "x\\ny", "user"}
	text := func() string { return words[r.IntN(len(words))] + words[r.IntN(len(words))] + fmt.Sprint(r.IntN(20)) }
	switch n := r.IntN(8); {
	case levels == 0 || n == 0:
		return [...]string{"null", "true", "-0", "1.10", fmt.Sprint(r.IntN(30)), `"` + text() + `"`, `"` + text() + `"`, "[]", "{}"}[r.IntN(9)]
	case n < 3:
		var items []string
		for range r.IntN(6) {
			items = append(items, randomDocument(r, levels-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var rows []string
	kind := []string{"id", "name", "url", "k" + fmt.Sprint(r.IntN(3)), "a b", "class"}[:2+r.IntN(4)]
	fixed := randomDocument(r, levels-1)
	for range 1 + r.IntN(5) {
		var members []string
		value := text()
		for at, key := range kind {
			member := [...]string{fixed, `"` + value + `"`, `"https://example.com/` + value + `/more"`, randomDocument(r, levels-1), fmt.Sprint(at)}[(at+r.IntN(2))%5]
			members = append(members, `"`+key+`":`+member)
		}
		rows = append(rows, "{"+strings.Join(members, ",")+"}")
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func TestScript_Random(t *testing.T) {
	mcptest.OneGoroutine(t)
	scripts := 0
	for seed := range uint64(400) {
		if checkScript(t, fmt.Sprint("seed ", seed), randomDocument(rand.New(rand.NewPCG(seed, 1)), 4)) != "" {
			scripts++
		}
	}
	if scripts < 40 {
		t.Errorf("%d scripts", scripts)
	}
}

// FuzzScript: the JavaScript of any JSON, and of random documents made from a seed, evaluates to the same value as the
// JSON.
func FuzzScript(f *testing.F) {
	for _, d := range hostileToJS() {
		if len(d.text) < 10_000 {
			f.Add(d.text, uint64(0))
		}
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		checkScript(t, "text", text)
		promising(text) // must not panic
		checkScript(t, "twice", "["+text+","+text+"]")
		checkShared(t, "shared", []string{text, text, randomDocument(rand.New(rand.NewPCG(seed, 4)), 2)})
		checkScript(t, "seed", randomDocument(rand.New(rand.NewPCG(seed, 2)), 3))
	})
}

// TestScript_Node evaluates the JavaScript of documents in node, and in QuickJS if that is installed, even if Text would not
// choose it.
func TestScript_Node(t *testing.T) {
	mcptest.OneGoroutine(t)
	cmd := mcptest.Node(t, "", "check-script.mjs")
	type question struct {
		JS   string `json:"js"`
		JSON string `json:"json"`
	}
	var questions []question
	var names []string
	check := func(name, script, text string) {
		questions, names = append(questions, question{script, text}), append(names, name)
	}
	before := map[string]string{} // the previous text, by the first word of its name
	add := func(name, text string) {
		if script := checkScript(t, name, text); script != "" {
			check(name, script, text)
		}
		kind, _, _ := strings.Cut(name, " ")
		several := []string{before[kind], text, text}
		before[kind] = text
		for i, script := range checkShared(t, name, several) {
			check(fmt.Sprint(name, " shared ", i), script, several[i])
		}
	}
	for _, d := range append(documents(t), hostileToJS()...) {
		add(d.name, d.text)
	}
	for seed := range uint64(200) {
		add(fmt.Sprint("seed ", seed), randomDocument(rand.New(rand.NewPCG(seed, 3)), 4))
	}
	if os.Getenv("MCPX_SESSIONS") != "" {
		sessions(t, func(server string, n int, text string) {
			name := fmt.Sprint(server, " ", n)
			if n%5 == 0 && len(text) < 20_000 {
				add(name, text)
			} else if script := checkScript(t, name, text); script != "" {
				check(name, script, text)
			}
			_, pieces := Pieces(text)
			for _, piece := range pieces {
				add(name+" piece", string(piece.Value))
			}
			if literal, ok := fromPython(text); ok {
				add(name+" literal", literal)
			}
		})
	}
	for i, answer := range mcptest.Answers[struct {
		Same          bool
		Error, Engine string
	}](t, cmd, questions) {
		if !answer.Same {
			t.Errorf("%s: %+v", names[i], answer)
		}
	}
	t.Log(len(names), "texts")
}

// TestText_Within: JSON, or what Python's repr prints, is shortened within prose and within a JSON string. All bytes around it
// are unchanged.
func TestText_Within(t *testing.T) {
	rows := func(row string) string { return "[" + strings.Repeat(row+", ", 30) + row + "]" }
	both := Options{TOON: true, JS: true}
	before, after := "Result \u00e9:\r\n\t", "\r\n</rows>  \n [1] [x]\n"
	in := before + rows(`{"id": 1,  "name": {"first": "A", "last": "B"}}`) + after
	got := Text(in, both)
	inner, ok := strings.CutPrefix(got.Text, before)
	inner, ok2 := strings.CutSuffix(inner, after)
	if !ok || !ok2 || len(inner) > 700 || got.JSON != "" {
		t.Errorf("in prose: %q", got.Text)
	}
	quoted := string(wire.AppendQuoted(nil, in))
	if again := Text(quoted, both); again.Text != got.Text {
		t.Errorf("in a JSON string: %q", again.Text)
	}
	repr := rows(`{'id': 1, 'at': datetime.datetime(2024, 2, 29, 1, 2, 3, 45, tzinfo=datetime.timezone.utc), 'sum': Decimal('1.50'), ` +
		`'key': UUID('0190163d-8694-739b-aea5-966c26f8ad90'), 'took': datetime.timedelta(days=-1, seconds=3600)}`)
	if got := Text(before+repr+after, both); !strings.HasPrefix(got.Text, before) || !strings.HasSuffix(got.Text, after) || strings.Contains(got.Text, "Decimal") ||
		!strings.Contains(got.Text, "2024-02-29T01:02:03.000045+00:00") || !strings.Contains(got.Text, "1.50") || !strings.Contains(got.Text, "-1 day, 1:00:00") {
		t.Errorf("a repr: %.300q", got.Text)
	}
	code := "# Manual\n\n" + strings.Repeat("Much text. ", 300) + "\n```json\n" + rows(`{"id": 1}`) + "\n```\n"
	for _, plain := range []string{
		"a list [1], [2] and {x}", `"only text"`, code, `{"broken": [{"id": 1, "name": "x"}, {"id": 2}`, "if (x) { y[0] = [1, 2]; }", "[ERROR] at [12]", "",
		strings.Repeat("[", 100_000), strings.Repeat(`x {"a":`, 20_000), strings.Repeat("{'", 50_000),
	} {
		if got := Text(plain, both); got != (Output{Text: plain, Form: FormText}) {
			t.Errorf("%.60q became %s %.100q", plain, got.Form, got.Text)
		}
	}
	if got := Text(in, Options{}); got.Text != in {
		t.Errorf("without the forms: %q", got.Text)
	}
}

// TestText_WithinTOON: JSON within a text becomes TOON only where a reader can tell the text after it from the TOON.
func TestText_WithinTOON(t *testing.T) {
	rows := "[" + strings.Repeat(`{"id":1,"name":"A"},`, 9) + `{"id":2,"name":"B"}]`
	object := `{"rows":` + rows + `,"total":10}`
	list := "[" + object + "," + object + "]"
	indented := strings.NewReplacer(`{"rows"`, "{\n  \"rows\"", `,"total"`, ",\n  \"total\"", "10}", "10\n}").Replace(object)
	for text, want := range map[string]Form{
		"Rows:\n" + rows + "\nDuration: 12 ms":                 FormTOON,
		"Rows: " + rows + "\r\n10 rows":                        FormTOON,
		"Rows:\n" + list + "\nDuration: 12 ms":                 FormTOON,
		"Rows: " + rows:                                        FormTOON,
		"Rows: " + rows + " (10 rows)":                         FormJSON, // (10 rows) would be a part of the last cell
		"Rows: " + rows + ", and no more":                      FormJSON, // and this one more cell
		"Rows: " + rows + ".":                                  FormJSON,
		"Response:\n" + object + "\nDuration: 12":              FormJSON, // Duration would be a member, like total
		"Rows found:\n" + object:                               FormTOON,
		"Rows found:\r\n\r\n" + object + "\n\n10 rows, a: b\n": FormTOON,
		"x: 1\n```json\n" + object + "\n```\ny: 2":             FormTOON,
		"Page 1 of 2:\n  next: 2\n" + object:                   FormJSON,
		"Rows found: " + object:                                FormJSON,
		"Two of them:\n" + indented + "\n" + indented:          FormJSON, // the members of the second would be those of the first
		"Two:\n{ " + object[1:] + "\n{ " + object[1:]:          FormJSON,
		"Rows found:\n" + indented + "\n" + rows:               FormTOON,
		"Content-Type: json\n\n" + object:                      FormJSON,
		"status: ok\n" + object:                                FormJSON, // and so would status
		"Rows:\n    " + list + "\n    more: 1":                 FormJSON, // more would be a member of the last item
		`"` + strings.ReplaceAll(object, `"`, `\"`) + `"`:      FormTOON, // the text in the string has nothing else
	} {
		got := Text(text, Options{TOON: true})
		if got.Form != want {
			t.Errorf("%.20q … %.20q became %s: %q", text, text[len(text)-20:], got.Form, got.Text)
		}
	}
}
