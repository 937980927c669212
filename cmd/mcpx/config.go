package main

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"

	"mcpx/internal/app"
	"mcpx/internal/desk/attach"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/secret"
)

// loadConfig finds and reads the config file. It looks up the secrets of the servers in names or, if names is empty, the secrets
// of all servers.
func (c *cli) loadConfig(ctx context.Context, s streams, names ...string) (*config.Config, error) {
	path, err := c.findConfig(s)
	if err != nil {
		return nil, err
	}
	return readConfig(ctx, path, s, names...)
}

// loadServers finds and reads the config file for a command that needs only the servers in it. It looks up the secrets of the
// servers in names or, if names is empty, the secrets of all servers. Secrets that only a hosted mcpx needs, such as
// auth.front.client_secret, may be missing.
func (c *cli) loadServers(ctx context.Context, s streams, names ...string) (*config.Config, error) {
	s.absent = true
	return c.loadConfig(ctx, s, names...)
}

func (c *cli) findConfig(s streams) (string, error) {
	folder, _ := os.UserConfigDir() // if this fails, folder is empty
	return config.Find(c.Config, s.getenv, s.terminal, folder)
}

// readConfig reads the config file at path. It looks up the secrets of the servers in names or, if names is empty, the secrets of
// all servers.
func readConfig(ctx context.Context, path string, s streams, names ...string) (*config.Config, error) {
	o := s.readingSecrets(ctx)
	o.Run = func(argv []string) (string, error) { return secret.Run(ctx, argv, s.origin.Folder, s.origin.Environ) }
	o.Only = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	cfg, err := config.Load(path, o)
	if err == nil && ctx.Err() != nil { // cfg may have faults only because ctx has ended while secrets were looked up
		return nil, ctx.Err()
	}
	return cfg, err
}

// reading returns the options for reading config files without looking up secrets.
func (s streams) reading() config.Options {
	self, _ := os.Executable() // if that fails, entries that start mcpx are recognized by the name of the program
	return config.Options{Getenv: s.getenv, Executable: self, Absent: s.absent}
}

// variables returns the names of the environment variables that mcpx itself and a config file use, and that are set. Others are
// left out, because some users write a token where a name belongs.
func (s streams) variables(file string) []string {
	o, used := s.reading(), map[string]bool{}
	o.Getenv = func(name string) (string, bool) {
		value, set := s.getenv(name)
		if set {
			used[name] = true
		}
		return value, set
	}
	_, _ = config.Load(file, o) // the caller reports the faults of the file
	return append(slices.Sorted(maps.Keys(used)), attach.Own(os.Environ())...)
}

// readingSecrets returns the options for reading config files with the secrets from the keyring. It does not run the commands with
// which a config can obtain secrets.
func (s streams) readingSecrets(ctx context.Context) config.Options {
	o, secrets := s.reading(), app.Secrets()
	o.Keyring = func(name string) (string, error) { return secrets.Get(ctx, name) }
	return o
}

// logger returns a logger to stderr. --log-level overrides level.
func (c *cli) logger(s streams, level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: levelOf(cmp.Or(string(c.LogLevel), level))}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(s.err, options))
	}
	return slog.New(slog.NewTextHandler(s.err, options))
}

// levelOf returns the level with a name of the config key log_level; info for any other name.
func levelOf(name string) (level slog.Level) {
	if level.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return level
}

// startOrKeep returns an app for one command: a new one or, in the daemon, one that several commands share. The caller must call
// done when it no longer uses the app.
func (c *cli) startOrKeep(s streams, cfg *config.Config, profile app.Profile, names ...string) (a *app.App, done func(), err error) {
	if s.keep != nil {
		return s.keep(cfg, profile, names...)
	}
	if a, err = c.start(s, cfg, profile, names...); err != nil {
		return nil, nil, err
	}
	return a, a.Close, nil
}

// start makes an app and starts the servers in names or, if names is empty, all servers. If the profile is app.Command, it also
// starts servers that would otherwise start at their first call. If it is app.Look, it starts only servers whose tools are not
// on disk. The caller closes the app.
func (c *cli) start(s streams, cfg *config.Config, profile app.Profile, names ...string) (*app.App, error) {
	a, err := app.New(app.Options{
		Config: cfg, Profile: profile, Log: c.logger(s, "error", cfg.LogFormat), Only: names, Origin: s.origin,
	})
	if err != nil {
		return nil, err
	}
	if profile == app.Command {
		for _, server := range cfg.Servers {
			a.Registry.Ask(server.Name)
		}
	}
	a.Registry.Start()
	return a, nil
}
