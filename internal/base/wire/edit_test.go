package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestEdit: only the value changes. If the value does not change, the object is not copied.
func TestEdit(t *testing.T) {
	upper := EditText(strings.ToUpper)
	for object, want := range map[string]string{
		`{"a": 1.10, "b" :"x", "c":{"b":"y"}}`: `{"a": 1.10, "b" :"X", "c":{"b":"y"}}`,
		`{"b":"\u0061<&>"}`:                    `{"b":"A<&>"}`,
		`{"b":7}`:                              `{"b":7}`,
		`{"b":"x","b":"y"}`:                    `{"b":"X","b":"y"}`,
		`{"a":"x"}`:                            `{"a":"x"}`,
		`[1]`:                                  `[1]`,
		``:                                     ``,
		`{"b":"x"`:                             `{"b":"X"`,
	} {
		got := Edit(json.RawMessage(object), "b", upper)
		if string(got) != want {
			t.Errorf("%s became %s", object, got)
		}
		if object == want && len(got) > 0 && !same(got, Edit(got, "b", upper)) {
			t.Errorf("%s was copied", object)
		}
	}
}

func same(a, b []byte) bool { return &a[0] == &b[0] }

func TestEditEach(t *testing.T) {
	upper := EditText(strings.ToUpper)
	for array, want := range map[string]string{
		`[ "a", 1.10 ,"b"]`: `["A",1.10,"B"]`,
		`[]`:                `[]`,
		`{"a":1}`:           `{"a":1}`,
	} {
		if got := EditEach(json.RawMessage(array), upper); string(got) != want {
			t.Errorf("%s became %s", array, got)
		}
	}
	if array := json.RawMessage(`[ "A" , 9007199254740993 ]`); !same(array, EditEach(array, upper)) {
		t.Error("what stays is copied")
	}
}

func TestWithMember(t *testing.T) {
	for object, want := range map[string]string{
		``: `{"k":1}`, `{}`: `{"k":1}`, ` { } `: `{"k":1}`, `{"a":{}}`: `{"a":{},"k":1}`, `{"a":"}"} `: `{"a":"}","k":1}`,
	} {
		if got := WithMember(json.RawMessage(object), "k", []byte("1")); !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q became %s", object, got)
		}
	}
}

func TestMemberText(t *testing.T) {
	for object, want := range map[string]string{`{"k":"v"}`: "v", `{"k":7}`: "", `{"j":"v"}`: "", `null`: "", ``: "", `{"j":[1,{"k":"x"}],"k":"\u00e9"}`: "\u00e9"} {
		if got := MemberText(json.RawMessage(object), "k"); got != want {
			t.Errorf("%s has %q", object, got)
		}
	}
}

// TestSet: a member keeps its position, and is added at the end if it is new.
func TestSet(t *testing.T) {
	for object, want := range map[string]string{``: `{"k":1}`, `{"k":2,"a":3}`: `{"k":1,"a":3}`, `{"a":3}`: `{"a":3,"k":1}`} {
		if got := Set(json.RawMessage(object), "k", []byte("1")); string(got) != want {
			t.Errorf("%q became %s", object, got)
		}
	}
}
