package compress

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// checkScript evaluates the JavaScript of a JSON text, if there is any.
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

func TestScript_Sessions(t *testing.T) {
	type sum struct{ n, received, sent, js int }
	sums := map[string]*sum{}
	order := []string{}
	sessions(t, func(server string, n int, text string) {
		if n%4 == 3 { // held back
			server = "held back " + server
		}
		received := tokens.Count(text)
		if received < 50 || received > 9000 {
			return
		}
		s := sums[server]
		if s == nil {
			s = &sum{}
			sums[server] = s
			order = append(order, server)
		}
		checkScript(t, server, text)
		out := Text(text, Options{TOON: true, JS: true})
		s.n++
		s.received += received
		s.sent += tokens.Count(out.Text)
		if out.Form == FormJS {
			s.js++
		}
		if d := os.Getenv("DUMP"); d != "" && s.n%20 == 0 && n%4 != 3 {
			f, _ := os.OpenFile(d, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			f.WriteString("\n##### " + server + " " + string(out.Form) + "\n" + out.Text + "\n")
			f.Close()
		}
	})
	for _, name := range order {
		s := sums[name]
		t.Logf("%-30s %5d %8d %8d %.3f js %d", name, s.n, s.received, s.sent, float64(s.sent)/float64(s.received), s.js)
	}
}
