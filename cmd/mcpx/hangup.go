package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"mcpx/internal/app"
	"mcpx/internal/desk/config"
)

// reloading has what the command mcpx serve needs to read its config file again, and to answer other commands, while it runs.
type reloading struct {
	cmd     *serveCommand
	app     *app.App
	log     *slog.Logger
	streams streams
	serves  string // the address for clients, as a text
}

// start starts goroutines that read the config again after each SIGHUP, after each mcpx reload and, with --watch, whenever the file
// changes. If mcpx was started with SIGHUP ignored, mcpx goes on ignoring it. If a SIGHUP was sent because the terminal was closed,
// the goroutines call hangUp instead. stop ends the goroutines.
func (r *reloading) start(ctx context.Context, hangUp func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	own := make(chan os.Signal, 1)
	hangups := (<-chan os.Signal)(own)
	if r.streams.reloads != nil {
		hangups = r.streams.reloads
	} else if signal.Ignored(syscall.SIGHUP) { // the program that started mcpx, such as nohup, has made mcpx ignore it
		r.log.Info("SIGHUP is ignored, as what started mcpx did: it does not read the config again, mcpx reload does")
	} else {
		signal.Notify(own, syscall.SIGHUP)
	}
	reloads := make(chan app.ReloadRequest)
	loops.Go(func() { // the goroutine ends with ctx
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
			}
			if r.streams.terminal && terminalGone() {
				hangUp()
				return
			}
			select {
			case reloads <- app.ReloadRequest{By: "a signal"}:
			case <-ctx.Done():
				return
			}
		}
	})
	loops.Go(func() { // the goroutine ends with ctx
		load := func() (*config.Config, error) {
			cfg, err := readConfig(ctx, r.app.Config.Path, r.streams)
			if err == nil && r.cmd.View != "" {
				cfg.View = r.cmd.View
			}
			return cfg, err
		}
		r.app.Follow(ctx, app.Source{Load: load, Reading: r.streams.reading()}, reloads, r.cmd.Watch)
	})
	closeSocket := r.listen(reloads)
	return func() {
		closeSocket()
		cancel()
		signal.Stop(own)
		loops.Wait()
	}
}

// terminalGone reports whether this process has no terminal any more, because the terminal was closed.
func terminalGone() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		_ = f.Close()
	}
	return err != nil
}
