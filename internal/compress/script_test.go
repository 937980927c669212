package compress

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// checkScript converts a JSON text to JavaScript and checks that the script evaluates to the same value. The script is empty if
// the text stays JSON.
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

// TestPromising: promising refuses a text in which little repeats, whatever its length. Quotes within strings do not make it take
// such a text for one that repeats.
func TestPromising(t *testing.T) {
	for _, size := range []int{2 << 10, 20 << 10, 200 << 10} {
		for name, in := range map[string]string{"nested": benchNested(size), "table": benchTable(size)} {
			compact, _ := wire.Compact(in)
			if !promising(compact) {
				t.Errorf("%s of %d bytes is not tried", name, size)
			}
		}
		if promising(benchUnlike(size)) || promising(benchUneven(size)) {
			t.Errorf("unlike objects of %d bytes are tried", size)
		}
		quotes := `{"a":"` + strings.Repeat(`\":\"`, size/6) + `","b":1}`
		promising(quotes) // must not fail
		if promising(`{"a":"` + strings.Repeat(`x\":1,\"`, 100) + `","b":1}`) {
			t.Error("quotes in a string are read as strings")
		}
	}
}

// checkShared writes JSON texts together, and checks that the head and each body evaluate to the value of the text at its
// index. It returns nil if Shared cannot write them.
func checkShared(t testing.TB, name string, texts []string) (scripts []string) {
	t.Helper()
	var values []string
	for _, text := range texts {
		compact, ok := wire.Compact(text)
		if !ok || !wire.Valid([]byte(compact)) || compact[0] != '{' && compact[0] != '[' {
			return nil
		}
		values = append(values, unescapeJSON(compact))
	}
	head, bodies, ok := shared(values)
	if !ok {
		return nil
	}
	for i, body := range bodies {
		script := head + "\n" + body
		if got, err := readScript(script); err != nil || got != values[i] {
			t.Fatalf("%s: value %d: %v\n%.2000s\ngot  %.2000s\nwant %.2000s", name, i, err, script, got, values[i])
		}
		if strings.ContainsAny(body, "\r\n") {
			t.Fatalf("%s: a body of several lines: %.300q", name, body)
		}
		scripts = append(scripts, script)
	}
	return scripts
}

// TestShared: values that have much in common are written as one head, the lines of JavaScript that all of them need, and a body
// for each; others are not. A value that repeats is a const in the head, and its bodies are the name of that const.
func TestShared(t *testing.T) {
	user := func(id int, more string) string {
		return fmt.Sprintf(`{"id":%d,"login":"octo%d","type":"User","url":"https://api.example.com/users/octo%d","avatar":{"size":64,"kind":"png"}%s}`, id, id, id, more)
	}
	var values []string
	for i := range 5 {
		values = append(values, user(i+10, ""))
	}
	values = append(values, `["the same long text, several times","the same long text, several times"]`, user(77, `,"more":[]`), values[0])
	checkShared(t, "users", values)
	head, bodies, ok := Shared(values, values)
	if !ok || len(bodies) != len(values) || !strings.HasPrefix(head, "const User=(id,login)=>({") || !strings.HasSuffix(head, ";") {
		t.Fatalf("%t %q %q", ok, head, bodies)
	}
	if bodies[1] != `User(11,"octo11")` || bodies[0] != bodies[7] || !strings.HasPrefix(bodies[6], "({id:77,") {
		t.Errorf("bodies %q", bodies)
	}
	for name, different := range map[string][]string{
		"nothing":   {`{"a":1,"b":[2,3]}`, `{"c":"x"}`, `[true,false,{"d":null}]`},
		"one value": values[:1],
		"__proto__": append([]string{`{"__proto__":1}`}, values...),
		"no values": nil,
	} {
		if head, bodies, ok := Shared(different, different); ok {
			t.Errorf("%s: %q %q", name, head, bodies)
		}
	}
	short := make([]string, len(values)) // as if each were already shown with fewer tokens
	if _, _, ok := Shared(values, short); ok {
		t.Error("the texts were shorter")
	}
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

// sessions yields the results of the recorded sessions, each with the number of its session.
func sessions(t testing.TB, yield func(server string, n int, text string)) {
	t.Helper()
	mcptest.RecordedSessions(t, func(server string, n int, events []mcptest.RecordedEvent) {
		for _, e := range events {
			if e.Result != "" {
				yield(server, n, e.Text)
			}
		}
	})
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
		checkScript(t, server, text)
		out := Text(text, Options{TOON: true, JS: true})
		sent := tokens.Count(out.Text)
		if sent > received {
			t.Errorf("%s: %d tokens became %d: %.200s", server, received, sent, out.Text)
		}
		if received < 50 || received > 9000 {
			return
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
	mcptest.TableIn(t, "../../docs/benchmark.md", "forms", table.String(), *update)
}
