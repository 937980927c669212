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

// reading is how config files are read.
func (s streams) reading() config.Options {
	self, _ := os.Executable() // without it an entry that is mcpx has to have its name
	return config.Options{Getenv: s.getenv, Executable: self}
}

// logger is the logger of a command: the flag wins over the config. level is
// for commands that are quiet unless asked.
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

// demoLogger is the logger of a command that runs the sample servers: the flag
// wins over level.
func (c *cli) demoLogger(s streams, level string) *slog.Logger {
	if c.LogLevel != "" {
		level = string(c.LogLevel)
	}
	return newLogger(s.err, level, "text")
}
