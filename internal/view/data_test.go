package view

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestInspect_Data: the data of a tool has everything that its server sent, and what mcpx adds. A server cannot set the members
// that mcpx adds.
func TestInspect_Data(t *testing.T) {
	mcptest.NoLeaks(t)
	const definition = `{"icons":[{"src":"https://example.com/a.png","sizes":["any"]}],"name":"draw","title":"Draws","execution":{"taskSupport":"optional"},` +
		`"inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"x-own":1.10},"server":"other","typescript":"type Args = never",` +
		`"_meta":{"ui":{"resourceUri":"ui://draw"},"n":1e2},"annotations":{"readOnlyHint":true,"own":[]},"unknown":null}`
	v, r := started(t, Options{}, remote("fake", mcptest.Spec{Tools: json.RawMessage(`[` + definition + `]`)}.HTTP(t)))
	r.WaitTried(t.Context())
	const typescript = `"typescript":"type Args = {n?: number /* int <=9007199254740993 */};"`
	tool := `{"name":"draw","description":"","icons":[{"src":"https://example.com/a.png","sizes":["any"]}],"title":"Draws","execution":{"taskSupport":"optional"},` +
		`"inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"x-own":1.10},` +
		`"_meta":{"ui":{"resourceUri":"ui://draw"},"n":1e2},"annotations":{"readOnlyHint":true,"own":[]},"unknown":null,`
	for arguments, want := range map[string]string{
		`{"server_name":"fake","tool_name":"draw"}`: `{"server":"fake","tools":[` + tool + typescript + `}]}`,
		`{"server_name":"fake"}`:                    `{"server":"fake","tools":[` + tool + typescript + `}]}`,
		`{"query":"draws"}`:                         `{"tools":[` + tool + `"server":"fake",` + typescript + `}]}`,
		`{"query":"zeppelin"}`:                      `{"tools":[]}`,
		`{}`:                                        `{"servers":[{"name":"fake","state":"ready","tools":1}]}`,
	} {
		call := Call{From: request.From{Client: &caller.Client{Name: "agent"}}, Name: InspectTool, Arguments: json.RawMessage(arguments), Structured: StructuredAlways}
		result, err := v.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(result.Structured)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arguments, diff)
		}
		call.Structured = StructuredNever
		if result, err = v.Call(t.Context(), call); err != nil || result.Structured != nil {
			t.Errorf("%s: %s, %v", arguments, result.Structured, err)
		}
	}
}
