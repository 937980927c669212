package schemats

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// nested returns a schema with n levels of properties.
func nested(n int) string {
	return strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{"type":"string"}` + strings.Repeat(`}}`, n)
}

// doubling returns a schema with n definitions, each of which refers to the next one twice.
func doubling(n int, form string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(form, "NEXT", next))
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

func repeat(n int, sep string, f func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, sep)
}

// hostileSchemas are schemas for which a naive converter would never end or would use up the memory.
func hostileSchemas() map[string]string {
	prop := func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string","description":"number %d"}`, i, i) }
	return map[string]string{
		"9000 levels":         nested(9000),
		"9000 arrays":         strings.Repeat(`{"type":"array","items":`, 9000) + `true` + strings.Repeat(`}`, 9000),
		"9000 anyOf":          strings.Repeat(`{"anyOf":[{"type":"string"},`, 9000) + `true` + strings.Repeat(`]}`, 9000),
		"60 deep":             nested(60),
		"allOf doubling":      doubling(3000, `{"allOf":[NEXT,NEXT]}`),
		"anyOf doubling":      doubling(3000, `{"anyOf":[NEXT,{"type":"array","items":NEXT}]}`),
		"properties doubling": doubling(3000, `{"type":"object","properties":{"a":NEXT,"b":NEXT}}`),
		"short doubling":      doubling(60, `{"type":"object","properties":{"a":NEXT,"b":NEXT}}`),
		"allOf unions":        doubling(60, `{"allOf":[{"anyOf":[NEXT,{"type":"object","properties":{"x":NEXT}}]},{"anyOf":[{"type":"object","properties":{"y":NEXT}},NEXT]}]}`),
		"tuple doubling":      doubling(60, `{"type":"array","prefixItems":[NEXT,NEXT],"minItems":2}`),
		"wide":                `{"type":"object","properties":{` + repeat(60_000, ",", prop) + `}}`,
		"wide allOf":          `{"allOf":[` + repeat(3000, ",", func(i int) string { return `{"type":"object","properties":{` + prop(i) + `}}` }) + `]}`,
		"wide anyOf":          `{"anyOf":[` + repeat(50_000, ",", func(i int) string { return `{"type":"object","properties":{` + prop(i) + `}}` }) + `]}`,
		"big enum":            `{"enum":[` + repeat(200_000, ",", func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `]}`,
		"big required":        `{"type":"object","required":[` + repeat(100_000, ",", func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `]}`,
		"10 MB description":   `{"type":"object","description":"` + strings.Repeat("long ", 2<<20) + `"}`,
		"long not":            `{"type":"object","not":{"enum":[` + repeat(100_000, ",", func(i int) string { return fmt.Sprint(i) }) + `]}}`,
		"20 MB":               `{"enum":["` + strings.Repeat("x", 20<<20) + `"]}`,
		"many patterns":       `{"type":"object","patternProperties":{` + repeat(20_000, ",", func(i int) string { return fmt.Sprintf(`"^p%d":{"type":"string"}`, i) }) + `},"properties":{` + repeat(20_000, ",", prop) + `}}`,
		"long chain":          doubling(20_000, `NEXT`),
		"many refs":           `{"properties":{` + repeat(20_000, ",", func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"}`, i, i) }) + `},"$defs":{` + repeat(50_000, ",", func(i int) string { return fmt.Sprintf(`"d%d":{"type":"string"}`, i) }) + `}}`,
		"self in every way":   `{"$defs":{"A":{"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]},"B":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"},{"$ref":"#"}]}},"$ref":"#/$defs/A","properties":{"x":{"$ref":"#/properties/x"}}}`,
		"deep pointers":       `{"properties":{"a":{"$ref":"#/properties/a/properties/a/properties/a"}}}`,
	}
}

func TestHostileSchemas(t *testing.T) {
	mcptest.OneGoroutine(t)
	for name, s := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			raw := json.RawMessage(s)
			start := time.Now()
			x := Tool{Name: "t", Input: raw, Output: raw}
			texts := map[string]string{
				"declaration": Declaration(raw, raw, full),
				"complete":    complete(x, full, length),
				"shortened":   complete(x, Options{MaxResult: 300}, length),
				"listing":     Listing(x),
				"along":       Along(raw, [][]string{{"p0"}, {"x", "a", "0"}, {"zzz"}}, full, 400, func(s string) int { return len(s) / 3 }),
				"along all":   Along(raw, [][]string{{}}, full, 400, func(s string) int { return len(s) / 3 }),
			}
			Params(raw)
			for kind, text := range texts {
				if len(text) > 4*maxOutput {
					t.Errorf("%s: %d bytes", kind, len(text))
				}
				if err := wellFormed(text); err != nil {
					t.Errorf("%s: %v in %.300s", kind, err, text)
				}
			}
			if len(texts["along"]) > 1200 || len(texts["along all"]) > 1200 {
				t.Errorf("along: %d and %d bytes", len(texts["along"]), len(texts["along all"]))
			}
			if len(texts["listing"]) > 8*maxListing {
				t.Errorf("listing: %d bytes", len(texts["listing"]))
			}
			// Each schema takes about a second; a naive converter would never end.
			t.Logf("%d bytes in, %d out, %v", len(s), len(texts["declaration"]), time.Since(start))
		})
	}
}

// TestMalformedSchemas: if a part of the input is not a valid schema, every text still has the other parameters with their
// types.
func TestMalformedSchemas(t *testing.T) {
	for _, bad := range []string{
		`"required":["coin"]`, `"p":null`, `"p":7`, `"p":"string"`, `"p":{"type":{"kind":"string"}}`, `"p":{"type":[]}`, `"p":{"type":7}`,
		`"p":{"type":"null","enum":["A"]}`, `"p":{"type":"array","items":"string"}`, `"p":{"type":"array","enum":[0,1]}`, `"p":{"type":"array"}`,
		`"p":{"enum":{}}`, `"p":{"$ref":7}`, `"p":{"$ref":"#/$defs/none"}`, `"p":{"anyOf":{}}`, `"p":{"allOf":[1,"x",null]}`, `"p":{"oneOf":[]}`,
		`"p":{"properties":[]}`, `"p":{"properties":{"x":[]},"required":"x"}`, `"p":{"additionalProperties":[]}`, `"p":{"patternProperties":1}`,
		`"p":{"pattern":"(["}`, `"p":{"pattern":7,"minLength":"x","minimum":"y","default":{}}`, `"p":{"description":7,"title":[]}`, `"p":{"not":[]}`,
	} {
		raw := json.RawMessage(`{"type":"object","properties":{` + bad + `,"coin":{"type":"string"}},"required":["coin"]}`)
		x := Tool{Name: "t", Input: raw, Output: raw}
		for kind, text := range map[string]string{
			"declaration": Declaration(raw, raw, full), "complete": complete(x, full, func(string) int { return 0 }), "listing": Listing(x),
		} {
			if err := wellFormed(text); err != nil {
				t.Errorf("%s: %s: %v in %s", bad, kind, err, text)
			}
			if !strings.Contains(text, "coin: string") {
				t.Errorf("%s: %s: no coin: string in %s", bad, kind, text)
			}
		}
		if list := Params(raw); len(list) != 2 || list[1].Name != "coin" || list[1].Optional {
			t.Errorf("%s: parameters %v", bad, list)
		}
	}
}

// wellFormed checks TypeScript text: strings, templates and comments must end, and brackets must match. Angle brackets are not
// checked.
func wellFormed(s string) error {
	var stack []byte
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case strings.HasPrefix(s[i:], "//"):
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				n = len(s) - i
			}
			if line := s[i : i+n]; strings.ContainsAny(line, "\r\u2028\u2029") {
				return fmt.Errorf("line comment with a line end at %d", i)
			}
			i += n
			continue
		case strings.HasPrefix(s[i:], "/*"):
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				return fmt.Errorf("open comment at %d", i)
			}
			i += n + 4
			continue
		case strings.HasPrefix(s[i:], "*/"):
			return fmt.Errorf("stray end of comment at %d", i)
		case c == '"' || c == '`':
			j := i + 1
			for ; j < len(s) && s[j] != c; j++ {
				if s[j] == '\\' {
					j++
				}
				if j < len(s) && s[j] == '\n' {
					return fmt.Errorf("line end in a string at %d", i)
				}
			}
			if j >= len(s) {
				return fmt.Errorf("open string at %d", i)
			}
			i = j
		case c == '(' || c == '[' || c == '{':
			stack = append(stack, c)
		case c == ')' || c == ']' || c == '}':
			open := map[byte]byte{')': '(', ']': '[', '}': '{'}[c]
			if len(stack) == 0 || stack[len(stack)-1] != open {
				return fmt.Errorf("unmatched %q at %d", c, i)
			}
			stack = stack[:len(stack)-1]
		}
		i++
	}
	if len(stack) > 0 {
		return fmt.Errorf("%d open brackets", len(stack))
	}
	return nil
}

func FuzzTexts(f *testing.F) {
	for _, s := range edgeSchemas {
		f.Add([]byte(s), "read")
	}
	for _, s := range fuzzSchemas(60) {
		f.Add([]byte(s), `a-b"`)
	}
	f.Add([]byte(`{"type":"object","properties":{"a*/":{"description":"\u2028*/","pattern":"*/","default":"*/\u2029","enum":["*/","\u202e"]}}}`), "x")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		x := Tool{Name: name, Description: name + " */\n// " + name, Input: raw, Output: raw, Notes: []string{name}}
		for kind, text := range map[string]string{
			"declaration": Declaration(raw, raw, full),
			"bare":        Declaration(raw, nil, Options{MaxDescription: 10}),
			"complete":    complete(x, full, length),
			"shortened":   complete(x, Options{MaxResult: 300}, length),
			"listing":     Listing(x),
		} {
			if err := wellFormed(text); err != nil {
				t.Fatalf("%s: %v in %q", kind, err, text)
			}
			if len(text) > 4*maxOutput {
				t.Fatalf("%s: %d bytes", kind, len(text))
			}
		}
		if json.Valid(raw) {
			if n, m := len(complete(Tool{Name: "t", Input: raw}, full, length)), len(rawTool(Tool{Name: "t", Input: raw})); n > m {
				t.Fatalf("complete has %d bytes, the minified tool %d", n, m)
			}
		}
		Params(raw)
	})
}
