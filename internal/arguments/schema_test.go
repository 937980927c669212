package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

func checked(schema, arguments string) []string {
	var s Schemas
	var invalid *ValidationError
	if _, _, err := s.Read(json.RawMessage(arguments), json.RawMessage(schema), true); errors.As(err, &invalid) {
		return invalid.Violations
	}
	return nil
}

func TestCheck(t *testing.T) {
	const object = `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"mode":{"enum":["a","b"]},"tags":{"type":"array","items":{"type":"string"}},"a/b~c":{"type":"string"}},"required":["n"],"additionalProperties":false}`
	tests := []struct {
		name, schema, arguments string
		want                    []string
	}{
		{"valid", object, `{"n":1,"mode":"a","tags":["x"]}`, nil},
		{"missing", object, `{}`, []string{"/n: is missing"}},
		{"wrong type", object, `{"n":"one"}`, []string{"/n: must be integer, not string"}},
		{"not in the enum", object, `{"n":1,"mode":"c"}`, []string{"/mode: must be \"a\" or \"b\""}},
		{"deeper", object, `{"n":1,"tags":["x",2]}`, []string{"/tags/1: must be string, not number"}},
		{"pointer is escaped", object, `{"n":1,"a/b~c":1}`, []string{"/a~1b~0c: must be string, not number"}},
		{"too many", object, `{"n":1,"zzz":1}`, []string{"/zzz: is unknown"}},
		{"several", object, `{"n":0,"mode":1,"zzz":1}`, []string{"/mode: must be \"a\" or \"b\"", "/n: must be >=1", "/zzz: is unknown"}},
		{"integers beyond 2^53", `{"properties":{"n":{"maximum":9007199254740992}}}`, `{"n":9007199254740993}`, []string{"/n: must be <=9007199254740992"}},
		{"decimals", `{"properties":{"n":{"exclusiveMinimum":0.10,"multipleOf":0.25}}}`, `{"n":0.1}`, []string{"/n: must be >0.1", "/n: must be a multiple of 0.25"}},
		{"1.0 is an integer", object, `{"n":1.0}`, nil},
		{"format is a remark", `{"properties":{"d":{"format":"date"}}}`, `{"d":"soon"}`, nil},
		{"if and then", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, []string{"/b: is missing"}},
		{"reference", `{"$defs":{"p":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/p"}}}`, `{"x":1}`, []string{"/x: must be string, not number"}},
		{"anchor", `{"$defs":{"p":{"$anchor":"pp","type":"string"}},"properties":{"x":{"$ref":"#pp"}}}`, `{"x":1}`, []string{"/x: must be string, not number"}},
		{"recursive", `{"properties":{"v":{"type":"integer"},"next":{"$ref":"#"}}}`, `{"next":{"next":{"next":{"v":"x"}}}}`, []string{"/next/next/next/v: must be integer, not string"}},
		{"a pattern of RE2", `{"properties":{"p":{"pattern":"^a+$"}}}`, `{"p":"b"}`, []string{"/p: must match ^a+$"}},
		{"a pattern of ECMAScript only", `{"properties":{"p":{"pattern":"^(?=.*[0-9])(?!x).*$"}}}`, `{"p":"xyz1"}`, []string{`/p: must match ^(?=.*[0-9])(?!x).*$`}},
		// What is beyond ASCII depends on the server's engine, and so does the length of an emoji.
		{"a letter of German", `{"properties":{"p":{"pattern":"^\\w+$"}}}`, `{"p":"Müller"}`, nil},
		{"a letter is none", `{"properties":{"p":{"pattern":"^\\w+$"}}}`, `{"p":"Muller!"}`, []string{`/p: must match ^\w+$`}},
		{"a letter is no digit", `{"properties":{"p":{"pattern":"^\\d+$"}}}`, `{"p":"Müller"}`, []string{`/p: must match ^\d+$`}},
		{"a digit of Arabic", `{"properties":{"p":{"pattern":"^\\d+$"}}}`, `{"p":"١٢"}`, nil},
		{"a vertical tab", `{"properties":{"p":{"pattern":"^a\\sb$"}}}`, `{"p":"a\u000bb"}`, nil},
		{"a no-break space", `{"properties":{"p":{"pattern":"^a\\sb$"}}}`, `{"p":"a\u00a0b"}`, nil},
		{"half of a surrogate pair", `{"properties":{"p":{"pattern":"^[\\uD83C-\\uDBFF\\uDC00-\\uDFFF]+$"}}}`, `{"p":"😀"}`, nil},
		{"a pattern that names its characters", `{"properties":{"p":{"pattern":"^[a-z]+$"}}}`, `{"p":"ü"}`, []string{"/p: must match ^[a-z]+$"}},
		{"a count of Python", `{"properties":{"p":{"pattern":"^a{,5}$"}}}`, `{"p":"aa"}`, nil},
		{"a name with a letter of German", `{"patternProperties":{"^\\w+$":{"type":"string"}},"additionalProperties":false}`, `{"ü":"x"}`, nil},
		{"two characters, or one", `{"properties":{"p":{"minLength":2}}}`, `{"p":"😀"}`, nil},
		{"less than two in any case", `{"properties":{"p":{"minLength":3}}}`, `{"p":"😀"}`, []string{"/p: must have >=3 characters"}},
		{"more than one in any case", `{"properties":{"p":{"maxLength":1}}}`, `{"p":"😀😀"}`, []string{"/p: must have <=1 characters"}},
		{"too long, or not", `{"properties":{"p":{"not":{"maxLength":1}}}}`, `{"p":"😀"}`, nil},
		{"an empty enumeration", `{"properties":{"p":{"enum":[]}}}`, `{"p":"x"}`, nil},
		{"false", `{"properties":{"never":false}}`, `{"never":1}`, []string{"/never: is not allowed"}},
		{"an anchor of 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$defs":{"p":{"$anchor":"pp","type":"string"}},"properties":{"x":{"$ref":"#pp"}}}`, `{"x":1}`, []string{"/x: must be string, not number"}},
		{"two anchors of one name", `{"$defs":{"a":{"$anchor":"n","type":"string"},"b":{"$anchor":"n","type":"string"}},"properties":{"x":{"$ref":"#n"}}}`, `{"x":1}`, nil},
		{"the document has an identity", `{"$id":"https://example.com/x","$defs":{"p":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/p"}}}`, `{"x":1}`, []string{"/x: must be string, not number"}},
		{"an identity beside a reference, in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"p":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/p","$id":"y"}}}`, `{"x":1}`, []string{"/x: must be string, not number"}},
		{"no identity in draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"x":{"$id":"y","type":"string"}}}`, `{"x":1}`, []string{"/x: must be string, not number"}},
		{"an identity in draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"x":{"id":"y","type":"string"}}}`, `{"x":1}`, nil},
		{"a reference with an escape", `{"$defs":{"a b":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a%20b"}}}`, `{"x":1}`, []string{"/x: must be string, not number"}},
		{"one of the types is unknown", `{"properties":{"x":{"type":["string","any"]}}}`, `{"x":1}`, nil},
		{"a multiple of nothing", `{"properties":{"x":{"multipleOf":0}}}`, `{"x":1}`, nil},
		{"no alternatives", `{"anyOf":[],"required":["a"]}`, `{}`, nil},
		{"exclusive as in draft 4", `{"properties":{"x":{"minimum":1,"exclusiveMinimum":true}}}`, `{"x":1}`, []string{"/x: must be >1"}},
		{"a bound beyond all numbers", `{"properties":{"x":{"maxLength":1e30}}}`, `{"x":"y"}`, nil},
		{"minus zero", `{"properties":{"x":{"const":0}}}`, `{"x":-0}`, nil},
		{"each alternative evaluates", `{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":1}`, nil},
		{"all is evaluated", `{"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false}`, `{"a":1}`, nil},
		{"two of three fit", `{"properties":{"x":{"oneOf":[{"type":"string"},{"type":"integer"},{"minimum":0}]}}}`, `{"x":1}`, []string{"/x: fits more than one of oneOf"}},
		{"a condition that is not known", `{"if":{"properties":{"d":{"format":"date"}}},"then":{"required":["a"]},"else":{"required":["b"]}}`, `{"d":"x","b":1}`, nil},
		{"neither then nor else", `{"if":{"properties":{"d":{"format":"date"}}},"then":{"required":["a"]},"else":{"required":["b"]}}`, `{"d":"x"}`, []string{"/a: is missing"}},
		{"a pattern of names that is none", `{"patternProperties":{"([":{}},"additionalProperties":false}`, `{"x":1}`, nil},
		// References within a document inside the document have another meaning.
		{"a reference into another document", `{"$ref":"#/$defs/a/$defs/b","$defs":{"a":{"$id":"x","$defs":{"b":{"$ref":"#/$defs/c"},"c":{}}},"c":{"required":["y"]}}}`, `{}`, nil},
		{"an anchor in another document", `{"$ref":"#b","$defs":{"a":{"$id":"x","$defs":{"b":{"$anchor":"b","required":["y"]}}}}}`, `{}`, nil},
		// It is not known whether a string fits a format, so neither is what is evaluated.
		{"evaluated if a format fits", `{"not":{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{"format":"date"}}}],"unevaluatedProperties":false}}`, `{"a":1,"b":"x"}`, nil},
		{"contained if a format fits", `{"properties":{"l":{"not":{"contains":{"format":"date"},"minContains":0,"unevaluatedItems":false}}}}`, `{"l":["x"]}`, nil},
		{"root true", `true`, `{"a":1}`, nil},
		// A schema that cannot be compiled accepts all arguments.
		{"properties is a list", `{"type":"object","properties":[]}`, `{"x":1}`, nil},
		{"required is a text", `{"required":"a"}`, `{}`, nil},
		{"an unknown type", `{"type":"any"}`, `{}`, nil},
		{"a pattern that is none", `{"properties":{"p":{"pattern":"(["}}}`, `{"p":"x"}`, nil},
		{"an unknown dialect", `{"$schema":"https://example.com/my-dialect","required":["a"]}`, `{}`, nil},
		{"a text as schema", `"{}"`, `{}`, nil},
		{"null as schema", `null`, `{}`, nil},
		{"a broken schema", `{"type":`, `{}`, nil},
		{"a reference to nowhere", `{"$ref":"#/$defs/none"}`, `{}`, nil},
		{"a reference to the network", `{"properties":{"x":{"$ref":"http://127.0.0.1:9/x.json"}}}`, `{"x":1}`, nil},
		{"no schema", ``, `{}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := checked(tt.schema, tt.arguments); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSchemaReadsNoFile: a schema cannot read files of this machine, neither to use them as schemas nor to reveal
// their content in errors.
func TestSchemaReadsNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"file://" + filepath.ToSlash(file), filepath.ToSlash(file), "secret.json"} {
		t.Chdir(filepath.Dir(file))
		schema := fmt.Sprintf(`{"properties":{"x":{"$ref":%q}}}`, ref)
		if got := checked(schema, `{"x":1}`); got != nil {
			t.Errorf("%s was read: %q", ref, got)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	var properties, arguments []string
	for i := range 50 {
		properties = append(properties, fmt.Sprintf(`"p%02d":{"type":"integer"}`, i))
		arguments = append(arguments, fmt.Sprintf(`"p%02d":"x"`, i))
	}
	got := checked(`{"properties":{`+strings.Join(properties, ",")+`}}`, `{`+strings.Join(arguments, ",")+`}`)
	if len(got) != maxViolations {
		t.Errorf("%d violations", len(got))
	}
	for schema, most := range map[string]int{
		`{"properties":{"p":{"enum":["` + strings.Repeat("x", 5000) + `"]}}}`:     maxAllowed + 20,
		`{"properties":{"p":{"enum":[1` + strings.Repeat(",22222", 5000) + `]}}}`: maxAllowed + 50,
		`{"properties":{"p":{"pattern":"` + strings.Repeat("word ", 800) + `"}}}`: 5*maxWhat + 20,
		`{"required":["` + strings.Repeat("long ", 5000) + `"]}`:                  5*maxPlace + 20,
	} {
		if got = checked(schema, `{"p":"0"}`); len(got) != 1 || len([]rune(got[0])) > most {
			t.Errorf("got %.400q", got)
		}
	}
}

// TestViolations_LongName: a long unknown name gives one short violation, which has only the beginning of the name.
func TestViolations_LongName(t *testing.T) {
	if got := checked(`{"properties":{"p":{}},"additionalProperties":false}`, `{"`+strings.Repeat("q", 2000)+`":1}`); len(got) != 1 || len(got[0]) > 80 {
		t.Errorf("got %q", got)
	}
}

// doubling returns a chain of n schemas, each of which applies the next one twice.
func doubling(n int, step string) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, strings.ReplaceAll(step, "NEXT", fmt.Sprintf("d%d", i+1))))
	}
	defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object"}`, n))
	return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`
}

func nested(depth int, open, inner, end string) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

// TestCheckIsBounded: no schema and no arguments take a long time. Arguments whose check would take too long are
// not checked.
func TestCheckIsBounded(t *testing.T) {
	mcptest.OneGoroutine(t)
	deep := nested(9000, `{"x":`, `{}`, `}`)
	x100 := nested(100, `{"x":`, `{}`, `}`)
	tests := []struct{ name, schema, arguments string }{
		{"an exponent in the arguments", `{"properties":{"n":{"minimum":1,"maximum":5,"multipleOf":3}}}`, `{"n":1e5000000}`},
		{"a negative exponent", `{"properties":{"n":{"minimum":1,"multipleOf":3}}}`, `{"n":1e-5000000}`},
		{"an exponent that overflows", `{"properties":{"n":{"minimum":1}}}`, `{"n":1E+99999999999999999999}`},
		{"an exponent in the schema", `{"properties":{"n":{"minimum":1e5000000,"multipleOf":1e-5000000}}}`, `{"n":1}`},
		{"a million digits", `{"properties":{"n":{"multipleOf":7}}}`, `{"n":1` + strings.Repeat("0", 1<<20) + `}`},
		{"deep arguments", `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"x":{"$ref":"#/$defs/n"}}}}}`, deep},
		{"a deep schema", nested(4500, `{"properties":{"x":`, `{}`, `}}`), `{"x":1}`},
		{"doubled references", doubling(40, `{"allOf":[{"$ref":"#/$defs/NEXT"},{"$ref":"#/$defs/NEXT"}]}`), `{"x":1}`},
		{"doubled alternatives", doubling(40, `{"anyOf":[{"$ref":"#/$defs/NEXT"},{"$ref":"#/$defs/NEXT"}]}`), `{"x":1}`},
		{"doubled at each level", doubling(60, `{"properties":{"x":{"allOf":[{"$ref":"#/$defs/NEXT"},{"$ref":"#/$defs/NEXT"}]}}}`), x100},
		{"doubled by anchors", strings.NewReplacer(`"$ref":"#/$defs/`, `"$ref":"#`, `"d`, `"d`).Replace(anchored(40)), `{"x":1}`},
		{"doubled by dependencies", `{"$schema":"http://json-schema.org/draft-07/schema#",` + doubling(40, `{"dependencies":{"x":{"$ref":"#/$defs/NEXT"},"y":{"$ref":"#/$defs/NEXT"}}}`)[1:], `{"x":1,"y":1}`},
		{"recursion that doubles", `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}}}`, x100},
		{"recursion that applies tenfold", `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"x":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/n"},`, 10), ",") + `]}}}}}`, nested(12, `{"x":`, `{}`, `}`)},
		{"recursion over patterns", `{"$ref":"#/$defs/n","$defs":{"n":{"patternProperties":{"x":{"$ref":"#/$defs/n"},"^x":{"$ref":"#/$defs/n"},"x$":{"$ref":"#/$defs/n"}}}}}`, x100},
		{"mutual recursion that doubles", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/b"}}},"b":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/a"}}},{"properties":{"x":{"$ref":"#/$defs/a"}}},{"type":"string"}]}}}`, x100},
		{"parts that refer back a hundredfold", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#"},`, 100), ",") + `]}`, `{"x":"{}"}`},
		{"a type that refers back a hundredfold", `{"properties":{"x":{"$ref":"#/$defs/t"}},"$defs":{"t":{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/t"},`, 100), ",") + `]}}}`, `{"x":"{}"}`},
		{"alternatives that double, and nothing fits", `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"x":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}},"additionalProperties":false}}}`, nested(60, `{"x":`, `{"y":1}`, `}`)},
		{"a reference to itself", `{"$ref":"#"}`, `{}`},
		{"a circle of references", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{}`},
		{"identities inside", `{"$ref":"#/$defs/a","$defs":{"a":{"$id":"mem:///other",` + doubling(40, `{"allOf":[{"$ref":"#/$defs/NEXT"},{"$ref":"#/$defs/NEXT"}]}`)[1:] + `}}`, `{"x":1}`},
		{"a million values that fit none of twenty", `{"properties":{"l":{"items":{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"required":["x"]},`, 20), ",") + `]}}}}`, `{"l":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`},
		{"many values under a recursion that doubles", `{"properties":{"l":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"type":"string"},{"items":{"$ref":"#/$defs/n"},"contains":{"$ref":"#/$defs/n"},"type":"array"}]}}}`, `{"l":` + nested(14, `[`, strings.Repeat(`[1],`, 20_000)+`1`, `]`) + `}`},
		{"items that any value fits, thousandfold", `{"properties":{"l":{"allOf":[` + list(50_000, `{"items":true}`) + `]}}}`, `{"l":[` + list(200_000, `1`) + `]}`},
		{"items of which none is contained, thousandfold", `{"properties":{"l":{"allOf":[` + list(50_000, `{"contains":false,"minContains":0}`) + `]}}}`, `{"l":[` + list(200_000, `1`) + `]}`},
		{"a long way to evaluated items", `{"properties":{"l":{"$ref":"#/$defs/d0","unevaluatedItems":false}},` + strings.SplitN(doubling(1900, `{"$ref":"#/$defs/NEXT","items":true}`), ",", 2)[1], `{"l":[` + list(100_000, `1`) + `]}`},
		{"a long way to each item", `{"properties":{"l":{"items":{"$ref":"#/$defs/d0"}}},` + strings.SplitN(doubling(2000, `{"$ref":"#/$defs/NEXT"}`), ",", 2)[1], `{"l":[` + list(200_000, `1`) + `]}`},
		{"a pattern that backtracks below the limit", `{"properties":{"l":{"items":{"pattern":"^(?=a)(a+)+$"}}}}`, `{"l":[` + list(20_000, `"`+strings.Repeat("a", 16)+`!"`) + `]}`},
		{"a pattern with many instructions", `{"properties":{"l":{"items":{"pattern":"(a?){1000}(b?){1000}(a?){1000}!"}}}}`, `{"l":["` + strings.Repeat("a", 1<<22) + `"]}`},
		{"patterns that need memory", `{"properties":{"x":{"allOf":[` + list(60_000, `{"pattern":".{1000}"}`) + `]}}}`, `{"x":"y"}`},
		{"long pointers", nested(60, `{"properties":{"`+strings.Repeat("x", 20_000)+`":`, `{"allOf":[`+list(40_000, `{}`)+`]}`, `}}`), `{"x":1}`},
		{"names like each other", `{"properties":{` + names(40_000, "known") + `},"additionalProperties":false}`, `{` + names(50_000, "given") + `}`},
		{"many kinds of many objects", `{"properties":{"l":{"items":{"oneOf":[` + list(100, `{"properties":{`+strings.ReplaceAll(names(400, "p"), "{}", `{"const":1}`)+`},"required":["p_0"]}`) + `]}}}}`, `{"l":[` + list(2000, `{"p_0":2}`) + `]}`},
		{"a large object where kinds have a name", `{"properties":{"x":{"oneOf":[` + list(100, `{"properties":{"type":{"const":"k"}},"required":["type"]}`) + `]}}}`, `{"x":{"type":{` + strings.ReplaceAll(names(400_000, "k"), "{}", "1") + `}}}`},
		{"a long name that engines see differently", `{"patternProperties":{` + names(2000, `^\\s`) + `}}`, `{"` + strings.Repeat("☃", 1_000_000) + "\u00a0" + `":1}`},
		{"alternatives of which none fits, far inside", `{"properties":{"x":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"array","items":{"anyOf":[` + list(10, `{"$ref":"#/$defs/n"}`) + `]}}}}`, `{"a":"` + strings.Repeat("b", 1000) + `","x":` + nested(24, `[`, `1`, `]`) + `}`},
		{"a pattern that backtracks, on a long way", `{"properties":{"p":{"$ref":"#/$defs/d0"}},` + strings.SplitN(doubling(2000, `{"$ref":"#/$defs/NEXT","pattern":"^(?=a)(a+)+$"}`), ",", 2)[1], `{"p":"` + strings.Repeat("a", 40) + `!"}`},
		{"patterns of names that backtrack", `{"patternProperties":{` + names(2000, "(?=a)(a+)+$") + `}}`, `{"` + strings.Repeat("a", 40) + `!":1}`},
		{"a large object on a long way", doubling(2000, `{"$ref":"#/$defs/NEXT","propertyNames":true,"properties":{"x":true}}`), `{` + names(200_000, "k") + `}`},
		{"a large list on a long way", `{"properties":{"p":{"$ref":"#/$defs/d0"}},` + strings.SplitN(doubling(2000, `{"$ref":"#/$defs/NEXT","uniqueItems":true}`), ",", 2)[1], `{"p":[` + list(500_000, "1") + `]}`},
		{"numbers that would be long", `{"properties":{"p":{"enum":[1e-400]}}}`, `{"p":[` + list(2_000_000, "1e-400") + `]}`},
		{"properties merged ten thousandfold", `{"a":{"properties":{` + names(40_000, "k") + `}},"allOf":[` + list(9_000, `{"$ref":"#/a"}`) + `]}`, `{"p":"{}"}`},
		{"long names on the way", `{"$ref":"#/$defs/n","$defs":{"n":{"additionalProperties":{"$ref":"#/$defs/n"},"items":{"type":"integer"},"type":["object","array"]}}}`, nested(120, `{"`+strings.Repeat("k", 20_000)+`":`, `[`+list(2000, `"x"`)+`]`, `}`)},
		{"a long name that is missing, thousandfold", `{"a":{"required":["` + strings.Repeat("k", 1<<20) + `"]},"allOf":[` + list(20_000, `{"$ref":"#/a"}`) + `]}`, `{"k":1}`},
		{"a pattern that backtracks", `{"properties":{"p":{"pattern":"^(?=a)(a+)+$"}}}`, `{"p":"` + strings.Repeat("a", 40) + `!"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !json.Valid([]byte(tt.schema)) || !json.Valid([]byte(tt.arguments)) {
				t.Fatal("not JSON")
			}
			began := time.Now()
			compiledOf(json.RawMessage(tt.schema)).repair(json.RawMessage(tt.arguments))
			checked(tt.schema, tt.arguments)
			// Without bounds, these would take minutes or years, or crash the process.
			if took := time.Since(began); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

// list returns n items.
func list(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

// names returns the members of an object with n names.
func names(n int, prefix string) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"%s_%d":{}`, prefix, i))
	}
	return strings.Join(members, ",")
}

// TestManyFaults: however many faults there are, some are named, and the same ones each time.
func TestManyFaults(t *testing.T) {
	mcptest.OneGoroutine(t)
	var long []string
	for i := range 1500 {
		long = append(long, fmt.Sprintf(`"k%04d":"ab"`, i))
	}
	tests := []struct {
		name, schema, arguments string
		want                    string // the first violation
	}{
		{"items", `{"properties":{"l":{"items":{"type":"string"}}}}`, `{"l":[` + list(3*maxFaults, `1`) + `]}`, "/l/0: must be string, not number"},
		{"members", `{"additionalProperties":{"maxLength":1}}`, `{` + strings.Join(long, ",") + `}`, "/k0000: must have <=1 characters"},
		{"names", `{"propertyNames":{"maxLength":1}}`, `{` + strings.Join(long, ",") + `}`, "/k0000: the name must have <=1 characters"},
		{"alternatives", `{"properties":{"l":{"items":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}`, `{"l":[` + list(2*maxFaults, `1`) + `]}`, "/l/0: must be null or string, not number"},
	}
	for _, tt := range tests {
		first := checked(tt.schema, tt.arguments)
		if len(first) != maxViolations || first[0] != tt.want {
			t.Errorf("%s: %q", tt.name, first)
		}
		for range 5 {
			if again := checked(tt.schema, tt.arguments); !slices.Equal(again, first) {
				t.Fatalf("%s: %q, then %q", tt.name, first, again)
			}
		}
	}
}

// anchored returns a schema with a chain of n definitions, each of which refers to the next one twice, so that a validator without
// bounds does 2^n steps. Unlike those of doubling, the references name anchors ("#d1") and are not JSON pointers.
func anchored(n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"$anchor":"d%d","allOf":[{"$ref":"#d%d"},{"$ref":"#d%d"}]}`, i, i, i+1, i+1))
	}
	defs = append(defs, fmt.Sprintf(`"d%d":{"$anchor":"d%d"}`, n, n))
	return `{"$ref":"#d0","$defs":{` + strings.Join(defs, ",") + `}}`
}

// TestRecursionIsChecked: arguments for a recursive schema are checked if that is cheap enough.
func TestRecursionIsChecked(t *testing.T) {
	const filter = `{"$ref":"#/$defs/f","$defs":{"f":{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/f"}},"or":{"type":"array","items":{"$ref":"#/$defs/f"}},"not":{"$ref":"#/$defs/f"},"field":{"type":"string"}},"additionalProperties":false}}}`
	arguments := nested(20, `{"and":[{"not":`, `{"field":7}`, `}]}`)
	if got := checked(filter, arguments); len(got) != 1 || !strings.HasSuffix(got[0], "/field: must be string, not number") {
		t.Errorf("got %q", got)
	}
	const value = `{"$ref":"#/$defs/v","$defs":{"v":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/v"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/v"}}]}}}`
	if got := checked(value, `{"a":{"b":[["x",{"c":1}]]}}`); len(got) == 0 {
		t.Error("a number where there are none was not found")
	}
}

// TestLargeArgumentsAreChecked: large arguments of an ordinary tool are checked.
func TestLargeArgumentsAreChecked(t *testing.T) {
	const schema = `{"properties":{"rows":{"items":{"properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}}}}`
	arguments := `{"rows":[` + strings.Repeat(`{"a":"x","b":1,"c":null},`, 10_000) + `{"b":1}]}`
	if got := checked(schema, arguments); !slices.Equal(got, []string{"/rows/10000/a: is missing"}) {
		t.Errorf("got %q", got)
	}
}

// TestForgottenFaults: the faults of alternatives, where another one fits, leave room for those of the last item.
func TestForgottenFaults(t *testing.T) {
	const schema = `{"properties":{"l":{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}}`
	if got := checked(schema, `{"l":[`+list(2*maxFaults, "1")+`,null]}`); !slices.Equal(got, []string{"/l/40000: must be integer or string, not null"}) {
		t.Errorf("got %q", got)
	}
}

// TestSchemasAreKept: a schema is compiled once, and another schema has a compiled form of its own.
func TestSchemasAreKept(t *testing.T) {
	var s Schemas
	first := json.RawMessage(`{"required":["a"]}`)
	if one, two := s.compiled(first), s.compiled(first); one != two {
		t.Error("compiled twice")
	}
	second := json.RawMessage(`{"required":["b"]}`)
	for range 2 {
		if _, _, err := s.Read(json.RawMessage(`{"a":1}`), first, true); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Read(json.RawMessage(`{"a":1}`), second, true); err == nil {
			t.Error("no violation")
		}
	}
}

// TestCorpusSchemasAreChecked: of the schemas of real servers, at most 1 % cannot be compiled.
func TestCorpusSchemasAreChecked(t *testing.T) {
	total := 0
	var refused []string
	for name, input := range corpusSchemas(t) {
		total++
		if compiledOf(input) == nil {
			refused = append(refused, name)
		}
	}
	t.Logf("%d schemas, %d not checked: %.20v", total, len(refused), refused)
	if total == 0 || len(refused)*100 > total {
		t.Errorf("%d of %d schemas are not checked", len(refused), total)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":1}}`)
	f.Add(`{"$defs":{"x":{"pattern":"^(?=a)"}},"allOf":[{"$ref":"#/$defs/x"}]}`, `{"b":"[1]"}`)
	f.Add(gitLog, `{"repo_path":"/r","max_count":"5","start_timestamp":null,"x":[null]}`)
	f.Add(`{"anyOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"enum":["x",1]},"b":{"const":true}}}]}`, `{"a":"1","b":"true","c":null}`)
	f.Add(`{"properties":{"n":{"multipleOf":1e-300,"minimum":-0}}}`, `{"n":1e300}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		read, _, err := new(Schemas).Read(json.RawMessage(arguments), json.RawMessage(schema), true)
		if err == nil && !json.Valid(read) {
			t.Fatalf("read as %q", read)
		}
		// Mended arguments fit, and are not changed when they are mended again.
		if c := new(Schemas).compiled(json.RawMessage(schema)); err == nil && c.checks(measure(read)) {
			if _, failure := c.validate(read, new(int(maxSteps))); failure != nil {
				t.Fatalf("read as %q, which does not fit: %v", read, failure)
			}
		}
	})
}

// TestSchemas_AreBounded: the total size of the compiled schemas is bounded.
func TestSchemas_AreBounded(t *testing.T) {
	var s Schemas
	for range 3 * maxSchemasBytes / (textBytes << 20) {
		s.slot(make(json.RawMessage, 1<<20))
		if s.bytes > maxSchemasBytes+textBytes<<20 {
			t.Fatalf("%d schemas with %d bytes", len(s.kept), s.bytes)
		}
	}
	before := s.bytes
	s.compiled(json.RawMessage(`{"allOf":[` + list(10_000, `{}`) + `]}`))
	if grown := s.bytes - before; grown < 10_000*subschemaBytes {
		t.Errorf("10,000 subschemas count as %d bytes", grown)
	}
}

// TestPattern_Size: a pattern whose program would be large is not compiled, and usual ones are.
func TestPattern_Size(t *testing.T) {
	compiled := func(text string) bool { return new(compiler).pattern(text) != nil }
	for _, text := range []string{`(?:` + strings.Repeat("ab", 1500) + `){1000}`, strings.Repeat(`.{1000}`, 500)} {
		if compiled(text) {
			t.Errorf("%.20s... was compiled", text)
		}
	}
	for _, text := range []string{`^[\p{L}\p{N} _-]{1,1000}$`, `^([a-z0-9]{1,63}\.){1,8}[a-z]{2,63}$`, `^(?=.*[0-9]).{8,128}$`} {
		if !compiled(text) {
			t.Errorf("%s was not compiled", text)
		}
	}
}

func compiledOf(text json.RawMessage) *schema {
	s, _ := compile(text)
	return s
}
