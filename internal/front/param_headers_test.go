package front

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

// TestParamHeaders: a modern HTTP call whose Mcp-Param headers contradict its arguments is refused before it
// reaches the server, and so is such a request with answers to a call's questions. Legacy clients and other
// transports are not checked.
func TestParamHeaders(t *testing.T) {
	mcptest.NoLeaks(t)
	const schema = `"inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},` +
		`"n":{"type":"integer","x-mcp-header":"N"},"on":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}}`
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"deploy",` + schema + `},{"name":"ask",` + schema + `},
		{"name":"wrong","inputSchema":{"type":"object","properties":{"area":{"type":"object","x-mcp-header":"A"}}}}]`)}.HTTP(t)
	r := registry.New([]registry.Server{remote("fake", fake)}, registry.Options{})
	e := executor.New(r, executor.Options{})
	r.Use(e.Chain(nil, nil)...)
	v := view.NewAllTools(r, e, view.Options{Naming: view.Naming{Prefix: view.PrefixNever}})
	f := New(v, Options{})
	web := httptest.NewServer(f)
	t.Cleanup(func() {
		web.Close()
		f.Close()
		v.Close()
		r.Close(time.Second)
	})
	r.Start() // the first call waits until the server has started, and is checked too

	meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1)
	call := func(tool, arguments string, headers ...string) (status int, answer string) {
		t.Helper()
		sent := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,` + meta + `}}`
		request, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {modernEra}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool},
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Add(headers[i], headers[i+1])
		}
		response, err := web.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, body(t, response)
	}
	const eu = `{"region":"eu"}`
	refused := []struct {
		arguments string
		headers   []string
		code      string
	}{
		{eu, []string{"Mcp-Param-Region", "us"}, "-32020"},
		{eu, nil, "-32020"},
		{eu, []string{"Mcp-Param-Region", "eu", "Mcp-Param-Region", "us"}, "-32020"},
		{eu, []string{"Mcp-Param-Region", "=?base64?SGVs!!!bG8=?="}, "-32020"},
		{eu, []string{"Mcp-Param-Region", "eu", "Mcp-Param-N", "1"}, "-32020"},
		{`{}`, []string{"Mcp-Param-Region", "us"}, "-32020"},
		{`null`, []string{"Mcp-Param-Region", "us"}, "-32020"},
		{`{"region":["eu"]}`, []string{"Mcp-Param-Region", "eu"}, "-32020"},
		{`"{\"region\":\"eu\"}"`, []string{"Mcp-Param-Region", "us"}, "-32020"},
		{`{"n":9007199254740993}`, []string{"Mcp-Param-N", "9007199254740992"}, "-32020"},
		{`{"n":5}`, []string{"Mcp-Param-N", "6"}, "-32020"},
		{`{"on":{"dry":false}}`, []string{"Mcp-Param-Dry", "true"}, "-32020"},
		{`{"region":"us","region":"eu"}`, []string{"Mcp-Param-Region", "eu"}, "-32602"},
	}
	for _, test := range refused {
		if status, answer := call("deploy", test.arguments, test.headers...); status != 400 || !strings.Contains(answer, `"code":`+test.code) {
			t.Errorf("%s with %q: %d %s", test.arguments, test.headers, status, answer)
		}
	}
	if n := len(fake.Log().Calls("deploy")); n != 0 {
		t.Errorf("%d refused calls reached the server", n)
	}
	accepted := []struct {
		arguments string
		headers   []string
	}{
		{eu, []string{"Mcp-Param-Region", "eu", "Mcp-Param-Other", "x"}},
		{eu, []string{"mcp-param-region", "=?base64?ZXU=?="}},
		{`{"region":null}`, nil},
		{`{"region":""}`, []string{"Mcp-Param-Region", ""}},
		{`{"n":5}`, []string{"Mcp-Param-N", "5.0"}},
		{`{"n":9007199254740993}`, []string{"Mcp-Param-N", "9007199254740993"}},
		{`{"on":{"dry":true}}`, []string{"Mcp-Param-Dry", "true"}},
		{`"{\"region\":\"eu\"}"`, []string{"Mcp-Param-Region", "eu"}},
	}
	for _, test := range accepted {
		if status, answer := call("deploy", test.arguments, test.headers...); status != 200 || strings.Contains(answer, `"error":`) {
			t.Errorf("%s with %q: %d %s", test.arguments, test.headers, status, answer)
		}
	}
	if status, answer := call("deploy", `{"region":["eu"]}`); status != 200 || !strings.Contains(answer, "VALIDATION_ERROR") {
		t.Errorf("a value that is in no header: %d %s", status, answer)
	}
	if status, answer := call("wrong", `{"area":{}}`, "Mcp-Param-A", "x"); status != 200 {
		t.Errorf("a wrong annotation: %d %s", status, answer)
	}

	_, answer := call("ask", eu, "Mcp-Param-Region", "eu")
	state := regexp.MustCompile(`"requestState":"[^"]+"`).FindString(answer)
	if state == "" {
		t.Fatalf("no question: %s", answer)
	}
	more := eu + `,"inputResponses":{"q1":{"action":"accept","content":{"word":"x"}}},` + state
	if status, answer := call("ask", more, "Mcp-Param-Region", "us"); status != 400 || !strings.Contains(answer, `"code":-32020`) {
		t.Errorf("an answer with another header: %d %s", status, answer)
	}
	if status, answer := call("ask", more, "Mcp-Param-Region", "eu"); status != 200 || !strings.Contains(answer, `"resultType":"complete"`) {
		t.Errorf("an answer: %d %s", status, answer)
	}
	p := dial(t, shown{Front: f}, "legacy")
	p.send(t, `{"jsonrpc":"2.0","id":"l","method":"tools/call","params":{"name":"deploy","arguments":`+eu+`}}`+"\n")
	mcptest.WaitFor(t, "the answer over stdio", patience, func() bool { return len(p.answers(`"l"`)) == 1 })
	if got := p.answers(`"l"`)[0]; !strings.Contains(got, `"result"`) {
		t.Errorf("over stdio: %s", got)
	}
}
