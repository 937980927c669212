package executor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// sentTrail is a trail that also has the arguments that were sent last.
type sentTrail struct {
	trail
	sent json.RawMessage
}

// referring starts the servers "one" and "two" with the tool echo, and "reads" whose tool echo only reads.
func referring(t *testing.T, options Options, visible func(string, *catalog.Tool) bool) (*Executor, *sentTrail) {
	t.Helper()
	mcptest.NoLeaks(t)
	options.Filter = jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(options.Filter.Close)
	if options.ResultTokens == 0 {
		options.ResultTokens = 500
	}
	all := &sentTrail{}
	options.Journal = observed(all.end)
	any := mcptest.Spec{Tools: json.RawMessage(`[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{},"more":{}}}}]`)}
	servers := []registry.Server{piped(t, "one", any), piped(t, "two", eachTool(changing)), piped(t, "reads", eachTool(reading))}
	r := registry.New(servers, registry.Options{Rules: hiding(visible)})
	r.Start()
	t.Cleanup(func() { r.Close(0) })
	r.WaitTried(t.Context())
	sees := func(next request.Handler) request.Handler {
		return func(ctx context.Context, q *request.Request) (json.RawMessage, error) {
			all.sent = wire.Member(q.Params, "arguments")
			return next(ctx, q)
		}
	}
	return chainedWith(r, options, sees, nil), all
}

var handleIn = regexp.MustCompile(`"handle":"(r\w+)"`)

// kept makes a call whose result is this text, which must be too long to be shown, and returns its handle.
func kept(t *testing.T, e *Executor, from request.From, text string) string {
	t.Helper()
	got := exec(t, e, Request{From: from, Server: "two", Tool: "echo", Arguments: wire.Encode(map[string]string{"text": text})})
	found := handleIn.FindAllStringSubmatch(contents(t, got)[0], -1)
	if found == nil {
		t.Fatalf("not cut: %.300s", contents(t, got)[0])
	}
	return found[len(found)-1][1] // before it there may be the handle of an item
}

func sentBy(id string) request.From {
	return request.From{Client: &caller.Client{ID: id, Principal: &caller.Principal{ID: id}}}
}

func refersTo(handle, filter string) string {
	if filter != "" {
		return `{"$result":"` + handle + `","select":` + string(wire.Encode(filter)) + `}`
	}
	return `{"$result":"` + handle + `"}`
}

// long makes a text of about 300 KB, and JSON of about that size with numbers that a float64 would change.
func long() (text, list string) {
	var prose, items strings.Builder
	lines := 6000
	if mcptest.Race { // the race detector finds nothing more in more lines, and is slow; .ci/run also tests without it
		lines = 600
	}
	for i := range lines {
		prose.WriteString("line " + strings.Repeat("ü\t\"\\ ", 6) + string(rune('a'+i%26)) + "\r\n")
		items.WriteString(`,{"z":12345678901234567890123,"a":1.10,"t":"\u00e9 \"$result\"","i":[{"$result":"x"}]}`)
	}
	return prose.String(), "[" + items.String()[1:] + "]"
}

// TestReference_Bytes: with a call of at most 75 tokens, a model passes a result of 300 KB on to another server. The result
// arrives unchanged: a text as a string, and JSON as a value whose numbers are spelled as before. If the tool takes only a
// string, it gets the text of the JSON.
func TestReference_Bytes(t *testing.T) {
	e, all := referring(t, Options{}, nil)
	text, list := long()
	for _, test := range []struct{ kept, server, filter, want string }{
		{text, "one", "", text},
		{list, "one", "", list},
		{list, "two", "", list},
		{list, "one", ".[1]", `{"z":12345678901234567890123,"a":1.10,"t":"é \"$result\"","i":[{"$result":"x"}]}`},
		{list, "one", ".[0].a", "1.10"},
		{text, "two", ".[0:4]", "line"},
		{list, "two", ".[2].i", `[{"$result":"x"}]`},
	} {
		handle := kept(t, e, sentBy("a"), test.kept)
		sent := json.RawMessage(`{"text":` + refersTo(handle, test.filter) + `}`)
		raw, failure := e.Raw(t.Context(), Request{From: sentBy("a"), Server: test.server, Tool: "echo", Arguments: slices.Clone(sent), References: true})
		got := string(wire.Member(all.sent, "text"))
		if text, ok := wire.WholeText(json.RawMessage(got)); ok {
			got = text
			if failure != nil {
				t.Errorf("%s %q: %s", test.server, test.filter, failure.Content)
			} else if blocks, _ := wire.ReadResult(raw, func(string, []byte, []byte) {}); blocks[0].Text != text {
				t.Errorf("%s %q: the server got %.200s", test.server, test.filter, blocks[0].Text)
			}
		} // for any other value the call fails, because the fake server echoes only texts
		if got != test.want {
			t.Errorf("%s %q: got %.200s (%d bytes), want %.200s (%d bytes)", test.server, test.filter, got, len(got), test.want, len(test.want))
		}
		if n := all.ended[len(all.ended)-1].ArgumentBytes; n < len(test.want) {
			t.Errorf("%d bytes of arguments were recorded, and %d sent", n, len(test.want))
		}
		call := `{"server_name":"` + test.server + `","tool_name":"echo","arguments":` + string(sent) + `}`
		if n := tokens.Count(call); n > 75 {
			t.Errorf("%d tokens: %s", n, call)
		}
	}
}

// TestReference_Refused: a reference that gives no value refuses the call, with its path, and no server is called. The types of the
// tool are not shown, since they say nothing of references.
func TestReference_Refused(t *testing.T) {
	e, all := referring(t, Options{Files: FileOptions{Folders: []string{t.TempDir()}}}, nil)
	handle := kept(t, e, sentBy("a"), "["+strings.Repeat(`{"a":1},`, 3000)+`{"a":2}]`)
	running := e.begin().pages(&Request{From: sentBy("a"), Server: "one", Tool: "echo"}).Hold(builtin.NewPending(time.Now()))
	calls := len(all.ended)
	for _, test := range []struct{ by, value, want string }{
		{"a", refersTo("r0", ""), "/more/0: the result is unknown or has expired"},
		{"b", refersTo(handle, ""), "/more/0: the result is unknown or has expired"},
		{"b", refersTo(running, ""), "/more/0: the result is unknown or has expired"},
		{"a", refersTo(running, ""), "/more/0: is the handle of a call that was still running"},
		{"a", refersTo(handle, ".[]"), "/more/0: select: the filter gave 3001 values"},
		{"a", refersTo(handle, "empty"), "/more/0: select: the filter gave 0 values"},
		{"a", refersTo(handle, ".["), "/more/0: select: "},
		{"a", refersTo(handle, ".a"), "/more/0: select: "},
		{"a", `{"$file":"../x"}`, "/more/0: $file: "},
		{"a", `{"$file":"x"}`, "/more/0: $file: does not exist"},
	} {
		for _, each := range []bool{false, true} {
			r := Request{From: sentBy(test.by), Server: "reads", Tool: "echo", References: true, Arguments: json.RawMessage(`{"text":"x","more":[` + test.value + `]}`)}
			want := "VALIDATION_ERROR: " + test.want
			if each {
				r.Each = []json.RawMessage{json.RawMessage(`{"text":"y"}`), r.Arguments}
				r.Arguments, want = nil, "VALIDATION_ERROR: /each/1"+test.want
			}
			got := exec(t, e, r)
			if text := contents(t, got)[0]; !got.IsError || !strings.HasPrefix(text, want) {
				t.Errorf("%s: %s\nwant %s", test.value, text, want)
			} else if strings.Contains(text, "Expected:") {
				t.Errorf("%s: there are types in %s", test.value, text)
			}
		}
	}
	for _, event := range all.ended[calls:] {
		if event.Outcome != results.CodeValidation {
			t.Errorf("a call was made: %+v", event)
		}
	}
}

// TestReference_LostRight: the result of a tool that the caller may no longer call is not passed on.
func TestReference_LostRight(t *testing.T) {
	e, _ := referring(t, Options{}, nil)
	handle := kept(t, e, sentBy("a"), strings.Repeat("secret line\n", 3000))
	part := &policy.Scope{Servers: []string{"one", "reads"}}
	got := exec(t, e, Request{From: sentBy("a"), Scope: part, Server: "one", Tool: "echo", References: true, Arguments: json.RawMessage(`{"text":` + refersTo(handle, "") + `}`)})
	if text := contents(t, got)[0]; !got.IsError || !strings.Contains(text, "/text: the result is unknown or has expired") {
		t.Error(text)
	}
}

// TestReference_Each: a reference in the arguments that several calls share is replaced once, and each call gets its value.
func TestReference_Each(t *testing.T) {
	e, _ := referring(t, Options{}, nil)
	handle := kept(t, e, sentBy("a"), "["+strings.Repeat(`{"a":1},`, 3000)+`{"a":2}]`)
	got := exec(t, e, Request{
		From: sentBy("a"), Server: "two", Tool: "echo", References: true, Arguments: json.RawMessage(`{"more":` + refersTo(handle, ".[0].a|tostring") + `}`),
		Each: []json.RawMessage{json.RawMessage(`{"text":` + refersTo(handle, `"first"`) + `}`), json.RawMessage(`{"text":"second"}`)},
	})
	if want := []string{"#1 first", "#2 second"}; !slices.Equal(contents(t, got), want) || got.IsError {
		t.Errorf("%q", contents(t, got))
	}
}

// TestReference_EachBeside: references in arguments that the model put next to "arguments" are replaced too.
func TestReference_EachBeside(t *testing.T) {
	e, _ := referring(t, Options{}, nil)
	handle := kept(t, e, sentBy("a"), "["+strings.Repeat(`{"a":1},`, 3000)+`{"a":2}]`)
	got := exec(t, e, Request{
		From: sentBy("a"), Server: "two", Tool: "echo", References: true,
		Beside: Beside{Arguments: json.RawMessage(`{"text":` + refersTo(handle, `"both"`) + `}`)},
		Each:   []json.RawMessage{json.RawMessage(`{"more":"1"}`), json.RawMessage(`{"more":"2"}`)},
	})
	if want := []string{"#1 both", "#2 both"}; !slices.Equal(contents(t, got), want) || got.IsError {
		t.Errorf("%q", contents(t, got))
	}
}

// TestReference_EachFrom: a reference may stand for the whole list of calls. References in the list are not replaced, and a list that
// cannot be used refuses the request.
func TestReference_EachFrom(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "list"), []byte(`[{"text":"from a file"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	e, _ := referring(t, Options{Files: FileOptions{Folders: []string{folder}}}, nil)
	handle := kept(t, e, sentBy("a"), "["+strings.Repeat(`{"a":1},`, 3000)+`{"a":2}]`)
	for from, want := range map[string][]string{
		refersTo(handle, `[.[-2:][] | {text: (.a|tostring)}]`):     {"#1 1", "#2 2"},
		refersTo(handle, `[{more: {"$file": "list"}, text: "x"}]`): {"VALIDATION_ERROR: /each/0/more: must be string, not object"},
		`{"$file":"list"}`:                         {"#1 from a file"},
		refersTo(handle, `[]`):                     {"VALIDATION_ERROR: /each: has no arguments; for a single call leave it out"},
		refersTo(handle, `.[0]`):                   {"VALIDATION_ERROR: /each: must be an array of objects, the arguments of one call each"},
		`{"$result":"` + handle + `"}`:             {"VALIDATION_ERROR: /each: has 3001 calls, at most 50 are made at once; none was made"},
		`{"$result":"rnone"}`:                      {"VALIDATION_ERROR: /each: the result is unknown or has expired; a call that only reads can be made again"},
		`{"text":{"$file":"list"}}`:                {"VALIDATION_ERROR: /each: must be an array of objects, the arguments of one call each"},
		refersTo(handle, `[{text: 1}, {none: 1}]`): {"VALIDATION_ERROR: /each/0/text: must be string, not number"},
	} {
		got := exec(t, e, Request{
			From: sentBy("a"), Server: "two", Tool: "echo", References: true, Arguments: json.RawMessage(`{"text":` + refersTo(handle, `"shared"`) + `}`),
			EachFrom: json.RawMessage(from),
		})
		texts := contents(t, got)
		if got.IsError {
			texts[0], _, _ = strings.Cut(texts[0], "\n")
		}
		if !slices.Equal(texts, want) {
			t.Errorf("%s: got %q, want %q", from, texts, want)
		}
	}
	if got := contents(t, exec(t, e, Request{From: sentBy("a"), Server: "two", Tool: "none", References: true, EachFrom: json.RawMessage(`{"$result":"x"}`)})); !strings.HasPrefix(got[0], results.CodeToolNotFound) {
		t.Errorf("an unknown tool: %q", got)
	}
}

// TestReference_Once: only references that the model wrote are replaced. What looks like a reference is left as it is in a value
// that a reference brought, in a string, and in arguments from a client that calls the tool itself, without exec.
func TestReference_Once(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte(`{"$file":"file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	e, all := referring(t, Options{Files: FileOptions{Folders: []string{folder}}}, nil)
	handle := kept(t, e, sentBy("a"), strings.Repeat(`{"$file":"file"}`+"\n", 3000))
	for sent, want := range map[string]string{
		`{"text":{"$file":"file"}}`:                 `{"$file":"file"}`,
		`{"text":` + refersTo(handle, ".[0]") + `}`: `{"$file":"file"}`,
		`{"text":"{\"$file\":\"file\"}"}`:           `{"$file":"file"}`,
		`"{\"text\":{\"$file\":\"file\"}}"`:         `{"$file":"file"}`,
		`{"text":{"$file":"file","more":{}}}`:       `{"$file":"file","more":{}}`,
	} {
		for _, references := range []bool{true, false} {
			_, _ = e.Raw(t.Context(), Request{From: sentBy("a"), Server: "one", Tool: "echo", Arguments: json.RawMessage(sent), References: references})
			got := string(wire.Member(all.sent, "text"))
			if text, ok := wire.WholeText(json.RawMessage(got)); ok {
				got = text
			}
			if brought := strings.Contains(sent, "$result"); got != want && references || brought && !references && got == want {
				t.Errorf("%s, %t: %s, want %s", sent, references, got, want)
			}
		}
	}
}

// TestReference_Confirmed: the user is shown what is sent, with its size and digest, and not the reference.
func TestReference_Confirmed(t *testing.T) {
	mcptest.NoLeaks(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("private "+strings.Repeat("x", 9000)), 0o600); err != nil {
		t.Fatal(err)
	}
	e := confirming(t, Options{Files: FileOptions{Folders: []string{folder}}}, conf.ConfirmAll, piped(t, "fake", mcptest.Spec{}))
	asked := ""
	from := sentBy("a")
	from.Client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	from.Client.Request = func(_ context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
		asked = string(params)
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	exec(t, e, Request{From: from, Server: "fake", Tool: "echo", References: true, Arguments: json.RawMessage(`{"text":{"$file":"file"}}`)})
	if !strings.Contains(asked, "private xxx") || !strings.Contains(asked, "SHA-256") || strings.Contains(asked, "$file") {
		t.Errorf("asked %.400s", asked)
	}
}
