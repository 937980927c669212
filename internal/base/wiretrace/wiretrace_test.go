package wiretrace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"mcpx/internal/base/sanitize"
)

func secretName(name string) bool {
	return strings.Contains(strings.ToLower(name), "token") || strings.Contains(name, "password")
}

func traced(t *testing.T, secrets []string, message string) map[string]any {
	t.Helper()
	var out bytes.Buffer
	trace := New(&out, secretName, func() *sanitize.Secrets { return sanitize.NewSecrets(secrets, nil) }, slog.New(slog.DiscardHandler))
	trace.Server("shop", true, []byte(message))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	return line
}

// TestTrace_secrets: secrets are removed wherever they occur in a message, and nothing else is removed.
func TestTrace_secrets(t *testing.T) {
	known := []string{"canary value", "canary\"quoted\\", "abc"}
	for _, text := range []string{
		`{"a":"has the canary value in it"}`,
		`{"a":"canary\"quoted\\"}`,
		`{"a":"{\"b\":\"canary\\\"quoted\\\\\"}"}`,
		`{"access_token":"canary"}`, `{"password" : "a\"canary"}`, `{"a":"{\"access_token\": \"canary\"}"}`, `{"a":"{\"password\":\"a\\\"canary\"}"}`,
		`{"password":7777777}`, `{"password" : -7777777.5e7, "a":1}`, `{"a":"{\"password\":7777777}"}`,
		`{"password":["canary","a\"canary"]}`, `{"password":[ 7777777, "", "canary", {"a":1}, "b"]}`, `{"password":["x",{"password":"canary"}]}`,
		`{"a":"{\"password\": [\"canary\", \"\", \"a\\\"canary\", 7777777]}"}`,
		`{"a":"{\n  \"Authorization_token\": [\n    \"canary1\",\r\n\t\"canary2\"\n  ]\n}"}`, `{"a":"{\"password\" :\n\t \"canary\"}"}`, `{"a":"{\"password\"\n:\n7777777}"}`,
		`{"password":[null,"canary"]}`, `{"password":[true, "canary", false , "canary"]}`, `{"password":[["canary"]]}`, `{"password":[["x"],[null,["canary"]], "canary"]}`,
		`{"password":[[],"canary"]}`, `{"a":"{\"password\": [\n null,\n [\n \"canary\"\n ],\n true, \"canary\"]}"}`,
		`{"a":"Authorization: Bearer canary.of-a/header=="}`, `{"a":"basic canarycanary"}`,
		`{"a":"mcpx_canary0123456789abcdef"}`, `{"a":"x ghp_canary0123456789abcdef"}`, `{"a":"eyJcanarycanary.eyJcanarycanary.canary"}`,
		`{"a":"-----BEGIN RSA PRIVATE KEY-----\ncanary\ncanary\n-----END RSA PRIVATE KEY-----"}`,
		`{"a":"postgres://user:canary@db/x"}`,
		`Bearer canary-without-json`,
		"\xff canary value",
	} {
		line := traced(t, known, text)
		got, _ := json.Marshal(line)
		valid := json.Valid([]byte(text)) == (line["message"] != nil)
		if strings.Contains(string(got), "canary") || strings.Contains(string(got), "7777777") || !strings.Contains(string(got), struck) || !valid {
			t.Errorf("%s\ngot %s", text, got)
		}
	}
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"a-token"},"arguments":{"abc":"abc"}}}`,
		`{"inputSchema":{"properties":{"token":{"type":"string","description":"A token."}}}}`,
		`{"maxTokens":100,"text":"<a>&b 9007199254740993 1.10","list":["token","x"]}`,
		`{"total_tokens":100,"password":"","token":true,"password":{"a":1},"token":[],"password":[{"a":"b"}],"token":null,"password":[null,true,[[]],{"a":"b"}],"a":"b","token":[[]],"b":["c"]}`,
	} {
		var out bytes.Buffer
		New(&out, secretName, func() *sanitize.Secrets { return nil }, slog.New(slog.DiscardHandler)).Client("stdio", false, []byte(text))
		if !strings.Contains(out.String(), `,"message":`+text+"}\n") {
			t.Errorf("%s\ngot %s", text, out.String())
		}
	}
}

// TestTrace_bounds: a long message is cut, and a message that is invalid JSON is written as text.
func TestTrace_bounds(t *testing.T) {
	line := traced(t, nil, `{"a":"`+strings.Repeat("x", 10<<20)+`"}`)
	if text, _ := line["text"].(string); len(text) != maxMessage+3 || line["bytes"].(float64) != 10<<20+8 || line["message"] != nil {
		t.Errorf("%d bytes: %v", len(text), line["bytes"])
	}
	secret := "canary" + strings.Repeat("s", 100)
	line = traced(t, []string{secret}, strings.Repeat("x", maxMessage-50)+secret) // the secret is partly after maxMessage
	if text := line["text"].(string); strings.Contains(text, "canary") {
		t.Error(text[maxMessage-100:])
	}
	if line := traced(t, nil, "hello {"); line["text"] != "hello {" || line["from"] != "server shop" || line["to"] != "mcpx" {
		t.Error(line)
	}
}

// TestTrace_failing: an error of the writer is logged only once.
func TestTrace_failing(t *testing.T) {
	var log bytes.Buffer
	read, write := io.Pipe()
	read.CloseWithError(errors.New("no room"))
	trace := New(write, secretName, func() *sanitize.Secrets { return nil }, slog.New(slog.NewTextHandler(&log, nil)))
	trace.Client("stdio", true, []byte("{}"))
	trace.Client("stdio", true, []byte("{}"))
	if strings.Count(log.String(), "no room") != 1 {
		t.Error(log.String())
	}
}
