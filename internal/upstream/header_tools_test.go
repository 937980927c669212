package upstream

import (
	"encoding/json"
	"testing"

	"mcpx/internal/base/catalog"
)

// TestHeaderTools: a tool whose x-mcp-header is in a place where SEP-2243 allows none is dropped. A property of that name, or a value,
// is no such annotation.
func TestHeaderTools(t *testing.T) {
	const note = `{"type":"string","x-mcp-header":"Region"}`
	for schema, kept := range map[string]bool{
		`{"type":"object","properties":{"a":` + note + `}}`:                                                   true,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"a":` + note + `}}}}`:              true,
		`{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}`:                                   true,
		`{"type":"object","properties":{"a":{"type":"object","default":{"x-mcp-header":1}}}}`:                 true,
		`{"type":"object","examples":[{"x-mcp-header":1}],"properties":{"a":` + note + `}}`:                   true,
		`{"type":"object","x-mcp-header":"Region"}`:                                                           false,
		`{"type":"object","properties":{"a":{"type":"array","items":` + note + `}}}`:                          false,
		`{"type":"object","oneOf":[{"properties":{"a":` + note + `}}]}`:                                       false,
		`{"type":"object","if":{"properties":{"a":` + note + `}}}`:                                            false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/z"}},"$defs":{"z":` + note + `}}`:                false,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":` + note + `}}}`:          false,
		`{"type":"object","properties":{"a":{"not":` + note + `}}}`:                                           false,
		`{"type":"object","patternProperties":{"^a":` + note + `}}`:                                           false,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"anyOf":[` + note + `]}}}}}`:  false,
		`{"type":"object","properties":{"a":` + note + `,"b":{"type":"array","prefixItems":[` + note + `]}}}`: false,
		`{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"Region"}}}`:                      false,
	} {
		raw := json.RawMessage(`{"name":"t","inputSchema":` + schema + `}`)
		tools, faults := catalog.DecodeTools([]json.RawMessage{raw})
		if len(tools) != 1 {
			t.Fatalf("%s: %v", schema, faults)
		}
		if got, _, faults := headerTools(tools); (len(got) == 1) != kept || (len(faults) == 0) != kept {
			t.Errorf("%s: kept %d, %v", schema, len(got), faults)
		}
	}
}
