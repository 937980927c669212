package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/mcptest"
)

// hostile has terminal sequences that write to the clipboard, set the title and move the cursor, with 7-bit
// and 8-bit introducers. It also has a character that reverses the direction of the text after it.
const hostile = "a\x1b]52;c;cm0gLXJmIH4K\x07b\x1b[2Jc\u009b1;31md\u009d0;title\u009ce\u202ef\x7f\x08g"

// TestTerminal_ForeignText: mcpx writes no terminal sequence from a server to a terminal. To a pipe it writes
// the server's bytes unchanged. JSON output has the same meaning in both cases.
func TestTerminal_ForeignText(t *testing.T) {
	h := newHome(t)
	for _, pair := range h.env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	with := func(text string) json.RawMessage { // in JSON, only control characters below 0x20 must be escaped
		return json.RawMessage(strings.ReplaceAll(text, "RAW", string(quoted)))
	}
	spec := mcptest.Spec{
		Instructions: hostile,
		Tools: with(`[{"name":"show","description":RAW,"inputSchema":{"type":"object","properties":{"a":{"description":RAW}}}},
			{"name":"fail","inputSchema":{"type":"object"}},{"name":"data","inputSchema":{"type":"object"}}]`),
		Results: map[string]json.RawMessage{
			"show": with(`{"content":[{"type":"text","text":RAW},{"type":"resource_link","name":RAW,"uri":"x:y"}]}`),
			"data": with(`{"content":[],"structuredContent":{"it":RAW}}`),
			"fail": with(`{"isError":true,"content":[{"type":"text","text":RAW}]}`),
		},
	}
	dead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, hostile, http.StatusTeapot) }))
	t.Cleanup(dead.Close)
	config := h.config(t, map[string]server{"one": {"url": spec.HTTP(t).URL}, "dead": {"url": dead.URL}}, nil)
	on := func(screen terminal.Screen, args ...string) string {
		var out bytes.Buffer
		run(context.Background(), append([]string{"--config", config}, args...), streams{
			in: strings.NewReader(""), out: &out, err: &out, screen: screen, errScreen: screen, getenv: os.LookupEnv,
		})
		return out.String()
	}
	window := terminal.New(func() (int, int) { return 100, 40 }, false, false)
	for _, args := range [][]string{
		{"inspect"}, {"inspect", "one"}, {"inspect", "one", "show"}, {"inspect", "--query", "show"}, {"inspect", "one", "show", "--json"},
		{"inspect", "dead"}, {"check"}, {"check", "one.show"}, {"check", "--json"}, {"lock"}, {"budget"}, {"budget", "--all"},
		{"exec", "one", "show"}, {"exec", "one", "show", "--json"}, {"exec", "one", "data"}, {"exec", "one", "data", "--json"},
		{"exec", "one", "data", "--select", ".it"}, {"exec", "one", "data", "--select", ".it", "--json"}, {"exec", "one", "fail"},
		{"exec", "one", "show", hostile}, {"exec", "one", hostile}, {"exec", "dead", "x"},
		{"__complete", ":", "inspect"}, {"__complete", ":", "exec", "one"},
	} {
		text := on(window, args...)
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && sanitize.Invisible(r) }); i >= 0 {
			t.Errorf("%q writes %q to a terminal", args, text[max(0, i-40):min(len(text), i+40)])
		}
		if len(text) == 0 {
			t.Errorf("%q writes nothing", args)
		}
	}
	if text := on(terminal.Screen{}, "exec", "one", "show"); !strings.HasPrefix(text, hostile+"\n") {
		t.Errorf("a pipe got %q", text)
	}
	piped, shown := on(terminal.Screen{}, "exec", "one", "data", "--json"), on(window, "exec", "one", "data", "--json")
	if !strings.Contains(piped, "\u009b") {
		t.Errorf("a pipe got other bytes than the server sent: %q", piped)
	}
	var a, b struct{ StructuredContent struct{ It string } }
	if json.Unmarshal([]byte(piped), &a) != nil || json.Unmarshal([]byte(shown), &b) != nil || a != b || b.StructuredContent.It != hostile {
		t.Errorf("JSON on a terminal means something else: %q, %q", piped, shown)
	}
}

// TestComplete_ForeignNames: what a shell would not take as one plain word is no candidate, because shells insert candidates as they
// are.
func TestComplete_ForeignNames(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec := mcptest.Spec{Tools: json.RawMessage(`[{"name":"a; touch b #","inputSchema":{}}, {"name":"$(c)","inputSchema":{}}, {"name":"d\ne","inputSchema":{}},
		{"name":"*","inputSchema":{}}, {"name":"~","inputSchema":{}}, {"name":"f\u001b[2J","inputSchema":{}}, {"name":"g\u202eh","inputSchema":{}},
		{"name":"ns/i.j-k_2","inputSchema":{"properties":{"x;y":{}, "z":{}}}}, {"name":"日本","inputSchema":{}}]`)}
	path := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	if _, stderr, code := h.run(t, "", "--config", path, "check"); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	for _, test := range []struct{ line, want string }{
		{"exec fake", "ns/i.j-k_2\t\n日本\t\n"}, {"exec fake ns/i.j-k_2", "z=\t\n"},
	} {
		args := append([]string{"--config", path, "__complete", ":", "--"}, strings.Fields(test.line)...)
		if out, _, _ := h.run(t, "", args...); out != test.want {
			t.Errorf("%s: got %q, want %q", test.line, out, test.want)
		}
	}
}
