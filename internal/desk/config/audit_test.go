package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestAbsent: a command that needs no secrets reads a file in which all references outside of servers lack a value. They stay as
// they are written, and paths are beside the file.
func TestAbsent(t *testing.T) {
	o := Options{Absent: true, Getenv: func(string) (string, bool) { return "", false }}
	c, err := Parse(filepath.FromSlash("/etc/mcpx/config.json"), []byte(`{"mcpServers":{},
		"cluster":{"nats":["${NATS}"],"key":["${NEW}","${OLD}"],"credentials":"${CREDENTIALS}","tls":{"cert":"${DIR}/c.pem","key":"k.pem"}},
		"audit":{"file":"audit-${NAME}.jsonl","key":"${KEY}"},"dial":{"compat":"signed","compat_key":"${KEY}"},
		"tls":{"cert":"${DIR}/c.pem","key":"${DIR}/k.pem","client_ca":"${DIR}/ca.pem"},"programs":{"dir":"${DIR}"},
		"telemetry":{"otlp":{"endpoint":"${OTLP}"}},
		"auth":{"resource":"https://mcp.example.com/mcp","certificates":true,
			"front":{"issuer":"https://login.example.com","client_id":"${ID}","client_secret":"${SECRET}","key":"${KEY}"}}}`), o)
	if err != nil {
		t.Fatal(err)
	}
	got := append([]string{c.Audit.File, c.Cluster.TLS.Cert, c.TLS.ClientCA, c.Programs.Dir}, append(c.Cluster.NATS, c.Cluster.Keys...)...)
	beside := func(path string) string { return filepath.FromSlash("/etc/mcpx/" + path) }
	want := []string{beside("audit-${NAME}.jsonl"), beside("${DIR}/c.pem"), beside("${DIR}/ca.pem"), beside("${DIR}"), "${NATS}", "${NEW}", "${OLD}"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestAudit(t *testing.T) {
	o := Options{Getenv: func(name string) (string, bool) {
		value, ok := map[string]string{"KEY": "0123456789abcdef", "NAME": "one", "HOME": "/home/ann", "AUTHORIZATION": "Bearer of-the-collector"}[name]
		return value, ok
	}}
	file := filepath.FromSlash("/etc/mcpx/config.json")
	c, err := Parse(file, []byte(`{"mcpServers":{}, "audit":{"file":"audit-${NAME}.jsonl","required":true,"key":"${KEY}","max_bytes":100000,"keep":3},
		"telemetry":{"metrics":false,"otlp":{"endpoint":"http://127.0.0.1:4318","headers":{"authorization":"${AUTHORIZATION}"},"sample":0.5}}}`), o)
	if err != nil {
		t.Fatal(err)
	}
	if a := *c.Audit; !reflect.DeepEqual(a, Audit{filepath.FromSlash("/etc/mcpx/audit-one.jsonl"), true, []string{"0123456789abcdef"}, 100000, 3}) {
		t.Errorf("%+v", a)
	}
	if o := c.Telemetry.OTLP; c.Telemetry.Metrics || o.Endpoint != "http://127.0.0.1:4318/v1/traces" || o.Headers["authorization"] != "Bearer of-the-collector" || o.Sample != 0.5 {
		t.Errorf("%+v", o)
	}
	if secrets := strings.Join(c.Secrets, " "); !strings.Contains(secrets, "0123456789abcdef") || !strings.Contains(secrets, "Bearer of-the-collector") {
		t.Error(secrets)
	}
	c, err = Parse(file, []byte(`{"mcpServers":{},"audit":{"file":"x","key":["new key of the trail","${KEY}"]}}`), o)
	if err != nil || !reflect.DeepEqual(c.Audit.Keys, []string{"new key of the trail", "0123456789abcdef"}) {
		t.Errorf("%v %+v", err, c)
	}
	for _, off := range []string{`{}`, `{"audit":false}`, `{"audit":{"enabled":false,"file":"x"}}`, `{"audit":null,"telemetry":{}}`} {
		c, err := Parse(file, []byte(strings.Replace(off, "{", `{"mcpServers":{},`, 1)), o)
		if off == `{}` {
			c, err = Parse(file, []byte(`{"mcpServers":{}}`), o)
		}
		if err != nil || c.Audit != nil || !c.Telemetry.Metrics || c.Telemetry.OTLP != nil {
			t.Errorf("%s: %v, %+v", off, err, c)
		}
	}
	for text, want := range map[string]string{
		`"audit":"/var/log/mcpx"`:                                  "audit: must be an object",
		`"audit":{"required":true}`:                                `needs a "file"`,
		`"audit":{"file":"x","key":"short"}`:                       "at least 16 characters",
		`"audit":{"file":"x","key":""}`:                            "at least 16 characters",
		`"audit":{"file":"x","key":["0123456789abcdef","short"]}`:  "audit.key[1]: must be at least 16 characters",
		`"audit":{"file":"x","key":["0123456789abcdef",""]}`:       "audit.key[1]: must be at least 16 characters",
		`"audit":{"file":"x","key":["0123456789abcdef",7]}`:        "audit.key[1]: must be",
		`"audit":{"file":"x","key":[]}`:                            "audit.key: must not be empty",
		`"audit":{"file":"x","key":"${NOTHING}"}`:                  "environment variable NOTHING is not set",
		`"audit":{"file":"x","requierd":true}`:                     "audit.requierd: unknown key",
		`"audit":{"file":"x","sign":true}`:                         "audit.sign: unknown key",
		`"audit":{"file":"x","max_bytes":10}`:                      "must be at least 65536",
		`"telemetry":{"otlp":{"endpoint":"collector:4318"}}`:       "must be the URL of a collector",
		`"telemetry":{"otlp":{"sample":1}}`:                        `needs an "endpoint"`,
		`"telemetry":{"otlp":{"endpoint":"http://x","sample":2}}`:  "from 0 to 1",
		`"telemetry":{"otlp":{"endpoint":"http://x","sample":""}}`: "from 0 to 1",
	} {
		if _, err := Parse(file, []byte(`{"mcpServers":{},`+text+`}`), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
