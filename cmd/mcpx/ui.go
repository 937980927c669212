package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"mcpx/internal/app"
	"mcpx/internal/base/memory"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
)

type uiCommand struct {
	NoBrowser bool `name:"no-browser" help:"Print the link only."`
}

func (cmd *uiCommand) Help() string {
	return "The page is for you alone: its link works once, for two minutes. The daemon serves it on a port of this machine, and " +
		"closes the port when nobody has used the page for half an hour. Without a daemon mcpx ui serves it itself, until Ctrl-C.\n\n" +
		examples("mcpx ui", "mcpx ui --no-browser")
}

// Run opens the page in the daemon if possible. Otherwise it serves the page in this process.
func (cmd *uiCommand) Run(ctx context.Context, c *cli, s streams) error {
	if ran, err := c.warm(ctx, s, daemonCommand{"ui", cmd, true, true}); ran {
		return err
	}
	page, err := newUI(ctx, c, s, &app.Lines{})
	if err != nil {
		return err
	}
	cmd.show(ctx, s, page.links.New())
	fmt.Fprintln(s.out, "Ctrl-C ends it.")
	err = page.serve(ctx)
	if errors.Is(err, app.ErrUnused) {
		fmt.Fprintln(s.out, "closed, as nobody has used the page for half an hour")
		err = nil
	}
	return err
}

// show prints the link and, unless --no-browser is set, opens it in the user's browser.
func (cmd *uiCommand) show(ctx context.Context, s streams, link string) {
	fmt.Fprintf(s.out, "open this link; it works once, for two minutes:\n\n%s\n\n", link)
	if !cmd.NoBrowser && openBrowser(ctx, s.origin.Environ, link) != nil {
		fmt.Fprintln(s.out, "No browser could be started; open the link yourself.")
	}
}

// ui is the page of mcpx ui on a port of this machine, and the app behind the page.
type ui struct {
	app      *app.App
	listener net.Listener
	links    *app.Links
	load     func(ctx context.Context) (*config.Config, error)
	reading  config.Options
}

// newUI makes the page for the servers of the config. The parameter lines receives the log, which the page shows. The caller must
// call serve, which closes the port and the app.
func newUI(ctx context.Context, c *cli, s streams, lines *app.Lines) (*ui, error) {
	path, err := c.findConfig(s)
	if err != nil {
		return nil, err
	}
	cfg, err := readConfig(ctx, path, s)
	if err != nil {
		return nil, err
	}
	if !cfg.UI.Shown {
		return nil, &hintError{`the config has "ui": false`, "take it out of " + path}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: levelOf(cfg.LogLevel)}))
	a, err := app.New(app.Options{Config: cfg, Profile: app.Desk, Log: log, Lines: lines, Origin: s.origin})
	if err != nil {
		listener.Close()
		return nil, err
	}
	a.LogWarnings(cfg)
	load := func(ctx context.Context) (*config.Config, error) { return readConfig(ctx, path, s) }
	return &ui{a, listener, app.NewLinks(listener), load, s.reading()}, nil
}

// serve serves the page until ctx ends, serving fails, or nobody has used the page for half an hour. It closes the port and the
// app.
func (u *ui) serve(ctx context.Context) error {
	endAudit, err := u.app.OpenAudit()
	if err != nil {
		u.listener.Close()
		u.app.Close()
		return err
	}
	defer endAudit()
	memory.Limit(app.OwnMemory(u.app.Config))
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following.Go(func() { // ends with ctx
		u.app.Follow(ctx, app.Source{Load: func() (*config.Config, error) { return u.load(ctx) }, Reading: u.reading}, nil, true)
	})
	if err = u.app.ServePage(ctx, u.listener, u.links); err != nil && !errors.Is(err, app.ErrUnused) {
		err = fmt.Errorf("the page: %s", sanitize.Line(err.Error(), 300))
	}
	return err
}
