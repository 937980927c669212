package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// FuzzParse: for any input, Parse does not panic, and parsing it again has the same result. Errors have one of the documented
// types, and faults are in the order of the file. No message has control characters, which could forge lines in logs or
// terminal sequences.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range archive.Files {
			if section.Name == "config.json" {
				f.Add(section.Data)
			}
		}
	}
	f.Add([]byte("{\"mcpServers\": {\"\\u0000\\n\": {\"\\u001b\": \"${\\n}\"}}}"))
	o := Options{
		Getenv:   envOf("A=alpha\nTOKEN=tok-12345"),
		ReadFile: func(string) ([]byte, error) { return []byte("K=V\nexport TOKEN='x"), nil },
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("config.json", data, o)
		again, errAgain := Parse("config.json", data, o)
		if err == nil != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("error %v, then %v", err, errAgain)
		}
		if err != nil {
			checkError(t, err)
			return
		}
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(Server{}, Fault{})); diff != "" {
			t.Fatalf("two outcomes:\n%s", diff)
		}
		checkConfig(t, c)
	})
}

func checkError(t *testing.T, err error) {
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		checkLine(t, err.Error())
		return
	}
	var faults *Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	inOrder := slices.IsSortedFunc(faults.List, func(a, b Fault) int { return a.offset - b.offset })
	if len(faults.List) == 0 || !inOrder {
		t.Fatalf("faults are not in order: %v", faults.List)
	}
	for _, fault := range faults.List {
		checkLine(t, fault.String())
	}
}

func checkConfig(t *testing.T, c *Config) {
	for i, s := range c.Servers {
		if i > 0 && c.Servers[i-1].Name >= s.Name {
			t.Fatalf("servers are not sorted: %v", c.Servers)
		}
		if s.Enabled && s.Fault == "" && s.Command == "" && s.URL == "" && s.Type != WebSocket {
			t.Fatalf("%s has no fault, and nothing to connect to", s.Name)
		}
		checkLine(t, s.Fault)
	}
	for _, warning := range c.Warnings {
		checkLine(t, warning)
	}
}

func checkLine(t *testing.T, text string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Fatalf("control characters in %q", text)
	}
}
