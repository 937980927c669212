package main

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"mcpx/internal/app"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/secret"
)

// loadConfig finds and reads the config file, to use these servers; none means all.
func (c *cli) loadConfig(ctx context.Context, s streams, only ...string) (*config.Config, error) {
	path, err := c.findConfig(s)
	if err != nil {
		return nil, err
	}
	return readConfig(ctx, path, s, only...)
}

func (c *cli) findConfig(s streams) (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		folder = ""
	}
	return config.Find(c.Config, s.getenv, s.terminal, folder)
}

// readConfig reads a config file to use its servers: it looks up the secrets that they name.
func readConfig(ctx context.Context, path string, s streams, only ...string) (*config.Config, error) {
	o, secrets := s.reading(), app.Secrets()
	o.Keyring = func(name string) (string, error) { return secrets.Get(ctx, name) }
	o.Run = func(argv []string) (string, error) { return secret.Run(ctx, argv) }
	o.Only = slices.DeleteFunc(only, func(name string) bool { return name == "" })
	cfg, err := config.Load(path, o)
	if err == nil && ctx.Err() != nil { // the faults of its servers may come from that
		return nil, ctx.Err()
	}
	return cfg, err
}

// reading has the options to read config files without the secrets that they name.
func (s streams) reading() config.Options {
	self, _ := os.Executable() // without it only its name marks an entry as mcpx itself
	return config.Options{Getenv: s.getenv, Executable: self}
}

// logger is the logger of a command. The flag overrides the config; a quiet command logs
// only errors unless the flag is set.
func (c *cli) logger(s streams, cfg *config.Config, quiet bool) *slog.Logger {
	level := cfg.LogLevel
	if quiet {
		level = "error"
	}
	if c.LogLevel != "" {
		level = string(c.LogLevel)
	}
	return newLogger(s.err, level, cfg.LogFormat)
}

// demoLogger is the logger of a command with the sample servers. The flag overrides
// level.
func (c *cli) demoLogger(s streams, level string) *slog.Logger {
	if c.LogLevel != "" {
		level = string(c.LogLevel)
	}
	return newLogger(s.err, level, "text")
}
