package main

import (
	"log/slog"
	"os"

	"mcpx/internal/config"
)

// loadConfig finds and reads the config file.
func (c *cli) loadConfig(s streams) (*config.Config, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		folder = ""
	}
	path, err := config.Find(c.Config, s.getenv, s.terminal, folder)
	if err != nil {
		return nil, err
	}
	return readConfig(path, s)
}

func readConfig(path string, s streams) (*config.Config, error) {
	return config.Load(path, s.reading())
}

// reading has the options to read config files.
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
