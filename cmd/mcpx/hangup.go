package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"mcpx/internal/app"
	"mcpx/internal/desk/config"
)

// reloading reads the config again after each SIGHUP and, with --watch, when the file changes. If
// SIGHUP means that the terminal was closed, it calls hangUp. stop ends its goroutines.
func reloading(ctx context.Context, a *app.App, hangUp func(), cmd *serveCommand, s streams) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	hangups := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(hangups, syscall.SIGHUP)
	}
	reloads := make(chan struct{})
	loops.Go(func() { // ends with ctx
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
			}
			if s.terminal && terminalGone() {
				hangUp()
				return
			}
			select {
			case reloads <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	})
	loops.Go(func() { // ends with ctx
		load := func() (*config.Config, error) {
			cfg, err := readConfig(ctx, a.Config.Path, s)
			if err == nil && cmd.View != "" {
				cfg.View = cmd.View
			}
			return cfg, err
		}
		a.Follow(ctx, app.Source{Load: load, Reading: s.reading()}, reloads, cmd.Watch)
	})
	return func() {
		cancel()
		signal.Stop(hangups)
		loops.Wait()
	}
}

// terminalGone reports whether the terminal of mcpx was closed.
func terminalGone() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		_ = f.Close()
	}
	return err != nil
}
