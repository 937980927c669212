package compress

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
)

// TestFromPython: a literal that is converted has the same value as in Python; every other text is refused.
func TestFromPython(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`[{'a': 1, 'b': None}]`, `[{"a":1,"b":null}]`},
		{"[True, False,\n None]", `[true,false,null]`},
		{`["it's", 'say "x"', 'both \' and "']`, `["it's","say \"x\"","both ' and \""]`},
		{`['\x00\xe9\u4e2d\U0001f600\n\r\t\\']`, `["\u0000\u00e9\u4e2d\ud83d\ude00\n\r\t\\"]`},
		{`[12345678901234567890, 1e+16, -0.0, 1.10, 1e-05]`, `[12345678901234567890,1e+16,-0.0,1.10,1e-05]`},
		{`[(1, 'a'), (1,), ()]`, `[[1,"a"],[1],[]]`},
		{`{'é': {'x': []}}`, `{"é":{"x":[]}}`},
		{strings.Repeat("[", maxNesting-1) + "None" + strings.Repeat("]", maxNesting-1), strings.Repeat("[", maxNesting-1) + "null" + strings.Repeat("]", maxNesting-1)},
		{strings.Repeat("[", maxNesting) + "None" + strings.Repeat("]", maxNesting), ""},
		{`[nan, inf]`, ""}, {`[-inf]`, ""}, {`[1j]`, ""}, {`[1_000]`, ""}, {`[0x10]`, ""}, {`[.5]`, ""}, {`[1.]`, ""}, {`[+1]`, ""}, {`[007]`, ""}, {`[1-2]`, ""}, {`[-]`, ""},
		{`{'a', 'b'}`, ""}, {`{1: 'a'}`, ""}, {`{None: 1}`, ""}, {`{(1, 2): 3}`, ""}, {`{'a': 1, 'a': 2}`, ""}, {`{'a': 1, '\x61': 2}`, ""},
		{`[b'x']`, ""}, {`[f'x']`, ""}, {`[r'\d']`, ""}, {`[u'x']`, ""}, {`['a' 'b']`, ""}, {`['''a''']`, ""}, {`['\d']`, ""}, {`['\a']`, ""}, {`['\101']`, ""}, {`['\N{BULLET}']`, ""},
		{`['\ud800']`, ""}, {`['\ud83d\ude00']`, ""}, {`['\U00110000']`, ""}, {`['\xg0']`, ""}, {`['\x0`, ""}, {`['\`, ""}, {`['a`, ""}, {"['a\nb']", ""}, {"['\xff']", ""},
		{`[dict(a=1)]`, ""}, {`[Decimal(1.5)]`, ""}, {`[<object at 0x7f>]`, ""}, {`[Ellipsis]`, ""}, {`[...]`, ""}, {`[None1]`, ""}, {`[true]`, ""}, {`[null, 'a']`, ""},
		{`[1, 2,]`, ""}, {`[,]`, ""}, {`[1,, 2]`, ""}, {`{'a': 1,}`, ""}, {`{'a'}`, ""}, {`{'a': }`, ""}, {`[(1)]`, ""}, {`[(1, 2,)]`, ""}, {`[(,)]`, ""}, {`[1)`, ""}, {`[(1]`, ""},
		{`['a'] # why`, ""}, {`['a'] ['b']`, ""}, {`'a'`, ""}, {`(1, 2)`, ""}, {`None`, ""}, {``, ""}, {"['a']\x00", ""},
	} {
		if got, ok := fromPython(tt.in); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%.60s: got %.60s, %t, want %.60s", tt.in, got, ok, tt.want)
		}
	}
}

// TestText_Python: a list of dicts as Python prints it becomes a table if that has fewer tokens, and the text never becomes
// longer. A literal that JSON cannot represent exactly is not changed.
func TestText_Python(t *testing.T) {
	rows := "[" + strings.Repeat("{'id': 1, 'name': 'it', 'gone': None}, ", 40) + "{'id': 2, 'name': \"it's\", 'gone': True}]"
	got := Text(rows, Options{TOON: true})
	if got.Form != FormTOON || !strings.HasPrefix(got.Text, "[41]{id,name,gone}:\n  1,it,null\n") || !strings.HasSuffix(got.Text, "\n  2,it's,true") {
		t.Errorf("got %s: %.100s", got.Form, got.Text)
	}
	if got := Text(rows, Options{}); got != (Output{Text: rows, Form: FormText}) {
		t.Errorf("without TOON: got %s: %.100s", got.Form, got.Text)
	}
	for _, in := range []string{
		`{'a': 1}`, `[{'a': 1}]`, `[[1, None], [2, None]]`,
		strings.Replace(rows, "None", "object(2024, 1, 1)", 1), strings.Replace(rows, "'name': 'it'", "1: 'it'", 1), rows + "x",
	} {
		if got := Text(in, Options{TOON: true}); got != (Output{Text: in, Form: FormText}) {
			t.Errorf("%.60s: became %s: %.100s", in, got.Form, got.Text)
		}
	}
}

// judge is a Python program. For each line of {"text", "json"} it says whether the text, read as a Python literal, has the
// value of the JSON, and how repr and pprint print this value.
const judge = `
import ast, json, math, pprint, sys
def plain(v):
    if isinstance(v, (list, tuple)): return [plain(x) for x in v]
    if isinstance(v, dict): return {k: plain(x) for k, x in v.items()}
    return v
def same(a, b):
    if type(a) is not type(b): return False
    if isinstance(a, list): return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict): return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float): return repr(a) == repr(b)
    return a == b
for line in sys.stdin:
    q = json.loads(line)
    if "value" in q:
        v = json.loads(q["value"])
        if q["tuples"]: v = [tuple(x) if isinstance(x, list) else x for x in v]
        print(json.dumps({"texts": [repr(v), pprint.pformat(v), pprint.pformat(v, width=20, sort_dicts=False)]}))
        continue
    try: ok = same(plain(ast.literal_eval(q["text"])), json.loads(q["json"]))
    except Exception as e: ok = False
    print(json.dumps({"same": ok}))
`

type verdict struct {
	Same  bool
	Texts []string
}

func askPython(t *testing.T, questions []map[string]any) []verdict {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		mcptest.Missing(t, "python3 is not installed")
	}
	cmd := exec.Command(program, "-W", "ignore", "-c", judge)
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8")
	return mcptest.Answers[verdict](t, cmd, questions)
}

// TestFromPython_Differential: fromPython accepts what Python's repr prints for random values, and its JSON has the same value
// in Python. If such texts are randomly damaged and fromPython still accepts one, this is also true for it.
func TestFromPython_Differential(t *testing.T) {
	mcptest.OneGoroutine(t)
	random := rand.New(rand.NewPCG(9, 2))
	var questions []map[string]any
	for range 400 {
		value := randomValue(random, 0)
		questions = append(questions, map[string]any{"value": value, "tuples": random.IntN(3) == 0})
	}
	var texts []string
	for i, v := range askPython(t, questions) {
		if compact, ok := fromPython(v.Texts[0]); !ok && !strings.Contains(v.Texts[0], "inf") {
			t.Errorf("repr is not read: %s", v.Texts[0])
		} else if ok && !Equal([]byte(compact), []byte(questions[i]["value"].(string))) {
			t.Errorf("%s is read as %s", questions[i]["value"], compact)
		}
		texts = append(texts, v.Texts...)
	}
	const damage = `'"\[]{}(),: 0123456789eE+-._abfnrtuUxNTFl#` + "\n\t"
	printed := len(texts)
	for range 60_000 {
		text := []byte(texts[random.IntN(printed)])
		for range 1 + random.IntN(2) {
			if len(text) == 0 {
				break
			}
			at := random.IntN(len(text))
			switch c := damage[random.IntN(len(damage))]; random.IntN(3) {
			case 0:
				text[at] = c
			case 1:
				text = append(text[:at], append([]byte{c}, text[at:]...)...)
			default:
				text = append(text[:at], text[at+1:]...)
			}
		}
		texts = append(texts, string(text))
	}
	questions = questions[:0]
	for _, text := range texts {
		if literal, ok := fromPython(text); ok {
			if !wire.Valid([]byte(literal)) {
				t.Errorf("%q is read as %q, which is no JSON", text, literal)
			}
			questions = append(questions, map[string]any{"text": text, "json": literal})
		}
	}
	if len(questions) < len(texts)/5 {
		t.Errorf("only %d of %d texts are read", len(questions), len(texts))
	}
	for i, v := range askPython(t, questions) {
		if !v.Same {
			t.Errorf("%q is read as %s, which Python says is another value", questions[i]["text"], questions[i]["json"])
		}
	}
	t.Logf("%d of %d texts are read", len(questions), len(texts))
}

// randomValue returns a random list or dict of rows as JSON.
func randomValue(random *rand.Rand, depth int) string {
	scalars := []func() string{
		func() string { return "null" },
		func() string { return fmt.Sprint(random.IntN(2) == 0) },
		func() string { return fmt.Sprint(random.Int64() - 1<<62) },
		func() string { return fmt.Sprint(random.IntN(1000)) + "00000000000000000000000" },
		func() string { return fmt.Sprint(random.NormFloat64() * 1e20) },
		func() string { return fmt.Sprint(random.Float64() / 1e9) },
		func() string { return randomString(random) },
		func() string { return randomString(random) },
	}
	if depth > 3 || depth > 0 && random.IntN(3) > 0 {
		return scalars[random.IntN(len(scalars))]()
	}
	var parts []string
	if random.IntN(2) == 0 && depth > 0 {
		for i := range random.IntN(5) {
			parts = append(parts, fmt.Sprintf(`"k%d%s:%s`, i, randomString(random)[1:], randomValue(random, depth+1)))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for range random.IntN(5) {
		parts = append(parts, randomValue(random, depth+1))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func randomString(random *rand.Rand) string {
	runes := []rune("ab 'x\"\\\n\t\r\x00\x7f\u00e9\u0085\u200b\u2028\ufeff中😀, None}])")
	var b strings.Builder
	for range random.IntN(12) {
		b.WriteRune(runes[random.IntN(len(runes))])
	}
	quoted, err := json.Marshal(b.String())
	if err != nil {
		panic(err) // strings can always be marshaled
	}
	return string(quoted)
}

func FuzzFromPython(f *testing.F) {
	for _, seed := range []string{`[{'a': 1, 'b': None}]`, `{'k': (1,)}`, `["it's", '\x00\u4e2d']`, `[1e+16, -0.0]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		literal, ok := fromPython(text)
		if !ok {
			return
		}
		if !wire.Valid([]byte(literal)) {
			t.Fatalf("%q is read as %q", text, literal)
		}
		if _, compact, _ := wire.ReadCompact(literal); compact != literal {
			t.Fatalf("%q is not compact: %q", literal, compact)
		}
		if got := Text(text, Options{TOON: true}); Weigh(got.Text) > Weigh(text) {
			t.Fatalf("%q grew to %q", text, got.Text)
		}
	})
}
