package schemats

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// schemaFuzzer makes random schemas of kinds that the corpus does not have: tuples as in both drafts, patternProperties, allOf,
// and schemas as pydantic writes them (title, $defs, anyOf with null). The seed is fixed, so that a failure can be repeated.
type schemaFuzzer struct {
	r     *rand.Rand
	draft string
	defs  int
}

func fuzzSchemas(n int) []json.RawMessage {
	out := make([]json.RawMessage, 0, n)
	for i := range n {
		f := &schemaFuzzer{r: rand.New(rand.NewPCG(20261121, uint64(i)))}
		if i%2 == 0 {
			f.draft = "07"
		}
		out = append(out, json.RawMessage(f.root()))
	}
	return out
}

func (f *schemaFuzzer) pick(options ...string) string { return options[f.r.IntN(len(options))] }

func (f *schemaFuzzer) chance(percent int) bool { return f.r.IntN(100) < percent }

func (f *schemaFuzzer) root() string {
	f.defs = f.r.IntN(4)
	keyword, uri := "$defs", "https://json-schema.org/draft/2020-12/schema"
	if f.draft == "07" {
		keyword, uri = "definitions", "http://json-schema.org/draft-07/schema#"
	}
	parts := []string{fmt.Sprintf(`"$schema":%q`, uri)}
	body := f.object(3)
	if f.defs > 0 {
		var defs []string
		for i := range f.defs {
			def := f.object(2)
			if f.chance(30) {
				def = f.schema(2)
			}
			if f.chance(40) && strings.HasPrefix(def, "{") && def != "{}" {
				def = fmt.Sprintf(`{"title":"Def%d",`, i) + def[1:]
			}
			defs = append(defs, fmt.Sprintf(`"Def%d":%s`, i, def))
		}
		parts = append(parts, fmt.Sprintf(`%q:{%s}`, keyword, strings.Join(defs, ",")))
	}
	return "{" + strings.Join(append(parts, body[1:]), ",")
}

func (f *schemaFuzzer) ref() string {
	keyword := "$defs"
	if f.draft == "07" {
		keyword = "definitions"
	}
	ref := fmt.Sprintf(`"$ref":"#/%s/Def%d"`, keyword, f.r.IntN(f.defs))
	if f.chance(30) && f.draft == "" {
		return `{` + ref + `,"description":"see there"}`
	}
	return `{` + ref + `}`
}

func (f *schemaFuzzer) schema(depth int) string {
	if depth <= 0 {
		return f.scalar()
	}
	switch n := f.r.IntN(20); {
	case n < 5:
		return f.scalar()
	case n < 8:
		return f.object(depth - 1)
	case n < 10:
		return `{"type":"array","items":` + f.schema(depth-1) + f.pick(``, `,"minItems":1`, `,"uniqueItems":true`) + `}`
	case n < 12:
		return f.tuple(depth - 1)
	case n < 13:
		return `{"type":"object","additionalProperties":` + f.schema(depth-1) + `}`
	case n < 14:
		return f.patterns(depth - 1)
	case n < 15:
		return f.tagged(depth - 1)
	case n < 16:
		return `{"anyOf":[` + f.schema(depth-1) + `,{"type":"null"}],"default":null,"title":"Maybe Value"}`
	case n < 17:
		return fmt.Sprintf(`{"%s":[%s,%s]}`, f.pick("anyOf", "oneOf"), f.scalar(), f.schema(depth-1))
	case n < 18:
		return f.allOf(depth - 1)
	case f.defs > 0:
		return f.ref()
	}
	return f.scalar()
}

func (f *schemaFuzzer) scalar() string {
	return f.pick(
		`{"type":"string"}`, `{"type":"string","description":"A text */ with\nlines","minLength":1}`, `{"type":"integer","minimum":0,"maximum":9007199254740991}`,
		`{"type":"number","default":1.50}`, `{"type":"boolean"}`, `{"type":"null"}`, `{}`, `true`,
		`{"type":["string","null"]}`, `{"type":["integer","number","null"]}`, `{"enum":["a","b",3,null]}`, `{"type":"string","enum":["x","y"]}`,
		`{"const":"k"}`, `{"const":7}`, `{"type":["string","integer"],"enum":["p",5,true]}`, `{"enum":[{"o":1},[1,"t"]]}`,
		`{"type":"string","nullable":true}`, `{"type":"string","format":"date-time","pattern":"^[0-9]*/"}`,
		`{"allOf":[{"type":"string"},{"enum":["q","r",1]}]}`, `{"type":["object","null"]}`, `{"type":["array","string"],"items":{"type":"number"}}`,
	)
}

func (f *schemaFuzzer) object(depth int) string {
	names := []string{"alpha", "beta", "kind-of", "1st", "class", "delta"}
	var props, required []string
	for _, n := range names[:f.r.IntN(5)] {
		props = append(props, fmt.Sprintf(`%q:%s`, n, f.schema(depth)))
		if f.chance(45) {
			required = append(required, fmt.Sprintf("%q", n))
		}
	}
	if f.chance(10) {
		required = append(required, `"unlisted"`)
	}
	s := `{"type":"object","properties":{` + strings.Join(props, ",") + `}`
	if len(required) > 0 {
		s += `,"required":[` + strings.Join(required, ",") + `]`
	}
	switch f.r.IntN(8) {
	case 0, 1:
		s += `,"additionalProperties":false`
	case 2:
		s += `,"additionalProperties":true`
	case 3:
		if len(props) > 1 && !f.chance(50) {
			s += `,"anyOf":[{"required":["alpha"]},{"required":["beta"]}]`
		}
	}
	return s + "}"
}

func (f *schemaFuzzer) tuple(depth int) string {
	var items []string
	for range 1 + f.r.IntN(3) {
		items = append(items, f.schema(depth))
	}
	list := strings.Join(items, ",")
	length := ""
	switch f.r.IntN(4) {
	case 0:
		length = fmt.Sprintf(`,"minItems":%d`, f.r.IntN(len(items)+1))
	case 1:
		length = fmt.Sprintf(`,"minItems":%d,"maxItems":%d`, len(items), len(items))
	case 2:
		length = fmt.Sprintf(`,"maxItems":%d`, len(items))
	}
	rest := f.pick(``, `false`, `true`, f.schema(0))
	if f.draft == "07" {
		if rest != "" {
			rest = `,"additionalItems":` + rest
		}
		return `{"type":"array","items":[` + list + `]` + rest + length + `}`
	}
	if rest != "" {
		rest = `,"items":` + rest
	}
	return `{"type":"array","prefixItems":[` + list + `]` + rest + length + `}`
}

func (f *schemaFuzzer) patterns(depth int) string {
	s := `{"type":"object","patternProperties":{"^x-":` + f.schema(depth)
	if f.chance(40) {
		s += `,"^n_":` + f.scalar()
	}
	s += `}`
	if f.chance(50) {
		s += `,"properties":{"plain":` + f.scalar() + `}`
	}
	if f.chance(60) {
		s += `,"additionalProperties":false`
	}
	return s + `}`
}

// tagged returns a union of objects that are distinguished by one property.
func (f *schemaFuzzer) tagged(depth int) string {
	var members []string
	for _, tag := range []string{"circle", "square", "line"}[:2+f.r.IntN(2)] {
		members = append(members, fmt.Sprintf(`{"type":"object","properties":{"kind":{"const":%q},"v":%s},"required":["kind"%s]}`, tag, f.schema(depth), f.pick(``, `,"v"`)))
	}
	return fmt.Sprintf(`{"%s":[%s]}`, f.pick("oneOf", "anyOf"), strings.Join(members, ","))
}

func (f *schemaFuzzer) allOf(depth int) string {
	a := fmt.Sprintf(`{"type":"object","properties":{"left":%s,"shared":{"type":["string","number"]}}%s}`, f.schema(depth), f.pick(``, `,"required":["left"]`, `,"required":["shared"]`))
	b := fmt.Sprintf(`{"properties":{"right":%s,"shared":{"type":["string","boolean"]}}%s}`, f.schema(depth), f.pick(``, `,"required":["right"]`))
	members := []string{a, b}
	if f.defs > 0 && f.chance(20) {
		members = append(members, f.ref())
	}
	return `{"allOf":[` + strings.Join(members, ",") + `]}`
}
