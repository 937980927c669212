package mcptest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RecordedEvent is a call in a recorded session, or the result of a call. In a call, Call is its id, and Result is empty. In a
// result, Result is the id of its call, and Call is empty.
type RecordedEvent struct{ Call, Tool, Arguments, Result, Text string }

// RecordedSessions yields the sessions in the folder MCPX_SESSIONS, each with the name of its server and its number among the
// sessions of this server. Without that variable it skips the test.
func RecordedSessions(t testing.TB, yield func(server string, n int, events []RecordedEvent)) {
	t.Helper()
	dir := os.Getenv("MCPX_SESSIONS")
	if dir == "" {
		t.Skip("MCPX_SESSIONS names no folder of recorded sessions")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions in %s: %v", dir, err)
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		lines := bufio.NewScanner(unpacked)
		lines.Buffer(nil, 256<<20)
		for n := 0; lines.Scan(); n++ {
			var session struct{ Events []RecordedEvent }
			if err := json.Unmarshal(lines.Bytes(), &session); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			yield(strings.TrimSuffix(filepath.Base(path), ".jsonl.gz"), n, session.Events)
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		file.Close()
	}
}

// TableIn returns the table of a document between the lines <!-- NAME --> and <!-- /NAME -->. If write is true, it replaces this
// table by the parameter table.
func TableIn(t testing.TB, document, name, table string, write bool) (old string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, begins := strings.Cut(string(text), begin)
	old, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no lines %s and %s around a table", document, begin, end)
	}
	if write {
		if err := os.WriteFile(document, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return old
}
