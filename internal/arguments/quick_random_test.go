package arguments

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// maker makes random schemas, and values that often fit them.
type maker struct {
	*rand.Rand
	draft string // $schema
}

func newMaker(seed, stream uint64) maker {
	m := maker{Rand: rand.New(rand.NewPCG(seed, stream))}
	m.draft = m.one("https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
		"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-04/schema#")
	return m
}

func (m maker) one(of ...string) string { return of[m.IntN(len(of))] }

func (m maker) name() string { return m.one("a", "b", "c", "é", "x y") }

// schema returns a random schema. It draws its keywords from most of JSON Schema's, including some that quick does not know.
func (m maker) schema(depth int) string {
	if depth == 0 {
		return m.one(`{}`, `true`, `false`, `{"type":"string"}`, `{"type":"integer"}`, `{"$ref":"#/$defs/d"}`, `{"$ref":"#"}`)
	}
	sub := func() string { return m.schema(depth - 1) }
	list := func() string { return `[` + sub() + `,` + sub() + `]` }
	number := func() string { return m.one("-1", "0", "1", "2", "0.5", "9007199254740993", "1e2") }
	var keywords []string
	for range 1 + m.IntN(4) {
		keywords = append(keywords, []func() string{
			func() string {
				return `"type":` + m.one(`"string"`, `"integer"`, `"number"`, `"boolean"`, `"null"`, `["array","null"]`, `["integer","string"]`)
			},
			func() string {
				return fmt.Sprintf(`"type":"object","properties":{"%s":%s,"%s":%s}`, m.name(), sub(), m.name(), sub())
			},
			func() string { return fmt.Sprintf(`"properties":{"%s":%s}`, m.name(), sub()) },
			func() string { return fmt.Sprintf(`"required":["%s","%s"]`, m.one("a", "b"), m.one("c", "é")) },
			func() string { return `"additionalProperties":` + m.one(`false`, `true`, sub()) },
			func() string { return `"type":"array","items":` + sub() },
			func() string { return fmt.Sprintf(`"minItems":%d,"maxItems":%d`, m.IntN(2), m.IntN(3)) },
			func() string { return fmt.Sprintf(`"minLength":%d,"maxLength":%d`, m.IntN(3), m.IntN(4)) },
			func() string { return `"enum":` + m.one(`["a","é"]`, `["a",1,null]`, `[{"a":1}]`, `[2]`) },
			func() string { return `"const":` + m.one(`"a"`, `1`, `null`) },
			func() string { return `"minimum":` + number() },
			func() string { return `"exclusiveMinimum":` + number() + `,"maximum":` + number() },
			func() string { return `"exclusiveMaximum":` + number() },
			func() string { return `"anyOf":` + list() },
			func() string { return `"allOf":` + list() },
			func() string { return `"$ref":"#/$defs/d"` },
			func() string {
				return m.one(`"multipleOf":2`, `"uniqueItems":true`, `"pattern":"^a"`, `"minProperties":1`, `"not":`+sub(), `"oneOf":`+list(),
					`"if":`+sub()+`,"then":`+sub(), `"prefixItems":`+list(), `"contains":`+sub(), `"propertyNames":{"maxLength":1}`,
					`"patternProperties":{"^a":`+sub()+`}`, `"dependentRequired":{"a":["b"]}`, `"format":"date"`, `"unevaluatedProperties":`+m.one("false", sub()),
					`"unevaluatedItems":`+m.one("false", sub()), `"dependentSchemas":{"a":`+sub()+`}`, `"dependencies":{"b":`+sub()+`,"c":["a"]}`,
					`"contains":`+sub()+`,"minContains":`+m.one("0", "2")+`,"maxContains":2`, `"if":`+sub()+`,"else":`+sub(), `"maxProperties":2`,
					`"propertyNames":`+sub(), `"items":`+list()+`,"additionalItems":`+sub())
			},
		}[m.IntN(17)]())
	}
	// The library evaluates some keywords beside a $ref of the older drafts, which say that they have no meaning.
	if i := slices.Index(keywords, `"$ref":"#/$defs/d"`); i >= 0 && strings.Contains(m.draft, "draft-0") {
		return `{` + keywords[i] + `}`
	}
	return `{` + strings.Join(keywords, ",") + `}`
}

// document returns a random schema with one definition.
func (m maker) document() string {
	return `{"$schema":"` + m.draft + `","$defs":{"d":` + m.schema(2) + `},` + m.schema(3)[1:]
}

func (m maker) value(depth int) string {
	if depth == 0 || m.IntN(3) == 0 {
		return m.one(`"a"`, `"b"`, `"é"`, `""`, `"abc"`, `"\u0061"`, `"\ud83d\ude00"`, `"a\"b"`, `"[1]"`, `" {}"`, `0`, `1`, `-1`, `2`, `3`, `0.5`, `1.0`, `1e0`, `-0`, `9007199254740993`, `true`, `false`, `null`, `{}`, `[]`)
	}
	if m.IntN(3) == 0 {
		return `[` + m.value(depth-1) + m.one("", " , "+m.value(depth-1)) + `]`
	}
	return m.object(depth)
}

func (m maker) object(depth int) string {
	var members []string
	for range m.IntN(4) {
		members = append(members, fmt.Sprintf(`"%s":%s`, m.name(), m.value(depth-1)))
	}
	return `{` + strings.Join(members, m.one(",", ", ")) + `}`
}

// made compares the quick check with the long way, for one random schema and some values. fit is how many values the quick check
// accepts, and plain is 1 if it knows all keywords of the schema, otherwise 0.
func made(t *testing.T, seed uint64) (fit, plain int) {
	m := newMaker(seed, 0)
	schema := m.document()
	c := new(Schemas).compiled(json.RawMessage(schema))
	if q := c.quick; q != nil && q.kinds != 0 {
		plain++
	}
	for range 20 {
		if agree(t, c, schema, m.object(3)) {
			fit++
		}
	}
	return fit, plain
}

// TestQuick_Random: whenever the quick check says that a value fits, the long way says so too.
func TestQuick_Random(t *testing.T) {
	mcptest.OneGoroutine(t)
	fit, plain := 0, 0
	const schemas = 1500
	for seed := range uint64(schemas) {
		f, p := made(t, seed)
		fit, plain = fit+f, plain+p
	}
	t.Logf("%d of %d schemas are plain, %d values fit", plain, schemas, fit)
	if plain < schemas/10 || fit < schemas/2 {
		t.Error("too few to tell anything")
	}
}

func FuzzQuick_Random(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { made(t, seed) })
}
