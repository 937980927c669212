package front

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
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
