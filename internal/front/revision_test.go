package front

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestRevision_Codes: a modern client gets none of the error codes that revision 2026-07-28 forbids, whatever the server sends. A
// legacy client gets the server's code.
func TestRevision_Codes(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Prompts: []byte(`[{"name":"greet"}]`)}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	legacy := newWebClient(t, web, legacyEra)
	for _, test := range []struct{ code, modern int }{
		{-32042, -32603}, {-32002, -32602}, {-32099, -32603}, {-32020, -32603}, {-32021, -32021}, {-32019, -32019}, {-32602, -32602}, {7, 7},
	} {
		fake.Heal()
		fake.Script(mcptest.Fault{
			Kind: mcptest.FaultStatus, Status: 200, Header: map[string]string{"Content-Type": "application/json"},
			Body: fmt.Sprintf(`{"jsonrpc":"2.0","id":$ID,"error":{"code":%d,"message":"no","data":{"kept":1}}}`, test.code),
		}.On("prompts/get").Always())
		const ask = `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"fake__greet"`
		for _, client := range []struct {
			params string
			header map[string]string
			code   int
		}{
			{`}}`, map[string]string{"Mcp-Session-Id": legacy.session}, test.code},
			{`,` + modernMeta + `}}`, modernHeaders("prompts/get", "fake__greet"), test.modern},
		} {
			_, _, answer := post(t, web, ask+client.params, client.header)
			if got := wire.RPCCode(wire.Member([]byte(answer), "error")); got != int64(client.code) || !strings.Contains(answer, `"data":{"kept":1}`) {
				t.Errorf("%d became %d, want %d: %s", test.code, got, client.code, answer)
			}
		}
	}
}

func modernHeaders(method, name string) map[string]string {
	return map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": method, "Mcp-Name": name}
}

// metaWith returns params that contain nothing but _meta: of this revision, and with these further members.
func metaWith(version, members string) string {
	return `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `"` + members + `}}`
}

const noCapabilities = `,"io.modelcontextprotocol/clientCapabilities":{}`

// TestRevision_Unknown: a request of a revision that mcpx does not know is refused with the revisions that it knows, over each
// transport, even if the request lacks what revision 2026-07-28 requires.
func TestRevision_Unknown(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t)
	p := dialSilent(t, connect(t, view.Options{}), StdioOptions{})
	for i, params := range []string{
		metaWith("1999-01-01", noCapabilities), metaWith("2025-12-01", noCapabilities), metaWith("2099-01-01", noCapabilities),
		metaWith("2099-01-01", ""), metaWith("DRAFT", ""),
	} {
		id := fmt.Sprint(i + 1)
		ask := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list","params":` + params + `}`
		version, _ := wire.Text(wire.Member(wire.Member([]byte(params), "_meta"), "io.modelcontextprotocol/protocolVersion"))
		p.send(t, ask+"\n")
		if answer := p.answer(t, id); !strings.Contains(answer, `"code":-32022`) || !strings.Contains(answer, `"requested":"`+version+`"`) {
			t.Errorf("stdio, %s: %s", params, answer)
		}
		status, _, answer := post(t, web, ask, map[string]string{"Mcp-Protocol-Version": version})
		if status != 400 || !strings.Contains(answer, `"code":-32022`) || !strings.Contains(answer, `"requested":"`+version+`"`) {
			t.Errorf("HTTP, %s: %d, %s", params, status, answer)
		}
		status, _, answer = post(t, web, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+params+`}`, map[string]string{"Mcp-Protocol-Version": version})
		if status != 400 {
			t.Errorf("a notification over HTTP, %s: %d, %s", params, status, answer)
		}
	}
	ask := `{"jsonrpc":"2.0","id":9,"method":"tools/list","params":` + metaWith("2025-11-25", "") + `}`
	if p.send(t, ask+"\n"); !strings.Contains(p.answer(t, "9"), `"tools":[`) {
		t.Error("a legacy revision in _meta is refused")
	}
}

// TestRevision_Headers: HTTP headers of other revisions do not matter, and the status says what is wrong even to a client that only
// accepts event streams.
func TestRevision_Headers(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t)
	for _, test := range []struct {
		method, header, value string
		status                int
	}{
		{"tools/list", "Last-Event-ID", "7", 200},
		{"tools/list", "Mcp-Session-Id", "old", 200},
		{"tools/list", "Accept", "text/event-stream", 200},
		{"no/such", "Accept", "text/event-stream", 404},
		{"ping", "Accept", "text/event-stream", 404},
	} {
		headers := modernHeaders(test.method, "")
		headers[test.header] = test.value
		status, _, answer := post(t, web, `{"jsonrpc":"2.0","id":1,"method":"`+test.method+`","params":{`+modernMeta+`}}`, headers)
		if status != test.status {
			t.Errorf("%s, %s %s: %d, %s", test.method, test.header, test.value, status, answer)
		}
	}
}

// TestRevision_TaskName: the header Mcp-Name of a request about a task must repeat the id of that task, if it is there.
func TestRevision_TaskName(t *testing.T) {
	mcptest.NoLeaks(t)
	_, web := site(t)
	ask := `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t/\u00e9",` +
		strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1) + `}}`
	for name, code := range map[string]string{"": "-32602", "=?base64?dC/DqQ==?=": "-32602", "t/2": "-32020", "=?base64?!?=": "-32020"} {
		status, _, answer := post(t, web, ask, modernHeaders("tasks/get", name))
		if status != 400 || !strings.Contains(answer, `"code":`+code) {
			t.Errorf("%q: %d, %s", name, status, answer)
		}
	}
}

// TestRevision_Meta: a log level that does not exist is refused. A progress token that is neither a string nor a number gets no
// notifications, as the protocol has no such tokens.
func TestRevision_Meta(t *testing.T) {
	mcptest.NoLeaks(t)
	p := dialSilent(t, connect(t, view.Options{}, piped(t, "fake", mcptest.Spec{})), StdioOptions{})
	level := `,"io.modelcontextprotocol/logLevel":`
	for i, value := range []string{`"loud"`, `7`, `""`} {
		id := fmt.Sprint(i + 1)
		p.send(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list","params":`+metaWith(modernEra, noCapabilities+level+value)+"}\n")
		if answer := p.answer(t, id); !strings.Contains(answer, `"code":-32602`) {
			t.Errorf("the level %s: %s", value, answer)
		}
	}
	const call = `,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"progress","arguments":{"steps":2}},"_meta":{"progressToken":`
	for i, token := range []string{`null`, `{"a":1}`, `[1]`, `true`} {
		id := fmt.Sprint(i + 11)
		p.send(t, `{"jsonrpc":"2.0","id":`+id+call+token+"}}}\n")
		p.answer(t, id)
	}
	if n := p.with("notifications/progress"); n > 0 {
		t.Errorf("%d progress notifications", n)
	}
	p.send(t, `{"jsonrpc":"2.0","id":21`+call+`0}}}`+"\n")
	if p.answer(t, "21"); p.with(`"progressToken":0`) != 2 {
		t.Error("no progress for the token 0")
	}
}
