package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSyntaxErrors(t *testing.T) {
	deep := strings.Repeat("[", 100)
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", "c.json:1:1: invalid JSON: the file is empty"},
		{"only a comment", "// x\n", "c.json:2:1: invalid JSON: the file is empty"},
		{"open object", "{\n\"a\": {\"b\": 1,\n", "c.json:3:1: invalid JSON: the file ends, but the object that begins in line 2 is not closed; add '}'"},
		{"open array", "{\"a\": [1", "c.json:1:9: invalid JSON: the file ends, but the array that begins in line 1 is not closed; add ']'"},
		{"no value", "{\"a\": ", "c.json:1:7: invalid JSON: the file ends where a value is expected; write the value, and close what is open"},
		{"missing comma", "{\n  \"a\": 1\n  \"b\": 2\n}", "c.json:2:9: invalid JSON: a comma is missing here, before what follows in line 3"},
		{"missing comma in array", `[1 2]`, "c.json:1:3: invalid JSON: a comma is missing here, before what follows in line 1"},
		{"two commas", `{"a": 1,, }`, "c.json:1:9: invalid JSON: a comma too many; remove it"},
		{"only a comma", `[,]`, "c.json:1:2: invalid JSON: a comma too many; remove it"},
		{"missing colon", `{"a" 1}`, "c.json:1:6: invalid JSON: a colon is missing after the key: expected ':', not '1'"},
		{"bare key", `{a: 1}`, `c.json:1:2: invalid JSON: keys need double quotes ("); put them around this one`},
		{"single quotes", `{"a": 'b'}`, `c.json:1:7: invalid JSON: strings need double quotes ("), not single ones`},
		{"word", `{"a": True}`, `c.json:1:7: invalid JSON: unknown word; only true, false and null are written without double quotes (")`},
		{"number", `{"a": 01}`, `c.json:1:7: invalid JSON: invalid number; numbers are written like 5, -5, 0.5 or 1e3`},
		{"windows path", `{"a": "C:\Users"}`, `c.json:1:10: invalid JSON: invalid escape (a backslash itself is written as \\)`},
		{"half an escape", `{"a": "\u12"}`, `c.json:1:8: invalid JSON: invalid escape (a backslash itself is written as \\)`},
		{"open string", "{\"a\": \"b\n}", `c.json:1:7: invalid JSON: the string that begins here does not end in its line; add the closing "`},
		{"open string at the end", `{"a": "b`, `c.json:1:7: invalid JSON: the string that begins here does not end; add the closing "`},
		{"open escape", `{"a": "b\`, `c.json:1:9: invalid JSON: the string does not end; add the closing "`},
		{"tab in a string", "{\"a\": \"\t\"}", `c.json:1:8: invalid JSON: a control character in a string has to be written as \u0009`},
		{"open comment", "{} /* x", "c.json:1:4: invalid JSON: the comment that begins here does not end; close it with */"},
		{"more after the value", "{} {}", "c.json:1:4: invalid JSON: unexpected '{' after the end of the value; a file holds one object"},
		{"comma too many in an array", "[1,\n, 2]", "c.json:2:1: invalid JSON: a comma too many; remove it"},
		{"comma too many at the start", "{,\"a\": 1}", "c.json:1:2: invalid JSON: a comma too many; remove it"},
		{"comma after the value", "{\n}, \"a\": 1", "c.json:2:2: invalid JSON: unexpected ',': what begins in line 1 is closed already; remove a bracket that closes it too early"},
		{"missing comma before an object", "[{\"a\": 1} // one\n {}]", "c.json:1:10: invalid JSON: a comma is missing here, before what follows in line 2"},
		{"value missing before a comma", "{\"a\": , \"b\": 1}", "c.json:1:7: invalid JSON: a value is missing before this comma"},
		{"value missing", "{\"a\": }", "c.json:1:7: invalid JSON: a value is missing before '}'"},
		{"key missing", "{{}}", "c.json:1:2: invalid JSON: a key is missing before '{'; write \"name\": before it"},
		{"array closed as an object", "{\n\"a\": [1}", "c.json:2:8: invalid JSON: the array that begins in line 2 is not closed; expected ']' before '}'"},
		{"object closed as an array", "{\"a\":\n{\"b\": 1]}", "c.json:2:8: invalid JSON: the object that begins in line 2 is not closed; expected '}' before ']'"},
		{"object closed as an array after a comma", "{\"a\": 1, ]", "c.json:1:10: invalid JSON: the object that begins in line 1 is not closed; expected '}', not ']'"},
		{"bracket too many", "{\n\"a\": {}}\n}", "c.json:3:1: invalid JSON: '}' closes nothing; remove it, or one like it that closes too early what begins in line 1"},
		{"TOML", "# mine\n\n[mcp_servers.\"a b\"]\ncommand = 1\n", "c.json:1:1: invalid JSON: the file looks like TOML or INI; mcpx reads JSON (mcpx init --from FILE takes the servers of Codex's config.toml)"},
		{"TOML, a key first", "model = 'x'\n", "c.json:1:1: invalid JSON: the file looks like TOML or INI; mcpx reads JSON (mcpx init --from FILE takes the servers of Codex's config.toml)"},
		{"YAML", "mcpServers:\n  a:\n    command: x\n", "c.json:1:1: invalid JSON: the file looks like YAML; mcpx reads JSON"},
		{"keys in an array", "[\"a\": 1]", "c.json:1:5: invalid JSON: an array has no keys; write { } in place of the [ ] that begin in line 1, or ',' in place of ':'"},
		{"key in single quotes", "{'a': 1}", "c.json:1:2: invalid JSON: keys need double quotes (\"), not single ones"},
		{"string in single quotes", "['a']", "c.json:1:2: invalid JSON: strings need double quotes (\"), not single ones"},
		{"curly quotes", "{“a”: 1}", "c.json:1:2: invalid JSON: keys and strings need straight double quotes (\"), not “"},
		{"comment of a shell", "{\n# servers\n}", "c.json:2:1: invalid JSON: comments begin with //, or are enclosed in /* */"},
		{"comment of a shell after a value", "{\"a\": 1 # one\n}", "c.json:1:9: invalid JSON: comments begin with //, or are enclosed in /* */"},
		{"half a comment", "{\"a\": 1, / one\n}", "c.json:1:10: invalid JSON: a single '/'; comments begin with //, or are enclosed in /* */"},
		{"semicolon", "{\"a\": 1;}", "c.json:1:8: invalid JSON: unexpected ';'; entries are separated by commas"},
		{"invisible", "{\u00a0\"a\": 1}", "c.json:1:2: invalid JSON: an invisible character, U+00A0; remove it"},
		{"columns are characters", "{\"äöü\": ?}", "c.json:1:9: invalid JSON: expected a value, not '?'"},
		{"a byte order mark is no column", "\xEF\xBB\xBF{?}", "c.json:1:2: invalid JSON: expected a key in double quotes or '}', not '?'"},
		{"line ends of Windows", "{\r\n?}", "c.json:2:1: invalid JSON: expected a key in double quotes or '}', not '?'"},
		{"utf-16", "\xFF\xFE{\x00", "c.json:1:1: invalid JSON: the file is UTF-16, save it as UTF-8"},
		{"not utf-8", "{\n\"a\": \"\xE4\"}", "c.json:2:7: invalid JSON: the file is not UTF-8"},
		{"deep", deep, "c.json:1:66: invalid JSON: nested deeper than 64 levels"},
		{"many", "[" + strings.Repeat("0,", maxValues), "c.json:1:400000: invalid JSON: more than 200000 values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("c.json", []byte(tt.in), Options{})
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("error is %v, want a SyntaxError", err)
			}
			if err.Error() != tt.want {
				t.Errorf("error\ngot  %s\nwant %s", err, tt.want)
			}
		})
	}
}

func TestStrings(t *testing.T) {
	n, err := parseJSON([]byte(`["\"\\\/\b\f\n\r\t", "\u00e4\ud83d\ude00", "\ud83d", "\ud83dx\ude00", "ä"] // end`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"\"\\/\b\f\n\r\t", "ä😀", "\uFFFD", "\uFFFDx\uFFFD", "ä"}
	for i, item := range n.items {
		if item.text != want[i] {
			t.Errorf("string %d: got %q, want %q", i, item.text, want[i])
		}
	}
}

func TestRootFaults(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`[]`, "c.json: the file: must hold an object, not an array"},
		{`{}`, "c.json: mcpServers: is missing; it holds the servers by name, as in the file of an MCP client (mcpx init --from FILE reads the file of any client)"},
		{`{"fs": {"command": "npx"}}`, `c.json: fs: looks like a server; servers belong in "mcpServers"`},
		{`{"mcp_servers": 5}`, "c.json: mcp_servers: must be an array or an object of servers, not a number"},
		{`{"mcpservers": {}}`, `c.json: mcpservers: unknown key "mcpservers", did you mean "mcpServers"?`},
		{`{"mcpServers": []}`, "c.json: mcpServers: must be an object, not an array"},
		{`{"http_path": "/dial", "mcpServers": {}}`, "c.json: http_path: mcpx serves something else at /dial; choose another path, such as /mcp"},
		{`{"http_path": "/mcp_endpoint", "mcpServers": {}}`, "c.json: http_path: mcpx serves something else at /mcp_endpoint; choose another path, such as /mcp"},
		{`{"http_path": "/connect/x", "mcpServers": {}}`, "c.json: http_path: mcpx serves something else at /connect; choose another path, such as /mcp"},
		{`{"mcpServers": {"MCPX": {"command": "x"}}}`, `c.json: mcpServers.MCPX: the name "mcpx" is reserved`},
		{`{"mcpServers": {"` + strings.Repeat("n", 65) + `": {"command": "x"}}}`, "c.json: mcpServers." + strings.Repeat("n", 65) + ": the name must not be longer than 64 characters"},
	} {
		_, err := Parse("c.json", []byte(tt.in), Options{})
		if got := fmt.Sprint(err); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

// TestZero: 0 is accepted for keys where it has a meaning, and kept in the config. For other keys it is a fault.
func TestZero(t *testing.T) {
	for key, want := range map[string]string{
		"max_description_len": "", "catalogue_char_limit": "", "result_token_limit": "", "result_preview_tokens": "", "max_concurrency": "",
		"startup_wait": "", "exec_wait": "", "shutdown_grace": "",
		"catalogue_token_budget": "must be at least 1", "max_message_bytes": "must be at least 1024",
		"health_check_interval": "must be more than 0", "health_check_timeout": "must be more than 0", "health_check_failure_threshold": "must be at least 1",
		"mcpServers.a.connect_timeout": "must be more than 0", "mcpServers.a.call_timeout": "must be more than 0",
		"mcpServers.a.session_idle": "must be more than 0", "mcpServers.a.idle_timeout": "", "mcpServers.a.max_concurrency": "",
		"mcpServers.a.tool_timeouts.x": "must be more than 0", "clients.x.description_chars": "",
	} {
		var value any = 0
		steps := strings.Split(key, ".")
		for i := len(steps) - 1; i > 0; i-- {
			value = map[string]any{steps[i]: value}
		}
		file := map[string]any{"mcpServers": map[string]any{}}
		file[steps[0]] = value
		if steps[0] == "mcpServers" {
			value.(map[string]any)["a"].(map[string]any)["command"] = "x"
		}
		data, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse("c.json", data, Options{})
		if got := fmt.Sprint(err); want != "" && got != "c.json: "+key+": "+want || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
		if err != nil {
			continue
		}
		kept := map[string]bool{
			"max_description_len": c.MaxDescriptionLen == 0, "catalogue_char_limit": c.CatalogueCharLimit == 0, "result_token_limit": c.ResultTokenLimit == 0,
			"result_preview_tokens": c.ResultPreviewTokens == 0, "max_concurrency": c.MaxConcurrency == 0, "startup_wait": c.StartupWait == 0, "exec_wait": c.ExecWait == 0, "shutdown_grace": c.ShutdownGrace == 0,
			"clients.x.description_chars": len(c.Clients) == 1 && c.Clients[0].DescriptionChars == noLimit,
		}
		if ok, of := kept[key]; of && !ok {
			t.Errorf("%s: the zero is not kept", key)
		}
	}
}

func TestNoServers(t *testing.T) {
	c, err := Parse("c.json", []byte(`{"mcpServers": {}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"no servers are defined"}, c.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestExpand(t *testing.T) {
	env := envOf("A=alpha\nEMPTY=\n_b2=beta\nHOME=/home/me\nLONG=" + strings.Repeat("x", 1<<16))
	for _, tt := range []struct{ in, want, fault string }{
		{"plain", "plain", ""},
		{"${A}", "alpha", ""},
		{"x${A}y${_b2}z", "xalphaybetaz", ""},
		{"${A:-d}", "alpha", ""},
		{"${NONE:-d}", "d", ""},
		{"${NONE:-}", "", ""},
		{"${NONE:-a:-b}", "a:-b", ""},
		{"${EMPTY:-d}", "d", ""},
		{"${EMPTY}", "", ""},
		{"${env:A}", "alpha", ""},
		{"${env:NONE:-d}", "d", ""},
		{"${NONE}", "", "environment variable NONE is not set"},
		{"$A $$ $ {A} ${A", "$A $$ $ {A} ${A", ""},
		{"${A-B}", "${A-B}", ""},
		{"${}", "${}", ""},
		{"$${A}", "$alpha", ""},
		{"${userHome}${/}x", "/home/me" + string(filepath.Separator) + "x", ""},
		{"${input:token}", "", `only an editor can fill in "${input:token}", use an environment variable`},
		{"${workspaceFolder}", "", `only an editor can fill in "${workspaceFolder}", write the path`},
		{strings.Repeat("${LONG}", 17), "", "is longer than 1048576 bytes after expansion"},
	} {
		r := &serverReader{l: &loader{o: Options{Getenv: env}}, secrets: map[string]bool{}}
		got := r.expand(&node{text: tt.in})
		fault := ""
		if len(r.faults) > 0 {
			fault = r.faults[0].Text
		}
		if got != tt.want || fault != tt.fault {
			t.Errorf("expand(%.40q) = %q, fault %q; want %q, fault %q", tt.in, got, fault, tt.want, tt.fault)
		}
	}
}

func TestNearest(t *testing.T) {
	own := object{keys: emptyReader().ownKeys()}.names()
	for key, want := range map[string]string{
		"comand": "command", "commnad": "command", "COMMAND": "command", "cmd": "command",
		"arg": "args", "enviroment": "", "environment": "env", "header": "headers", "uri": "url",
		"readOnly": "read_only", "call-timeout": "call_timeout", "callTimout": "call_timeout",
		"ur": "", "foo": "", "something": "", "verbose": "", strings.Repeat("command", 1000): "",
	} {
		if got := nearest(key, own); got != want {
			t.Errorf("nearest(%q) = %q, want %q", key, got, want)
		}
	}
}

// emptyReader returns a reader that has read nothing, for tests of its descriptions of keys.
func emptyReader() *serverReader {
	return &serverReader{l: &loader{cfg: defaults("")}}
}

// TestKeysDoNotClash: mcpx reads none of the keys that it lists as ignored. No key that mcpx reads in a server for other clients
// has the name of one of its own keys.
func TestKeysDoNotClash(t *testing.T) {
	r := emptyReader()
	own, others, root := object{keys: r.ownKeys()}, object{keys: r.otherClientKeys()}, r.l.root()
	for _, key := range slices.Concat(others.names(), serverOfOtherClients, serverOfOlderSystems) {
		if own.key(key) != nil {
			t.Errorf("%s is in two tables of servers", key)
		}
	}
	for _, key := range slices.Concat(serverOfOtherClients, serverOfOlderSystems) {
		if others.key(key) != nil {
			t.Errorf("%s is in two tables of servers", key)
		}
	}
	for _, key := range slices.Concat(rootOfOtherClients, rootOfOlderSystems) {
		if root.key(key) != nil {
			t.Errorf("%s is in two tables of the root", key)
		}
	}
}

func TestSecretsStayOut(t *testing.T) {
	const secret = "hush-hush"
	c, err := Parse("c.json", []byte(`{
		"mcpServers": {
			"a": {"command": "x${S}", "args": ["${S}"], "env": {"E": "${S}"}},
			"b": {"url": "https://x/${S}", "headers": {"Authorization": "Bearer ${S}"}},
			"c": {"url": "${S}"}
		}}`), Options{Getenv: envOf("S=" + secret)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers {
		if len(s.Secrets) == 0 || s.Secrets[len(s.Secrets)-1] != secret {
			t.Errorf("secrets of %s: %q, want %q among them", s.Name, s.Secrets, secret)
		}
	}
	var out bytes.Buffer
	for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
		log.Info("x", "config", c, "value", *c, "server", c.Servers[0], "servers", c.Servers, "pointer", &c.Servers[1])
	}
	fmt.Fprintf(&out, "%v %+v %v %+v %s", c, *c, c.Servers, c.Servers[1], &c.Servers[0])
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	out.WriteString(c.Servers[2].Fault)
	if strings.Contains(out.String(), secret) {
		t.Errorf("the secret is in:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "Authorization") {
		t.Errorf("the name of the header is not in:\n%s", out.String())
	}
}

func TestSelfBySameFile(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "gateway-binary")
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "other-name")
	if err := os.Symlink(own, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"link": map[string]any{"command": link},
		"args": map[string]any{"command": link, "args": []string{"something"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("c.json", data, Options{Executable: own})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Servers) != 1 || c.Servers[0].Name != "args" {
		t.Errorf("servers %v, want only args", c.Servers)
	}
}

func TestExampleConfig(t *testing.T) {
	c, err := Load("../../../config.example.json", Options{Getenv: envOf("HOME=/home/me\nGITHUB_TOKEN=ghp_123456")})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 || len(c.ServerFaults()) > 0 {
		t.Errorf("warnings %q, faults %v; want none", c.Warnings, c.ServerFaults())
	}
	if got, want := fmt.Sprint(c.Servers), "[fetch filesystem github memory]"; got != want {
		t.Errorf("servers %s, want %s", got, want)
	}
	if got := c.Servers[2].Headers["Authorization"]; got != "Bearer ghp_123456" {
		t.Errorf("header %q", got)
	}
	if got := c.Servers[0].CallTimeout; got != 90*time.Second {
		t.Errorf("call_timeout %v", got)
	}
	// The values in the example must be the defaults.
	opts := cmpopts.IgnoreFields(Config{}, "Servers", "Path")
	if diff := cmp.Diff(defaults(""), c, opts, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("not the defaults (-default +example):\n%s", diff)
	}
}

// TestSecrets_Surroundings: values that only say where a program runs, or of what kind a secret is, are not secrets. If they
// were hidden, messages would become unreadable.
func TestSecrets_Surroundings(t *testing.T) {
	c, err := Parse("c.json", []byte(`{"mcpServers":{"a":{"command":"x","args":["${HOME}/Documents","${USER}","${MY_TOKEN}",
		"--dsn","sqlite:///home/me/shop.db","--dsn=mysql://me:struck-now@h/db","--dsn=sqlite://:struck-here@/home/me/shop.db"],
		"env":{"APP_DSN":"duckdb:///home/me/shop.db","AUTH_MODE":"production","TOKEN_COUNT":"80800","KEY_FILE":"/home/me/key","API_KEY":"struck-out"}}}}`),
		Options{Getenv: envOf("HOME=/home/me\nUSER=somebody\nMY_TOKEN=struck-too")})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Clone(c.Servers[0].Secrets)
	slices.Sort(got)
	if want := []string{"mysql://me:struck-now@h/db", "sqlite://:struck-here@/home/me/shop.db", "struck-here", "struck-now", "struck-out",
		"struck-too"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestChanged_Servers: Changed reports a changed server by its name. It does not report the key mcpServers, which contains the
// server, as well.
func TestChanged_Servers(t *testing.T) {
	before, _ := parsed(t, `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}}}`)
	now, _ := parsed(t, `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "B"}, "d": {"command": "d"}}, "structured_content": "never"}`)
	servers, keys := Changed(before, now)
	if !slices.Equal(servers, []string{"b"}) || !slices.Equal(keys, []string{"structured_content"}) {
		t.Errorf("got servers %q, keys %q", servers, keys)
	}
}

// TestNearKeys: a mistyped key in an object is a fault. Its text suggests a key that resembles it, if there is one.
func TestNearKeys(t *testing.T) {
	for at, want := range map[string]string{
		`"limits":{"call_per_minute":5}`:                         `limits.call_per_minute: unknown key "call_per_minute", did you mean "calls_per_minute"?`,
		`"limits":{"principal":{"call_per_minute":5}}`:           `limits.principal.call_per_minute: unknown key "call_per_minute", did you mean "calls_per_minute"?`,
		`"limits":{"address":{"conections":5}}`:                  `limits.address.conections: unknown key "conections", did you mean "connections"?`,
		`"auth":{"token":{}}`:                                    `auth.token: unknown key "token", did you mean "tokens"?`,
		`"auth":{"issuers":[{"issuer":"https://a.b","urls":1}]}`: `auth.issuers[0].urls: unknown key`,
		`"auth":{"rights":[{"principals":["*"],"server":[]}]}`:   `auth.rights[0].server: unknown key "server", did you mean "servers"?`,
		`"auth":{"front":{"client-id":"x"}}`:                     `auth.front.client-id: unknown key "client-id", did you mean "client_id"?`,
		`"audit":{"file":"x","requierd":true}`:                   `audit.requierd: unknown key "requierd", did you mean "required"?`,
		`"tls":{"cert":"a","key":"b","clientCA":"c"}`:            `tls.clientCA: unknown key "clientCA", did you mean "client_ca"?`,
		`"telemetry":{"metric":true}`:                            `telemetry.metric: unknown key "metric", did you mean "metrics"?`,
	} {
		_, err := Parse("c.json", []byte(`{"mcpServers":{},`+at+`}`), Options{})
		if got := fmt.Sprint(err); !strings.Contains(got, "c.json: "+want) || strings.Contains(want, "mean") != strings.Contains(got, "mean") {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
