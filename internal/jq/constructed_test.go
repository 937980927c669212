package jq

import (
	"reflect"
	"testing"
)

func TestConstructed(t *testing.T) {
	for filter, want := range map[string][][]string{
		`.items[] | {id, owner: {name, "e-mail": .mail}, $x, ("computed"): 1}`: {{"id", "owner", "x"}, {"name", "e-mail"}},
		`def f: {b, a}; map(f) + [{c: {}}]`:                                    {{"b", "a"}, {"c"}, nil},
		`.a`:                                                                   nil,
		`.[`:                                                                   nil,
	} {
		if got := Constructed(filter); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", filter, got, want)
		}
	}
}
