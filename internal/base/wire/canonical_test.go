package wire

import "testing"

func TestAppendCanonical(t *testing.T) {
	for _, same := range [][]string{
		{`{"name":"a","arguments":{"x":1,"y":[1.0,{"b":"é","a":null}]}}`, ` { "arguments":{"y":[1, {"a":null,"b":"\u00e9"}],"x":1e0}, "name" : "a" } `},
		{`[-0.0]`, `[0]`}, {`"\/"`, `"/"`}, {``, ` `}, {`[]`, `[ ]`}, {`{}`, `{ }`}, {`{"a":1,"a":2}`, `{"a":2}`},
	} {
		if a, b := string(AppendCanonical(nil, []byte(same[0]))), string(AppendCanonical(nil, []byte(same[1]))); a != b {
			t.Errorf("%s and %s", a, b)
		}
	}
	if got := string(AppendCanonical([]byte("x"), []byte(` [1,{"a":[2,]},3 `))); got != `x[1,{"a":[2,]},3` {
		t.Errorf("a broken array became %s", got)
	}
	seen := make(map[string]string)
	for _, differs := range []string{
		`1`, `"1"`, `[1]`, `[1,1]`, `[[1],1]`, `{"a":1}`, `{"a":"1"}`, `{"a":{"b":1}}`, `{"a":{},"b":1}`, `null`, `"null"`, `true`, `[]`, `{}`, `1.5`, `1e999`,
		`"a,b"`, `["a","b"]`, `["a,b"]`, `{"a":1`,
	} {
		c := string(AppendCanonical(nil, []byte(differs)))
		if other, twice := seen[c]; twice {
			t.Errorf("%s and %s are both %s", differs, other, c)
		}
		seen[c] = differs
	}
}
