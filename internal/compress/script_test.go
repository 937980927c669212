package compress

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// checkScript converts a JSON text to JavaScript, and if there is any, checks that it evaluates to the same value.
func checkScript(t testing.TB, name, text string) (script string) {
	t.Helper()
	compact, ok := wire.Compact(text)
	if !ok || !wire.Valid([]byte(compact)) || compact[0] != '{' && compact[0] != '[' {
		return ""
	}
	compact = unescapeJSON(compact)
	script, ok = asScript(compact)
	if !ok {
		return ""
	}
	got, err := readScript(script)
	if err != nil {
		t.Fatalf("%s: %v\n%.2000s", name, err, script)
	}
	if got != compact {
		t.Fatalf("%s: another value\n%.1000s\ngot  %.2000s\nwant %.2000s", name, script, got, compact)
	}
	return script
}

func TestScript_Documents(t *testing.T) {
	scripts := 0
	for _, d := range documents(t) {
		if checkScript(t, d.name, d.text) != "" {
			scripts++
		}
	}
	t.Log(scripts, "scripts")
}

// sessions yields the results of the sessions in MCPX_SESSIONS.
func sessions(t testing.TB, yield func(server string, n int, text string)) {
	t.Helper()
	dir := os.Getenv("MCPX_SESSIONS")
	if dir == "" {
		t.Skip("MCPX_SESSIONS names no folder of sessions")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sessions", err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(z)
		lines.Buffer(nil, 256<<20)
		for n := 0; lines.Scan(); n++ {
			var s struct {
				Events []struct {
					Result any
					Text   string
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			for _, e := range s.Events {
				if e.Result != nil {
					yield(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), n, e.Text)
				}
			}
		}
		f.Close()
	}
}

// sum adds up the results of a part of the sessions, if they have 50 to 9,000 tokens: the tokens as the server sent them and as
// the model gets them.
type sum struct {
	received, sent, json int
	forms                map[Form]int
}

// TestScript_Sessions writes the table of docs/benchmark.md if -update is given. Every fourth session of a server is listed
// separately: these sessions were not used when the form was designed.
func TestScript_Sessions(t *testing.T) {
	sums := map[string]*sum{}
	sessions(t, func(server string, n int, text string) {
		received := tokens.Count(text)
		if received < 50 || received > 9000 {
			return
		}
		checkScript(t, server, text)
		out := Text(text, Options{TOON: true, JS: true})
		sent := tokens.Count(out.Text)
		if sent > received+received/50 { // 2 % more are allowed, since forms are chosen by estimates
			t.Errorf("%s: %d tokens became %d: %.200s", server, received, sent, out.Text)
		}
		names := []string{server, "all"}
		if n%4 == 3 {
			names = []string{server, "all", "held back"}
		}
		for _, name := range names {
			s := sums[name]
			if s == nil {
				s = &sum{forms: map[Form]int{}}
				sums[name] = s
			}
			s.received += received
			s.sent += sent
			s.json += tokens.Count(Text(text, Options{TOON: true}).Text)
			s.forms[out.Form]++
		}
	})
	var table strings.Builder
	table.WriteString("| server | results | received | without JavaScript | sent | ratio | text | JSON | TOON | JavaScript |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s, n := sums[name], 0
		for _, of := range s.forms {
			n += of
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %.3f | %d | %d | %d | %d |\n", name, n, s.received, s.json, s.sent, float64(s.sent)/float64(s.received),
			s.forms[FormText], s.forms[FormJSON], s.forms[FormTOON], s.forms[FormJS])
	}
	for _, name := range []string{"all", "held back"} {
		if s := sums[name]; 4*s.sent > 3*s.received {
			t.Errorf("%s: %d of %d tokens are sent", name, s.sent, s.received)
		}
	}
	t.Log("\n" + table.String())
	if !*update {
		return
	}
	file := filepath.Join("..", "..", "docs", "benchmark.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- forms -->\n", "<!-- /forms -->"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/benchmark.md has no place for the table")
	}
	if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
