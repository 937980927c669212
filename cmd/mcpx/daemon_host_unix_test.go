//go:build unix

package main

import (
	"log/slog"
	"testing"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/proc"
	"mcpx/internal/desk/attach"
	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
)

// TestDaemon_Close: the end of the daemon waits for the servers of an app that a timer has begun to end.
func TestDaemon_Close(t *testing.T) {
	mcptest.NoLeaks(t)
	quiet := slog.New(slog.DiscardHandler)
	spec := mcptest.Spec{IgnoreEOF: true, IgnoreTERM: true}.WithFiles(t)
	path := newHome(t).config(t, map[string]server{"fake": fake(t, spec)}, map[string]any{"start": "eager", "daemon_idle": "1ms"})
	cfg, err := config.Load(path, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{
		reaper: proc.NewReaper(), log: quiet, pool: registry.NewPool(time.Hour, quiet),
		daemon: attach.New(nil, time.Hour, quiet), lines: &app.Lines{}, sessions: make(map[*daemonSession]bool), kept: make(map[string]*keptApp),
	}
	_, done, err := d.keep(streams{err: t.Output()}, cfg, app.Command, nil) // the app has a reaper of its own
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for _, one := range d.kept {
		mcptest.WaitFor(t, "the server", patience, func() bool {
			pids := one.app.Registry.PIDs("fake")
			if len(pids) == 1 {
				pid = pids[0]
			}
			return pid != 0 && one.started()
		})
	}
	done()
	mcptest.WaitFor(t, "the timer", patience, func() bool { return len(d.apps()) == 0 })
	d.close()
	if mcptest.Alive(pid) {
		t.Error("the server still runs")
	}
}
