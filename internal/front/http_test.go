package front

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// post sends a message with these headers.
func post(t *testing.T, web *httptest.Server, body string, header map[string]string) (status int, media, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), strings.TrimSpace(string(data))
}

// TestHTTP_Calls: a call is answered whole, however odd its request is; one whose
// headers say something else is refused.
func TestHTTP_Calls(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	legacy := newWebClient(t, web, legacyEra)
	const raw = `{"name":"exec","arguments":{"server_name":"fake","tool_name":"raw","arguments":{"result":"{\"_meta\":{\"z\":1,\"a\":2.50},\"content\":[]}"}}`
	const meta = `"_meta":{"z":1,"a":2.50`
	modern := map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "tools/call", "Mcp-Name": "exec", "Accept": "application/json"}
	session := map[string]string{"Mcp-Session-Id": legacy.session, "Accept": "application/json, text/event-stream"}
	with := func(base map[string]string, name, value string) map[string]string {
		all := map[string]string{name: value}
		for k, v := range base {
			if k != name {
				all[k] = v
			}
		}
		return all
	}
	tests := []struct {
		name, params string
		header       map[string]string
		status       int
		media, want  string
	}{
		{"legacy", raw + `}`, session, 200, "application/json", meta},
		{"legacy, with a token", raw + `,"_meta":{"progressToken":1}}`, session, 200, "application/json", meta},
		{"legacy, a task", raw + `,"task":{"ttl":1}}`, session, 200, "application/json", meta},
		{"legacy, only streams", raw + `}`, with(session, "Accept", "text/event-stream"), 200, "text/event-stream", meta},
		{"legacy, no Accept", raw + `}`, with(session, "Accept", ""), 200, "application/json", meta},
		{"modern", raw + `,` + modernMeta + `}`, modern, 200, "application/json", meta},
		{"modern, the name in base64", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Name", "=?base64?ZXhlYw==?="), 200, "application/json", meta},
		{"modern, another name", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Name", "inspect"), 400, "application/json", `"code":-32020`},
		{"modern, no name", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Name", ""), 400, "application/json", `"code":-32020`},
		{"modern, another version", raw + `,` + modernMeta + `}`, with(modern, "Mcp-Protocol-Version", "2025-06-18"), 400, "application/json", `"code":-32020`},
		{"modern, no capabilities", raw + `,` + strings.Replace(modernMeta, `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1) + `}`, modern, 400, "application/json", `"code":-32602`},
		{"modern, resuming", raw + `,` + modernMeta + `}`, with(modern, "Last-Event-ID", "7"), 400, "application/json", `"code":-32020`},
		{"no such tool", `{"name":"other",` + modernMeta + `}`, with(modern, "Mcp-Name", "other"), 400, "application/json", `"code":-32602`},
		{"name in other letters", `{"Name":"inspect",` + modernMeta + `}`, with(modern, "Mcp-Name", "inspect"), 400, "application/json", `"code":-32602`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, media, answer := post(t, web, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+test.params+`}`, test.header)
			if status != test.status || media != test.media || !strings.Contains(answer, test.want) {
				t.Errorf("got %d, %s: %s", status, media, answer)
			}
		})
	}
}

// TestHTTP_Methods: what the endpoint does not have is said so.
func TestHTTP_Methods(t *testing.T) {
	_, web := site(t)
	for _, verb := range []string{"PUT", "PATCH", "OPTIONS", "HEAD"} {
		request, err := http.NewRequestWithContext(t.Context(), verb, web.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := web.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 405 || response.Header.Get("Allow") != "GET, POST, DELETE" {
			t.Errorf("%s: %s, %v", verb, response.Status, response.Header)
		}
	}
}

// TestHTTP_KeepsSession: mcp-go, which ends idle sessions, hears of the calls
// that it does not see; a session that it has ended is refused.
func TestHTTP_KeepsSession(t *testing.T) {
	mcptest.NoLeaks(t)
	f, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	c := newWebClient(t, web, legacyEra)
	session := f.sessions.get(c.session)
	header := map[string]string{"Mcp-Session-Id": c.session, "Accept": "application/json"}
	call := strings.TrimSpace(execLine("1", "fake", "echo", `{"text":"here"}`))
	session.refreshed.Store(0)
	if status, _, answer := post(t, web, call, header); status != 200 || !strings.Contains(answer, "here") || session.refreshed.Load() == 0 {
		t.Errorf("got %d, %s; refreshed %d", status, answer, session.refreshed.Load())
	}
	if response, err := c.send(t.Context(), "DELETE", "", ""); err != nil {
		t.Fatal(err)
	} else {
		response.Body.Close()
	}
	f.sessions.byID.Store(c.session, session) // as if nobody had told us
	session.refreshed.Store(0)
	if status, _, answer := post(t, web, call, header); status != 404 {
		t.Errorf("after the end: got %d, %s", status, answer)
	}
	f.sessions.remove(c.session)
}
