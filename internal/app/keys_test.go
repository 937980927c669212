package app

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/identity"
)

// How a change of each field of a config takes effect while mcpx runs, beside those of
// fromNextStart. Where the members of an object differ in that, they are here one by one.
var (
	// live are in force with the swap.
	live = []string{
		"Servers", "HealthCheck", "Groups", "Clients", "DisabledTools", "Resources", "Prompts", "Apps", "ReadDoor",
		"SchemaCompression", "ToonCompression", "Compress", "Separator", "Prefix", "ShortArgumentNames", "StructuredContent",
		"CatalogueTokenBudget", "CatalogueCharLimit", "MaxDescriptionLen", "ResultTokenLimit", "ResultPreviewTokens",
		"MaxConcurrency", "StartupWait", "ExecWait", "Secrets",
		"Limits.All", "Limits.Principal", "Limits.Server", "Limits.AddressRequests", "Limits.AddressConnections",
		"Auth.Resource", "Auth.Audiences", "Auth.Scopes", "Auth.Tokens", "Auth.Rights", "Auth.Issuers", "Auth.Front",
	}
	// restarting are among the live ones: the servers concerned stop and start.
	restarting = []string{"HealthCheck"}
	// read says what is for the log, or is in Servers already.
	read = []string{"Path", "Commands", "Warnings", "Confirm"}
)

// fieldsOf are the fields of a config by their paths: the members of an object in place of it
// where some table has a member.
func fieldsOf(tables ...[]string) (paths []string) {
	all := slices.Concat(tables...)
	for field := range reflect.TypeFor[config.Config]().Fields() {
		of := field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if !slices.ContainsFunc(all, func(path string) bool { return strings.HasPrefix(path, field.Name+".") }) {
			paths = append(paths, field.Name)
			continue
		}
		for member := range of.Fields() {
			paths = append(paths, field.Name+"."+member.Name)
		}
	}
	return paths
}

// TestKeys: every field of a config is in one table, and takes effect as that says.
func TestKeys(t *testing.T) {
	for _, folder := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HOME"} {
		t.Setenv(folder, t.TempDir())
	}
	later := make([]string, len(fromNextStart))
	for i, one := range fromNextStart {
		later[i] = one.field
	}
	paths := fieldsOf(live, read, later)
	for _, path := range slices.Concat(live, read, later) {
		if !slices.Contains(paths, path) {
			t.Errorf("%s is in a table, and no field", path)
		}
	}
	b, cfg := builderOf(t, Hosted), keysConfig(t)
	before := built(t, b, cfg, nil)
	for _, path := range paths {
		tables := 0
		for _, table := range [][]string{live, read, later} {
			if slices.Contains(table, path) {
				tables++
			}
		}
		if tables != 1 {
			t.Errorf("%s is in %d tables", path, tables)
			continue
		}
		to := altered(t, cfg, path)
		var want []string
		if i := slices.Index(later, path); i >= 0 {
			want = []string{fromNextStart[i].key}
		}
		if got := nextStart(cfg, to); !slices.Equal(got, want) {
			t.Errorf("%s: the keys from the next start are %q, want %q", path, got, want)
		}
		next := built(t, b, to, before)
		changes := !reflect.DeepEqual(effects(before), effects(next))
		if is := slices.Contains(live, path); is && !changes || !is && changes && slices.Contains(read, path) {
			t.Errorf("%s: the Runtime changes: %t", path, changes)
		}
		if restarts := before.servers[0].Definition != next.servers[0].Definition; restarts != slices.Contains(restarting, path) {
			t.Errorf("%s: the server restarts: %t", path, restarts)
		}
		next.end(before)
	}
	// Whether servers can be changed over HTTP depends on auth, where the key says nothing.
	cfg = altered(t, cfg, "API")
	cfg.API = nil
	to := *cfg
	to.Auth = nil
	if got := nextStart(cfg, &to); !slices.Contains(got, "api") {
		t.Errorf("without auth: %q", got)
	}
}

// keysConfig is a config in which each field can make a difference.
func keysConfig(t *testing.T) *config.Config {
	t.Helper()
	cfg, err := config.Parse("keys.json", []byte(`{"mcpServers":{"one":{"command":"one"}},"groups":{"g":["one"]},"api":false,
		"auth":{"resource":"https://mcp.example.com/mcp","issuers":[{"issuer":"https://issuer.example.com"}]}}`), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// altered is a config with another value of one field.
func altered(t *testing.T, cfg *config.Config, path string) *config.Config {
	t.Helper()
	to := *cfg
	auth := *cfg.Auth
	to.Auth = &auth
	v := reflect.ValueOf(&to).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v = reflect.Indirect(v).FieldByName(name)
	}
	was := v.Interface()
	if path == "Servers" {
		to.Servers = slices.Clone(cfg.Servers)
		to.Servers[0].Description = "another"
	} else if fill(t, v); reflect.DeepEqual(v.Interface(), was) {
		v.SetZero()
	}
	return &to
}

func builderOf(t *testing.T, profile Profile) *builder {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	return &builder{
		profile: profile, view: config.ViewTwoTools, log: log, reaper: proc.NewReaper(), logins: Logins(log), state: newClientState(log),
		trace: func(string) func(bool, []byte) { return nil },
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

// effects are all that the parts read in a Runtime.
func effects(r *Runtime) []any {
	who := identity.NewVerifier(func() *identity.State { return r.identity }).Options()
	all := []any{r.registry, r.calls.Options, r.limits, who, r.authServer, r.secrets}
	for _, name := range []string{config.ViewTwoTools, config.ViewTools, config.ViewServer + "one", config.ViewGroup + "g"} {
		all = append(all, r.settings(name).Options)
	}
	for _, s := range r.servers {
		all = append(all, s.Definition, s.Description, s.Disabled, s.Fault, s.SessionIdle, s.Spec.Concurrency.Max, s.Spec.Concurrency.Queue)
	}
	return all
}
