package arguments

import (
	"encoding/json"
	"testing"
)

func TestMerged(t *testing.T) {
	for _, c := range []struct{ common, specific, want string }{
		{``, ``, `{}`},
		{`{"a":1}`, ``, `{"a":1}`},
		{``, `{"b":2,"c":3}`, `{"b":2,"c":3}`},
		{`{"a":1,"b":1.0}`, `{"b":2,"c":3,"d":"\u0041"}`, `{"a":1,"b":2,"c":3,"d":"\u0041"}`},
		{`{"\u0061":1}`, `{"a":2}`, `{"a":2}`},
		{`"{\"a\":1}"`, `"{\"b\":2}"`, `{"a":1,"b":2}`},
	} {
		got, err := Merged(json.RawMessage(c.common), json.RawMessage(c.specific))
		if err != nil || string(got) != c.want {
			t.Errorf("%s, %s: %s, %v", c.common, c.specific, got, err)
		}
	}
	for _, c := range [][2]string{{`[1]`, ``}, {``, `1`}, {`{"a":1`, `{}`}, {`{}`, `{"a":1`}} {
		if got, err := Merged(json.RawMessage(c[0]), json.RawMessage(c[1])); err == nil {
			t.Errorf("%s, %s: %s", c[0], c[1], got)
		}
	}
}
