package setup

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/desk/config"
)

// TestSeal: Seal replaces the credentials of all servers by references and changes nothing else. The new config gives the
// same servers as before.
func TestSeal(t *testing.T) {
	const before = `// mine
{
  "mcpServers": {
    "one": { // a comment
      "command": "x",
      "args": ["--token", "hush-1111", "postgres://me:hush-2222@db/x", "--verbose"],
      "env": {"API_KEY": "hush-3333", "MODE": "plain", "OTHER_KEY": "${FROM_ENV}", "PRIVATE_KEY": "-----BEGIN\nhush-4444-hush-4444\nEND"},
    },
    "my server": {"url": "https://x.example.com/?api_key=hush-5555", "headers": {"Authorization": "Bearer hush-6666", "X": "y"}},
    "two": {"command": ["x", "--api-key=hush-1111"], "env": {"API_KEY": "hush-7777"}},
    "done": {"command": "x", "env": {"API_KEY": "${keyring:done.API_KEY}"}},
    "plain": {"command": "x"},
    "login": {"url": "https://l.example.com", "oauth": {"client_id": "me", "client_secret": "hush-1234"}},
    "claude": {"url": "https://l.example.com", "oauth": {"clientId": "me", "clientSecret": "hush-1235"}},
    "signs": {"url": "https://l.example.com", "oauth": {"grant": "private_key_jwt", "client_id": "me", "key": "-----BEGIN\nhush-1236-hush-1236\nEND-----\n"}},
    "signs by file": {"url": "https://l.example.com", "oauth": {"grant": "private_key_jwt", "client_id": "me", "key": "/a/folder/key.pem"}},
    "tricky": {"command": "x", "env": {"URL": "http://h/?token=hush-9999&secret=keyring", "A_TOKEN": "keyring"}},
  },
}
`
	kept := map[string]string{"one.API_KEY": "another", "two.API_KEY": "hush-7777", "done.API_KEY": "hush-8888"}
	look := func(name string) (string, bool) { value, ok := kept[name]; return value, ok }
	o := reading
	o.Getenv = func(name string) (string, bool) { return "of the environment", name == "FROM_ENV" }
	after, secrets, servers, err := Seal("config.json", []byte(before), o, look)
	if err != nil || servers != 7 {
		t.Fatalf("%d servers, %v", servers, err)
	}
	if strings.Contains(string(after), "hush-") {
		t.Errorf("got\n%s", after)
	}
	for _, want := range []string{
		"// mine\n", "// a comment", `["--token", "${keyring:one.argument}", "postgres://me:${keyring:one.argument-2}@db/x", "--verbose"]`,
		`"API_KEY": "${keyring:one.API_KEY-2}", "MODE": "plain", "OTHER_KEY": "${FROM_ENV}", "PRIVATE_KEY": "${keyring:one.PRIVATE_KEY}"}`,
		`"https://x.example.com/?api_key=${keyring:my_server.url}"`, `"Authorization": "Bearer ${keyring:my_server.Authorization}", "X": "y"`,
		`"client_id": "me", "client_secret": "${keyring:login.client_secret}"`, `"clientSecret": "${keyring:claude.clientSecret}"`,
		`"key": "${keyring:signs.key}\n"`, `"key": "/a/folder/key.pem"`,
		`["x", "--api-key=${keyring:two.argument}"]`, `"${keyring:two.API_KEY}"`, `"${keyring:done.API_KEY}"`,
	} {
		if !strings.Contains(string(after), want) {
			t.Errorf("no %s in\n%s", want, after)
		}
	}
	for _, secret := range secrets {
		kept[secret.Name] = secret.Value
	}
	o.Keyring = func(name string) (string, error) { return kept[name], nil }
	was, _ := config.Parse("config.json", []byte(before), o)
	now, err := config.Parse("config.json", after, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range was.Servers {
		a, b := was.Servers[i], now.Servers[i]
		if fmt.Sprint(a.Name, a.Command, a.Args, a.Env, a.URL, a.Headers, a.OAuth, a.Fault) != fmt.Sprint(b.Name, b.Command, b.Args, b.Env, b.URL, b.Headers, b.OAuth, b.Fault) {
			t.Errorf("%s is another server now", a.Name)
		}
	}
	// A second Seal finds nothing to replace.
	again, secrets, _, err := Seal("config.json", after, o, look)
	if err != nil || len(secrets) > 0 || string(again) != string(after) {
		t.Errorf("again: %v, %v\n%s", secrets, err, again)
	}
}
