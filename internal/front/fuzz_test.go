package front

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

// hostileBodies are messages that only a hostile or broken client sends.
func hostileBodies() []string {
	deep := strings.Repeat("[", 100_000)
	return []string{
		``, `null`, `[]`, `{}`, `"x"`, "\xff\xfe{}", "\ufeff{}", `{"jsonrpc":"2.0"`, `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":1e999999999,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 100_000) + `","method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":5}`, `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 100_000) + `"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":5}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":` + deep + strings.ReplaceAll(deep, "[", "]") + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":` + deep,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":` + deep + strings.ReplaceAll(deep, "[", "]") + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"` + strings.Repeat("x", 100_000) + `"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":5}`, `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"notifications/nothing"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"},5,[]]`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","requestState":"mcpx.suspended.x","inputResponses":{},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"mcpx","tool_name":"read_result","arguments":{"handle":"x"}},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`,
	}
}

// FuzzHTTP: every HTTP request gets an answer: JSON-RPC if the request has an id, otherwise plain text. Nothing panics.
func FuzzHTTP(f *testing.F) {
	for _, body := range hostileBodies() {
		if len(body) < 1000 {
			f.Add("POST", "", true, "", "", "application/json", body)
			f.Add("POST", modernEra, false, "tools/call", "exec", "text/event-stream", body)
		}
	}
	f.Add("GET", "1999-01-01", true, "", "", "*/*", "")
	f.Add("DELETE", modernEra, true, "\u0000", "=?base64?x?=", "", "x")
	r := registry.New(nil, registry.Options{})
	e := executor.New(r, executor.Options{})
	r.Use(e.Chain(nil, nil)...)
	two := view.NewTwoTools(r, e, view.Options{})
	front := New(two, Options{MaxMessage: 1 << 20})
	f.Cleanup(func() {
		front.Close()
		two.Close()
		r.Close(time.Second)
	})
	session := httptest.NewRecorder()
	front.ServeHTTP(session, asking("POST", strings.Split(hello("fuzz"), "\n")[0]))
	id := session.Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, verb, version string, inSession bool, method, name, accept, body string) {
		if verb == "DELETE" && inSession {
			t.Skip("it would end the session")
		}
		if !validHeaders(verb, version, method, name, accept) {
			t.Skip("net/http refuses it")
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		asked := asking(verb, body).WithContext(ctx)
		for header, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name, "Accept": accept} {
			if value != "" {
				asked.Header.Set(header, value)
			}
		}
		if inSession {
			asked.Header.Set("Mcp-Session-Id", id)
		}
		if verb == "GET" || strings.Contains(body, "subscriptions/listen") || strings.Contains(body, `\u`) {
			cancel() // if the request opened a stream, this ends it
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, asked)
		checkAnswer(t, w)
	})
}

// asking returns an HTTP request with the given method and body.
func asking(verb, body string) *http.Request {
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	r.Method = verb
	r.Header.Set("Content-Type", "application/json")
	return r
}

// validHeaders reports whether net/http accepts these header values.
func validHeaders(verb string, values ...string) bool {
	for i, v := range append(values, verb) {
		for _, c := range []byte(v) {
			if c < ' ' || c == 0x7f || i == len(values) && (c <= ' ' || c > '~') {
				return false
			}
		}
	}
	return verb != ""
}

// checkAnswer checks that the answer is one on which no client hangs.
func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	media, text := w.Header().Get("Content-Type"), w.Body.String()
	if w.Code < 200 || w.Code > 599 || w.Code >= 500 || strings.Contains(text, "internal error of mcpx") { // mcpx has panicked
		t.Errorf("%d %s", w.Code, text)
	}
	var answers []string
	switch {
	case strings.HasPrefix(media, "application/json"):
		answers = []string{text}
	case strings.HasPrefix(media, "text/event-stream"):
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				answers = append(answers, data)
			}
		}
	}
	for _, one := range answers {
		var m struct {
			ID, Result, Error json.RawMessage
			Method            string
		}
		if err := json.Unmarshal([]byte(one), &m); err != nil {
			t.Errorf("%v: %.300s", err, one)
		}
		if m.Method == "" && (m.ID == nil || string(m.ID) == "null") && !strings.HasPrefix(media, "text/event-stream") {
			t.Errorf("an answer without an id: %.300s", one)
		}
	}
}

// TestHostileBodies: each hostile body gets an answer that is not much longer than the body: in a session, in a modern request, and
// without any headers of MCP. To read the body and to answer it, mcpx allocates not much more than ten times the size of the body. So
// it does not decode a nested body into Go values.
func TestHostileBodies(t *testing.T) {
	f := connect(t, view.Options{})
	session := httptest.NewRecorder()
	f.ServeHTTP(session, asking("POST", strings.Split(hello("x"), "\n")[0]))
	for _, body := range hostileBodies() {
		for _, headers := range [][]string{
			{"Mcp-Session-Id", session.Header().Get("Mcp-Session-Id")},
			{"Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", "exec"},
			{},
		} {
			before := allocated()
			w := posted(f.Front, nil, strings.NewReader(body), int64(len(body)), headers...)
			if took := allocated() - before; took > uint64(10*len(body)+500_000) {
				t.Errorf("%.100s: %d bytes allocated for %d", body, took, len(body))
			}
			checkAnswer(t, w)
			if w.Body.Len() > len(body)+20_000 {
				t.Errorf("%.100s: an answer of %d bytes", body, w.Body.Len())
			}
		}
	}
}

// allocated returns how many bytes this process has allocated so far.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
