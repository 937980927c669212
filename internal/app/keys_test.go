package app

import (
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/hosted/identity"
)

// read has the fields of a config that do not belong to a single config key.
var read = []string{"ExecWaitSet", "Path", "Commands", "Referred", "Warnings", "Secrets"}

// within reports whether a pointer points into a struct.
func within(pointer any, of reflect.Value) bool {
	at := reflect.ValueOf(pointer).Pointer()
	return at >= of.UnsafeAddr() && at < of.UnsafeAddr()+of.Type().Size()
}

// TestKeys: a change of a config key takes effect as the table of keys says: with a reload, with a restart of the servers, or
// at the next start of mcpx. Each field of a config belongs to a key.
func TestKeys(t *testing.T) {
	ownFolders(t)
	b, cfg := builderOf(t, Hosted), keysConfig(t)
	before := built(t, b, cfg, nil)
	taken := make(map[string]bool)
	for i, key := range config.Keys(cfg) {
		of, auth := reflect.ValueOf(cfg).Elem(), reflect.ValueOf(cfg.Auth).Elem()
		for _, field := range reflect.VisibleFields(of.Type()) {
			if within(key.Value, of.FieldByIndex(field.Index)) {
				taken[field.Name] = true
			}
		}
		inAuth := within(key.Value, auth)
		if !within(key.Value, of) && !inAuth && key.Path != "api" && key.Path != "learn" {
			continue // settings that all servers have are in Servers, which TestDefinition covers
		}
		to := keysConfig(t)
		alter(t, key.Path, config.Keys(to)[i].Value, to)
		var want []string
		if key.AtStart {
			want = []string{key.Path}
		}
		if got := config.NextStart(cfg, to); !slices.Equal(got, want) {
			t.Errorf("%s: the keys from the next start are %q, want %q", key.Path, got, want)
		}
		next := built(t, b, to, before)
		if changes := !reflect.DeepEqual(effects(before), effects(next)); !changes && !key.AtStart {
			t.Errorf("%s: the Runtime does not change", key.Path)
		}
		restarts := before.servers[0].Definition != next.servers[0].Definition
		if restarts != key.Restarts {
			t.Errorf("%s: the server restarts: %t", key.Path, restarts)
		}
		next.end(before)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Config]()) {
		if taken[field.Name] == slices.Contains(read, field.Name) && field.Name != "Auth" && field.Name != "API" && field.Name != "Learn" {
			t.Errorf("%s is read from a key: %t", field.Name, taken[field.Name])
		}
	}
	struck := keysConfig(t)
	struck.Secrets = []string{"of no server"}
	next := built(t, b, struck, before)
	if reflect.DeepEqual(effects(before), effects(next)) {
		t.Error("a secret that is new does not change the Runtime")
	}
	next.end(before)
	// If the key learn is missing, auth decides whether mcpx learns. If auth was removed from the file, it is still effective
	// until the next start.
	to, learning := *keysConfig(t), *keysConfig(t)
	to.Auth, learning.Learn = nil, new(true)
	if next := built(t, b, &to, before); next.calls.Learn {
		t.Error("learns as soon as auth is gone from the file")
	}
	if next := built(t, b, &learning, before); !next.calls.Learn || keysConfig(t).Learns() || !to.Learns() {
		t.Error("learn does not decide")
	}
	// If the key api is missing, auth decides whether servers can be changed over HTTP.
	cfg.API = nil
	to = *cfg
	to.Auth = nil
	if got := config.NextStart(cfg, &to); !slices.Contains(got, "api") {
		t.Errorf("without auth: %q", got)
	}
}

// keysConfig returns a config in which a change of any field has an effect.
func keysConfig(t *testing.T) *config.Config {
	t.Helper()
	cfg, err := config.Parse("keys.json", []byte(`{"mcpServers":{"one":{"command":"one"}},"groups":{"g":["one"]},"api":false,
		"auth":{"resource":"https://mcp.example.com/mcp","issuers":[{"issuer":"https://issuer.example.com"}]}}`), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// alter changes the value of a config key.
func alter(t *testing.T, path string, into any, cfg *config.Config) {
	t.Helper()
	v := reflect.ValueOf(into).Elem()
	was := v.Interface()
	switch path {
	case "mcpServers":
		cfg.Servers = slices.Clone(cfg.Servers)
		cfg.Servers[0].Description = "another"
	case "api":
		cfg.API = new(!cfg.ChangesServers())
	case "learn":
		cfg.Learn = new(!cfg.Learns())
	default:
		if fill(t, v); reflect.DeepEqual(v.Interface(), was) {
			v.SetZero()
		}
	}
}

func builderOf(t *testing.T, profile Profile) *builder {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	return &builder{
		profile: profile, view: config.ViewTwoTools, log: log, reaper: proc.NewReaper(), logins: Logins(log), state: newClientState(0),
		trace: func(string) func(bool, []byte) { return nil }, dialledIn: func() []dial.Server { return nil },
	}
}

func built(t *testing.T, b *builder, cfg *config.Config, before *Runtime) *Runtime {
	t.Helper()
	r, err := b.build(cfg, before)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.end(nil) })
	return r
}

// effects returns what other packages read from a Runtime; of the servers only some fields.
func effects(r *Runtime) []any {
	who := identity.NewVerifier(func() *identity.State { return r.identity }).Options()
	all := []any{r.registry, r.calls.Options, r.limits, who, r.authServer, r.struck, r.config.Dial, r.config.Registry}
	for _, name := range []string{config.ViewTwoTools, config.ViewTools, config.ViewServer + "one", config.ViewGroup + "g"} {
		all = append(all, r.settings(name).Options)
	}
	for _, s := range r.servers {
		all = append(all, s.Definition, s.Description, s.Disabled, s.Fault, s.SessionIdle, s.Spec.Concurrency.Max, s.Spec.Concurrency.Queue)
	}
	return all
}
