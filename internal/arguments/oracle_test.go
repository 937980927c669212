package arguments

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpx/internal/mcptest"
)

// oracle compiles a schema with a library that passes the official test suite. It returns nil if the library refuses the schema.
func oracle(raw string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return nil
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noDocuments{})
	if compiler.AddResource("mem:///schema.json", doc) != nil {
		return nil
	}
	s, err := compiler.Compile("mem:///schema.json")
	if err != nil {
		return nil
	}
	return s
}

type noDocuments struct{}

func (noDocuments) Load(string) (any, error) { return nil, errors.New("no other documents") }

// judge compares the verdict on a value with that of the library, if it is sure.
func judge(t *testing.T, s *schema, library *jsonschema.Schema, text, value string) (fits, sure bool) {
	t.Helper()
	decoded, err := decode(json.RawMessage(value))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	failure, sure := (&evaluation{left: maxSteps}).value(s, decoded, nil, nil)
	if wrong := library.Validate(theirs); sure && (failure == nil) != (wrong == nil) {
		t.Fatalf("%s for %s: %+v, and the library says %v", value, text, failure, wrong)
	}
	return failure == nil, sure
}

// TestSchema_Library: for random schemas of all drafts, the verdict is that of the library.
func TestSchema_Library(t *testing.T) {
	mcptest.OneGoroutine(t)
	schemas, fit, sure, values := 0, 0, 0, 0
	for seed := range uint64(1500) {
		m := newMaker(seed, 1)
		text := m.document()
		s, library := compiledOf(json.RawMessage(text)), oracle(text)
		if s == nil || library == nil {
			if s == nil && library != nil {
				t.Fatalf("%s is not compiled", text)
			}
			continue
		}
		schemas++
		for range 30 {
			values++
			fits, known := judge(t, s, library, text, m.value(3))
			if fits {
				fit++
			}
			if known {
				sure++
			}
		}
	}
	t.Logf("%d schemas; %d of %d values fit, and the verdict on %d is sure", schemas, fit, values, sure)
	if schemas < 800 || fit < values/20 || fit > values*19/20 || sure < values*9/10 {
		t.Error("too few to tell anything")
	}
}
