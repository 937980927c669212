package config

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestCredentials: the key credentials of a server is read. A value that could not work as the user meant it is a fault of
// this server only.
func TestCredentials(t *testing.T) {
	for _, test := range []struct {
		server, value string
		want          map[string]CallerCredential
		fault         string
	}{
		{`"url":"https://x"`, `{"X-Api-Key":"header:X-User-Key","b":"header:c"}`, map[string]CallerCredential{"X-Api-Key": {Header: "X-User-Key"}, "b": {Header: "c"}}, ""},
		{`"url":"https://x"`, `{"Authorization":"header:X-Upstream-Authorization","//":"note"}`, map[string]CallerCredential{"Authorization": {Header: "X-Upstream-Authorization"}}, ""},
		{`"url":"wss://x"`, `{"a":"header:b"}`, map[string]CallerCredential{"a": {Header: "b"}}, ""},
		{`"url":"https://x"`, `{}`, nil, ""},
		{`"url":"https://x"`, `null`, nil, ""},
		{`"command":"x"`, `{"a":"header:b"}`, nil, "credentials: is for remote servers with a url"},
		{`"url":"https://x"`, `"header:b"`, nil, "credentials: must be an object"},
		{`"url":"https://x"`, `{"a":""}`, nil, `credentials.a: must be "header:NAME"`},
		{`"url":"https://x"`, `{"a":"b"}`, nil, `credentials.a: must be "header:NAME"`},
		{`"url":"https://x"`, `{"a":"header:"}`, nil, `credentials.a: must be "header:NAME"`},
		{`"url":"https://x"`, `{"a":"header:b c"}`, nil, `credentials.a: must be "header:NAME"`},
		{`"url":"https://x"`, `{"a":{"header":"b"}}`, nil, `credentials.a: must be "header:NAME"`},
		{`"url":"https://x"`, `{"a":"claim:https://x.example/tenant"}`, map[string]CallerCredential{"a": {Claim: "https://x.example/tenant"}}, ""},
		{`"url":"https://x"`, `{"a":"claim: "}`, nil, `credentials.a: must be "header:NAME"`},
		{`"url":"https://x","oauth":{"client_id":"m"}`, `{"authorization":"exchange"}`, map[string]CallerCredential{"authorization": {Exchange: true}}, ""},
		{`"url":"https://x","oauth":{"client_id":"m"}`, `{"a":"exchange"}`, nil, "credentials.a: exchange is only for the header Authorization"},
		{`"url":"https://x"`, `{"Authorization":"exchange"}`, nil, "credentials.Authorization: needs oauth with the client_id"},
		{`"url":"https://x","oauth":false`, `{"Authorization":"exchange"}`, nil, "credentials.Authorization: needs oauth with the client_id"},
		{`"url":"https://x"`, `{"a":"header:authorization"}`, nil, "credentials.a: the header Authorization of a request is for mcpx itself"},
		{`"url":"https://x"`, `{"Host":"header:b"}`, nil, "credentials.Host: is not the name of a header for credentials"},
		{`"url":"https://x"`, `{"Mcp-Session-Id":"header:b"}`, nil, "credentials.Mcp-Session-Id: is not the name"},
		{`"url":"https://x"`, `{"a":"header:b","A":"header:c"}`, nil, "credentials.A: is there twice"},
	} {
		c, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers":{"s":{%s,"credentials":%s},"other":{"command":"y"}}}`, test.server, test.value), Options{})
		if err != nil || len(c.Servers) != 2 || c.Servers[0].Fault != "" {
			t.Errorf("%s: %v", test.value, err)
			continue
		}
		s := c.Servers[1]
		if test.fault == "" && (s.Fault != "" || !maps.Equal(s.CallerCredentials, test.want)) || test.fault != "" && !strings.HasPrefix(s.Fault, "mcpServers.s."+test.fault) {
			t.Errorf("%s: %v, fault %q, want %v, %q", test.value, s.CallerCredentials, s.Fault, test.want, test.fault)
		}
	}
}
