package app

import (
	"context"
	"path/filepath"

	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
	"mcpx/internal/programs"
)

// programFolder returns the folder of the stored programs of a config. A stored program is a file with code that clients can run.
// The folder is "" if the config turns programs off, or if the config names no folder and does not come from a file. required
// means that it is a fault if the folder does not exist.
func programFolder(cfg *config.Config) (folder string, required bool) {
	switch {
	case cfg.Programs.Off:
		return "", false
	case cfg.Programs.Dir != "":
		return cfg.Programs.Dir, true
	case cfg.Path == "":
		return "", false
	}
	return filepath.Join(filepath.Dir(cfg.Path), "programs"), false
}

// programsOf returns the programs that clients can run, or nil if the config turns programs off. It logs the faults of stored
// programs.
func (b *builder) programsOf(cfg *config.Config) *builtin.Programs {
	p := cfg.Programs
	if p.Off {
		return nil
	}
	var stored []*programs.Stored
	if folder, required := programFolder(cfg); folder != "" {
		var faults []programs.Fault
		stored, faults = programs.ReadFolder(folder, required, builtin.Names)
		for _, fault := range faults {
			b.log.Warn("programs", "fault", fault.String())
		}
	}
	return builtin.NewPrograms(programs.Limits{
		Time: p.Timeout, MaxTime: p.MaxTimeout, Memory: p.Memory, Calls: p.Calls, AtOnce: p.AtOnce,
	}, stored)
}

// ProgramFaults returns the faults of the stored programs, each with its place in the program. It compiles the programs.
func (a *App) ProgramFaults(ctx context.Context) (all []string) {
	folder, required := programFolder(a.Config)
	if folder == "" {
		return nil
	}
	stored, faults := programs.ReadFolder(folder, required, builtin.Names)
	for _, one := range stored {
		if fault := a.runner.Check(ctx, one.Code); fault != nil {
			fault.File = filepath.Join(folder, one.Name+".js")
			faults = append(faults, *fault)
		}
	}
	for _, fault := range faults {
		all = append(all, fault.String())
	}
	return all
}
