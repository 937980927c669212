package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"

	"mcpx/internal/app"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/secret"
)

// loadConfig finds and reads the config file. It looks up the secrets of the servers in only; if only is
// empty, those of all servers.
func (c *cli) loadConfig(ctx context.Context, s streams, only ...string) (*config.Config, error) {
	path, err := c.findConfig(s)
	if err != nil {
		return nil, err
	}
	return readConfig(ctx, path, s, only...)
}

// loadServers is loadConfig for commands that need only the servers. Variables for other secrets, such as auth.front.client_secret,
// may be unset.
func (c *cli) loadServers(ctx context.Context, s streams, only ...string) (*config.Config, error) {
	s.absent = true
	return c.loadConfig(ctx, s, only...)
}

func (c *cli) findConfig(s streams) (string, error) {
	folder, _ := os.UserConfigDir() // if this fails, folder is empty
	return config.Find(c.Config, s.getenv, s.terminal, folder)
}

// readConfig is [cli.loadConfig] for a file whose path is known.
func readConfig(ctx context.Context, path string, s streams, only ...string) (*config.Config, error) {
	o := s.readingSecrets(ctx)
	o.Run = func(argv []string) (string, error) { return secret.Run(ctx, argv, s.origin.Folder, s.origin.Environ) }
	o.Only = slices.DeleteFunc(only, func(name string) bool { return name == "" })
	cfg, err := config.Load(path, o)
	if err == nil && ctx.Err() != nil { // once ctx has ended, the faults in cfg prove nothing: lookups of secrets were cut short
		return nil, ctx.Err()
	}
	return cfg, err
}

// reading returns the options for reading config files without looking up secrets.
func (s streams) reading() config.Options {
	self, _ := os.Executable() // if unknown, entries of mcpx are recognized by name only
	return config.Options{Getenv: s.getenv, Executable: self, Absent: s.absent}
}

// readingSecrets is [streams.reading] with a lookup of secrets in the keyring. It does not run the commands by
// which a config may obtain secrets.
func (s streams) readingSecrets(ctx context.Context) config.Options {
	o, secrets := s.reading(), app.Secrets()
	o.Keyring = func(name string) (string, error) { return secrets.Get(ctx, name) }
	return o
}

// logger returns a logger to stderr. --log-level overrides level.
func (c *cli) logger(s streams, level, format string) *slog.Logger {
	var l slog.Level
	if l.UnmarshalText([]byte(cmp.Or(string(c.LogLevel), level))) != nil {
		l = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(s.err, options))
	}
	return slog.New(slog.NewTextHandler(s.err, options))
}

// startOrKeep starts an app for one command. In the daemon, it returns an app that commands share. done must be called after use.
func (c *cli) startOrKeep(s streams, cfg *config.Config, profile app.Profile, only ...string) (a *app.App, done func(), err error) {
	if s.keep != nil {
		return s.keep(cfg, profile, only...)
	}
	if a, err = c.start(s, cfg, profile, only...); err != nil {
		return nil, nil, err
	}
	return a, a.Close, nil
}

// start starts mcpx with the servers in only; if only is empty, with all servers. If the profile is
// app.Command, it also connects to servers that would otherwise start at their first call. The caller closes
// the app.
func (c *cli) start(s streams, cfg *config.Config, profile app.Profile, only ...string) (*app.App, error) {
	a, err := app.New(app.Options{
		Config: cfg, Profile: profile, Log: c.logger(s, "error", cfg.LogFormat), Only: only, Origin: s.origin,
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
