package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

// TestHeaderTools: a tool whose x-mcp-header is in a place where SEP-2243 allows none is dropped. A property of that name, or a value,
// is no such annotation.
func TestHeaderTools(t *testing.T) {
	const note = `{"type":"string","x-mcp-header":"Region"}`
	for schema, kept := range map[string]bool{
		`{"type":"object","properties":{"a":` + note + `}}`:                                                   true,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"a":` + note + `}}}}`:              true,
		`{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}`:                                   true,
		`{"type":"object","properties":{"a":{"type":"object","default":{"x-mcp-header":1}}}}`:                 true,
		`{"type":"object","examples":[{"x-mcp-header":1}],"properties":{"a":` + note + `}}`:                   true,
		`{"type":"object","x-mcp-header":"Region"}`:                                                           false,
		`{"type":"object","properties":{"a":{"type":"array","items":` + note + `}}}`:                          false,
		`{"type":"object","oneOf":[{"properties":{"a":` + note + `}}]}`:                                       false,
		`{"type":"object","if":{"properties":{"a":` + note + `}}}`:                                            false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/z"}},"$defs":{"z":` + note + `}}`:                false,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":` + note + `}}}`:          false,
		`{"type":"object","properties":{"a":{"not":` + note + `}}}`:                                           false,
		`{"type":"object","patternProperties":{"^a":` + note + `}}`:                                           false,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"anyOf":[` + note + `]}}}}}`:  false,
		`{"type":"object","properties":{"a":` + note + `,"b":{"type":"array","prefixItems":[` + note + `]}}}`: false,
		`{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"Region"}}}`:                      false,
	} {
		raw := json.RawMessage(`{"name":"t","inputSchema":` + schema + `}`)
		tools, faults := catalog.DecodeTools([]json.RawMessage{raw})
		if len(tools) != 1 {
			t.Fatalf("%s: %v", schema, faults)
		}
		if got, _, faults := headerTools(tools); (len(got) == 1) != kept || (len(faults) == 0) != kept {
			t.Errorf("%s: kept %d, %v", schema, len(got), faults)
		}
	}
}

// TestHeaderTools_Deep: the time for a schema grows with its size, and not with its depth too: a server could use up a processor.
func TestHeaderTools_Deep(t *testing.T) {
	const depth = 2000
	schema := `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"}},"allOf":` + strings.Repeat("[", depth) +
		`"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("]", depth) + `}`
	began := time.Now()
	kept, _, faults := headerTools([]catalog.Tool{{Name: "t", Raw: json.RawMessage(`{"name":"t","inputSchema":` + schema + `}`), InputSchema: json.RawMessage(schema)}})
	if took := time.Since(began); len(kept) != 1 || took > 5*time.Second {
		t.Errorf("kept %d, %v, after %s", len(kept), faults, took)
	}
}

// TestHeaderTools_Changed: if a server refuses a call because of its headers, mcpx reads the tools again, and repeats the call with the
// headers that the tool needs now. It does so once.
func TestHeaderTools_Changed(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, learns := range []bool{true, false} {
		var calls, lists atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.NewDecoder(r.Body).Decode(&m) // a message that cannot be read has no method
			answer := `"error":{"code":-32601,"message":"no"}`
			switch m.Method {
			case "server/discover":
				answer = `"result":{"supportedVersions":["` + modernVersion + `"],"capabilities":{"tools":{}}}`
			case "tools/list":
				header := ""
				if lists.Add(1); learns && calls.Load() > 0 {
					header = `,"x-mcp-header":"Region"`
				}
				answer = `"result":{"tools":[{"name":"query","inputSchema":{"type":"object","properties":{"region":{"type":"string"` + header + `}}}}]}`
			case "tools/call":
				if calls.Add(1); r.Header.Get("Mcp-Param-Region") == "eu" {
					answer = `"result":{"content":[{"type":"text","text":"called"}]}`
				} else {
					answer = `"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}`
				}
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
		}))
		u := ready(t, at(transport.HTTP, server.URL))
		got, err := text(u, "query", `{"region":"eu"}`)
		rpc, refused := errors.AsType[*wire.RPCError](err)
		if learns && (err != nil || got != "called") || !learns && (!refused || rpc.Code != -32020) || calls.Load() != 2 || lists.Load() != 2 {
			t.Errorf("learns is %t: got %q, %v after %d calls and %d lists", learns, got, err, calls.Load(), lists.Load())
		}
		u.Close(0)
		server.Close()
	}
}
