package results

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/compress"
)

// many returns n texts joined by between. Each is format with its number.
func many(n int, format, between string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, between)
}

// TestCut_FirstLook checks the beginning and the end of the text that the model sees at first of a long result.
func TestCut_FirstLook(t *testing.T) {
	const call = `exec {"server_name":"mcpx","tool_name":"read_result","arguments":{"handle":"H"`
	const also = `; it also takes limit, grep (regex), select (jq). {"$result":handle} passes the whole on as an argument]`
	rows := many(2000, `{"id":%d,"tags":["a"]}`, ",")
	table := many(2000, `{"id":%d,"name":"x"}`, ",")
	for _, tt := range []struct {
		name, text string
		p          Pages
		begins     string
		ends       []string // the last lines that the model sees
	}{
		{"an array", "[" + rows + "]", Pages{}, `[{"id":0,"tags":["a"]},`, []string{
			`[shape: [2000 of {id: number, tags: [1 of string]}]]`, `[N of 2000 items left: ` + call + `,"offset":N}}` + also}},
		{"a table", "[" + table + "]", Pages{}, "[N]{id,name}:\n  0,x\n", []string{
			`[shape: [2000 of {id: number, name: string}]]`, `[N of 2000 items left: ` + call + `,"offset":N}}` + also}},
		{"a list within an object", `{"total":2000,"data":{"a b":[` + rows + `]},"next":null}`, Pages{}, `{"total":2000,"data":{"a b":[{"id":0,"tags":["a"]},`, []string{
			`]},"next":null}`,
			`[shape: {total: number, data: {"a b": [2000 of {id: number, tags: [1 of string]}]}, next: null}]`,
			`[N of 2000 items of .data["a b"] left: ` + call + `,"offset":N}}` + also}},
		{"members", `{"v":1,"by":{` + many(900, `"k%d":{"id":1}`, ",") + `}}`, Pages{}, `{"v":1,"by":{"k0":{"id":1},`, []string{
			`[shape: {v: number, by: {[900 keys such as "k0"]: {id: number}}}]`, `[N of 900 items of .by left: ` + call + `,"offset":N}}` + also}},
		{"JSON Lines", many(2000, `{"id":%d,"tags":["a"]}`, "\n") + "\n", Pages{}, "{\"id\":0,\"tags\":[\"a\"]}\n{", []string{
			`[shape: [2000 of {id: number, tags: [1 of string]}]]`, `[N of 2000 items left: ` + call + `,"offset":N}}` + also}},
		{"lines of a string", `{"code":0,"out":"` + many(3000, `line %d`, `\n`) + `","err":""}`, Pages{}, `{"code":0,"out":"line 0\nline 1\n`, []string{
			`[shape: {code: number, out: string, err: string}]`, `[N of 3000 lines of .out left: ` + call + `,"offset":N}}` + also}},
		{"lines of a JSON string", `"` + many(3000, `line %d`, `\n`) + `"`, Pages{}, `"line 0\nline 1\n`, []string{`[N of 3000 lines left: ` + call + `,"offset":N}}` + also}},
		{"a long member beside short ones", `{"v":1,"a":[` + rows + `],"b":[` + rows + `]}`, Pages{}, `{"v":1,"a":[{"id":0,"tags":["a"]},`, []string{
			`[N of 2000 items of .a of this item left: ` + call + `,"offset":N}}]`,
			`[shape: {v: number, a: [2000 of {id: number, tags: [1 of string]}], b: [2000 of {id: number, tags: [1 of string]}]}]`,
			`[1 of 3 items left: ` + call + `,"offset":N}}` + also}},
		{"other text", many(9000, "line %d", "\n"), Pages{}, "line 0\nline 1\n", []string{`[N of 9000 lines left: ` + call + `,"offset":N}}` + also}},
		{"one line", strings.Repeat("some words ", 4000), Pages{}, "some words some words ", []string{`[N of pieces left, the line goes on: ` + call + `,"offset":N}}` + also}},
		{"other names", "[" + rows + "]", Pages{ShortNames: true}, `[{"id":0`, []string{`[N of 2000 items left: exec {"server":"mcpx","tool":"read_result","args":{"handle":"H","offset":N}}` + also}},
		{"the line first", "[" + rows + "]", Pages{LineFirst: true}, `[N of 2000 items left: ` + call + `,"offset":N}}` + also +
			"\n[shape: [2000 of {id: number, tags: [1 of string]}]]\n" + `[{"id":0,`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.p.Store, tt.p.Limit, tt.p.Preview, tt.p.Texts = newStore(), 4000, 1000, compress.Options{TOON: true}
			got := tt.p.cutShown(tt.text, compress.Text(tt.text, tt.p.Texts).Text, false, tt.p.Limit)
			got = regexp.MustCompile(`"r[a-z0-9]{20}"`).ReplaceAllString(got, `"H"`)
			// The numbers of shown parts are estimates, so replace them by N.
			got = regexp.MustCompile(`\[\d\d+ of (\d+ items|\d+ lines)|\[\d+ of \d+ (pieces)`).ReplaceAllString(got, "[N of $1$2")
			got = regexp.MustCompile(`"offset":\d+`).ReplaceAllString(got, `"offset":N`)
			got = regexp.MustCompile(`^\[\d+\]\{`).ReplaceAllString(got, "[N]{")
			if !strings.HasPrefix(got, tt.begins) {
				t.Errorf("begins %.200s", got)
			}
			if want := strings.Join(tt.ends, "\n"); !strings.HasSuffix(got, want) {
				t.Errorf("ends %s\nwant %s", got[max(0, len(got)-len(want)-20):], want)
			}
		})
	}
}

// TestCut_LargeItems: if the items of a list are so long that only a few of them are read for the first look, so many members of
// these are shown that most of the preview is used.
func TestCut_LargeItems(t *testing.T) {
	members := strings.ReplaceAll(many(400, `"name%d":"some N words"`, ","), "N", "%[1]d") + `,"body":"` + strings.Repeat("long ", 50_000) + `"`
	text := "[" + many(30, `{"id":%[1]d,`+members+`}`, ",") + "]"
	p := Pages{Store: newStore(), Limit: 20_000, Preview: 3000, Texts: compress.Options{TOON: true}}
	got := p.cutShown(text, compress.Text(text, p.Texts).Text, false, p.Limit)
	if n := compress.Weigh(got); n < p.Preview*2/3 || n > p.Preview+p.rest() {
		t.Errorf("%d tokens: %s", n, got)
	}
}

// TestCut_ItemsWithoutID: of items without a member that identifies them, such as rows of numbers, something is shown all the same.
func TestCut_ItemsWithoutID(t *testing.T) {
	for name, item := range map[string]string{
		"rows":    `[17000%05d,47.431676593580505,28.428318431671695,83.58514847651108,36.56115703112995]`,
		"vectors": `{"embedding":[0.5352339%05d,0.47859534599838516,0.11949586672248524,0.9533963882509309]}`,
		"shapes":  `{"type":"Polygon","at":[[[15.57%05d,81.20966237624708],[148.32685996200806,70.6376205476389],[105.2129446855,58.1]]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			text := "[" + many(2000, item, ",") + "]"
			p := Pages{Store: newStore(), Limit: 4000, Preview: 1000, Texts: compress.Options{TOON: true}}
			got := p.cutShown(text, compress.Text(text, p.Texts).Text, false, p.Limit)
			if strings.Count(got, "0000") < 8 || strings.Contains(got, `"…+",`) || strings.Contains(got, `…+,`) {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestShape_LongItems: however long the items of a list are, its shape has the keys of the first shapeLeast.
func TestShape_LongItems(t *testing.T) {
	items := make([]string, 400)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":%d,"body":"%s"}`, i, strings.Repeat("x", 10_000))
	}
	items[shapeLeast-1] = `{"id":1,"rare":"` + strings.Repeat("x", 10_000) + `"}`
	text := "[" + strings.Join(items, ",") + "]"
	if got := (Pages{}).divide(text, text, false).shape(500); !strings.Contains(got, "rare") || !strings.Contains(got, "[400 of {id: number") {
		t.Error(got)
	}
}
