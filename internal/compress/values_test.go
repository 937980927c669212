package compress

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

func TestEqual(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`1.10`, `1.1`, true}, {`100`, `1e2`, true}, {`-0`, `0`, true}, {`0e99`, `0`, true},
		{`0.001`, `1E-3`, true}, {`1200e-2`, `12`, true}, {`0.0120`, `120e-4`, true},
		{`9007199254740993`, `9007199254740992`, false}, {`1`, `-1`, false}, {`1`, `10`, false}, {`1`, `"1"`, false},
		{`1e999999999999999999999`, `10e999999999999999999998`, true}, {`1e999999999999999999999`, `1e999999999999999999998`, false},
		{`1e-999999999999999999999`, `0`, false}, {`1e0000000000000000000000002`, `100`, true},
		{`"\u0041\/"`, `"A/"`, true}, {`"a"`, `"b"`, false}, {`"\ud800"`, `"\ufffd"`, false}, {`"\ud800"`, `"\uD800"`, true},
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1}`, true}, {`{"a":1}`, `{"a":1,"b":2}`, false}, {`{"a":1}`, `{"b":1}`, false},
		{`{"a":1,"a":2}`, `{"a":1,"a":2}`, true}, {`{"a":1,"a":2}`, `{"a":2,"a":1}`, false}, {`{"a":1,"b":0,"a":2}`, `{"b":0,"a":1,"a":2}`, true},
		{`{"a":1,"a":2}`, `{"a":1,"b":2}`, false}, {`[1,2]`, `[2,1]`, false}, {`[1]`, `[1,2]`, false}, {`[[],{}]`, `[[],[]]`, false},
		{`null`, `false`, false}, {`true`, `true`, true}, {`[1,2]`, ` [ 1 , 2 ] `, true}, {`x`, `x`, false}, {`1`, `1 1`, false},
	}
	for _, tt := range tests {
		if got := Equal([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("Equal(%s, %s) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
		if got := Equal([]byte(tt.b), []byte(tt.a)); got != tt.want {
			t.Errorf("Equal(%s, %s) = %v, want %v", tt.b, tt.a, got, tt.want)
		}
	}
	deep := strings.Repeat(`{"a":[`, 4000) + "1.0" + strings.Repeat(`]}`, 4000)
	if !Equal([]byte(deep), []byte(strings.Replace(deep, "1.0", "1", 1))) {
		t.Error("deep values are not equal")
	}
}

func TestDecimalOf_AgreesWithBigRat(t *testing.T) {
	numbers := []string{"0", "-0", "1", "-1", "10", "0.1", "1.10", "1e2", "100", "1E-2", "0.01", "12.50", "1250e-2", "9007199254740993",
		"9007199254740992", "0.000", "123456789.987654321", "1e30", "1000000000000000000000000000000", "-12.5", "12.5"}
	for _, a := range numbers {
		for _, b := range numbers {
			x, _ := new(big.Rat).SetString(a)
			y, _ := new(big.Rat).SetString(b)
			if got, want := decimalOf(a) == decimalOf(b), x.Cmp(y) == 0; got != want {
				t.Errorf("%s equal to %s: %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestShape(t *testing.T) {
	mcptest.OneGoroutine(t)
	tests := []struct {
		in   string
		max  int
		want string
	}{
		{`{"total":2,"items":[{"id":1,"name":"a"},{"id":2,"owner":null},{"id":3,"owner":{"login":"x"}}],"ok":true}`, 100,
			`{total: number, items: [3 of {id: number, name?: string, owner?: {login: string}|null}], ok: boolean}`},
		{`[]`, 100, `[]`}, {`{}`, 100, `{}`}, {`"x"`, 100, `string`}, {`[1,"a",[2]]`, 100, `[3 of [1 of number]|string|number]`},
		{`{"a b":1,"x.y":2,"é":[],"1":{},"\n":null}`, 100, `{"a b": number, "x.y": number, "é": [], "1": {}, "\n": null}`},
		{`{"a":[[1,2],[3]]}`, 100, `{a: [2 of [1-2 of number]]}`},
		{`{"a":{"b":{"c":{"d":1}}},"e":[{"f":1}]}`, 20, `{a: {… keys: 1}, e: [1 items]}`},
		{`x`, 100, `not JSON`},
		{`{"p":{` + many(30, `"id%d":{"a":1}`) + `,"id30":{"a":"","b":[1]}}}`, 100, `{p: {[31 keys such as "id0"]: {a: string|number, b?: [1 of number]}}}`},
		{`{` + many(30, `"a%d":[1]`) + `}`, 100, `{[30 keys such as "a0"]: [1 of number]}`},
		{`[` + many(60, `{"a%d":1}`) + `]`, 100, `[60 of {[keys such as "a0"]: number}]`},
		{`{` + many(300, `"a%d":1`) + `}`, 100, `{[300 keys such as "a0"]: number}`},
		{`{` + many(21, `"a%[1]d":{"b%[1]d":1}`) + `}`, 400, `{` + strings.ReplaceAll(many(21, "a%[1]d: {b%[1]d: number}"), ",", ", ") + `}`},
		{`{` + many(21, `"a%d":1`) + `}`, 20, `{a0: number, a1: number, … keys: 19 more}`},
	}
	for _, tt := range tests {
		if got := Shape([]byte(tt.in), tt.max); got != tt.want {
			t.Errorf("Shape(%s)\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
	for _, doc := range documents(t) {
		for _, limit := range []int{30, 100, 300} {
			if got := tokens.Count(Shape([]byte(doc.text), limit)); got > limit {
				t.Errorf("%s: shape has %d tokens, limit is %d", doc.name, got, limit)
			}
		}
	}
}

// many returns n parts of JSON joined by commas. Each is format with its number.
func many(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}
