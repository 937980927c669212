package results

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpx/internal/arguments"
	"mcpx/internal/base/wire"
)

// TestFilterFault_NotKept: if the result is not kept, the failure names no handle.
func TestFilterFault_NotKept(t *testing.T) {
	got := FilterFailure(&FilterError{Err: errors.New("bad"), Value: json.RawMessage(`{"a":1}`)}, Pages{}).Result(true)
	text := wire.ReadBlock(got.Content[0]).Text
	if !strings.HasPrefix(text, "SELECT_ERROR: /select: bad\nThe call was made; its result is too long to be kept\nShape of the result: ") {
		t.Errorf("got %s", text)
	}
	if strings.Contains(string(got.Structured), `"handle"`) {
		t.Errorf("got %s", got.Structured)
	}
}

// TestAnnotate_Meta: the members that the server sent in _meta are still there after mcpx has added what it did with the
// arguments.
func TestAnnotate_Meta(t *testing.T) {
	kept := &Result{Meta: json.RawMessage(`{"a":1 }`)}
	kept.Annotate("log", arguments.Notes{LeftOut: []string{"/x"}})
	if want := `{"a":1,"mcpx/arguments":{"left_out":["/x"]}}`; string(kept.Meta) != want {
		t.Errorf("_meta of the upstream: got %s, want %s", kept.Meta, want)
	}
}
