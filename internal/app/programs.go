package app

import (
	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
	"mcpx/internal/programs"
)

// programsOf returns the programs that clients can run; nil if the config turns programs off.
func programsOf(cfg *config.Config) *builtin.Programs {
	p := cfg.Programs
	if p.Off {
		return nil
	}
	return &builtin.Programs{Limits: programs.Limits{
		Time: p.Timeout, MostTime: p.MaxTimeout, Memory: p.Memory, Calls: p.Calls, AtOnce: p.AtOnce,
	}}
}
