package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/tools/txtar"

	"mcpx/internal/mcptest"
)

// compiled returns the compiled schema.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// accepts returns nil if the schema accepts a config, which may have comments, and otherwise the error.
func accepts(t *testing.T, schema *jsonschema.Schema, config []byte) error {
	t.Helper()
	plain, err := StandardJSON("config.json", config)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// TestSchema_Samples: the schema accepts the example, and every sample that Parse accepts.
func TestSchema_Samples(t *testing.T) {
	schema := compiled(t)
	example, err := os.ReadFile("../../../config.example.json")
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string][]byte{"config.example.json": example, "what the example shows in comments": uncommented(example)}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name == "config.json" {
				samples[file] = f.Data
			}
		}
	}
	refused := 0
	for name, sample := range samples {
		_, err := Parse("config.json", sample, Options{Getenv: func(string) (string, bool) { return "a-value-of-a-variable-which-is-long-enough", true }})
		if _, none := errors.AsType[*SyntaxError](err); none {
			continue
		}
		if invalid := accepts(t, schema, sample); err == nil && invalid != nil {
			t.Errorf("%s: %v", name, invalid)
		} else if invalid != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("the schema accepts also what the reader refuses")
	}
}

// uncommented returns a config with the keys that the example has in comments, if the value is an object in one line without
// "…". If a key is there several times, the first is used.
func uncommented(example []byte) []byte {
	members := []string{`"mcpServers": {}`}
	for line := range strings.Lines(string(example)) {
		text, is := strings.CutPrefix(strings.TrimSpace(line), `// "`)
		key, _, _ := strings.Cut(text, `"`)
		if is && strings.HasSuffix(text, "},") && strings.Count(text, "{") == strings.Count(text, "}") &&
			!slices.ContainsFunc(members, func(m string) bool { return strings.HasPrefix(m, `"`+key+`"`) }) && !strings.Contains(text, "…") {
			members = append(members, strings.TrimSuffix(`"`+text, ","))
		}
	}
	return []byte("{" + strings.Join(members, ",\n") + "}")
}

// spot is an object with a place in the file where it may be.
type spot struct {
	object
	path   string // the path of the object
	before string // what the file has before the members of the object
	after  string // what the file has after the members of the object
}

// spots returns one place for each object that a config may have, the root of the file first.
func spots() []spot {
	all := []spot{{newLoader("", Options{}).root(), "", `{`, `, "mcp_servers": {}}`}}
	seen := map[string]bool{"": true}
	for i := 0; i < len(all); i++ {
		for _, k := range all[i].keys {
			if k.describe == nil || seen[k.describe().name] {
				continue
			}
			s := spot{object: k.describe(), path: join(all[i].path, k.name)}
			seen[s.name] = true
			switch open, closing := all[i].before+quote(k.name)+": ", all[i].after; {
			case k.named || strings.Contains(k.schema, "additionalProperties"):
				s.path, s.before, s.after = join(s.path, "x"), open+`{"x": {`, "}}"+closing
			case strings.HasPrefix(k.schema, `{"type": "array"`):
				s.path, s.before, s.after = index(s.path, 0), open+`[{`, "}]"+closing
			default:
				s.before, s.after = open+`{`, "}"+closing
			}
			all = append(all, s)
		}
	}
	return all
}

// probes are values of every JSON type, and numbers and durations near common limits.
var probes = []string{
	`null`, `true`, `false`, `0`, `1`, `-1`, `1.5`, `1000`, `2147483648`, `1e300`, `""`, `"x"`, `"off"`, `"30s"`, `"0s"`, `"-1s"`, `"1m30"`, `"${VAR}"`,
	`[]`, `["x"]`, `["x.y", 5]`, `[{}]`, `{}`, `{"x": "y"}`, `{"x": 5}`, `{"x": {}}`, `{"x": ["y"]}`, `{"//": 1}`, `{"enabled": false}`,
}

// byType matches faults that the schema must find too: a wrong type, an unknown word or key, or a number out of range.
var byType = regexp.MustCompile(`^(must be (an? (array|boolean|number|object|string|whole number)\b|true or false|at least [0-9]+(, or 0.*)?$|more than 0$|[a-z_-]+(, [a-z_-]+)* or [a-z_-]+$)` +
	`|must not be (negative|more than a year)|is too large|unknown key)`)

// TestSchema_Keys: for each key, the schema refuses every value of probes that Parse refuses with a fault that matches
// byType. It accepts every value that Parse accepts.
func TestSchema_Keys(t *testing.T) {
	mcptest.OneGoroutine(t)
	schema, refused := compiled(t), 0
	for _, at := range spots() {
		for _, k := range at.keys {
			path := join(at.path, k.name)
			for _, probe := range probes {
				file := []byte(at.before + quote(k.name) + ": " + probe + at.after)
				if k.name == oldServers { // the rest of the file must not have the same key again
					file = bytes.Replace(file, []byte(`, "mcp_servers"`), []byte(`, "servers"`), 1)
				}
				faults, invalid := faultsAt(t, path, file), accepts(t, schema, file)
				switch {
				case len(faults) == 0 && invalid != nil:
					t.Errorf("%s: %s is accepted by the reader, and not by the schema: %v", path, probe, invalid)
				case invalid == nil && slices.ContainsFunc(faults, func(f Fault) bool { return byType.MatchString(f.Text) }):
					t.Errorf("%s: %s is accepted by the schema, and not by the reader: %v", path, probe, faults)
				case invalid != nil:
					refused++
				}
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d values are refused by both", refused)
	}
}

// faultsAt parses file, a config, and returns those of its faults whose Path begins with path.
func faultsAt(t *testing.T, path string, file []byte) (faults []Fault) {
	t.Helper()
	c, err := Parse("config.json", file, Options{Getenv: func(string) (string, bool) { return "a value", true }})
	var structure *Faults
	switch {
	case errors.As(err, &structure):
		faults = structure.List
	case err != nil:
		t.Fatalf("%s: %v", file, err)
	default:
		faults = c.ServerFaults()
	}
	return slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return !strings.HasPrefix(f.Path, path) })
}

// TestSchema_SameKeys: the schema has the same keys as the package, and a description for every key that has a help.
func TestSchema_SameKeys(t *testing.T) {
	var schema struct {
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
		Properties map[string]any
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	objects := map[string]bool{"duration": true, "timeout": true, "off": true, "plainOff": true, "disabled": true}
	for _, at := range spots() {
		properties := schema.Defs[at.name].Properties
		if objects[at.name] = true; at.path == "" {
			properties = schema.Properties
		}
		if got, want := slices.Sorted(maps.Keys(properties)), at.names(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", at.name, got, want)
		}
		for _, k := range at.keys {
			if is, _ := properties[k.name].(map[string]any); k.help != "" && is["description"] == nil {
				t.Errorf("%s: nothing says what it means", join(at.path, k.name))
			}
			file := []byte(at.before + quote(k.name) + ": 1" + at.after)
			if c, err := Parse("config.json", file, Options{}); strings.Contains(fmt.Sprint(err), "unknown key") ||
				err == nil && strings.Contains(strings.Join(c.Warnings, ""), "unknown keys") {
				t.Errorf("%s: the reader does not know it", join(at.path, k.name))
			}
		}
	}
	for name := range schema.Defs {
		if !objects[name] {
			t.Errorf("%s is at no place of the file", name)
		}
	}
}
