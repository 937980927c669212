package executor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpx/internal/jq"
)

// A filter that fails keeps the result, once; one that does not keeps nothing.
func TestSelected_Keeps(t *testing.T) {
	filters := jq.New(jq.Limits{})
	t.Cleanup(filters.Close)
	for _, tt := range []struct {
		filter string
		kept   int
		want   string
	}{
		{".a", 0, "1"},
		{".a[", 1, "VALIDATION_ERROR: /select: "},
		{".a.b", 1, "VALIDATION_ERROR: /select: "},
	} {
		e := New(nil, Options{Filter: filters})
		got, err := e.begin().selected(t.Context(), received{structured: json.RawMessage(`{"a":1}`)}, nil, Request{Select: tt.filter})
		if err != nil {
			t.Fatal(err)
		}
		text := readBlock(got.Content[0]).text
		if len(e.store.byID) != tt.kept || !strings.HasPrefix(text, tt.want) || strings.Count(text, "/select: ") != tt.kept {
			t.Errorf("%s: %d are kept, want %d: %s", tt.filter, len(e.store.byID), tt.kept, text)
		}
		for handle := range e.store.byID {
			if !strings.Contains(text, handle) {
				t.Errorf("%s: the handle is not in %s", tt.filter, text)
			}
		}
		if e.store.timer != nil {
			e.store.timer.Stop()
		}
	}
}

// Where nobody waits any more there is no fault.
func TestSelected_Gone(t *testing.T) {
	filters := jq.New(jq.Limits{})
	t.Cleanup(filters.Close)
	e := New(nil, Options{Filter: filters})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := e.begin().selected(gone, received{structured: json.RawMessage(`{"a":1}`)}, nil, Request{Select: ".a["})
	if got != nil || !errors.Is(err, context.Canceled) || len(e.store.byID) != 0 {
		t.Errorf("got %v, %v; %d are kept", got, err, len(e.store.byID))
	}
}

// A result that is not kept has no handle in the fault.
func TestFilterFault_NotKept(t *testing.T) {
	got := filterFault(errors.New("bad"), json.RawMessage(`{"a":1}`), "").Result(true)
	text := readBlock(got.Content[0]).text
	if !strings.HasPrefix(text, "VALIDATION_ERROR: /select: bad\nThe call was made; its result is too long to be kept\nShape of the result: ") {
		t.Errorf("got %s", text)
	}
	if strings.Contains(string(got.Structured), `"handle"`) {
		t.Errorf("got %s", got.Structured)
	}
}
