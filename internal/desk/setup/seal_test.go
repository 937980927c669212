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
	got, err := Seal("config.json", []byte(before), o, look, 100)
	after, secrets := got.Text, got.Secrets
	if err != nil || got.Servers != 7 || len(got.Left) > 0 {
		t.Fatalf("%d servers, left %q, %v", got.Servers, got.Left, err)
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
	again, err := Seal("config.json", after, o, look, 100)
	if err != nil || len(again.Secrets) > 0 || string(again.Text) != string(after) {
		t.Errorf("again: %v, %v\n%s", again.Secrets, err, again.Text)
	}
}

// TestSeal_TooLarge: Seal leaves a credential that is too large for the keyring in the config, and names its place.
func TestSeal_TooLarge(t *testing.T) {
	long := strings.Repeat("x", 30)
	before := `{"mcpServers": {"signs": {"url": "https://l.example.com", "headers": {"Authorization": "Bearer ` + long + `", "X-Api-Key": "hush-1111"},
		"oauth": {"grant": "private_key_jwt", "client_id": "me", "key": "-----BEGIN\n` + strings.Repeat("y", 29) + `\nEND-----\n"}}}}`
	got, err := Seal("config.json", []byte(before), reading, func(string) (string, bool) { return "", false }, 29)
	want := strings.Replace(before, "hush-1111", "${keyring:signs.X-Api-Key}", 1)
	if err != nil || string(got.Text) != want || len(got.Secrets) != 1 || got.Servers != 1 {
		t.Errorf("%v, %v\n%s", got.Secrets, err, got.Text)
	}
	if left := strings.Join(got.Left, " "); left != "mcpServers.signs.headers.Authorization mcpServers.signs.oauth.key" {
		t.Errorf("left %q", left)
	}
}
