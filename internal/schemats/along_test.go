package schemats

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAlong: Along writes only the parts of an input that lead to the places.
func TestAlong(t *testing.T) {
	const schema = `{"type":"object","description":"Whole.","required":["who"],"properties":{
		"who":{"type":"string","description":"A name."},
		"limit":{"type":"integer","maximum":9,"description":"How many."},
		"deep":{"type":"object","description":"Deep.","properties":{
			"list":{"type":"array","description":"A list.","items":{"type":"object","properties":{"x":{"type":"number","description":"An x."},"y":{"type":"number"}}}},
			"map":{"type":"object","additionalProperties":{"type":"object","properties":{"k":{"type":"boolean"},"l":{}}}},
			"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"minItems":2,"maxItems":2}}},
		"shape":{"oneOf":[
			{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"},"fill":{"type":"string"}}},
			{"type":"object","properties":{"kind":{"const":"box"},"w":{"type":"number"},"fill":{"type":"string"}}},
			{"type":"null"}]},
		"both":{"allOf":[{"$ref":"#/$defs/part"},{"type":"object","properties":{"c":{"type":"string"}},"patternProperties":{"^x":{}}}]},
		"tree":{"$ref":"#/$defs/tree"}},
		"$defs":{"part":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}},
			"tree":{"type":"object","properties":{"name":{"type":"string"},"sub":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`
	for _, tt := range []struct {
		name, places, want string
		most               int
	}{
		{"one", `[["limit"]]`, "{\n limit?: number // How many. int <=9\n}; // in part", 100},
		{"two, in the order of the schema", `[["limit"],["who"]]`, "{\n who: string // A name.\n limit?: number // How many. int <=9\n}; // in part", 100},
		{"in an item", `[["deep","list","3","y"]]`, "{deep?: {list?: {y?: number}[]}}; // in part", 100},
		{"a whole item", `[["deep","list","3"]]`, "{\n deep?: {\n list?: {\n x?: number // An x.\n y?: number\n }[]\n }\n}; // in part", 100},
		{"a value of a map", `[["deep","map","any key","k"]]`, "{deep?: {map?: Record<string, {k?: boolean}>}}; // in part", 100},
		{"in a tuple", `[["deep","pair","1"]]`, "{deep?: {pair?: [string, number]}}; // in part", 200},
		{"alternatives keep their constants", `[["shape","r"]]`, `{shape?: {kind?: "circle"; r?: number}}; // in part`, 100},
		{"in two alternatives", `[["shape","fill"]]`, `{shape?: {kind?: "circle"; fill?: string} | {kind?: "box"; fill?: string}}; // in part`, 100},
		{"in none of the alternatives", `[["shape","zzz"]]`, "{\n shape?: {kind?: \"circle\"; r?: number; fill?: string} | {kind?: \"box\"; w?: number; fill?: string} | null\n}; // in part", 200},
		{"in a part", `[["both","b"]]`, "{both?: {b?: string}}; // in part", 100},
		{"unknown: all names there", `[["deep","zzz"],["deep","list","0","zzz"]]`,
			"{\n deep?: {\n list?: {x?: number; y?: number}[]\n map?: Record<string, {k?: boolean; l?: unknown}>\n pair?: [string, number]\n }\n}; // in part", 200},
		{"in a recursive type", `[["tree","sub","0","sub","1","name"]]`, "{tree?: {sub?: {sub?: {name?: string}[]}[]}}; // in part", 100},
		{"a place that cannot be", `[["who","x"]]`, "{\n who: string // A name.\n}; // in part", 100},
		{"too long for descriptions", `[["deep","list"],["who"]]`, "{who: string; deep?: {list?: {x?: number; y?: number}[]}}; // in part", 90},
		{"too long for depth", `[["deep","list"],["who"]]`, "{who: string; deep?: object}; // in part", 58},
		{"nothing fits", `[["deep","list"],["who"]]`, "", 20},
		{"nowhere", `[]`, "", 100},
	} {
		var places [][]string
		if err := json.Unmarshal([]byte(tt.places), &places); err != nil {
			t.Fatal(err)
		}
		got := Along(json.RawMessage(schema), places, full, tt.most, length)
		if got = strings.TrimPrefix(got, "type Args = "); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
	const named = "type tree = {name?: string; sub?: tree[]};\ntype Args = {tree?: tree}; // in part"
	if got := Along(json.RawMessage(schema), [][]string{{"tree"}}, full, 100, length); got != named {
		t.Errorf("got %s", got)
	}
}
