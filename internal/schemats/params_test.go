package schemats

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestPlainParams_AsConverted: for every tool in testdata/tools, plainParams returns the same parameters as the conversion of
// the schema, or none.
func TestPlainParams_AsConverted(t *testing.T) {
	files, err := filepath.Glob("testdata/tools/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists: %v", err)
	}
	plain := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name        string          `json:"name"`
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			root, err := readJSON(tool.InputSchema)
			if err != nil {
				t.Fatalf("%s: %v", tool.Name, err)
			}
			got, ok := plainParams(root)
			if !ok {
				continue
			}
			plain++
			converted := load(tool.InputSchema, "Args").root
			want := params(converted.body, 0)
			if len(got) != len(want) || (len(want) > 0 && !reflect.DeepEqual(got, want)) {
				t.Errorf("%s %s: got %v, want %v", filepath.Base(file), tool.Name, got, want)
			}
		}
	}
	if plain < 100 {
		t.Errorf("only %d tools went the short way", plain)
	}
}
