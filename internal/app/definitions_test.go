package app

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
)

// TestDefinitionText: the text for a person has the characters that a model reads, not the escapes of JSON. Only invisible
// characters are escaped.
func TestDefinitionText(t *testing.T) {
	schema := json.RawMessage(`{"description":"\u003cb\u003e \u0026 \\u003c ` + "\u202e\u2028\u2029" + `"}`)
	got := definitionOf(&catalog.Tool{Name: "a", InputSchema: schema}).text()
	if want := `"description": "<b> & \\u003c \u202e\u2028\u2029"`; !strings.Contains(got, want) {
		t.Errorf("got %s, without %s", got, want)
	}
}
