package app

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
)

// TestCacheKey: another credential gives another definition, but the same key for the cached catalogue.
func TestCacheKey(t *testing.T) {
	keys := func(server string, env map[string]string) (key, definition string) {
		t.Helper()
		cfg, err := config.Parse("c.json", []byte(`{"mcpServers":{`+server+`}}`), config.Options{Getenv: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		}})
		if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].Fault != "" {
			t.Fatalf("%s: %v", server, err)
		}
		one := (&builder{logins: Logins(nil), trace: func(string) func(bool, []byte) { return nil }}).server(cfg, cfg.Servers[0])
		return one.Key, one.Definition
	}
	for _, test := range []struct {
		name, one, other string
		same             bool
	}{
		{"env", `"a":{"command":"x","env":{"API_TOKEN":"old-token"}}`, `"a":{"command":"x","env":{"API_TOKEN":"new-token"}}`, true},
		{"variable", `"a":{"command":"x","env":{"API":"${OLD_KEY}"}}`, `"a":{"command":"x","env":{"API":"${NEW_KEY}"}}`, true},
		{"header", `"a":{"url":"https://h/","headers":{"Authorization":"Bearer old-token"}}`, `"a":{"url":"https://h/","headers":{"Authorization":"Bearer new-token"}}`, true},
		{"header of a variable", `"a":{"url":"https://h/","headers":{"X-Team":"${OLD}"}}`, `"a":{"url":"https://h/","headers":{"X-Team":"${NEW}"}}`, true},
		{"args", `"a":{"command":"x","args":["--api-key=old-token"]}`, `"a":{"command":"x","args":["--api-key=new-token"]}`, true},
		{"url", `"a":{"url":"https://h/?api_key=old-token"}`, `"a":{"url":"https://h/?api_key=new-token"}`, true},
		{"another setting", `"a":{"command":"x","env":{"STAGE":"production"}}`, `"a":{"command":"x","env":{"STAGE":"development"}}`, false},
		{"another variable", `"a":{"command":"x","args":["${OLD}"]}`, `"a":{"command":"x","args":["${NEW}"]}`, false},
		{"another toolset", `"a":{"url":"https://h/","headers":{"X-Toolsets":"issues"}}`, `"a":{"url":"https://h/","headers":{"X-Toolsets":"repositories"}}`, false},
		{"another account", `"a":{"command":"x","env":{"API_TOKEN":"old-token"}}`, `"b":{"command":"x","env":{"API_TOKEN":"new-token"}}`, false},
		{"no credential", `"a":{"command":"x","env":{"API_TOKEN":"old-token"}}`, `"a":{"command":"x"}`, false},
	} {
		env := map[string]string{"OLD_KEY": "old-token", "NEW_KEY": "new-token", "OLD": "one-value", "NEW": "other-value"}
		key, definition := keys(test.one, env)
		otherKey, otherDefinition := keys(test.other, env)
		if (key == otherKey) != test.same {
			t.Errorf("%s: the same key is %t, want %t", test.name, key == otherKey, test.same)
		}
		if definition == otherDefinition && test.name != "another account" {
			t.Errorf("%s: the same definition", test.name)
		}
	}
}

// TestDefinition: if a field of a server changes, the server restarts, unless the field is one of liveFields.
func TestDefinition(t *testing.T) {
	cfg := &config.Config{}
	before := definition(cfg, config.Server{})
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Server]()) {
		if !field.IsExported() || field.Anonymous {
			continue
		}
		var s config.Server
		fill(t, reflect.ValueOf(&s).Elem().FieldByIndex(field.Index))
		if live, same := slices.Contains(liveFields, field.Name), definition(cfg, s) == before; live != same {
			t.Errorf("%s: live is %t, but the definition is the same: %t", field.Name, live, same)
		}
	}
	// These fields must not be in liveFields, because a running process cannot change them.
	for _, name := range []string{"Type", "Command", "Args", "Env", "Cwd", "URL", "Headers", "Framing", "Enabled", "Session", "Secrets"} {
		if slices.Contains(liveFields, name) {
			t.Errorf("%s cannot take effect while a server runs", name)
		}
	}
	for _, name := range liveFields {
		if _, ok := reflect.TypeFor[config.Server]().FieldByName(name); !ok {
			t.Errorf("there is no field %s", name)
		}
	}
	for name, changed := range map[string]*config.Config{
		"health checks": {ForServers: config.ForServers{Health: conf.Health{Interval: time.Second}}},
		"message size":  {ForServers: config.ForServers{MaxMessageBytes: 1}},
	} {
		if definition(changed, config.Server{}) == before {
			t.Errorf("%s: the definition is the same", name)
		}
	}
}

// fill sets v, and everything in it, to a value other than zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Array:
		fill(t, v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Uint8:
		v.SetUint('7')
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		fill(t, element)
		v.SetMapIndex(reflect.ValueOf("x"), element)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("a field of kind %s: say here how to set it", v.Kind())
	}
}
